import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
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
    stamps,
    write_recorded,
    write_wide,
)

from ompb import Calibrator, Ridge, Run, backtest
from ompb.tables import read_table
from ompb.types import Floats

TRAINED = 375  # the first 75 % of the source


def direct(values: Floats, **options: Any) -> Run:
    """The same run through the library."""
    forecaster = Ridge.fit(values[:TRAINED], CONTEXT, HORIZON)
    calibrator = Calibrator.fit(
        forecaster, values[:SOURCE], context=CONTEXT, horizon=HORIZON, unseen=SOURCE - TRAINED, **options
    )
    return backtest(calibrator, forecaster, values[SOURCE - CONTEXT + 1 :])


def scores_of(out: Path) -> dict[str, Any]:
    summary = json.loads((out / "summary.json").read_text())
    return {line["name"]: line for line in summary["scores"]["target"]}


def test_wide_csv_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_wide(tmp_path / "load.csv", series()), tmp_path / "out"
    answer = ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, "--season", 12, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert "600 rows of 2 channels, 0 missing time stamps inserted" in answer.out
    assert {path.name for path in out.iterdir()} == {"forecasts.parquet", "newest.csv", "summary.json", "report.html"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 5
    assert re.search(r"^\d+ episodes? of warnings.*:$", answer.out, re.MULTILINE)
    assert "500 rows, 2024-01-01T00:00:00 to 2024-01-21T19:00:00" in page


def test_scores_and_forecasts_equal_the_librarys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values, out = series(), tmp_path / "out"
    data = write_wide(tmp_path / "load.csv", values)
    options = ("--season", "12", "--option", "gate=shared", "--option", "anchor=20")
    ompb(capsys, "run", data, "--source-end", "2024-01-21T20:00", *LENGTHS, *options, "--out", out)
    run = direct(read_table(data).values, season=12, gate="shared", anchor=20)
    error = (run.mean - run.outcome) / run.scale
    assert scores_of(out)["ompb"]["mae"] == pytest.approx(np.nanmean(np.abs(error)))
    assert scores_of(out)["ompb"]["mse"] == pytest.approx(np.nanmean(error**2))
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["settings"]["gate"], summary["settings"]["anchor"]) == ("shared", 20)
    assert summary["certificate"]["value"] == pytest.approx(run.certificate["value"][-1])
    assert summary["realised"]["upper"] == pytest.approx(run.realised.upper)

    written, expected = pl.read_parquet(out / "forecasts.parquet"), run.frame("polars")
    for name in ("y", "base", "y_hat", "lower_80", "upper_80", "lower_95", "upper_95", "gate", "certificate"):
        left, right = written[name].fill_null(np.nan).to_numpy(), expected[name].to_numpy()
        assert np.allclose(left, right, atol=1e-3, equal_nan=True), name
    assert written.columns[:4] == ["unique_id", "ds", "cutoff", "lead"]
    assert written["unique_id"].unique(maintain_order=True).to_list() == ["a", "b"]
    # the first forecast is issued at the first target row, the last one reaches beyond the table
    times = stamps(ROWS + HORIZON)
    assert (written["cutoff"].min(), written["cutoff"].max()) == (times[SOURCE].item(), times[ROWS - 1].item())
    assert (written["ds"].min(), written["ds"].max()) == (times[SOURCE + 1].item(), times[-1].item())


def test_a_long_layout_taken_together_gives_the_same_forecasts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = write_wide(tmp_path / "wide.csv", series())
    long = tmp_path / "long.csv"
    frame = pl.read_csv(wide).unpivot(["a", "b"], index="date", variable_name="unique_id", value_name="y")
    frame.rename({"date": "ds"}).write_csv(long)
    for data in (wide, long):
        out = ("--csv", "--out", tmp_path / data.stem)
        ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, "--together", *out)
    files = [(tmp_path / name / "forecasts.csv").read_text() for name in ("wide", "long")]
    assert files[0] == files[1]


def test_missing_stamps_and_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values, kept = series(), np.delete(np.arange(ROWS), [300, 301, 550])
    values[320, 0] = values[570, 1] = np.nan
    data, out = write_wide(tmp_path / "load.csv", values[kept], stamps()[kept]), tmp_path / "out"
    answer = ompb(capsys, "run", data, "--source-end", "2024-01-21T20:00", *LENGTHS, "--season", 12, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert "3 missing time stamps inserted" in answer.out
    values[[300, 301, 550]] = np.nan
    run = direct(values, season=12)
    assert scores_of(out)["bare forecaster"]["mae"] == pytest.approx(
        np.nanmean(np.abs((run.base - run.outcome) / run.scale))
    )


def test_integer_times_no_season_no_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_wide(tmp_path / "load.csv", series(), np.arange(ROWS)), tmp_path / "out"
    options = ("--season", "none", "--option", "certificate=false", "--time", "date", "--unseen", "100")
    answer = ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, *options, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["season"], summary["certificate"]) == (None, None)
    assert "seasonal profile" not in scores_of(out)
    assert "trained on the first 400 rows" in summary["facts"]["forecaster"]
    written = pl.read_parquet(out / "forecasts.parquet")
    assert (written["cutoff"].min(), written["ds"].max()) == (SOURCE, ROWS - 1 + HORIZON)
    assert "certificate" not in written.columns


