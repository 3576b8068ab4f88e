"""The edge where data comes in: tables, rows and covariates as plain arrays, or an error that names what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from ompb.errors import DtypeError, InputError, NotFiniteError, ShapeError
from ompb.floor.names import in_words, names_of, numbered, order_of, unended
from ompb.floor.times import Grid, Times, as_times, regular
from ompb.rows.frames import LONG, OneOfMany, is_frame, read_frame, read_long, read_series
from ompb.types import Floats, as_array, float64

HUGE = 1e100  # larger values are no measurements, and their squares would overflow


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A table: evenly spaced rows of named channels."""

    values: Floats  # (T, C), NaN where missing
    names: tuple[str, ...]  # (C,), distinct
    times: Times | None = None  # (T,), datetime64[us] or int64; None if nobody gave any
    inserted: int = 0  # rows, all missing, that stand for stamps that were left out


def as_rows(rows: Any, what: str, times: Any = None, grid: Grid | None = None) -> Rows:
    """A table from an array (T, C), or from a pandas, polars or pyarrow frame; NaN, or masked, means missing.

    Times come from the frame (see `ompb.rows.frames.read_frame`) or from ``times``, one for each row. They increase;
    a stamp that is left out, by the steps of ``grid`` or else by the most frequent step, becomes a missing row.

    >>> table = as_rows([[1.0], [2.0], [4.0]], "source", times=["2024-01-01", "2024-01-02", "2024-01-04"])
    >>> table.values[:, 0], table.names, table.inserted
    (array([ 1.,  2., nan,  4.]), ('channel 0',), 1)
    """
    values, names, own = _read(rows, what)
    _require_measurable(values, names, what)
    if times is not None:
        if own is not None:
            raise InputError(f"{what} has times of its own; pass it without them, or leave times= out.")
        own = as_times(times, f"the times of {what}")
        if len(own) != len(values):
            raise ShapeError(f"{what} has {len(values)} rows and {len(own)} times; pass one time for each row.")
    if own is None:
        return Rows(values, names)
    values, stamps, inserted = regular(values, own, what, grid)
    return Rows(values, names, stamps, inserted)


def as_series(sources: Any, what: str) -> dict[Any, Any]:
    """Tables by id: a mapping as it is; a long frame (unique_id, ds, y) as one table of the channel y for each id.

    >>> as_series({"a": [[1.0]], "b": [[2.0]]}, "sources")
    {'a': [[1.0]], 'b': [[2.0]]}
    """
    if isinstance(sources, Mapping):
        found = dict(sources)
    elif isinstance(sources, np.ndarray | list | tuple) or (read := read_long(sources, what)) is None:
        raise InputError(
            f"{what} is a {type(sources).__name__} of one series; accepted: a mapping from id to array or frame, or a "
            "long frame (unique_id, ds, y)."
        )
    else:
        found = dict(read)
    if not found:
        raise InputError(f"{what} is empty; pass at least one series.")
    return found


def as_rows_of(rows: Any, what: str, names: tuple[str, ...], times: Any = None, grid: Grid | None = None) -> Rows:
    """`as_rows` with exactly the channels ``names``, in that order.

    Channels are matched by name. An array, or channels that are merely numbered, count by their place.
    """
    table = as_rows(rows, what, times, grid)
    return replace(table, values=np.ascontiguousarray(table.values[:, order_of(table.names, names, what)]), names=names)


def as_row(row: Any, names: tuple[str, ...]) -> Floats:
    """One row as a fresh (C,) float64 array in the order of ``names``; NaN, or masked, means missing.

    An array or list counts by place; a mapping, a pandas series or a frame of one row is matched by name.

    >>> as_row({"b": 2.0, "a": 1.0}, ("a", "b"))
    array([1., 2.])
    """
    return as_timed_row(row, names)[0]


