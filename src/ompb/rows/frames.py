"""Frames of pandas, polars or pyarrow as arrays: times, channels and long layout found; nothing left out silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.errors import DtypeError, InputError, ShapeError, TimeOrderError
from ompb.floor.names import listed, names_of
from ompb.floor.times import Times, as_stamp, as_times, require_increasing
from ompb.types import Floats

TIME_NAMES = ("ds", "date", "time", "timestamp", "datetime")  # in any case
LONG = ("unique_id", "ds", "y")
BACKENDS = ("pandas", "polars", "pyarrow")  # libraries that frames can be made with


def read_frame(native: Any, what: str) -> tuple[Floats, tuple[str, ...], Times | None]:
    """Values (T, C) with NaN for missing, names and, if the frame has them, times, all in the order of the frame.

    A long frame (unique_id, ds, y) gives one channel for each unique_id. In any other, times are a pandas index of
    dates, else the one column of `TIME_NAMES` or the only one of dates; all other columns are channels, hence numbers.
    """
    frame, times = _with_names(native, what)
    if not len(frame):
        raise ShapeError(f"{what} is empty (columns: {listed(frame.columns)}); pass at least one row.")
    if set(LONG) <= set(frame.columns):
        return _from_long(frame, what)
    time = None if times is not None else _time_column(frame, what)
    if time is not None:
        times, frame = _times(frame[time], what), frame.drop(time)
    if not frame.columns:
        raise ShapeError(f"{what} has no column of numbers beside its times; add the values.")
    columns = [numbers(column, f"the column {column.name!r} of {what}") for column in frame.iter_columns()]
    return np.stack(columns, axis=1), tuple(frame.columns), times


def read_series(native: Any, what: str) -> tuple[Floats, tuple[str, ...] | None]:
    """One row (C,) from a series, with the names of its labels if it has any (pandas)."""
    import narwhals as nw
    from narwhals.dependencies import is_pandas_like_series

    names = names_of(native.index, what) if is_pandas_like_series(native) else None
    return numbers(nw.from_native(native, series_only=True), what), names


def is_frame(rows: Any) -> bool:
    """Whether it is a frame of pandas, polars or pyarrow, or of another library that narwhals knows."""
    if isinstance(rows, np.ndarray | list | tuple):
        return False
    from narwhals.dependencies import is_into_dataframe  # frames only: keeps `import ompb` light

    return is_into_dataframe(rows)


def read_by_id(native: Any, what: str) -> tuple[tuple[str, ...], Floats, tuple[str, ...]]:
    """Ids (n,), values (n, C) and names of a frame with a line for each series, whichever the order.

    Ids are a column or index ``unique_id``, or else a pandas index of texts. All other columns are channels.
    """
    index = getattr(native, "index", None)
    ids = None if index is None else [label for label in index if isinstance(label, str)]
    frame, times = _with_names(native, what)
    if LONG[0] in frame.columns:
        ids, frame = [str(label) for label in frame[LONG[0]].to_list()], frame.drop(LONG[0])
    if times is not None or ids is None or len(ids) < len(frame):
        raise InputError(
            f"{what} are a {type(native).__name__} that does not name the series of its lines; add a column unique_id, "
            "or pass an array in the order of the ids."
        )
    repeated = [one for one, lines in Counter(ids).items() if lines > 1]
    if repeated:
        raise InputError(f"{what} have more than one line of {listed(repeated)}; pass one for each series.")
    columns = [numbers(column, f"the column {column.name!r} of {what}") for column in frame.iter_columns()]
    return tuple(ids), np.stack(columns, axis=1), tuple(frame.columns)


def numbers(column: Any, called: str) -> Floats:
    """A narwhals series as float64, NaN for missing. Raises `DtypeError` unless it holds numbers, or nothing at all."""
    import narwhals as nw

    if column.dtype.is_numeric():
        return np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if column.is_null().all():
        return np.full(len(column), np.nan)
    first = column.drop_nulls().head(1).to_numpy()[0]
    raise DtypeError(
        f"{called} is of type {column.dtype} (first value {str(first)[:40]!r}); all columns but the times must be "
        "numbers: drop it, encode it as numbers, or convert it with astype(float)."
    )


def distinct(labels: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct labels in order of first appearance, and the number among them of each label."""
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return tuple(number), np.array([number[label] for label in labels], dtype=np.int64)


def parts_of_each(number: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """The places of each of the numbers 0, 1, 2, ..., all of which occur, in their order.

    >>> parts_of_each(np.array([0, 1, 0, 2]))
    [array([0, 2]), array([1]), array([3])]
    """
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])


