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
