"""What comes in at a tick: the rows of all series, and what is known ahead of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ompb.core.arrays import Array
from ompb.errors import DtypeError, NotFiniteError, ShapeError
from ompb.floor.names import in_words
from ompb.live.library import Library
from ompb.rows.inputs import as_future, as_row
from ompb.seam.by_id import places_of
from ompb.types import Floats, float64


def as_tick_rows(rows: Any, ids: Sequence[str], names: tuple[str, ...], library: Library) -> Array:
    """The rows (S, C) of a tick, NaN where missing, from an array, a list of rows or a mapping by id.

    An array of the fleet's own library is taken as it is: what is infinite there is not believed.
    """
    shape = (len(ids), len(names))
    if library.is_own(rows):
        if tuple(rows.shape) != shape:
            raise _wrong_shape(tuple(rows.shape), shape)
        return library.array(rows)
    if isinstance(rows, Mapping):
        values = np.full(shape, np.nan)
        for place, row in zip(places_of(rows, ids, "rows"), rows.values(), strict=True):
            values[place] = as_row(row, names)
        return library.array(values)
    found = np.ma.filled(rows, np.nan) if isinstance(rows, np.ma.MaskedArray) else np.asarray(rows)
    if found.shape != shape:
        raise _wrong_shape(found.shape, shape)
    if found.dtype.kind not in "iuf":
        raise DtypeError(f"rows have dtype {found.dtype}; accepted: real numbers, NaN where missing.")
    values = float64(found)
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        place, channel = infinite[0]
        raise NotFiniteError(
            f"the row of {ids[place]!r} is infinite at {in_words(names[channel])}; write NaN for missing."
        )
    return library.array(values)


def as_futures(future: Any, series: int, horizon: int) -> Floats | None:
    """Covariates known ahead, (S, H, K), from those of each series or of all of them."""
    if future is None:
        return None
    every = np.asarray(future)
    if every.ndim == 2:
        return np.repeat(as_future(future, horizon, "future")[None], series, axis=0)
    if every.ndim != 3 or len(every) != series:
        raise ShapeError(f"future has shape {every.shape}; accepted: ({series}, {horizon}, K), or ({horizon}, K).")
    return np.stack([as_future(one, horizon, "future") for one in every])


def _wrong_shape(found: tuple[int, ...], accepted: tuple[int, ...]) -> ShapeError:
    return ShapeError(f"rows have shape {found}; accepted: {accepted}, a row for each series, or a mapping by id.")
