"""Times, names and covariates: what comes with the rows, from fit to file."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from small_streams import CHANNELS, CONTEXT, HORIZON, fit, last_season, same, saved, source, target

import ompb
from ompb.errors import DtypeError, NotFiniteError, ShapeError, StaleRowError, TimeOrderError
from ompb.live.placing import LONGEST_GAP
from ompb.seam.query import Query
from ompb.types import Floats

ROWS = 300  # of the source
HOURS = pd.date_range("2024-01-01", periods=ROWS + 200, freq="h").to_numpy().astype("datetime64[us]")
FREQUENCIES = {
    "hours": ("2024-01-01", "h"),
    "days": ("1990-02-27", "D"),
    "months": ("1990-01-15", pd.DateOffset(months=1)),
    "month ends": ("1990-01-31", "ME"),
    "weeks": ("1990-01-03", "7D"),
}


def times_of(frequency: str, rows: int) -> NDArray[Any]:
    if frequency == "integers":
        return np.arange(1000, 1000 + 15 * rows, 15)
    start, step = FREQUENCIES[frequency]
    return np.asarray(pd.date_range(start, periods=rows, freq=step).to_numpy().astype("datetime64[us]"))


@lru_cache
def hourly() -> ompb.Calibrator:
    return fit(times=HOURS[:ROWS])


def timed(rows: int = 0) -> ompb.Stream:
    """A stream that goes on where the source ends, by hours."""
    stream = hourly().stream(last_season)
    for row, time in zip(target()[:rows], HOURS[ROWS:], strict=False):
        stream.step(row, at=time)
    return stream


@pytest.mark.parametrize("frequency", [*FREQUENCIES, "integers"])
def test_a_stream_knows_the_time_of_its_newest_row(frequency: str, tmp_path: Path) -> None:
    times = times_of(frequency, ROWS + 20)
    cal = fit(times=times[:ROWS])
    stream = cal.stream(last_season)
    assert stream.newest is None
    stream.remember(source()[:ROWS], times=times[:ROWS])
    assert stream.newest == times[ROWS - 1]
    stream.step(target()[0], at=times[ROWS])
    stream.step(target()[1], at=times[ROWS + 4])
    assert stream.newest == times[ROWS + 4]
    stream.observe(stream.rows - 2, target()[2])
    assert stream.newest == times[ROWS + 4]
    stream.save(tmp_path / "stream.ompb")
    assert ompb.Stream.load(tmp_path / "stream.ompb", cal).newest == times[ROWS + 4]
    untimed = fit().stream(last_season)
    untimed.step(target()[0])
    assert untimed.newest is None


@pytest.mark.parametrize("frequency", [*FREQUENCIES, "integers"])
def test_a_forecast_knows_the_times_it_speaks_of(frequency: str) -> None:
    times = times_of(frequency, ROWS + 20)
    cal = fit(times=times[:ROWS])
    given, counted = cal.stream(last_season), cal.stream(last_season)
    for number, row in enumerate(target()[:10]):
        at = times[ROWS + number]
        forecast, other = given.step(row, at=at), counted.step(row, at=at if number == 0 else None)
        assert same(forecast, other)
    assert forecast is not None
    np.testing.assert_array_equal(forecast.times, times[ROWS + 10 : ROWS + 10 + HORIZON])


@pytest.mark.parametrize("frame", ["index", "column", "polars"])
def test_a_frame_brings_its_times(frame: str) -> None:
    columns = {"a": source()[:, 0], "b": source()[:, 1]}
    made: dict[str, Callable[[], Any]] = {
        "index": lambda: pd.DataFrame(columns, index=pd.DatetimeIndex(HOURS[:ROWS])),
        "column": lambda: pd.DataFrame({"ds": HOURS[:ROWS], **columns}),
        "polars": lambda: pl.DataFrame({"ds": HOURS[:ROWS], **columns}),
    }
    cal, by_hand = fit(rows=made[frame]()), hourly()
    assert cal.names == ("a", "b")
    assert cal.grid == by_hand.grid
    assert cal.source.base_variance.tobytes() == by_hand.source.base_variance.tobytes()
    stream, expected = cal.stream(last_season), by_hand.stream(last_season)
    for row, at in zip(target()[:10], HOURS[ROWS:], strict=False):
        assert same(stream.step(row, at=at), expected.step(row, at=at))


@pytest.mark.parametrize("gap", [1, 2, 3 * HORIZON])
def test_a_gap_is_missing_rows(gap: int) -> None:
    over, by_hand = timed(40), timed(40)
    for _ in range(gap):
        by_hand.step([np.nan, np.nan])
    for number in range(gap, 30):
        at = HOURS[ROWS + 40 + number]
        assert same(over.step(target()[number], at=at), by_hand.step(target()[number], at=at))
    assert saved(over) == saved(by_hand)


@pytest.mark.parametrize("words", [{"base": np.zeros((HORIZON, CHANNELS))}, {"future": np.zeros((HORIZON, 1))}])
def test_no_forecast_is_issued_in_a_gap_of_what_comes_with_the_rows(words: dict[str, Any]) -> None:
    over, by_hand = timed(40), timed(40)
    for _ in range(3):
        by_hand.step([np.nan, np.nan], base=None)
    row, at = target()[43], HOURS[ROWS + 43]
    assert same(over.step(row, at=at, **words), by_hand.step(row, at=at, **words))
    assert saved(over) == saved(by_hand)


@pytest.mark.parametrize(
    "at",
    [HOURS[ROWS + 39], HOURS[ROWS], HOURS[0], HOURS[ROWS + 40] + np.timedelta64(1, "m"), "2024-01-01"],
    ids=["repeated", "backwards", "long ago", "off the grid", "text, long ago"],
)
def test_a_time_that_cannot_be_leaves_the_stream_as_it_was(at: Any) -> None:
    stream = timed(40)
    before = saved(stream)
    with pytest.raises(TimeOrderError):
        stream.step(target()[40], at=at)
    assert saved(stream) == before
    assert stream.step(target()[40], at=HOURS[ROWS + 40]) is not None


@pytest.mark.parametrize("at", ["soon", 3.5, np.nan, object(), [HOURS[0]], True])
def test_what_is_no_time_is_refused(at: Any) -> None:
    stream = timed(40)
    before = saved(stream)
    with pytest.raises((DtypeError, TimeOrderError)):
        stream.step(target()[40], at=at)
    assert saved(stream) == before


def test_a_gap_may_be_too_long() -> None:
    stream = timed(10)
    before = saved(stream)
    with pytest.raises(TimeOrderError, match=f"up to {LONGEST_GAP} may be missing"):
        stream.step(target()[10], at=HOURS[ROWS + 9] + np.timedelta64(LONGEST_GAP + 2, "h"))
    assert saved(stream) == before


def test_a_failure_after_a_gap_takes_none_of_its_rows() -> None:
    stream = timed(40)
    before = saved(stream)
    with pytest.raises(ompb.errors.ForecasterError):
        stream.step(target()[40], at=HOURS[ROWS + 45], base=np.full((HORIZON, CHANNELS), np.nan))
    assert saved(stream) == before


def test_times_need_a_fit_with_times_and_a_start_with_them() -> None:
    without = fit().stream(last_season)
    with pytest.raises(TimeOrderError, match="fitted without times"):
        without.step(target()[0], at=HOURS[0])
    late = timed()
    late.step(target()[0])
    before = saved(late)
    with pytest.raises(TimeOrderError, match="began without times"):
        late.step(target()[1], at=HOURS[1])
    assert saved(late) == before
    assert without.rows == 0
    with pytest.raises(DtypeError, match="another kind"):
        timed().step(target()[0], at=3)


def test_a_late_row_is_found_by_its_time() -> None:
    by_time, by_index = timed(), timed()
    for number, row in enumerate(target()[:40]):
        for stream in (by_time, by_index):
            stream.step([np.nan, row[1]] if number in (38, 39) else row, at=HOURS[ROWS + number])
    for number in (39, 38):
        by_time.observe(pd.Timestamp(HOURS[ROWS + number]), target()[number])
        by_index.observe(number, target()[number])
    assert saved(by_time) == saved(by_index)
    before = saved(by_time)
    for at in (HOURS[ROWS + 40], HOURS[ROWS], HOURS[ROWS - 5]):
        with pytest.raises((StaleRowError, TimeOrderError)):
            by_time.observe(at, target()[0])
    told = r"row 2\d{3}-\S+ cannot be observed now; accepted: .*the newest \d+, up to 2\d{3}-\S+\)"
    with pytest.raises(StaleRowError, match=told):
        by_time.observe(HOURS[ROWS], target()[0])
    assert saved(by_time) == before


def test_a_file_keeps_the_time(tmp_path: Path) -> None:
    stream = timed(40)
    stream.save(tmp_path / "stream")
    stream._cohort.cal.save(tmp_path / "cal")
    cal = ompb.Calibrator.load(tmp_path / "cal")
    loaded = ompb.Stream.load(tmp_path / "stream", cal, last_season)
    with pytest.raises(TimeOrderError):
        loaded.step(target()[40], at=HOURS[ROWS + 39])
    found, expected = (one.step(target()[42], at=HOURS[ROWS + 42]) for one in (loaded, stream))
    assert same(found, expected)
    assert found is not None
    assert found.times is not None
    assert found.times[0] == HOURS[ROWS + 43]


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_run_has_times_and_so_has_its_frame(backend: Any) -> None:
    cal, times = hourly(), HOURS[ROWS : ROWS + 60]
    gappy = np.delete(np.arange(60), [30, 31])
    run = ompb.backtest(cal, last_season, target()[gappy], times=times[gappy])
    np.testing.assert_array_equal(run.times, times)
    assert np.isnan(run.rows[[30, 31]]).all()
    frame = run.frame(backend)
    first = {name: np.asarray(frame[name])[:HORIZON] for name in ("ds", "cutoff", "lead", "y")}
    assert (first["cutoff"].astype("datetime64[us]") == times[CONTEXT - 1]).all()
    np.testing.assert_array_equal(first["ds"].astype("datetime64[us]"), times[CONTEXT : CONTEXT + HORIZON])
    np.testing.assert_array_equal(first["y"], target()[CONTEXT : CONTEXT + HORIZON, 0])
    last = np.asarray(frame["ds"])[-1].astype("datetime64[us]")
    assert last == times[-1] + np.timedelta64(HORIZON, "h")
    plain = ompb.backtest(fit(), last_season, target()[:60]).frame(backend)
    assert np.asarray(plain["ds"])[0] == CONTEXT


class Asked(ompb.Forecaster):
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.queries: list[Query] = []

    def forecast(self, query: Query) -> Floats:
        self.queries.append(query)
        return last_season(query.windows)

    def of(self, name: str) -> Any:
        return np.concatenate([getattr(query, name) for query in self.queries])


def test_a_forecaster_is_told_times_and_covariates_in_fit_step_and_backtest() -> None:
    asked, rows = Asked(), np.arange(ROWS + 200)
    known = np.column_stack([rows, -rows, rows % 7]).astype(float)  # three covariates of every row
    cal = fit(asked, times=HOURS[:ROWS], future=known[:ROWS])
    origins = asked.of("origins")
    np.testing.assert_array_equal(asked.of("times"), HOURS[origins])
    ahead = origins[:, None] + np.arange(1, HORIZON + 1)
    within = (ahead < ROWS).all(axis=1)
    np.testing.assert_array_equal(asked.of("future")[within], known[ahead[within]])
    np.testing.assert_array_equal(asked.of("windows")[:, -1], source()[origins])

    live, table = Asked(), Asked()
    stream = cal.stream(live)
    for number, row in enumerate(target()[:60]):
        place = ROWS + number
        stream.step(row, at=HOURS[place], future=known[place + 1 : place + 1 + HORIZON])
    ompb.backtest(cal, table, target()[:60], times=HOURS[ROWS:][:60], future=known[ROWS : ROWS + 60 + HORIZON])
    for forecaster in (live, table):
        origins = forecaster.of("origins")
        assert origins.tolist() == list(range(CONTEXT - 1, 60))
        np.testing.assert_array_equal(forecaster.of("times"), HOURS[ROWS + origins])
        ahead = ROWS + origins[:, None] + np.arange(1, HORIZON + 1)
        np.testing.assert_array_equal(forecaster.of("future"), known[ahead])
    assert {query.future.shape for query in live.queries if query.future is not None} == {(1, HORIZON, 3)}


def test_without_times_or_covariates_there_are_none() -> None:
    asked = Asked()
    stream = fit(asked).stream(asked)
    for row in target()[:10]:
        stream.step(row)
    assert all(query.times is None and query.future is None for query in asked.queries)


@pytest.mark.parametrize(
    ("future", "kind"),
    [
        (np.zeros((HORIZON - 1, 2)), ShapeError),
        (np.zeros(HORIZON), ShapeError),
        (np.full((HORIZON, 1), np.nan), NotFiniteError),
        ([["a"]] * HORIZON, DtypeError),
    ],
)
def test_covariates_that_cannot_be_used(future: Any, kind: type[Exception]) -> None:
    stream = timed(20)
    before = saved(stream)
    with pytest.raises(kind):
        stream.step(target()[20], future=future)
    assert saved(stream) == before


def named() -> ompb.Stream:
    stream = fit(rows=pd.DataFrame(source(), columns=["load", "wind"])).stream(last_season)
    for row in target()[:20]:
        stream.step(row)
    return stream


def test_rows_are_matched_by_name() -> None:
    load, wind = target()[20]
    expected = named().step([load, wind])
    for row in (
        {"wind": wind, "load": load},
        pd.Series({"wind": wind, "load": load}),
        pd.DataFrame({"wind": [wind], "load": [load]}),
        pl.DataFrame({"wind": [wind], "load": [load]}),
    ):
        assert same(named().step(row), expected)


@pytest.mark.parametrize("row", [{"load": 1.0}, {"load": 1.0, "wind": 2.0, "sun": 3.0}, {"load": 1.0, "sun": 2.0}])
def test_foreign_or_missing_names_are_refused(row: dict[str, float]) -> None:
    for given in (row, pd.Series(row)):
        stream = named()
        before = saved(stream)
        with pytest.raises(ShapeError, match="load, wind"):
            stream.step(given)
        with pytest.raises(ShapeError, match="load, wind"):
            stream.observe(19, given)
        assert saved(stream) == before


def test_swapped_columns_of_a_backtest_are_matched_by_name() -> None:
    cal = fit(rows=pd.DataFrame(source(), columns=["load", "wind"]))
    frame = pd.DataFrame(target()[:60], columns=["load", "wind"])
    straight, swapped = (ompb.backtest(cal, last_season, one) for one in (frame, frame[["wind", "load"]]))
    assert straight.mean.tobytes() == swapped.mean.tobytes()
    assert straight.names == swapped.names == ("load", "wind")


@pytest.mark.parametrize("kind", ["pandas frame", "pandas series", "polars frame"])
def test_the_time_a_row_has_of_its_own_is_its_time(kind: str) -> None:
    names = [f"channel {number}" for number in range(CHANNELS)]
    rows, times = target()[:30], HOURS[ROWS : ROWS + 30]
    indexed = pd.DataFrame(rows, columns=names, index=pd.DatetimeIndex(times))
    tables: dict[str, Callable[[int], Any]] = {
        "pandas frame": lambda row: indexed.iloc[row : row + 1],
        "pandas series": lambda row: indexed.iloc[row],
        "polars frame": lambda row: pl.DataFrame(
            {"ds": times[row : row + 1], **dict(zip(names, rows[row, :, None], strict=True))}
        ),
    }
    labelled, stated = timed(), timed()
    for row in (*range(20), *range(25, 30)):  # five are left out
        said, expected = labelled.step(tables[kind](row)), stated.step(rows[row], at=times[row])
    assert said is not None
    assert expected is not None
    assert labelled.rows == stated.rows == 30
    assert said.times is not None
    np.testing.assert_array_equal(said.times, expected.times)
    np.testing.assert_array_equal(said.mean, expected.mean)
    with pytest.raises(TimeOrderError, match="does not lie after"):
        labelled.step(tables[kind](22))
    later = labelled.step(tables[kind](22), at=times[-1] + np.timedelta64(1, "h"))  # what is said counts
    assert later is not None
    assert labelled.rows == 31


def test_the_time_of_a_row_means_nothing_where_rows_have_none() -> None:
    stream = fit().stream(last_season)
    rows = pd.DataFrame(target()[:3], index=pd.DatetimeIndex(HOURS[[0, 5, 2]]))
    for place in range(3):
        stream.step(rows.iloc[place])
    assert stream.rows == 3