def test_names_of_files_need_not_be_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_wide(tmp_path / "load.csv", series()).rename(tmp_path / os.fsdecode(b"load \xff.csv"))
    out = tmp_path / os.fsdecode(b"out \xff")
    answer = ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert r"out \udcff/report.html" in answer.out
    assert r"load \udcff.csv" in (out / "report.html").read_text(encoding="utf-8")
    assert len(pl.read_parquet((out / "forecasts.parquet").read_bytes())) == 2 * HORIZON * (ROWS - SOURCE)
    nowhere = tmp_path / os.fsdecode(b"nowhere \xff.csv")
    assert_refused(ompb(capsys, "run", nowhere, "--source-end", SOURCE, *LENGTHS, "--out", out), "There is no file")


def test_absurd_cells_are_told_on_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    values[SOURCE + 40, 1] = 9.96921e36
    data = write_wide(tmp_path / "load.csv", values)
    answer = ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, "--out", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
    assert "1 cell was too absurd to be believed and was taken as missing (b: 1, at 2024-01-" in answer.out
    write_wide(data, series())
    answer = ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, "--out", tmp_path / "out")
    assert "believed" not in answer.out


class TestBroughtForecasts:
    """Those of the built-in forecaster, written to a file, stand for the user's own."""

    def bring(self, folder: Path, origins: Any) -> tuple[Path, Path]:
        values = series()
        data = write_wide(folder / "load.csv", values)
        read = read_table(data).values
        ridge = Ridge.fit(read[:TRAINED], CONTEXT, HORIZON)
        windows = np.stack([read[origin + 1 - CONTEXT : origin + 1] for origin in origins])
        return data, write_recorded(folder / "mine.csv", ridge(windows), origins)

    def test_they_give_what_the_forecaster_itself_gives(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data, mine = self.bring(tmp_path, range(CONTEXT - 1, ROWS))
        command = ("run", data, "--source-end", SOURCE, *LENGTHS, "--season", 12, "--unseen", SOURCE - TRAINED)
        ompb(capsys, *command, "--out", tmp_path / "built-in")
        answer = ompb(capsys, *command, "--forecasts", mine, "--out", tmp_path / "brought")
        assert (answer.code, answer.err) == (0, "")
        assert "not used" not in answer.out
        built_in, brought = (pl.read_parquet(tmp_path / name / "forecasts.parquet") for name in ("built-in", "brought"))
        assert np.allclose(built_in["y_hat"], brought["y_hat"], atol=1e-3)
        assert "forecasts recorded in mine.csv" in (tmp_path / "brought" / "report.html").read_text(encoding="utf-8")

    def test_forecasts_at_some_rows_only_are_used_as_they_are(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data, mine = self.bring(tmp_path, range(CONTEXT - 1, ROWS, 4))
        out = tmp_path / "out"
        answer = ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, "--forecasts", mine, "--out", out)
        assert (answer.code, answer.err) == (0, "")
        summary = json.loads((out / "summary.json").read_text())
        assert summary["forecasts"] == len([t for t in range(CONTEXT - 1, ROWS, 4) if t >= SOURCE])
        bare, ours = (summary["scores"]["target"][place]["mae"] for place in (0, -1))
        assert ours < bare

    def test_a_later_start_and_an_earlier_end_are_used_and_said(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data, mine = self.bring(tmp_path, [*range(200, SOURCE - HORIZON), *range(SOURCE, ROWS - HORIZON)])
        out = tmp_path / "out"
        answer = ompb(capsys, "run", data, "--source-end", SOURCE, *LENGTHS, "--forecasts", mine, "--out", out)
        assert (answer.code, answer.err) == (0, "")
        assert "begin at 2024-01-09T08:00:00: 177 source rows are not used" in answer.out
        assert "end at 2024-01-25T17:00:00: later rows are outcomes only" in answer.out
        summary = json.loads((out / "summary.json").read_text())
        assert summary["certificate"]["in_sample"] is True
        assert summary["forecasts"] == ROWS - HORIZON - SOURCE


def test_results_of_an_older_run_are_replaced_with_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_wide(tmp_path / "load.csv", series()), tmp_path / "out"
    command = ("run", data, "--source-end", SOURCE, *LENGTHS, "--season", 12, "--out", out)
    first, second = ompb(capsys, *command, "--csv"), ompb(capsys, *command)
    assert "replaced" not in first.out
    assert f"\nThe results of an older run in {out} are replaced (" in second.out
    failed = ompb(capsys, *command, "--target", "nowhere")
    assert failed.code
    assert "replaced" not in failed.out
    assert not (out / "forecasts.csv").exists()
    (out / "summary.json").unlink()
    assert_refused(ompb(capsys, *command), "of which no run of ompb is known")