def as_timed_row(row: Any, names: tuple[str, ...]) -> tuple[Floats, Any]:
    """`as_row`, and the time the row has of its own: a frame's, or a date that names a pandas series; None if none."""
    if type(row) is np.ndarray and row.dtype == np.float64 and row.shape == (len(names),) and _is_finite(row):
        return row.copy(), None  # what a live stream mostly gets, at a tenth of the cost
    values, found, time = _read_row(row)
    if found is not None:
        values = values[order_of(found, names, "row")]
    if values.shape != (len(names),):
        raise ShapeError(f"row has shape {values.shape}; accepted: ({len(names)},), one value per channel.")
    infinite = np.isinf(values)
    if infinite.any():
        raise NotFiniteError(f"row is infinite at {in_words(names[np.argmax(infinite)])}; write NaN for missing.")
    return values, time


def _is_finite(values: Floats) -> bool:
    """By a count, which costs a third of what `all` does."""
    return bool(np.count_nonzero(np.isfinite(values)) == values.size)


def as_future(future: Any, rows: int, what: str) -> Floats:
    """Covariates known ahead, a fresh (rows, K) float64 array without missing values, from an array or a frame."""
    values, names, _ = _read(future, what)
    if len(values) != rows:
        raise ShapeError(f"{what} has {len(values)} rows; accepted: {rows}, one for each row it speaks of.")
    unknown = np.argwhere(~np.isfinite(values))
    if len(unknown):
        row, column = unknown[0]
        raise NotFiniteError(
            f"{what} is {values[row, column]} at row {row}, {in_words(names[column])}; "
            "what is known ahead must be finite: fill it."
        )
    return values


def _read(rows: Any, what: str) -> tuple[Floats, tuple[str, ...], Times | None]:
    """Values (T, C), names and the frame's own times, as they stand."""
    if isinstance(rows, OneOfMany):
        return rows.values, LONG[-1:], rows.times
    if not isinstance(rows, np.ndarray | list | tuple):
        return read_frame(rows, what)
    values = floats(rows, what)
    if values.ndim != 2:
        raise ShapeError(
            f"{what} has shape {values.shape}; accepted: (rows, channels). Use x[:, None] for one channel."
        )
    return values, numbered(values.shape[1]), None


def _read_row(row: Any) -> tuple[Floats, tuple[str, ...] | None, Any]:
    """The values of a row, its names if it is labelled, and its time if it has one."""
    if isinstance(row, np.ndarray | list | tuple):
        return floats(row, "row"), None, None
    if isinstance(row, Mapping):
        return floats(list(row.values()), "row"), names_of(row, "row"), None
    from narwhals.dependencies import is_into_series  # frames only: keeps `import ompb` light

    if is_into_series(row):
        label = getattr(row, "name", None)  # a row of a pandas frame is named by its place in the index
        return *read_series(row, "row"), label if isinstance(label, date) else None
    if not is_frame(row):
        return floats(row, "row"), None, None
    values, names, times = read_frame(row, "row")
    if len(values) != 1:
        raise ShapeError(f"row is a frame of {len(values)} rows; pass one row at a time.")
    return values[0], names, None if times is None else times[0]


def floats(values: Any, what: str) -> Floats:
    """Numbers as a fresh float64 array, NaN where masked."""
    try:
        array = as_array(values)
    except ValueError as error:  # ragged nesting
        raise ShapeError(f"{what} is ragged: {unended(error)}. Every row needs the same number of channels.") from error
    except (TypeError, RuntimeError) as error:  # numbers that NumPy does not have, such as bfloat16
        raise DtypeError(
            f"{what} is a {type(values).__name__} that is no array of numbers: {unended(error)}. Convert it to float64."
        ) from error
    if array.size == 0:
        raise ShapeError(f"{what} is empty (shape {array.shape}); pass at least one value.")
    if array.dtype.kind not in "iuf":
        raise DtypeError(
            f"{what} has dtype {array.dtype}; accepted: real numbers, NaN where missing. Convert it with astype(float)."
        )
    return float64(array)


def _require_measurable(values: Floats, names: tuple[str, ...], what: str) -> None:
    beyond = np.argwhere(np.abs(values) > HUGE)
    if len(beyond):
        row, channel = beyond[0]
        raise NotFiniteError(
            f"{what} is infinite, or beyond {HUGE:g}, at row {row}, {in_words(names[channel])}; "
            "write NaN for a missing value."
        )
