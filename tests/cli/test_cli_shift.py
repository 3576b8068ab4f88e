import re
from pathlib import Path

import numpy as np
import pytest
from tables_on_disk import assert_refused, ompb, series, write_wide

from ompb.metrics.shift import ks


def test_shift_shows_every_common_channel_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    a, b = write_wide(tmp_path / "before.csv", values[:500]), write_wide(tmp_path / "after.csv", values[500:])
    out = tmp_path / "new" / "shift.svg"
    answer = ompb(capsys, "shift", a, b, "--out", out)
    assert answer.code == 0
    distances = [ks(values[:500, c], values[500:, c]) for c in range(2)]
    lines = {line.split()[0]: line.split() for line in answer.out.splitlines() if line.strip()}
    assert lines["a"][1] == f"{distances[0]:.3f}"
    assert lines["mean"][1] == f"{np.mean(distances):.3f}"
    assert len(lines["mean"]) == 5
    assert "before against after" in answer.out
    assert "after" in out.read_text()


def test_tables_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_wide(tmp_path / "load.csv", series(50))
    answer = ompb(capsys, "shift", table, table, "--out", tmp_path / "shift.png")
    assert f"{table} against {table}" in answer.out


def test_bad_input_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_wide(tmp_path / "load.csv", series(50))
    other = tmp_path / "other.csv"
    other.write_text("date,c\n2024-01-01,1\n")
    assert_refused(ompb(capsys, "shift", table, other), "No channel is in both tables")
    assert_refused(ompb(capsys, "shift", table, tmp_path), "is a folder; name one file in it")
    assert_refused(ompb(capsys, "shift", table, tmp_path / "absent.csv"), "There is no file")
    assert_refused(ompb(capsys, "shift", table, table, "--time", "hour"), "no column 'hour'")
    assert_refused(ompb(capsys, "shift", table, table, "--out", "shift.pdf"), "name the figure .png or .svg")


def test_values_are_compared_whatever_the_times_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps need not be even, and a code for missing values is no value."""
    tables = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path in tables:
        path.write_text("when;load\n2024-01-01;1,5\n2024-01-02;2,5\n2024-01-07 03:11;-999\n")
    answer = ompb(capsys, "shift", *tables, "--missing", -999, "--out", tmp_path / "shift.png")
    assert (answer.code, answer.err) == (0, "")
    assert re.search(r"^load +0\.000 +0\.000", answer.out, re.MULTILINE)


def test_an_hour_that_comes_twice_needs_the_zone_that_the_error_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "autumn.csv"
    hours = ("00:00", "01:00", "02:00", "02:00", "03:00")
    table.write_text("date,a\n" + "".join(f"2024-10-27T{hour},{place}\n" for place, hour in enumerate(hours)))
    figure = ("--out", tmp_path / "shift.svg")
    assert_refused(ompb(capsys, "shift", table, table, *figure), "--timezone Europe/Berlin")
    answer = ompb(capsys, "shift", table, table, *figure, "--timezone", "Europe/Berlin")
    assert (answer.code, answer.err) == (0, "")
    assert "0.000" in answer.out


def test_each_table_may_be_read_in_its_own_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One by the clock of Berlin with both hours of autumn, the other long, in UTC, under other names."""
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    hours = ("01:00", "02:00", "02:00", "03:00")
    one.write_text("date,a,note\n" + "".join(f"2024-10-27T{hour},{place},x\n" for place, hour in enumerate(hours)))
    rows = "".join(f"a,2024-03-31T{hour}:00,{hour}\n" for hour in range(10, 14))
    two.write_text(f"name,when,load\n{rows}".replace(",13\n", ",-999\n"))
    of_first = ("--time", "date", "--timezone", "Europe/Berlin", "--exclude", "note")
    of_second = ("time=when", "timezone=UTC", "id=name", "value=load", "exclude=", "missing=-999")
    answer = ompb(
        *(capsys, "shift", one, two, "--out", tmp_path / "shift.png", *of_first),
        *(word for text in of_second for word in ("--b", text)),
    )
    assert (answer.code, answer.err) == (0, "")
    assert re.search(r"^a +1\.000", answer.out, re.MULTILINE)  # 0 to 3 against 10 to 12


def test_what_is_said_of_the_second_table_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_wide(tmp_path / "load.csv", series(50))
    assert_refused(ompb(capsys, "shift", table, table, "--b", "zone=UTC"), "--b = 'zone=UTC'", "time, id, value")
    assert_refused(ompb(capsys, "shift", table, table, "--b", "time"), "NAME=VALUE")
    twice = ("--b", "time=date", "--b", "time=day")
    assert_refused(ompb(capsys, "shift", table, table, *twice), "one time for the second table")


def test_notes_are_told_with_the_table_they_are_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (write_wide(tmp_path / name, series(50)) for name in ("one.csv", "two.csv"))
    answer = ompb(capsys, "shift", one, two, "--b", "missing=-999", "--out", tmp_path / "shift.png")
    assert "two: No cell is -999, which --missing names" in answer.out
    assert "one: " not in answer.out


def test_channels_of_one_table_alone_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (write_wide(tmp_path / name, series(50)) for name in ("one.csv", "two.csv"))
    two.write_text(two.read_text().replace("date,a,b", "date,a,c"))
    answer = ompb(capsys, "shift", one, two, "--out", tmp_path / "shift.png")
    assert "one: b not compared" in answer.out
    assert "two: c not compared" in answer.out


def test_a_channel_without_values_is_left_out_of_all_distances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = series(50)
    values[:, 1] = np.nan
    one, two = (write_wide(tmp_path / name, rows) for name, rows in (("one.csv", values), ("two.csv", series(50))))
    answer = ompb(capsys, "shift", one, two, "--out", tmp_path / "shift.png")
    assert "one: Channel 'b' has no value at all and is left out." in answer.out
    assert re.search(r"all channels together: 0\.\d{3}", answer.out)
