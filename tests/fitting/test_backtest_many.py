"""Series followed together are those followed alone, and those stepped by hand: to the last bit."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from test_calibrate import CONTEXT, HORIZON, SEASON, SIZES, fleet, last_season, series

import ompb
from ompb.errors import ForecasterError, InputError, OptionError, TooShortError
from ompb.seam.query import Query
from ompb.types import Floats


def moved(rows: int = 150, channels: int = 1, count: int = 6) -> dict[str, Floats]:
    """Streams whose level moves half way, with a warning or two."""
    return {
        f"meter {seed}": series(seed + 50, rows, channels) + 8.0 * (np.arange(rows) > rows // 2)[:, None]
        for seed in range(count)
    }


def assert_same(one: ompb.Run, other: ompb.Run) -> None:
    for field in dataclasses.fields(ompb.Run):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        if field.name == "calibrator":
            assert mine is its
        elif isinstance(mine, dict):
            assert mine.keys() == its.keys()
            for name, values in mine.items():
                np.testing.assert_array_equal(values, its[name], strict=True)
        elif isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, its, strict=True)
        else:
            assert mine == its, field.name


def assert_each_alone(
    runs: dict[Any, ompb.Run], cals: Any, forecaster: Any, tables: dict[Any, Any], **more: dict[Any, Any]
) -> None:
    assert list(runs) == list(tables)
    for one, run in runs.items():
        own = {name: given[one] for name, given in more.items()}
        assert_same(run, ompb.backtest(cals[one], forecaster, tables[one], **own))


@pytest.mark.parametrize("channels", [1, 2])
def test_each_run_is_that_of_its_series_alone(channels: int) -> None:
    cals = ompb.calibrate(last_season, fleet(6, channels=channels), **SIZES, season=SEASON)
    tables = moved(channels=channels)
    runs = ompb.backtest(cals, last_season, tables)
    assert_each_alone(runs, cals, last_season, tables)
    assert any(run.warnings for run in runs.values())


def test_a_run_is_what_a_stream_issues_step_by_step() -> None:
    cals = ompb.calibrate(last_season, fleet(6), **SIZES, season=SEASON)
    tables = moved()
    tables["meter 2"][70] = 1e5  # not believed
    for one, run in ompb.backtest(cals, last_season, tables).items():
        stream = cals[one].stream(last_season)
        issued = [forecast for row in tables[one] if (forecast := stream.step(row)) is not None]
        assert run.origins.tolist() == [forecast.origin for forecast in issued]
        for name in ("mean", "base", "gate", "sd", "multipliers", "expected_error"):
            stepped = np.stack([getattr(forecast, name) for forecast in issued])
            np.testing.assert_array_equal(getattr(run, name), stepped, strict=True)
        for name, values in run.certificate.items():
            assert values.tolist() == [getattr(forecast.certificate, name) for forecast in issued]
        assert run.last_certificate == issued[-1].certificate
        assert run.realised == stream.realised_risk()
        assert run.hidden.sum() == sum(stream.hidden.values())
        assert run.hidden[70, 0] == (one == "meter 2")
        told = {alert.signal for forecast in issued for alert in forecast.warnings}
        assert {alert.signal for episode in run.warnings for alert in episode.alerts} == told


def test_shapes_may_differ_and_cells_be_missing_or_absurd() -> None:
    sources = fleet(6) | {"short": series(8, rows=100)}
    cals = ompb.calibrate(last_season, sources, **SIZES)
    tables = moved() | {"short": series(9, rows=60), "meter 4": series(10, rows=90)}
    rng = np.random.default_rng(0)
    for rows in tables.values():
        rows[rng.uniform(size=rows.shape) < 0.05] = np.nan
    tables["meter 1"][40] = 1e12
    tables["meter 3"][55:58] = -1e5
    runs = ompb.backtest(cals, last_season, tables)
    assert runs["meter 1"].hidden[40, 0]
    assert runs["meter 3"].hidden[55, 0]
    assert_each_alone(runs, cals, last_season, tables)


def test_one_calibrator_serves_all() -> None:
    cal = ompb.Calibrator.fit(last_season, series(0), **SIZES, season=SEASON)
    tables = moved(count=4)
    runs = ompb.backtest(cal, last_season, tables)
    assert_each_alone(runs, dict.fromkeys(tables, cal), last_season, tables)


class Calendar(ompb.Forecaster):
    """Quantiles, spoken on some days only, with covariates."""

    quantiles = (0.1, 0.5, 0.9)

    def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
        del origins
        return np.asarray(times.astype("datetime64[D]").astype(np.int64) % 5 != 2)

    def forecast(self, query: Query) -> Floats:
        assert query.future is not None
        base = last_season(query.windows) + query.future[..., :1]
        return np.stack([base - 2, base, base + 1], axis=-1)


def test_times_covariates_silence_and_quantiles() -> None:
    days = np.datetime64("2024-01-01") + np.arange(400)
    sources, tables = fleet(4), moved(count=4)
    starts = {one: 3 * (number % 2) for number, one in enumerate(tables)}
    rng = np.random.default_rng(1)
    cals = ompb.calibrate(
        Calendar(),
        sources,
        **SIZES,
        season=SEASON,
        times={one: days[start : start + 260] for one, start in starts.items()},
        future={one: rng.normal(size=(260, 1)) for one in sources},
    )
    times = {one: days[start : start + 150] for one, start in starts.items()}
    future = {one: rng.normal(size=(150 + HORIZON, 1)) for one in tables}
    runs = ompb.backtest(cals, Calendar(), tables, times=times, future=future)
    assert_each_alone(runs, cals, Calendar(), tables, times=times, future=future)
    assert {run.origins.tobytes() for run in runs.values()} != {runs["meter 0"].origins.tobytes()}
    assert any(alert.since_time is not None for run in runs.values() for e in run.warnings for alert in e.alerts)


def test_a_long_frame_and_a_forecaster_for_each() -> None:
    days = np.datetime64("2024-01-01", "us") + np.arange(410) * np.timedelta64(1, "D")
    sources, tables = fleet(3), moved(count=3)
    ridges = {one: ompb.Ridge.fit(rows, context=CONTEXT, horizon=HORIZON) for one, rows in sources.items()}

    def long(parts: dict[str, Floats], first: int) -> pl.DataFrame:
        frames = [
            pl.DataFrame({"unique_id": one, "ds": days[first : first + len(rows)], "y": rows[:, 0]})
            for one, rows in parts.items()
        ]
        return pl.concat(frames)

    cals = ompb.calibrate(ridges, long(sources, 0), **SIZES, season=SEASON)
    runs = ompb.backtest(cals, ridges, long(tables, 260))
    for one, run in runs.items():
        assert_same(run, ompb.backtest(cals[one], ridges[one], tables[one], times=days[260:410]))
        assert run.names == ("y",)


def test_a_forecaster_that_fails_on_some_windows_is_asked_one_by_one() -> None:
    """In a block with a window that no stream comes to, since it holds a cell that is not believed."""
    cals = ompb.calibrate(last_season, fleet(3), **SIZES, season=SEASON, guard=5.0)
    tables = moved(count=3)
    tables["meter 1"] = series(50, 150)
    tables["meter 1"][60] = 5e4

    def choosy(windows: Floats) -> Floats:
        if windows.max() > 2e4:
            raise ValueError("too hot")
        return last_season(windows)

    runs = ompb.backtest(cals, choosy, tables)
    assert runs["meter 1"].hidden[60, 0]
    assert_each_alone(runs, cals, last_season, tables)


def test_how_many_are_taken_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cals = ompb.calibrate(last_season, fleet(5), **SIZES, season=SEASON)
    tables = moved(count=5)
    whole, told = ompb.backtest(cals, last_season, tables), []
    monkeypatch.setattr(importlib.import_module("ompb.backtest"), "AT_ONCE", 2)
    parts = ompb.backtest(cals, last_season, tables, progress=lambda done, total: told.append((done, total)))
    for one, run in parts.items():
        assert_same(run, whole[one])
    assert told[-1] == (750, 750)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"rows": {"meter 0": np.zeros((CONTEXT - 1, 1))}}, TooShortError, "series 'meter 0': rows has 11 rows"),
        ({"rows": {"meter 0": np.full((20, 1), np.inf)}}, InputError, "series 'meter 0': rows is infinite"),
        ({"rows": {"meter 7": np.zeros((20, 1))}}, OptionError, "calibrators lacks 'meter 7'"),
        ({"rows": np.zeros((20, 1))}, InputError, "one series; accepted: a mapping"),
        ({"times": {"other": []}}, OptionError, "times names series that are not here: 'other'"),
        ({"forecaster": {}}, OptionError, "forecaster lacks 'meter 0'"),
        ({"forecaster": Calendar()}, ForecasterError, "series 'meter 0': the forecaster gives the quantiles"),
    ],
)
def test_errors_name_the_series(change: dict[str, Any], error: type[Exception], words: str) -> None:
    sources = fleet(2)
    given: dict[str, Any] = {
        "calibrators": ompb.calibrate(last_season, sources, **SIZES, season=SEASON),
        "forecaster": last_season,
        "rows": moved(count=2),
    } | change
    with pytest.raises(error, match=words):
        ompb.backtest(given.pop("calibrators"), given.pop("forecaster"), given.pop("rows"), **given)