def pivoted(labels: Sequence[str], times: Times, cells: Floats) -> tuple[Floats, tuple[str, ...], Times]:
    """A long layout as values (T, C), names and times: one channel for each label, rows the union of the times.

    Times must increase within each label.

    >>> pivoted(["b", "b", "a"], np.array([1, 2, 2]), np.array([5.0, 6.0, 7.0]))
    (array([[ 5., nan],
           [ 6.,  7.]]), ('b', 'a'), array([1, 2]))
    """
    names, channel = distinct(labels)
    for name, part in zip(names, parts_of_each(channel), strict=True):
        require_increasing(times[part], f"the series {name!r}")
    union, rows = np.unique(times, return_inverse=True)
    values = np.full((len(union), len(names)), np.nan)
    values[rows, channel] = cells
    return values, names, union


def _with_names(native: Any, what: str) -> tuple[Any, Times | None]:
    """A narwhals frame whose columns are named by distinct texts, and the times of its index."""
    import narwhals as nw
    from narwhals.dependencies import is_into_series, is_pandas_like_dataframe

    times = None
    native = native.to_frame() if is_into_series(native) and hasattr(native, "to_frame") else native
    if is_pandas_like_dataframe(native):
        native, times = _without_index(native, what)
    names_of(getattr(native, "column_names", ()), what)  # a pyarrow table may repeat a name, too
    try:
        return nw.from_native(native, eager_only=True), times
    except TypeError as error:
        raise InputError(
            f"{what} is a {type(native).__name__}; accepted: an array (rows, channels), or a pandas, polars or pyarrow "
            "frame that is in memory (collect a lazy one)."
        ) from error


def _without_index(native: Any, what: str) -> tuple[Any, Times | None]:
    """A pandas frame whose columns are named by texts, and the times of its index if that holds dates.

    An index with a name that means something (``ds``, ``unique_id``) is a column like any other.
    """
    index, times = native.index, None
    if getattr(index.dtype, "kind", "") == "M" or hasattr(index, "to_timestamp"):
        times = as_times(index, f"the times of {what}")
    elif any(str(name).lower() in (*TIME_NAMES, LONG[0]) for name in index.names):
        native = native.reset_index(allow_duplicates=True)  # duplicates are told of with all the others
    return native.set_axis(list(names_of(native.columns, what)), axis=1), times


def _time_column(frame: Any, what: str) -> str | None:
    named = [name for name in frame.columns if name.lower() in TIME_NAMES]
    found = named or [column.name for column in frame.iter_columns() if _holds_dates(column)]
    if len(found) > 1:
        raise InputError(f"{what} has {len(found)} columns of times ({listed(found)}); drop all but one.")
    return found[0] if found else None


def _holds_dates(column: Any) -> bool:
    if column.dtype.is_numeric():
        return False
    known = column.drop_nulls().head(1).to_numpy()
    try:
        return len(known) > 0 and not isinstance(as_stamp(known[0], "first"), int)
    except InputError:
        return False


def _times(column: Any, what: str) -> Times:
    absent = column.is_null().to_numpy()
    if absent.any():
        raise TimeOrderError(
            f"the time column {column.name!r} of {what} has no time in row {int(np.argmax(absent))}; drop or fill it."
        )
    return as_times(column, f"the time column {column.name!r} of {what}")


class OneOfMany(NamedTuple):
    """A series of a long frame."""

    values: Floats  # of the channel y, (T, 1)
    times: Times  # (T,)


def read_long(native: Any, what: str) -> dict[str, OneOfMany] | None:
    """Each series of a long frame, by unique_id; None for a frame of another layout."""
    frame, _ = _with_names(native, what)
    if not set(LONG) <= set(frame.columns):
        return None
    if not len(frame):
        raise ShapeError(f"{what} is empty (columns: {listed(frame.columns)}); pass at least one row.")
    labels, times, cells = _long_columns(frame, what)
    names, series = distinct(labels)
    found = {}
    for name, part in zip(names, parts_of_each(series), strict=True):
        require_increasing(times[part], f"the series {name!r}")
        found[name] = OneOfMany(cells[part][:, None], times[part])
    return found


def _from_long(frame: Any, what: str) -> tuple[Floats, tuple[str, ...], Times]:
    return pivoted(*_long_columns(frame, what))


def _long_columns(frame: Any, what: str) -> tuple[list[str], Times, Floats]:
    """The label, the time and the value of each line."""
    others = [name for name in frame.columns if name not in LONG]
    if others:
        raise ShapeError(
            f"{what} is a long frame ({', '.join(LONG)}) with other columns: {listed(others)}; drop them, "
            "for they would be neither channels nor known to the forecaster."
        )
    labels = frame[LONG[0]]
    absent = labels.is_null().to_numpy()
    if absent.any():
        raise InputError(
            f"unique_id is missing in row {int(np.argmax(absent))} of {what}; name the series of that row."
        )
    cells = numbers(frame["y"], f"the column 'y' of {what}")
    return [str(label) for label in labels.to_list()], _times(frame["ds"], what), cells
