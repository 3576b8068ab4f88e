"""``ompb run`` on tables as people have them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tables_on_disk import CONTEXT, LENGTHS, ROWS, SOURCE, assert_refused, ompb, series, stamps, write_wide

COMMAND = ("--source-end", SOURCE, *LENGTHS, "--season", 12)


def bare_mae(out: Path) -> float:
    summary = json.loads((out / "summary.json").read_text())
    return float(summary["scores"]["target"][0]["mae"])


def test_an_index_written_along_is_not_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = write_wide(tmp_path / "plain.csv", series())
    pd.read_csv(plain).to_csv(tmp_path / "pandas.csv")
    for name in ("plain", "pandas"):
        answer = ompb(capsys, "run", tmp_path / f"{name}.csv", *COMMAND, "--out", tmp_path / name)
        assert (answer.code, answer.err) == (0, "")
    assert "The column without a name holds row numbers and is left out." in answer.out
    assert bare_mae(tmp_path / "plain") == bare_mae(tmp_path / "pandas")


def test_zones_are_kept_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    utc = pd.date_range("2024-10-04", periods=ROWS, freq="h", tz="UTC")  # clocks go back at row 553, in the target
    local = utc.tz_convert("Europe/Berlin").tz_localize(None)
    data, out = write_wide(tmp_path / "load.csv", series(), local.to_numpy()), tmp_path / "out"
    usual = ("run", data, *LENGTHS, "--season", 12, "--csv", "--out", out)
    assert_refused(ompb(capsys, *usual, "--source-end", SOURCE), "2024-10-27T02:00:00", "appears twice", "--timezone")
    answer = ompb(capsys, *usual, "--source-end", "2024-10-24T22:00", "--timezone", "Europe/Berlin")
    assert (answer.code, answer.err) == (0, "")
    assert "600 rows of 2 channels, 0 missing time stamps inserted" in answer.out
    assert "Source: 500 rows, 2024-10-04T02:00:00+02:00 to 2024-10-24T21:00:00+02:00." in answer.out
    # the level moves where the target begins, and warnings say when by the same clock
    alert = json.loads((out / "summary.json").read_text())["warnings"][0]["alerts"][0]
    began = utc[SOURCE - CONTEXT + 1 + alert["since"]].tz_convert("Europe/Berlin")
    assert alert["since_time"] == began.isoformat()
    assert f"since {began.isoformat()[:-6]} " in answer.out
    frame = pd.read_csv(out / "forecasts.csv")
    first = frame[(frame.unique_id == "a") & (frame.lead == 1)]
    assert (pd.to_datetime(first.cutoff, utc=True) == utc[SOURCE:]).all()
    assert {"2024-10-27T02:00:00+02:00", "2024-10-27T02:00:00+01:00"} <= set(first.cutoff)
    assert pl.read_parquet(out / "forecasts.parquet").schema["ds"] == pl.Datetime("us", "Europe/Berlin")
    newest = pd.read_csv(out / "newest.csv")
    assert set(newest.cutoff) == {first.cutoff.iloc[-1]}
    assert newest.lead.tolist() == 2 * [1, 2, 3, 4, 5, 6]


def test_a_channel_born_late_is_named_and_let_in_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    values[:400, 1] = np.nan
    data = write_wide(tmp_path / "load.csv", values)
    answer = ompb(capsys, "run", data, *COMMAND, "--out", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
    sentence = (
        "Channel 'b' begins at 2024-01-17T16:00:00 and has no 30 rows in succession (context + horizon) before "
        "2024-01-16T15:00:00, where training ends: it is left out. To have it in, let the source end at "
        "2024-01-24T22:00:00 or later (--source-end)."
    )
    assert sentence in answer.out
    assert pl.read_parquet(tmp_path / "out" / "forecasts.parquet")["unique_id"].unique().to_list() == ["a"]
    later = ompb(capsys, "run", data, "--source-end", "2024-01-24T22:00", *LENGTHS, "--out", tmp_path / "later")
    assert (later.code, "left out" in later.out) == (0, False)
    values[:590, :] = np.nan
    answer = ompb(capsys, "run", write_wide(data, values), *COMMAND, "--out", tmp_path / "none")
    assert_refused(
        answer, "No channel can be learned from. Channel 'a' begins at 2024-01-25T14:00:00", "shorten the context"
    )


def test_covariates_are_no_targets_and_it_is_said_who_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_wide(tmp_path / "load.csv", series())
    answer = ompb(capsys, "run", data, *COMMAND, "--future", "b", "--out", tmp_path / "future")
    assert (answer.code, answer.err) == (0, "")
    assert "Known ahead: b. The built-in forecaster and recorded forecasts take no covariates" in answer.out
    ompb(capsys, "run", data, *COMMAND, "--exclude", "b", "--out", tmp_path / "exclude")
    assert bare_mae(tmp_path / "future") == bare_mae(tmp_path / "exclude")


def test_cells_that_mean_missing_are_told_and_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    values[[50, 450], 0] = -999
    data = write_wide(tmp_path / "load.csv", values)
    believed = ompb(capsys, "run", data, *COMMAND, "--out", tmp_path / "believed")
    assert "'a' is -999 2 times, from 2024-01-03T02:00:00 on, far from all other values" in believed.out
    known = ompb(capsys, "run", data, *COMMAND, "--missing", -999, "--out", tmp_path / "known")
    assert "-999" not in known.out
    values[[50, 450], 0] = np.nan
    ompb(capsys, "run", write_wide(data, values), *COMMAND, "--out", tmp_path / "empty")
    assert bare_mae(tmp_path / "known") == bare_mae(tmp_path / "empty")


def test_a_constant_channel_is_told_by_check_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    values[:, 1] = 5
    data = write_wide(tmp_path / "load.csv", values)
    sentence = (
        "'b' is always 5: nothing can be forecast of it, and mean scores count it; leave it out with --exclude 'b'."
    )
    assert f"Look at:\n  {sentence}\n" in ompb(capsys, "check", data).out
    assert sentence in ompb(capsys, "run", data, *COMMAND, "--out", tmp_path / "out").out
    assert "always" not in ompb(capsys, "run", data, *COMMAND, "--exclude", "b", "--out", tmp_path / "out").out


def test_a_channel_without_outcomes_is_told_and_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = series()
    values[SOURCE - 10 :, 1] = np.nan
    data, out = write_wide(tmp_path / "load.csv", values), tmp_path / "out"
    answer = ompb(capsys, "run", data, *COMMAND, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert (
        "Channel 'b' has no value after 2024-01-21T09:00:00, and so no outcome in the target: it is forecast, and "
        "scores do not count it. Let the source end earlier (--source-end), or leave it out (--exclude)."
    ) in answer.out
    ours = json.loads((out / "summary.json").read_text())["scores"]["target"][-1]
    frame = pl.read_parquet(out / "forecasts.parquet").drop_nulls("y")
    assert frame["unique_id"].unique().to_list() == ["a"]
    scale = (frame["y_hat"] - frame["y"]).abs().mean() / ours["mae"]
    assert ours["width80"] == pytest.approx((frame["upper_80"] - frame["lower_80"]).mean() / scale, rel=1e-3)


def test_the_screen_says_units_sizes_and_what_a_large_certificate_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = write_wide(tmp_path / "load.csv", series()), tmp_path / "out"
    answer = ompb(capsys, "run", data, "--source-end", 160, *LENGTHS, "--season", 12, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert "MAE and widths are in standard deviations of the source, MSE in their squares: 1 is 0." in answer.out
    assert "In 80 % and in 95 %: the share of outcomes inside those intervals." in answer.out
    assert "from 1 on it excludes nothing" in answer.out
    assert "It rests on only 2 windows of the source, and the price of having so few is 0." in answer.out
    assert f"Newest forecasts: {out / 'newest.csv'} (1." in answer.out
    assert "from 1 on it excludes nothing" in (out / "report.html").read_text(encoding="utf-8")
    longer = ompb(capsys, "run", data, *COMMAND, "--out", out)
    assert "excludes nothing" not in longer.out


def test_business_days_with_a_model_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Forecasts at some days only, by a model of some name, with more leads than are wanted."""
    values, times = series(), pd.bdate_range("2020-01-06", periods=ROWS + 10).to_numpy()
    data = write_wide(tmp_path / "load.csv", values, times[:ROWS])
    lines = [
        (name, times[origin + lead], times[origin], values[origin, channel])
        for origin in range(30, ROWS, 3)
        for channel, name in enumerate("ab")
        for lead in range(1, 9)
    ]
    mine = tmp_path / "mine.parquet"
    pd.DataFrame(lines, columns=["unique_id", "ds", "cutoff", "Naive"]).to_parquet(mine)
    answer = ompb(capsys, "run", data, *COMMAND, "--forecasts", mine, "--out", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
    assert "rows are counted in business days" in answer.out
    assert "leads beyond the horizon of 6 are left out" in answer.out
    issued = pl.read_parquet(tmp_path / "out" / "forecasts.parquet").filter(pl.col("unique_id") == "a")
    assert issued["cutoff"].n_unique() == len(range(SOURCE + 1, ROWS, 3))
    np.testing.assert_allclose(issued["base"].to_numpy()[:6], values[501, 0], atol=1e-3)


def test_more_digits_than_mean_something_are_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_wide(tmp_path / "load.csv", series() * [1, 1e6], stamps())
    ompb(capsys, "run", data, *COMMAND, "--csv", "--out", tmp_path)
    frame = pl.read_csv(tmp_path / "forecasts.csv", infer_schema=False)
    for name, decimals in (("a", 4), ("b", 1)):
        texts = frame.filter(pl.col("unique_id") == name)["y_hat"].to_list()
        assert max(len(text.partition(".")[2]) for text in texts) <= decimals
