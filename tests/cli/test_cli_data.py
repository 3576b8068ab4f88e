from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tables_on_disk import assert_refused, ompb, stamps

from ompb.datasets.benchmark import NAMES
from ompb.datasets.etth import CHANNELS

ROWS = 1000  # of which 800 source, 200 "id"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the two files of etth and nothing else; a cell in ten of ETTh2 is missing."""
    for number in (1, 2):
        values = np.random.default_rng(number).uniform(-1, 1, (ROWS, len(CHANNELS)))
        values[0, 0], values[-1, -1] = -5, 7.5
        values[5 : ROWS // 10 + 5] = np.nan if number == 2 else 0.0
        columns = {"date": stamps(ROWS), **dict(zip(CHANNELS, values.T, strict=True))}
        frame = pl.DataFrame(columns).fill_nan(None)
        frame.write_csv(tmp_path / f"ETTh{number}.csv", datetime_format="%Y-%m-%d %H:%M:%S")
    return tmp_path


def test_check_shows_files_and_windows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ompb(capsys, "data", "check", "etth", "--folder", folder)
    assert (answer.code, answer.err) == (0, "")
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in answer.out.splitlines() if line.strip()}
    assert lines["ETTh1.csv"] == "1000 x 7 2024-01-01 to 2024-02-11 -5 to 7.5 0.00%"
    assert lines["ETTh2.csv"].endswith(" 10.00%")
    assert lines["horizon"] == "source id ood"
    assert lines["48"] == "657 57 57"
    assert lines["720"] == "0 0 0"


def test_without_names_it_lists_what_is_there_and_what_is_not(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPB_DATA", str(folder))
    answer = ompb(capsys, "data", "check")
    assert (answer.code, answer.err) == (0, "")
    assert "etth: files" in answer.out
    for name in set(NAMES) - {"etth"}:
        (line,) = (line for line in answer.out.splitlines() if line.startswith(f"{name}: "))
        assert f"not in {folder}; to be had from" in line


def test_a_set_asked_for_must_be_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(ompb(capsys, "data", "check", "ili", "--folder", folder), "ILINet*.csv", str(folder), "OMPB_DATA")
    assert_refused(ompb(capsys, "data", "check", "weather", "--folder", folder), "no data set 'weather'", "etth")


def test_a_damaged_file_is_refused_even_unasked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ETTh2.csv").write_text("date,HUFL\n")
    assert_refused(ompb(capsys, "data", "check", "--folder", folder), "ETTh2.csv has no column 'HULL'")


def test_data_alone_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ompb(capsys, "data")
    assert answer.code == 0
    assert "check" in answer.out


def test_check_on_the_public_data(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ompb(capsys, "data", "check", "--folder", data_dir)
    assert answer.code == 0
    assert any(f"{name}: " in answer.out for name in NAMES)
