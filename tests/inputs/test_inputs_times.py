"""Stamps, the even steps they lie on, and the rows that stand for those left out."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ompb.errors import DtypeError, InputError, OmpbError, ShapeError, TimeOrderError, TooShortError
from ompb.floor.times import MOST, Grid, Times, Unit, as_stamp, as_times, regular

NOON = np.datetime64("2024-01-31T12:00", "us")
EAST = timezone(timedelta(hours=9))


def stamps(*texts: str) -> Times:
    return np.array(texts, dtype="datetime64[us]")


# Stamps


@pytest.mark.parametrize(
    "value",
    [
        datetime(2024, 1, 31, 12),
        datetime(2024, 1, 31, 12, tzinfo=UTC),
        datetime(2024, 1, 31, 21, tzinfo=EAST),
        np.datetime64("2024-01-31T12", "h"),
        np.datetime64("2024-01-31T12:00", "ns"),
        pd.Timestamp("2024-01-31 12:00"),
        pd.Timestamp("2024-01-31 13:00", tz="Europe/Berlin"),
        pd.Period("2024-01-31 12:00", "h"),
        "2024-01-31 12:00",
        " 2024-01-31T12:00:00Z",
        "2024-01-31T21:00+09:00",
    ],
)
def test_date_times_of_all_makes_are_one_stamp(value: Any) -> None:
    stamp = as_stamp(value, "at")
    assert isinstance(stamp, np.datetime64)
    assert (stamp, stamp.dtype) == (NOON, np.dtype("datetime64[us]"))
    np.testing.assert_array_equal(as_times([value, value], "times"), [NOON, NOON])


def test_dates_begin_at_midnight_and_whole_numbers_stay() -> None:
    assert as_stamp(date(2024, 1, 31), "at") == np.datetime64("2024-01-31", "us")
    assert [as_stamp(value, "at") for value in (7, np.int8(-3), np.uint64(4), -MOST)] == [7, -3, 4, -MOST]


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (pd.NaT, TimeOrderError, "at is NaT"),
        (np.datetime64("NaT"), TimeOrderError, "at is NaT"),
        (np.datetime64(9 * 10**15, "s"), TimeOrderError, "year 285200616"),
        (np.datetime64("-0044-03-15"), TimeOrderError, "year -44"),
        (datetime(1, 1, 1, tzinfo=EAST), TimeOrderError, "0001-01-01"),
        (9 * 10**18, TimeOrderError, "within 4e18"),
        (-9 * 10**18, TimeOrderError, "within 4e18"),
        (10**400, TimeOrderError, "within 4e18"),
        ("12024-01-01", DtypeError, "'12024-01-01'"),
        ("soon", DtypeError, "ISO 8601"),
        (True, DtypeError, "a bool"),
        (1.0, DtypeError, "1.0"),
        (None, DtypeError, "None"),
        (np.timedelta64(1, "D"), DtypeError, "timedelta64"),
        (np.arange(2), DtypeError, "ndarray"),
    ],
)
def test_what_is_no_stamp_is_refused(value: Any, kind: type[OmpbError], words: str) -> None:
    with pytest.raises(kind, match=words):
        as_stamp(value, "at")


@pytest.mark.parametrize(
    "values",
    [
        ["2024-01-01", "2024-01-02"],
        [date(2024, 1, 1), date(2024, 1, 2)],
        np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"),
        pd.date_range("2024-01-01", periods=2),
        pd.date_range("2024-01-01", periods=2).to_series(),
        pd.date_range("2024-01-01 09:00", periods=2, tz="Asia/Tokyo"),
        pd.period_range("2024-01-01", periods=2, freq="D"),
        pl.Series([date(2024, 1, 1), date(2024, 1, 2)]),
        pl.Series([datetime(2024, 1, 1, 9, tzinfo=EAST), datetime(2024, 1, 2, 9, tzinfo=EAST)]),
    ],
)
def test_times_of_all_makes(values: Any) -> None:
    times = as_times(values, "times")
    assert times.dtype == np.dtype("datetime64[us]")
    np.testing.assert_array_equal(times, stamps("2024-01-01", "2024-01-02"))


@pytest.mark.parametrize("values", [[5, 6], np.array([5, 6], dtype=np.uint8), range(5, 7), pd.RangeIndex(5, 7)])
def test_whole_numbers_are_times(values: Any) -> None:
    times = as_times(values, "times")
    assert (times.dtype, times.tolist()) == (np.dtype(np.int64), [5, 6])


def test_times_are_the_callers_no_more() -> None:
    given_times = np.arange(3)
    times = as_times(given_times, "times")
    given_times[:] = 0
    assert times.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([], ShapeError, "flat sequence"),
        ([[1, 2]], ShapeError, r"shape \(1, 2\)"),
        (5, ShapeError, r"shape \(\)"),
        ([1, "2024-01-01"], DtypeError, "row 0 of times is '1'"),
        ([1, date(2024, 1, 1)], DtypeError, "mix whole numbers and dates"),
        (["2024-01-01", "later"], DtypeError, "row 1 of times is 'later'"),
        ([1.5], DtypeError, "1.5"),
        (np.array(["2024-01-01", "NaT"], dtype="datetime64[s]"), TimeOrderError, "row 1 of times is NaT"),
        (pd.to_datetime(["2024-01-01", None]), TimeOrderError, "row 1 of times is NaT"),
        (np.array(["2024", "10000"], dtype="datetime64[Y]"), TimeOrderError, "row 1 of times is of the year 10000"),
        ([0, 9 * 10**18], TimeOrderError, "row 1 of times is 9000000000000000000"),
        ([-9 * 10**18, 9 * 10**18], TimeOrderError, "within 4e18"),
        (np.array([2**63], dtype=np.uint64), TimeOrderError, "within 4e18"),
    ],
)
def test_what_are_no_times_is_refused(values: Any, kind: type[OmpbError], words: str) -> None:
    with pytest.raises(kind, match=words):
        as_times(values, "times")


# Steps


@pytest.mark.parametrize(
    ("times", "step", "unit", "words"),
    [
        (stamps("2024-01-01", "2024-01-02", "2024-01-04"), 86_400_000_000, "us", "1 day, 0:00:00"),
        (stamps("2024-01-01T00:15", "2024-01-01T00:30"), 900_000_000, "us", "0:15:00"),
        (stamps("2024-01-15", "2024-02-15", "2024-05-15"), 1, "month", "1 month"),
        (stamps("2020-01-01", "2021-01-01", "2022-01-01"), 12, "month", "12 months"),
        (stamps("2024-01-31T18:00", "2024-02-29T18:00", "2024-03-31T18:00"), 1, "month end", "1 month end"),
        (stamps("2023-03-31", "2023-06-30", "2023-12-31"), 3, "month end", "3 month ends"),
        (stamps("2024-01-30", "2024-03-30"), 60 * 86_400_000_000, "us", "60 days, 0:00:00"),
        (np.array([10, 25, 40, 70]), 15, "row", "15"),
        (np.array([-MOST, MOST]), 2 * MOST, "row", "8000000000000000000"),
    ],
)
def test_the_most_frequent_step_is_found(times: Times, step: int, unit: str, words: str) -> None:
    grid = Grid.of(times, "source")
    assert (grid, str(grid)) == (Grid(step, unit), words)  # type: ignore[arg-type]
    assert dataclasses.asdict(grid) == {"step": step, "unit": unit}  # plain values, which a file can keep


UNITS: dict[str, tuple[str, Unit, timedelta]] = {
    "quarter hours": ("datetime64[us]", "us", timedelta()),
    "months": ("datetime64[M]", "month", timedelta(days=27, hours=23)),
    "month ends": ("datetime64[M]", "month end", timedelta(hours=-1)),
    "rows": ("int64", "row", timedelta()),
}


@st.composite
def grids(draw: st.DrawFn) -> tuple[Grid, Times]:
    """A grid and its first hundred stamps, made by adding and nothing else."""
    dtype, unit, within = UNITS[draw(st.sampled_from(sorted(UNITS)))]
    step = draw(st.integers(1, 30)) * (900_000_000 if unit == "us" else 1)
    numbers = draw(st.integers(-600, 600)) + step * np.arange(100)
    times = numbers.astype(dtype)
    return Grid(step, unit), times if unit == "row" else times.astype("datetime64[us]") + np.timedelta64(within)


@given(grids(), st.integers(0, 60), st.integers(1, 39))
def test_a_grid_counts_its_own_stamps(made: tuple[Grid, Times], first: int, rows: int) -> None:
    grid, times = made
    assert Grid.of(times, "source") == grid
    np.testing.assert_array_equal(grid.after(times[first], rows), times[first + 1 : first + 1 + rows])
    assert grid.rows_between(times[first], times[first + rows]) == rows
    np.testing.assert_array_equal(grid.places(times), np.arange(100))
    with pytest.raises(TimeOrderError, match="does not lie after"):
        grid.rows_between(times[first + rows], times[first])
    with pytest.raises(TimeOrderError, match="does not lie after"):
        grid.rows_between(times[first], times[first])


@given(grids(), st.integers(1, 99))
def test_a_stamp_beside_the_grid_is_refused(made: tuple[Grid, Times], row: int) -> None:
    grid, times = made
    if grid == Grid(1, "row"):
        return  # every whole number lies on it
    beside = times[row] + (1 if grid.unit == "row" else np.timedelta64(1, "us"))
    with pytest.raises(TimeOrderError, match="off the grid"):
        grid.rows_between(times[0], beside)


@pytest.mark.parametrize(
    ("grid", "last"),
    [
        (Grid(1, "row"), MOST - 1),
        (Grid(10**18, "row"), MOST - 2 * 10**18),
        (Grid(86_400_000_000, "us"), np.datetime64("9999-12-30", "us")),
        (Grid(1, "month"), np.datetime64("9999-11-15", "us")),
        (Grid(1, "month end"), np.datetime64("9999-11-30", "us")),
    ],
)
def test_a_grid_ends_where_times_end(grid: Grid, last: Any) -> None:
    possible = 2 if grid.step == 10**18 else 1
    assert len(grid.after(last, possible)) == possible
    with pytest.raises(TimeOrderError, match="go too far"):
        grid.after(last, possible + 1)
    with pytest.raises(TimeOrderError, match="go too far"):
        grid.after(last, 10**7)


def test_a_grid_knows_its_kind_of_times() -> None:
    with pytest.raises(DtypeError, match="pass dates"):
        Grid(1, "month").after(7, 1)
    with pytest.raises(DtypeError, match="pass whole numbers"):
        Grid(1, "row").after(NOON, 1)
    with pytest.raises(DtypeError, match="another kind than the times so far; pass whole numbers"):
        Grid(1, "row").rows_between(7, NOON)


def test_a_grid_needs_two_increasing_times() -> None:
    with pytest.raises(TooShortError, match="source has 1 rows; two are needed"):
        Grid.of(np.array([1]), "source")
    with pytest.raises(TimeOrderError, match="1 appears twice in source"):
        Grid.of(np.array([1, 1]), "source")


# Gaps


@given(grids(), st.sets(st.integers(0, 99), min_size=60))
def test_gaps_become_missing_rows_and_nothing_else_changes(made: tuple[Grid, Times], kept: set[int]) -> None:
    grid, times = made
    chosen = np.array(sorted(kept))
    values = chosen[:, None] * np.array([1.0, -1.0])
    full, stamps_of_all, inserted = regular(values, times[chosen], "source", grid)
    expected = times[chosen[0] : chosen[-1] + 1]
    np.testing.assert_array_equal(stamps_of_all, expected)
    assert inserted == len(expected) - len(chosen)
    present = np.isin(expected, times[chosen])
    np.testing.assert_array_equal(full[present], values)
    assert np.isnan(full[~present]).all()


def test_a_given_grid_counts_more_than_the_most_frequent_step() -> None:
    values, times, inserted = regular(np.ones((3, 1)), np.array([0, 2, 4]), "rows", Grid(1, "row"))
    assert (len(values), times.tolist(), inserted) == (5, [0, 1, 2, 3, 4], 2)
    with pytest.raises(TimeOrderError, match="off the grid"):
        regular(np.ones((3, 1)), np.array([0, 2, 4]), "rows", Grid(3, "row"))


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (np.array([1, 3, 2]), "2 comes after 3 in source"),
        (np.array([3, 2, 1]), "2 comes after 3"),
        (np.array([1, 2, 2]), "2 appears twice"),
        (stamps("2024-01-01", "2024-01-02", "2024-01-03", "2024-01-03T07"), "2024-01-03T07:00:00 is off the grid"),
        (stamps("2024-01-31", "2024-02-29", "2024-03-30"), "off the grid"),
        (np.array([0, 1, 10**9]), "999999998 new rows beside the 3 there are in source"),
        (np.array([-MOST, -MOST + 1, MOST]), "7999999999999999998 new rows"),
    ],
)
def test_times_without_even_steps_are_refused(times: Times, words: str) -> None:
    with pytest.raises(TimeOrderError, match=words):
        regular(np.ones((len(times), 1)), times, "source")


def test_up_to_ten_rows_are_inserted_for_each_row_there_is() -> None:
    assert regular(np.ones((3, 1)), np.array([0, 1, 32]), "source")[2] == 30
    with pytest.raises(TimeOrderError, match="31 new rows beside the 3"):
        regular(np.ones((3, 1)), np.array([0, 1, 33]), "source")


def test_a_single_row_is_as_it_is() -> None:
    values, times, inserted = regular(np.ones((1, 2)), np.array([5]), "source")
    assert (values.shape, times.tolist(), inserted) == ((1, 2), [5], 0)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6))
def test_no_whole_numbers_break_the_counting(numbers: list[int]) -> None:
    """Any integers whatever: a regular table, or a typed error; never an overflow."""
    try:
        times = as_times(numbers, "times")
        values, full, inserted = regular(np.ones((len(times), 1)), times, "source")
    except InputError:
        return
    assert (len(values), len(full)) == (len(times) + inserted, len(times) + inserted)
    assert set(numbers) <= set(full.tolist())


@given(st.dates(date(1990, 1, 1), date(2030, 1, 1)), st.integers(10, 60), st.integers(0, 23))
def test_business_days_step_over_weekends(start: date, count: int, hour: int) -> None:
    """Python's own calendar is the oracle."""
    every = [start + timedelta(days=day) for day in range(3 * count)]
    works = [day for day in every if day.weekday() < 5][: count + 5]
    times = np.array(works, dtype="datetime64[us]") + np.timedelta64(hour, "h")
    grid = Grid.of(times[:count], "times")
    assert grid == Grid(1, "business day")
    assert np.array_equal(grid.after(times[count - 1], 5), times[count:])
    assert grid.before(times[-1], count + 4) == times[0]
    assert grid.rows_between(times[0], times[-1]) == count + 4
    weekend = next(day for day in every if day.weekday() == 5)
    with pytest.raises(TimeOrderError, match="off the grid"):
        grid.places(np.array([weekend - timedelta(days=1), weekend], dtype="datetime64[us]"))


def test_days_with_a_single_weekend_are_no_business_days() -> None:
    days = as_times([date(2024, 1, 1) + timedelta(days=day) for day in range(20)], "times")
    assert Grid.of(days, "times").unit == "us"
    assert Grid.of(days[:5], "times").unit == "us"  # Monday to Friday, and nobody knows what comes next
