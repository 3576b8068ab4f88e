"""Arrays as tables, and single rows: by place, or by name if they are labelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ompb.errors import DtypeError, NotFiniteError, OmpbError, ShapeError
from ompb.rows.inputs import as_row, as_rows, as_rows_of

NAMES = ("a", "b")


def test_an_array_is_copied_and_its_channels_numbered() -> None:
    given_rows = np.array([[1, 2], [3, 4]])
    table = as_rows(given_rows, "source")
    given_rows[:] = 0
    assert (table.values.dtype, table.values.tolist()) == (np.dtype(np.float64), [[1, 2], [3, 4]])
    assert (table.names, table.times, table.inserted) == (("channel 0", "channel 1"), None, 0)
    assert as_rows_of(given_rows, "rows", NAMES).names == NAMES


def test_masked_cells_are_missing() -> None:
    masked = np.ma.masked_array([[1, -9999], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_rows(masked, "source").values, [[1, np.nan], [3, 4]])
    np.testing.assert_array_equal(as_row(masked[0], NAMES), [1, np.nan])


BAD_VALUES: list[tuple[Any, type[OmpbError], str]] = [
    (np.zeros(3), ShapeError, r"shape \(3,\); accepted: \(rows, channels\). Use x\[:, None\]"),
    (np.zeros((1, 3, 2)), ShapeError, r"shape \(1, 3, 2\)"),
    (np.zeros((0, 2)), ShapeError, "empty"),
    (np.zeros((3, 0)), ShapeError, "empty"),
    ([[1.0, 2.0], [3.0]], ShapeError, "ragged"),
    ([["x", "y"]], DtypeError, "dtype <U1"),
    ([[None, 1.0]], DtypeError, "dtype object"),
    ([[10**400, 1]], DtypeError, "dtype object"),
    (np.zeros((2, 2), dtype=bool), DtypeError, "dtype bool"),
    (np.zeros((2, 2)) + 1j, DtypeError, "dtype complex128"),
    (np.zeros((2, 2), dtype="datetime64[s]"), DtypeError, "dtype datetime64"),
    (np.zeros((2, 2), dtype="timedelta64[s]"), DtypeError, "dtype timedelta64"),
    (np.ma.masked_array([[True, False]], mask=True), DtypeError, "dtype bool"),
    ([[0.0, np.nan], [0.0, -np.inf]], NotFiniteError, "row 1, channel 1"),
    ([[0.0, 1.1e100]], NotFiniteError, "row 0, channel 1"),
]


@pytest.mark.parametrize(("rows", "kind", "words"), BAD_VALUES)
def test_arrays_that_are_no_tables_are_refused(rows: Any, kind: type[OmpbError], words: str) -> None:
    with pytest.raises(kind, match=words):
        as_rows(rows, "source")


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider floats here")
def test_wider_floats_do_not_overflow_silently() -> None:
    with pytest.raises(NotFiniteError, match="row 0, channel 0"):
        as_rows(np.array([["1e4000"]], dtype=np.longdouble), "source")


# Single rows


@given(st.permutations([("a", 1.0), ("b", 2.0), ("c", np.nan)]))
def test_labelled_rows_are_matched_by_name(cells: list[tuple[str, float]]) -> None:
    row = dict(cells)
    one_line = {name: [value] for name, value in cells}
    for labelled in (row, pd.Series(row), pd.DataFrame(one_line), pl.DataFrame(one_line)):
        np.testing.assert_array_equal(as_row(labelled, ("a", "b", "c")), [1, 2, np.nan])


@pytest.mark.parametrize("row", [[1, 2], (1.0, 2.0), np.array([1, 2]), pl.Series([1, 2]), pd.Series([1.0, 2.0])])
def test_other_rows_count_by_place(row: Any) -> None:
    np.testing.assert_array_equal(as_row(row, NAMES), [1, 2])


def test_numbers_as_labels_are_places() -> None:
    numbered = ("channel 0", "channel 1")
    np.testing.assert_array_equal(as_row(pd.Series([2.0, 1.0], index=[1, 0]), numbered), [1, 2])
    np.testing.assert_array_equal(as_row({1: 2.0, 0: 1.0}, numbered), [1, 2])
    with pytest.raises(ShapeError, match="with channel 1, channel 0"):
        as_row(pd.Series([2.0, 1.0], index=[1, 0]), NAMES)


def test_a_row_of_a_frame_with_times_needs_no_care() -> None:
    frame = pd.DataFrame({"b": [2.0], "a": [1.0]}, index=pd.to_datetime(["2024-01-01"]))
    np.testing.assert_array_equal(as_row(frame, NAMES), [1, 2])
    np.testing.assert_array_equal(as_row(frame.iloc[0], NAMES), [1, 2])


def test_missing_cells_of_a_row() -> None:
    nullable = pd.Series([pd.NA, 2.0], index=["a", "b"], dtype="Float64")
    for row in (nullable, {"a": np.nan, "b": 2}, pl.DataFrame({"a": [None], "b": [2]})):
        np.testing.assert_array_equal(as_row(row, NAMES), [np.nan, 2])


@pytest.mark.parametrize("value", [1e101, -1.7e308, 9.96921e36])
def test_a_finite_cell_of_any_size_passes(value: float) -> None:
    assert as_row([value, 0.0], NAMES)[0] == value


BAD_ROWS: list[tuple[Any, type[OmpbError], str]] = [
    ([1.0], ShapeError, r"shape \(1,\); accepted: \(2,\)"),
    (1.0, ShapeError, r"shape \(\)"),
    ([[1.0, 2.0]], ShapeError, r"shape \(1, 2\)"),
    ([], ShapeError, "empty"),
    ({}, ShapeError, "empty"),
    ({"a": 1.0, "c": 2.0}, ShapeError, "without b and with c"),
    (pd.Series([1.0, 2.0], index=["a", "a"]), ShapeError, "more than one column a"),
    (pd.Series([1.0, 2.0], index=["x", "y"]), ShapeError, "without a, b and with x, y"),
    (pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}), ShapeError, "a frame of 2 rows; pass one row at a time"),
    (["x", "y"], DtypeError, "dtype <U1"),
    ([None, 1.0], DtypeError, "dtype object"),
    ([True, False], DtypeError, "dtype bool"),
    ([1j, 0], DtypeError, "dtype complex128"),
    ("ab", DtypeError, "dtype <U2"),
    (pd.Series([1, "x"], index=["a", "b"]), DtypeError, "row is of type"),
    (object(), DtypeError, "dtype object"),
    ([np.inf, 0.0], NotFiniteError, "infinite at channel 'a'"),
    ({"b": -np.inf, "a": 0.0}, NotFiniteError, "infinite at channel 'b'"),
]


@pytest.mark.parametrize(("row", "kind", "words"), BAD_ROWS)
def test_rows_that_cannot_be_used_are_refused(row: Any, kind: type[OmpbError], words: str) -> None:
    with pytest.raises(kind, match=words):
        as_row(row, NAMES)
