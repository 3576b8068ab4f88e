from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables_on_disk import (
    CONTEXT,
    HORIZON,
    LENGTHS,
    ROWS,
    SOURCE,
    assert_refused,
    ompb,
    series,
    write_recorded,
    write_wide,
)

from ompb.cli.values import options_of
from ompb.errors import OptionError


@pytest.fixture
def load(tmp_path: Path) -> Path:
    return write_wide(tmp_path / "load.csv", series())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--source-end", "soon"], "neither a number of rows nor a date"),
        (["--source-end", "600"], "does not split the 600 rows"),
        (["--source-end", "2023-01-01"], "does not split the 600 rows"),
        (["--source-end", "40"], "it needs at least 30 (context + horizon)"),
        (["--source-end", "20"], "the source has 20 rows; it needs at least 30 (context + horizon)"),
        (["--time", "hour"], "no column 'hour'"),
        (["--season", "weekly"], "a number of rows, auto or none"),
        (["--season", "1"], "season = 1"),
        (["--season", "99999999999"], "season = 99999999999 is out of range"),
        (["--season", "9" * 5000], "a number of rows, auto or none"),
        (["--horizon", "99999999999"], "horizon = 99999999999"),
        (["--context", "9999999"], "the source has 500 rows"),
        (["--unseen", "most"], "--unseen = 'most' is out of range; accepted: a number of rows"),
        (["--unseen", "1.5"], "unseen = 1.5 is out of range"),
        (["--unseen", "-3"], "unseen = -3 is out of range"),
        (["--unseen", "nan"], "unseen = nan is out of range"),
        (["--unseen", "inf"], "unseen = inf is out of range"),
        (["--unseen", "500"], "the source has 500 rows, and unseen = 500 leaves one side"),
        (["--unseen", "10"], "leaves 10 for the certificate part"),
        (["--option", "gate"], "name=value"),
        (["--option", "season=24"], "--option season=24 is an option of its own; write --season 24."),
        (["--model", "AutoETS"], "'AutoETS' names a column of recorded forecasts (--model"),
        (["--option", "gates=shared"], "did you mean 'gate'?"),
        (["--option", "gate=half"], "one of channel, shared, open"),
        (["--option", "anchor=much"], "anchor"),
        (["--option", "discounts=0.9"], "discounts"),
        (
            ["--option", "discounts=(0.9, half)"],
            "discounts = '(0.9, half)' is out of range; accepted: one or more numbers",
        ),
        (["--option", "delta=null"], "delta = None"),
        (["--option", f"anchor={'[' * 100_000}"], "accepted: values that are not nested so deep"),
        (["--option", f"anchor={'(' * 100_000}"], "anchor = "),
        (["--option", f"discounts={'-' * 100_000}1"], "option discounts = "),
        (["--option", "anchor=(1, 2)"], "a positive number"),
        (["--horizon", "0"], "--horizon"),
        (["--forecasts", "nowhere.csv"], "There is no file 'nowhere.csv'"),
    ],
)
def test_bad_arguments(
    load: Path, tmp_path: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = ("run", load, "--source-end", SOURCE, *LENGTHS, "--out", tmp_path / "out")
    assert_refused(ompb(capsys, *usual, *arguments), words)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("load.xlsx", "PK\x03\x04", "save the sheet as CSV"),
        ("empty.csv", "", "is empty"),
        ("ragged.csv", "date,a\n2024-01-01,1,2\n2024-01-02,1,2,3\n", "cannot be read as CSV"),
        ("text.csv", "date,a\n2024-01-01,high\n", "'high' in line 2 of the file, which is not a number"),
        ("repeated.csv", "date,a\n2024-01-02,1\n2024-01-02,2\n", "appears twice"),
        ("timeless.csv", "a,b\n1,wet\n", "no time column"),
        ("damaged.parquet", "not parquet", "cannot be read as Parquet"),
    ],
)
def test_bad_tables(tmp_path: Path, name: str, content: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert_refused(ompb(capsys, "run", path, "--source-end", "1", *LENGTHS), words)


def test_missing_file_and_unusable_folder(load: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = ("--source-end", SOURCE, *LENGTHS)
    assert_refused(ompb(capsys, "run", "nowhere.csv", *usual), "There is no file 'nowhere.csv'")
    assert_refused(ompb(capsys, "run", load, *usual, "--out", load), f"{load} is a file, not a folder")


def test_a_run_that_fails_leaves_no_folder_behind(load: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (load.parent / "mine").mkdir()
    for out in ("new/deep", "mine"):
        answer = ompb(capsys, "run", load, *LENGTHS, "--source-end", "soon", "--out", load.parent / out)
        assert_refused(answer, "neither a number of rows nor a date")
    assert {path.name for path in load.parent.iterdir()} == {"load.csv", "mine"}


@pytest.mark.parametrize(
    ("origins", "words"),
    [
        (range(SOURCE, ROWS), "no cutoff in the source"),
        (range(CONTEXT - 1, SOURCE), "no cutoff in the target"),
    ],
)
def test_brought_forecasts_must_be_of_both_parts(
    load: Path, tmp_path: Path, origins: Any, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = write_recorded(tmp_path / "mine.csv", np.zeros((len(origins), HORIZON, 2)), origins)
    answer = ompb(capsys, "run", load, "--source-end", SOURCE, *LENGTHS, "--forecasts", mine, "--out", tmp_path)
    assert_refused(answer, words)


def lacking(lead: Any, channel: Any, origin: Any = slice(None)) -> Any:
    """Forecasts (n, H, C) from every row on, without some of their cells."""
    forecasts = np.zeros((ROWS - CONTEXT, HORIZON, 2))
    forecasts[origin, lead, channel] = np.nan
    return forecasts


@pytest.mark.parametrize(
    ("forecasts", "words"),
    [
        (
            lacking(slice(4, None), slice(None)),
            "'mine.csv' has no forecasts at leads 5, 6 of the 6 of the horizon; lower the horizon to 4, or add "
            "those leads.",
        ),
        (lacking(2, slice(None)), "no forecasts at lead 3 of the 6 of the horizon; lower the horizon to 2, or"),
        (lacking(0, slice(None)), "no forecasts at lead 1 of the 6 of the horizon; add that lead."),
        (lacking(5, 1), "no forecasts of channel 'b' at lead 6 of the 6 of the horizon; lower the horizon to 5"),
        (
            lacking(slice(None), 1),
            "'mine.csv' has no forecasts of channel 'b'; add them, or leave it out with --exclude 'b'.",
        ),
        (
            lacking(1, 0, [300, 301]),
            "no forecast of channel 'a' at lead 2 from the cutoff 2024-01-14T12:00:00 (2 of its cutoffs lack some); "
            "add it, or drop all lines of that cutoff.",
        ),
    ],
    ids=["short", "hole", "first", "one channel short", "no channel", "here and there"],
)
def test_brought_forecasts_that_lack_something_are_refused(
    load: Path, tmp_path: Path, forecasts: Any, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = write_recorded(tmp_path / "mine.csv", forecasts, range(CONTEXT, ROWS))
    answer = ompb(capsys, "run", load, "--source-end", SOURCE, *LENGTHS, "--forecasts", mine, "--out", tmp_path)
    assert_refused(answer, words)
    assert "nan" not in answer.err


@pytest.mark.parametrize(
    "times",
    [
        np.linspace(-9e18, 9e18, ROWS).astype(np.int64),
        2**63 - 1 - np.arange(ROWS)[::-1],
        np.datetime64("9999-12-31T20:00", "us") - np.arange(ROWS)[::-1] * np.timedelta64(1, "h"),
    ],
    ids=["all integers", "last integers", "last dates"],
)
def test_times_beyond_what_can_be_written_leave_no_file(
    times: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = write_wide(tmp_path / "load.csv", series(), times), tmp_path / "out"
    answer = ompb(capsys, "run", data, "--time", "date", "--source-end", SOURCE, *LENGTHS, "--out", out)
    assert_refused(answer, "accepted:")
    assert not out.exists()


def test_too_many_draws_are_refused() -> None:
    with pytest.raises(OptionError, match="draws = 1000000"):
        options_of(["draws=1000000"])
