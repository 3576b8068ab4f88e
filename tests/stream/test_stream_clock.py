"""Times: rows have them, forecasts tell those they speak of, gaps are missing rows, and nothing runs backwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

import ompb
from ompb.errors import ShapeError, StaleRowError, TimeOrderError

CONTEXT, HORIZON, ROWS = 12, 4, 240
Floats = NDArray[np.float64]
VALUES = np.random.default_rng(0).normal(size=(ROWS, 2)).cumsum(axis=0)
STAMPS: dict[str, Any] = {
    "hours": np.datetime64("2024-01-01T00", "h") + np.arange(ROWS),
    "quarter hours": np.datetime64("2024-01-01T00:00", "m") + 15 * np.arange(ROWS),
    "days": np.datetime64("2024-01-01", "D") + np.arange(ROWS),
    "months": (np.datetime64("2004-01", "M") + np.arange(ROWS)).astype("datetime64[D]") + 14,
    "month ends": (np.datetime64("2004-02", "M") + np.arange(ROWS)).astype("datetime64[D]") - 1,
    "whole numbers": 100 + 10 * np.arange(ROWS),
}


def last(windows: Floats) -> Floats:
    return np.repeat(windows[:, -1:], HORIZON, axis=1)


def fit(stamps: Any, forecaster: Any = last, rows: Any = VALUES[:160], **options: Any) -> ompb.Calibrator:
    sizes: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": None}
    return ompb.Calibrator.fit(forecaster, rows, times=stamps, **sizes, **options)


def same(a: ompb.Forecast | None, b: ompb.Forecast | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.mean.tobytes() == b.mean.tobytes() and a.sd.tobytes() == b.sd.tobytes() and a.certificate == b.certificate


def saved(stream: ompb.Stream, folder: Path) -> bytes:
    stream.save(folder / "state.ompb")
    return (folder / "state.ompb").read_bytes()


@pytest.mark.parametrize("unit", STAMPS)
def test_a_forecast_tells_the_times_it_speaks_of(unit: str) -> None:
    stamps = STAMPS[unit]
    cal = fit(stamps[:160])
    given, implied = cal.stream(last), cal.stream(last)
    for row in range(160, 200):
        at = stamps[row]
        forecast = given.step(VALUES[row], at=at if unit == "whole numbers" else at.astype("datetime64[us]").item())
        again = implied.step(VALUES[row], at=at if row == 160 else None)
        assert same(forecast, again)
        if forecast is not None and again is not None:
            assert forecast.times is not None
            expected = stamps[row + 1 : row + 1 + HORIZON]
            np.testing.assert_array_equal(forecast.times, expected.astype(forecast.times.dtype))
            np.testing.assert_array_equal(again.times, forecast.times)


def test_without_times_there_are_none() -> None:
    cal = ompb.Calibrator.fit(last, VALUES[:160], context=CONTEXT, horizon=HORIZON, season=None)
    assert cal.grid is None
    stream = cal.stream(last)
    forecasts = [stream.step(row) for row in VALUES[160:180]]
    assert forecasts[-1] is not None
    assert forecasts[-1].times is None
    with pytest.raises(TimeOrderError, match="fitted without times"):
        stream.step(VALUES[180], at="2024-01-01")


@pytest.mark.parametrize("unit", STAMPS)
@pytest.mark.parametrize("missing", [1, 7, 40])
def test_a_gap_is_so_many_missing_rows(unit: str, missing: int) -> None:
    stamps = STAMPS[unit]
    cal = fit(stamps[:160])
    leaping, walking = cal.stream(last), cal.stream(last)
    for row in range(160, 185):
        leaping.step(VALUES[row], at=stamps[row])
        walking.step(VALUES[row], at=stamps[row])
    for row in range(185, 185 + missing):
        walking.step([np.nan, np.nan], at=stamps[row])
    after = 185 + missing
    assert same(leaping.step(VALUES[after], at=stamps[after]), walking.step(VALUES[after], at=stamps[after]))
    assert leaping.rows == walking.rows
    assert leaping.realised_risk() == walking.realised_risk()


def test_no_forecast_is_made_in_a_gap_of_what_comes_with_the_rows() -> None:
    stamps = STAMPS["hours"]
    cal = fit(stamps[:160])
    stream, by_hand = cal.stream(), cal.stream()
    base = np.zeros((HORIZON, 2))
    for each in (stream, by_hand):
        for row in range(160, 180):
            each.step(VALUES[row], at=stamps[row], base=base)
    for _ in range(3):
        by_hand.step([np.nan, np.nan], base=None)
    assert same(stream.step(VALUES[183], at=stamps[183], base=base), by_hand.step(VALUES[183], base=base))


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2024-01-07T19:00", "does not lie after"),
        ("2024-01-07T10:00", "does not lie after"),
        ("2024-01-07T20:30", "off the grid"),
        ("2060-01-01", "may be missing"),
        (7, "another kind|does not lie after"),
        ("2024-13-01", "accepted: dates"),
        (pd.NaT, "no time"),
        (3.5, "accepted: dates"),
    ],
)
def test_times_that_cannot_be_are_refused_and_change_nothing(tmp_path: Path, at: Any, words: str) -> None:
    stamps = STAMPS["hours"]
    stream = fit(stamps[:160]).stream(last)
    for row in range(140, 164):  # the newest is of 2024-01-07T19:00
        stream.step(VALUES[row], at=stamps[row])
    before = saved(stream, tmp_path)
    with pytest.raises(ompb.errors.InputError, match=words):
        stream.step(VALUES[164], at=at)
    assert saved(stream, tmp_path) == before
    assert stream.step(VALUES[164], at=stamps[164]) is not None


def test_a_stream_begins_with_times_or_has_none() -> None:
    stamps = STAMPS["hours"]
    stream = fit(stamps[:160]).stream(last)
    stream.step(VALUES[160])
    with pytest.raises(TimeOrderError, match="began without times"):
        stream.step(VALUES[161], at=stamps[161])


def test_a_late_row_may_be_named_by_its_time(tmp_path: Path) -> None:
    stamps = STAMPS["hours"]
    cal = fit(stamps[:160])
    by_time, by_row = cal.stream(last), cal.stream(last)
    for stream in (by_time, by_row):
        for row in range(160, 190):
            stream.step(np.full(2, np.nan) if row == 184 else VALUES[row], at=stamps[row])
    by_time.observe(stamps[184], VALUES[184])
    by_row.observe(24, VALUES[184])
    assert saved(by_time, tmp_path) == saved(by_row, tmp_path)
    by_time.observe(stamps[189], VALUES[189])  # the newest
    for at in (stamps[190], stamps[100], stamps[184] + np.timedelta64(30, "m")):
        with pytest.raises((StaleRowError, TimeOrderError)):
            by_time.observe(at, VALUES[184])


def test_a_saved_stream_knows_its_time(tmp_path: Path) -> None:
    stamps = STAMPS["month ends"]
    cal = fit(stamps[:160])
    cal.save(tmp_path / "cal.ompb")
    loaded = ompb.Calibrator.load(tmp_path / "cal.ompb")
    assert loaded.grid == cal.grid
    stream = cal.stream(last)
    for row in range(160, 185):
        stream.step(VALUES[row], at=stamps[row])
    stream.save(tmp_path / "stream.ompb")
    again = ompb.Stream.load(tmp_path / "stream.ompb", loaded, last)
    forecast = again.step(VALUES[187], at=stamps[187])
    assert same(forecast, stream.step(VALUES[187], at=stamps[187]))
    assert forecast is not None
    np.testing.assert_array_equal(forecast.times, stamps[188:192].astype("datetime64[us]"))


def frames(rows: Floats, stamps: Any) -> dict[str, Any]:
    """The same table, each with its times in the way of its library."""
    columns = {"a": rows[:, 0], "b": rows[:, 1]}
    return {
        "pandas index": pd.DataFrame(columns, index=pd.DatetimeIndex(stamps)),
        "pandas column": pd.DataFrame({"ds": stamps, **columns}),
        "polars": pl.DataFrame({"date": stamps.astype("datetime64[us]"), **columns}),
        "swapped": pl.DataFrame({"b": rows[:, 1], "time": stamps.astype("datetime64[us]"), "a": rows[:, 0]}),
    }


@pytest.mark.parametrize("kind", ["pandas index", "pandas column", "polars", "swapped"])
def test_frames_bring_their_times_and_their_gaps(kind: str) -> None:
    stamps = STAMPS["hours"]
    cal = fit(None, rows=frames(VALUES[:160], stamps[:160])["polars"])
    plain = fit(stamps[:160])
    keep = np.delete(np.arange(160, ROWS), [30, 31])
    run = ompb.backtest(cal, last, frames(VALUES[keep], stamps[keep])[kind])
    rows = VALUES[160:].copy()
    rows[[30, 31]] = np.nan
    expected = ompb.backtest(plain, last, rows, times=stamps[160:])
    np.testing.assert_array_equal(run.mean, expected.mean)
    np.testing.assert_array_equal(run.rows, rows)
    np.testing.assert_array_equal(run.times, stamps[160:].astype("datetime64[us]"))


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_of_a_run_have_times(backend: Any) -> None:
    stamps = STAMPS["days"]
    cal = fit(stamps[:160])

    def polar(run: ompb.Run) -> pl.DataFrame:
        found = run.frame(backend)
        return pl.DataFrame({name: found[name].to_numpy() for name in found.columns})

    frame = polar(ompb.backtest(cal, last, VALUES[160:], times=stamps[160:]))
    first = frame.filter((pl.col("unique_id") == "channel 1") & (pl.col("lead") == 3))[0]
    assert first["cutoff"][0].date() == stamps[160 + CONTEXT - 1].item()
    assert first["ds"][0].date() == stamps[160 + CONTEXT + 2].item()
    assert first["y"][0] == VALUES[160 + CONTEXT + 2, 1]
    newest = frame.filter(pl.col("lead") == HORIZON)["ds"].max()
    assert isinstance(newest, type(first["ds"][0]))
    assert newest.date() == (stamps[-1] + HORIZON).item()
    numbers = polar(ompb.backtest(cal, last, VALUES[160:]))
    assert numbers["ds"].to_list() == (numbers["cutoff"] + numbers["lead"]).to_list()


def test_rows_are_matched_by_name() -> None:
    cal = fit(None, rows=pd.DataFrame(VALUES[:160], columns=["load", "wind"]))
    streams = [cal.stream(last) for _ in range(4)]
    for values in VALUES[160:190]:
        labelled = pd.Series({"wind": values[1], "load": values[0]})
        rows = (values, {"wind": values[1], "load": values[0]}, labelled, pd.DataFrame([labelled]))
        forecasts = [stream.step(row) for stream, row in zip(streams, rows, strict=True)]
        assert all(same(forecasts[0], other) for other in forecasts)
    for foreign in ({"load": 1.0, "sun": 2.0}, {"load": 1.0}, {"load": 1.0, "wind": 2.0, "sun": 3.0}):
        with pytest.raises(ShapeError, match="wind"):
            streams[0].step(foreign)


class Told(ompb.Forecaster):
    """Repeats the last row, and keeps what it was told."""

    def __init__(self) -> None:
        self.queries: list[ompb.Query] = []

    def forecast(self, query: ompb.Query) -> Any:
        self.queries.append(query)
        return last(query.windows)


def test_a_forecaster_is_told_times_and_covariates() -> None:
    stamps, ahead = STAMPS["hours"], np.arange(ROWS + HORIZON)[:, None] * [1.0, -1.0]
    told = Told()
    cal = fit(stamps[:160], told, future=ahead[:160])

    def check(first: int) -> None:
        """Each query speaks of its own windows, whose rows count from ``first`` of the whole table."""
        assert told.queries
        for query in told.queries:
            rows = query.origins + first
            assert query.times is not None
            assert query.future is not None
            np.testing.assert_array_equal(query.times, stamps[rows].astype("datetime64[us]"))
            np.testing.assert_array_equal(query.windows, VALUES[rows[:, None] + np.arange(1 - CONTEXT, 1)])
            np.testing.assert_array_equal(query.future, ahead[rows[:, None] + np.arange(1, HORIZON + 1)])
        told.queries.clear()

    check(0)
    ompb.backtest(cal, told, VALUES[160:], times=stamps[160:], future=ahead[160:])
    check(160)
    stream = cal.stream(told)
    for row in range(160, 190):
        stream.step(VALUES[row], at=stamps[row], future=ahead[row + 1 : row + 1 + HORIZON])
    check(160)
    with pytest.raises(ShapeError, match="future has 3 rows; accepted: 4"):
        stream.step(VALUES[190], future=ahead[:3])
