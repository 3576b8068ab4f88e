import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tables_on_disk import assert_refused, ompb, series, stamps, write_long, write_wide


def test_check_says_what_the_table_is_and_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    values[100, 1] = -999
    kept = np.delete(np.arange(600), [300, 301])
    data = write_wide(tmp_path / "load.csv", values[kept], stamps()[kept])
    answer = ompb(capsys, "check", data)
    assert (answer.code, answer.err) == (0, "")
    for words in (
        "file        load.csv: text, commas between cells; wide (one row for each time)",
        "times       'date', 2024-01-01T00:00:00 to 2024-01-25T23:00:00, every hour",
        "gaps        2 times left out, counted as missing rows, from 2024-01-13T12:00:00",
        "targets     a, b",
        "season      12 rows (12 hours)",
        "'b' is -999 once, at 2024-01-05T04:00:00, far from all other values: if it means missing, say --missing -999.",
        f"  ompb run {data} --missing -999 --source-end 2024-01-19T18:00:00 --context 48 --horizon 12",
    ):
        assert words in answer.out
    assert list(tmp_path.iterdir()) == [data]


def test_the_command_that_check_proposes_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_wide(tmp_path / "load.csv", series())
    data.write_text(data.read_text().replace(",", ";").replace(".", ","))
    proposed = ompb(capsys, "check", data, "--target", "b").out.splitlines()[-1].split()
    assert proposed[:2] == ["ompb", "run"]
    answer = ompb(capsys, *proposed[1:], "--out", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
    assert "600 rows of 1 channel," in answer.out


def test_check_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b",shop,day,units\n0,x y,1,2\n1,z,1,3\n")))
    answer = ompb(capsys, "check", "-", "--time", "day")
    assert answer.code == 0
    assert "standard input: text, commas between cells; long (series in 'shop', values in 'units')" in answer.out
    assert "Done to it:\n  The column without a name holds row numbers and is left out.\n" in answer.out
    assert "The table is short" in answer.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--freq", "often"], "freq = 'often' is out of range; accepted: names such as 15min"),
        (["--timezone", "here"], "'here' is no time zone"),
        (["--sep", "tabs"], "sep = 'tabs'"),
        (["--target", "c"], "no column 'c'; the table has a, b"),
        (["--id", "c"], "no column 'c'; the file has date, a, b"),
        (["--future", "a", "--target", "a"], "no column 'a'; the table has b"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_wide(tmp_path / "load.csv", series(50))
    assert_refused(ompb(capsys, "check", data, *options), words)


def test_a_code_that_no_cell_has_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_wide(tmp_path / "load.csv", series())
    assert "  No cell is -999, which --missing names: nothing" in ompb(capsys, "check", data, "--missing", -999).out


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_the_proposed_command_is_that_of_the_table_without_its_codes(
    layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = series()
    values[np.random.default_rng(0).random(values.shape) < 0.02] = -999
    data = tmp_path / "load.csv"
    if layout == "wide":
        write_wide(data, values)
    else:
        write_long(data, {"north": values[:, 0], "south": values[:, 1]})
    suspected, said = (ompb(capsys, "check", data, *missing).out.splitlines() for missing in ((), ("--missing", -999)))
    assert "season      12 rows (12 hours)" in said
    assert "season      12 rows (12 hours)" in suspected
    assert "--missing -999" in said[-1]
    assert suspected[-1] == said[-1]


def test_the_proposed_command_runs_where_cells_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    values[np.random.default_rng(0).random(values.shape) < 0.15] = np.nan
    proposed = ompb(capsys, "check", write_wide(tmp_path / "load.csv", values)).out.splitlines()[-1].split()
    answer = ompb(capsys, *proposed[1:], "--out", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
