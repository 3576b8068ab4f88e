"""What comes in at a tick: the rows of all series, and what is known ahead of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ompb.core.arrays import Array
from ompb.errors import DtypeError, NotFiniteError, ShapeError
from ompb.floor.names import in_words, order_of
from ompb.live.library import HOST, Library
from ompb.rows.frames import is_frame, read_by_id
from ompb.rows.inputs import as_future, as_row, floats
from ompb.seam.by_id import called, for_each, places_of
from ompb.seam.sources import calling
from ompb.types import Floats


def as_tick_rows(rows: Any, ids: Sequence[str], names: tuple[str, ...], library: Library = HOST) -> Array:
    """The rows (S, C) of a tick, NaN where missing, from an array, a list of rows, or a mapping or frame by id.

    An array of the fleet's own library is taken as it is: what is infinite there is not believed.
    """
    shape = (len(ids), len(names))
    if library.is_own(rows):
        if tuple(rows.shape) != shape:
            raise _wrong_shape(tuple(rows.shape), shape)
        if not rows.is_floating_point():
            raise DtypeError(f"rows have dtype {rows.dtype}; accepted in a tensor: floats, NaN where missing.")
        return library.array(rows)
    if isinstance(rows, Mapping):
        return library.array(_by_id(rows, ids, names))
    return library.array(_in_a_frame(rows, ids, names) if is_frame(rows) else _by_place(rows, ids, names))


def as_futures(future: Any, ids: Sequence[str], horizon: int) -> Floats | None:
    """Covariates known ahead, (S, H, K), from those of each series, also by id, or of all of them."""
    if future is None:
        return None
    if isinstance(future, Mapping):
        every: Any = [*for_each("future", future, ids).values()]
    elif is_frame(future) or (every := floats(future, "future")).ndim == 2:
        return np.repeat(as_future(future if is_frame(future) else every, horizon, "future")[None], len(ids), axis=0)
    elif every.ndim != 3 or len(every) != len(ids):
        raise ShapeError(
            f"future has shape {every.shape}; accepted: ({len(ids)}, {horizon}, K), or ({horizon}, K) for all."
        )
    found = []
    for one, own in zip(ids, every, strict=True):
        with calling(called(one)):
            found.append(as_future(own, horizon, "future"))
    if len({own.shape for own in found}) > 1:
        raise ShapeError("future has other columns for some series than for others; accepted: as many for all.")
    return np.stack(found)


def _by_id(rows: Mapping[str, Any], ids: Sequence[str], names: tuple[str, ...]) -> Floats:
    values = np.full((len(ids), len(names)), np.nan)
    for place, (one, row) in zip(places_of(rows, ids, "rows"), rows.items(), strict=True):
        with calling(called(one)):
            values[place] = as_row(row, names)
    return values


def _in_a_frame(rows: Any, ids: Sequence[str], names: tuple[str, ...]) -> Floats:
    lines, values, found = read_by_id(rows, "rows")
    values = values[:, order_of(found, names, "rows")]
    return _by_id(dict(zip(lines, values, strict=True)), ids, names)


def _by_place(rows: Any, ids: Sequence[str], names: tuple[str, ...]) -> Floats:
    shape = (len(ids), len(names))
    if type(rows) is np.ndarray and rows.dtype == np.float64 and rows.shape == shape:
        values: Floats = rows.copy()  # what a live fleet mostly gets, at a third of the cost
    else:
        values = floats(rows, "rows")
    if values.shape != shape:
        raise _wrong_shape(values.shape, shape)
    infinite = np.isinf(values)
    if infinite.any():
        place, channel = np.argwhere(infinite)[0]
        raise NotFiniteError(
            f"{called(ids[place])}row is infinite at {in_words(names[channel])}; write NaN for missing."
        )
    return values


def _wrong_shape(found: tuple[int, ...], accepted: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"rows have shape {found}; accepted: {accepted}, a row for each series, or a mapping or frame by id."
    )
