"""Frames as tables: which column is what, and that nothing is left out, reordered or ignored silently."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ompb.errors import DtypeError, InputError, NotFiniteError, OmpbError, ShapeError, TimeOrderError
from ompb.floor.times import Grid
from ompb.rows.inputs import as_future, as_rows, as_rows_of

VALUES = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
DAYS = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04"])
FULL = np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]").astype("datetime64[us]")
A, B = VALUES.T

Make = Callable[[dict[str, Any]], Any]
MAKERS: list[Make] = [pd.DataFrame, pl.DataFrame]


def with_gap(table: Any) -> None:
    """The table is VALUES of a and b on DAYS, with a row for the day that is left out."""
    assert (table.names, table.inserted) == (("a", "b"), 1)
    np.testing.assert_array_equal(table.times, FULL)
    np.testing.assert_array_equal(table.values, [[0, 1], [2, 3], [np.nan, np.nan], [4, 5]])


# Times


@pytest.mark.parametrize("name", ["ds", "date", "Date", "TIME", "timestamp", "datetime", "when"])
@pytest.mark.parametrize("make", MAKERS)
def test_a_time_column_becomes_times(make: Make, name: str) -> None:
    for times in (list(DAYS.to_pydatetime()), [str(day.date()) for day in DAYS]):
        with_gap(as_rows(make({"a": A, name: times, "b": B}), "source"))


@pytest.mark.parametrize(
    "index",
    [
        DAYS,
        DAYS.rename("ds"),
        DAYS.tz_localize("UTC"),
        DAYS.to_period("D"),
        pd.Index(["2024-01-01", "2024-01-02", "2024-01-04"], name="date"),
    ],
)
def test_a_pandas_index_of_dates_becomes_times(index: Any) -> None:
    with_gap(as_rows(pd.DataFrame({"a": A, "b": B}, index=index), "source"))


def test_a_frame_with_an_index_of_dates_may_have_a_channel_called_time() -> None:
    table = as_rows(pd.DataFrame({"time": A, "b": B}, index=DAYS), "source")
    assert table.names == ("time", "b")
    np.testing.assert_array_equal(table.times, FULL)


@pytest.mark.parametrize("make", MAKERS)
def test_an_integer_time_column_is_no_channel(make: Make) -> None:
    table = as_rows(make({"time": [1, 2, 4], "a": A}), "source")
    assert (table.names, table.inserted) == (("a",), 1)
    assert table.times is not None
    assert (table.times.dtype, table.times.tolist()) == (np.dtype(np.int64), [1, 2, 3, 4])


def test_an_hour_that_comes_twice_on_the_wall_is_two_hours() -> None:
    """The night in which summer time ends: even in UTC."""
    night = pd.date_range("2024-10-27 00:00", periods=6, freq="h", tz="Europe/Berlin")
    assert as_rows(pd.DataFrame({"a": np.arange(6.0)}, index=night), "source").inserted == 0


@pytest.mark.parametrize("times", [DAYS[::-1], DAYS[[0, 1, 1]], DAYS[[1, 0, 2]]])
def test_descending_or_repeated_times_are_refused(times: Any) -> None:
    for frame in (pd.DataFrame({"a": A}, index=times), pl.DataFrame({"ds": times.to_pydatetime(), "a": A})):
        with pytest.raises(TimeOrderError, match=r"(comes after|appears twice).* in source; .*sort"):
            as_rows(frame, "source")


def test_times_may_be_given_beside() -> None:
    with_gap(as_rows(pd.DataFrame({"a": A, "b": B}), "source", times=DAYS))
    table = as_rows(VALUES, "rows", times=[0, 4, 6], grid=Grid(2, "row"))
    assert (len(table.values), table.inserted) == (4, 1)
    with pytest.raises(ShapeError, match="source has 3 rows and 2 times"):
        as_rows(VALUES, "source", times=DAYS[:2])
    with pytest.raises(TimeOrderError, match="comes after"):
        as_rows(VALUES, "source", times=DAYS[::-1])
    with pytest.raises(InputError, match="has times of its own"):
        as_rows(pd.DataFrame({"a": A}, index=DAYS), "source", times=DAYS)


# Columns


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["load", 7], ("load", "7")),
        ([3, 4], ("3", "4")),
        ([0, 1], ("channel 0", "channel 1")),
        ([1, 0], ("channel 1", "channel 0")),
        (pd.MultiIndex.from_tuples([("load", "north"), ("load", "")]), ("load/north", "load")),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), ("2024-01-01 00:00:00", "2024-01-02 00:00:00")),
        ([None, 1.5], ("None", "1.5")),
    ],
)
def test_labels_of_any_type_become_readable_names(labels: Any, names: tuple[str, ...]) -> None:
    frame = pd.DataFrame(VALUES)
    frame.columns = pd.Index(labels, dtype=object) if isinstance(labels, list) else labels
    before = list(frame.columns)
    assert as_rows(frame, "source").names == names
    assert list(frame.columns) == before


@pytest.mark.parametrize("labels", [["a", "a"], [1, "1"]])
def test_two_columns_of_one_name_are_refused(labels: list[Any]) -> None:
    with pytest.raises(ShapeError, match="more than one column"):
        as_rows(pd.DataFrame(VALUES, columns=labels), "source")
    with pytest.raises(ShapeError, match="more than one column ds"):
        as_rows(pd.DataFrame({"ds": A}, index=pd.Index([1, 2, 3], name="ds")), "source")


COLUMNS_THAT_ARE_NO_NUMBERS: list[tuple[str, list[Any]]] = [
    ("text", ["x", "y", "z"]),
    ("numbers as text", ["1", "2", "3"]),
    ("booleans", [True, False, True]),
    ("lists", [[1], [2], [3]]),
    ("text with a hole", ["x", None, "z"]),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "cells", [c for _, c in COLUMNS_THAT_ARE_NO_NUMBERS], ids=[n for n, _ in COLUMNS_THAT_ARE_NO_NUMBERS]
)
def test_columns_that_are_no_numbers_are_not_dropped(make: Make, cells: list[Any]) -> None:
    with pytest.raises(DtypeError, match=r"the column 'state' of source is of type .* drop it, encode it"):
        as_rows(make({"a": A, "state": cells}), "source")


@pytest.mark.parametrize("cells", [pd.Categorical(["x", "y", "x"]), A + 1j, [object()] * 3, [1.0, "x", 2.0]])
def test_nor_are_those_only_pandas_has(cells: Any) -> None:
    with pytest.raises(DtypeError, match="the column 'state' of source"):
        as_rows(pd.DataFrame({"a": A, "state": cells}), "source")


def test_a_second_column_of_dates_is_not_dropped() -> None:
    with pytest.raises(InputError, match=r"2 columns of times \(ds, date\); drop all but one"):
        as_rows(pd.DataFrame({"ds": DAYS, "date": DAYS, "a": A}), "source")
    with pytest.raises(InputError, match=r"2 columns of times \(from, to\)"):
        as_rows(pl.DataFrame({"from": DAYS.to_pydatetime(), "to": DAYS.to_pydatetime(), "a": A}), "source")
    with pytest.raises(DtypeError, match="the column 'issued' of source"):
        as_rows(pd.DataFrame({"ds": DAYS, "issued": DAYS, "a": A}), "source")


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [None, None], "c": [np.nan, 2.5]}),
        pl.DataFrame({"a": [1, None], "b": [None, None], "c": [None, 2.5]}),
        pd.DataFrame({"a": np.array([1, np.nan], np.float16), "b": [np.nan, np.nan], "c": [None, 2.5]}),
    ],
)
def test_every_way_to_say_missing(frame: Any) -> None:
    values = as_rows(frame, "source").values
    np.testing.assert_array_equal(values, [[1, np.nan, np.nan], [np.nan, np.nan, 2.5]])
    assert values.dtype == np.float64


def test_a_frame_is_copied() -> None:
    frame = pd.DataFrame({"a": A.copy()})
    table = as_rows(frame, "source")
    table.values[:] = 9
    np.testing.assert_array_equal(frame["a"], A)


def test_a_series_is_a_table_of_one_channel() -> None:
    table = as_rows(pd.Series(A, index=DAYS, name="load"), "source")
    assert (table.names, table.values.shape, table.inserted) == (("load",), (4, 1), 1)
    assert as_rows(pl.Series("load", A), "source").names == ("load",)
    assert as_rows(pd.Series(A), "source").names == ("channel 0",)


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        (pd.DataFrame(), ShapeError, "is empty"),
        (pl.DataFrame({"a": []}), ShapeError, "is empty"),
        (pd.DataFrame({"ds": [1, 2]}), ShapeError, "no column of numbers beside its times"),
        (pl.DataFrame({"a": [1.0]}).lazy(), InputError, "a LazyFrame; .*collect"),
        (object(), InputError, "is a object; accepted: an array"),
        (None, InputError, "is a NoneType"),
        ("table.csv", InputError, "is a str"),
        ({"a": [1.0]}, InputError, "is a dict"),
        (pd.DataFrame({"ds": [1.0, 2.5], "a": [1, 2]}), DtypeError, "the time column 'ds' of source is 1.0"),
        (pd.DataFrame({"ds": ["2024-01-01", None], "a": [1, 2]}), TimeOrderError, "no time in row 1"),
        (pd.DataFrame({"load": [1.0, np.inf]}), NotFiniteError, "row 1, channel 'load'"),
        (pl.DataFrame({"load": [-1e101, 0.0]}), NotFiniteError, "beyond 1e[+]100, at row 0, channel 'load'"),
    ],
)
def test_what_is_no_table_is_refused(rows: Any, kind: type[OmpbError], words: str) -> None:
    with pytest.raises(kind, match=words):
        as_rows(rows, "source")


# Long layout


@given(st.data())
def test_a_long_frame_is_the_wide_one(data: st.DataObject) -> None:
    """In any order of the series, with any rows left out, from pandas and polars."""
    names = data.draw(st.permutations(["p", "q", "7"]))
    cells = {(row, name): float(10 * row + column) for row in range(6) for column, name in enumerate(names)}
    absent = data.draw(st.sets(st.sampled_from([cell for cell in cells if 0 < cell[0] < 5])))
    order = sorted(cells, key=lambda cell: (names.index(cell[1]), cell[0]))
    if data.draw(st.booleans()):
        order = sorted(cells, key=lambda cell: (cell[0], names.index(cell[1])))
    kept = [cell for cell in order if cell not in absent]
    long = {
        "unique_id": [name for _, name in kept],
        "ds": [datetime(2024, 1, 1 + row) for row, _ in kept],
        "y": [cells[cell] for cell in kept],
    }
    by_index = pd.DataFrame(long).set_index(["unique_id", "ds"])
    stray_index = pd.DataFrame(long, index=pd.to_datetime(["2000-01-01"] * len(kept)))
    for frame in (pd.DataFrame(long), pl.DataFrame(long), by_index, stray_index):
        table = as_rows(frame, "source", grid=Grid(86_400_000_000, "us"))
        assert table.names == tuple(names)
        expected = [[np.nan if (row, n) in absent else cells[row, n] for n in names] for row in range(6)]
        np.testing.assert_array_equal(table.values, expected)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"price": [1, 2, 3]}, ShapeError, "other columns: price; drop them"),
        ({"unique_id": ["a", None, "b"]}, InputError, "unique_id is missing in row 1"),
        ({"ds": [2, 1, 1]}, TimeOrderError, "1 comes after 2 in the series 'a'"),
        ({"ds": [1, 1, 1]}, TimeOrderError, "1 appears twice in the series 'a'"),
        ({"y": ["x", "y", "z"]}, DtypeError, "the column 'y' of source"),
    ],
)
def test_bad_long_frames_are_refused(change: dict[str, Any], kind: type[OmpbError], words: str) -> None:
    long = {"unique_id": ["a", "a", "b"], "ds": [1, 2, 2], "y": [1.0, 2.0, 3.0]}
    for make in MAKERS:
        with pytest.raises(kind, match=words):
            as_rows(make(long | change), "source")


# Channels by name


@given(st.permutations(["a", "b", "c", "d"]))
def test_channels_are_matched_by_name_in_any_order(order: list[str]) -> None:
    columns = {name: [float(place), place + 10.0] for place, name in enumerate("abcd")}
    for make in MAKERS:
        table = as_rows_of(make({name: columns[name] for name in order}), "rows", ("a", "b", "c", "d"))
        assert table.names == ("a", "b", "c", "d")
        np.testing.assert_array_equal(table.values, [[0, 1, 2, 3], [10, 11, 12, 13]])


def test_numbered_channels_count_by_place() -> None:
    named = pd.DataFrame({"b": A, "a": B})
    for rows, names in [(VALUES, ("x", "y")), (pd.DataFrame(VALUES), ("x", "y")), (named, ("channel 0", "channel 1"))]:
        table = as_rows_of(rows, "rows", names)
        assert table.names == names
        np.testing.assert_array_equal(table.values, VALUES)
    swapped = as_rows_of(pd.DataFrame(VALUES)[[1, 0]], "rows", ("channel 0", "channel 1"))
    np.testing.assert_array_equal(swapped.values, VALUES)
    with pytest.raises(ShapeError, match="with channel 1, channel 0"):
        as_rows_of(pd.DataFrame(VALUES)[[1, 0]], "rows", ("x", "y"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["a", "c"], "without b and with c"),
        (["a"], r"1 channel; accepted: 2 \(a, b\), in any order. It comes without b;"),
        (["a", "b", "c"], "3 channels; .* It comes with c;"),
    ],
)
def test_foreign_missing_or_extra_channels_are_refused(columns: list[str], words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        as_rows_of(pd.DataFrame(np.zeros((3, len(columns))), columns=columns), "rows", ("a", "b"))


def test_very_many_names_are_not_all_listed() -> None:
    names = tuple(f"sensor {number}" for number in range(5000))
    with pytest.raises(ShapeError) as caught:
        as_rows_of(VALUES, "rows", names)
    assert len(str(caught.value)) < 1000


# Covariates


def test_covariates_are_known_and_as_many_as_asked_for() -> None:
    for future in (VALUES, VALUES.tolist(), pd.DataFrame({"a": A, "b": B}), pl.DataFrame({"a": A, "b": B})):
        np.testing.assert_array_equal(as_future(future, 3, "future"), VALUES)
    with pytest.raises(ShapeError, match="future has 3 rows; accepted: 4"):
        as_future(VALUES, 4, "future")
    with pytest.raises(ShapeError, match=r"accepted: \(rows, channels\)"):
        as_future(A, 3, "future")
    with pytest.raises(NotFiniteError, match="nan at row 1, channel 'b'"):
        as_future(pd.DataFrame({"a": A, "b": [1.0, np.nan, 2.0]}), 3, "future")
    with pytest.raises(DtypeError, match="the column 'holiday'"):
        as_future(pd.DataFrame({"holiday": [True, False, True]}), 3, "future")


# pyarrow, where it is installed


def test_tables_of_pyarrow() -> None:
    pa = pytest.importorskip("pyarrow")
    with_gap(as_rows(pa.table({"ds": list(DAYS.to_pydatetime()), "a": A, "b": B}), "source"))
    with pytest.raises(ShapeError, match="more than one column a"):
        as_rows(pa.table([[1.0], [2.0]], names=["a", "a"]), "source")
    with pytest.raises(DtypeError, match="the column 'on'"):
        as_rows(pa.table({"on": [True], "a": [1.0]}), "source")
