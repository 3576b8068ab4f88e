"""Windows of a series: the rows a forecaster sees, the rows it speaks of, and the one rule for missing cells.

*Missing cells* of a window are filled by the last known value of the channel; before any is known, by the channel's
source mean. A filled cell is an input only: it never becomes a label.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ompb.errors import TooShortError
from ompb.types import Floats

Origins = NDArray[np.int64]


def sliding(rows: NDArray[np.floating], length: int) -> Floats:
    """Every stretch (T - length + 1, length, C) of rows (T, C), in time order: a read-only view, no copy.

    >>> sliding(np.asarray([[1.0], [2.0], [3.0]]), 2)[..., 0]
    array([[1., 2.],
           [2., 3.]])
    """
    return np.asarray(sliding_window_view(rows, length, axis=0).transpose(0, 2, 1))


def windows_at(rows: NDArray[np.floating], origins: Origins, context: int) -> Floats:
    """Windows (n, context, C) that end in these rows of (T, C)."""
    return np.asarray(rows[origins[:, None] + np.arange(1 - context, 1)])


def outcomes_at(rows: NDArray[np.floating], origins: Origins, horizon: int) -> Floats:
    """The rows (n, horizon, C) that follow these rows of (T, C); NaN beyond the end.

    >>> outcomes_at(np.asarray([[1.0], [2.0], [3.0]]), np.asarray([0, 1]), 2)[..., 0]
    array([[ 2.,  3.],
           [ 3., nan]])
    """
    beyond = max(0, int(origins.max(initial=0)) + horizon + 1 - len(rows))
    padded = np.concatenate([rows, np.full((beyond, rows.shape[1]), np.nan)]) if beyond else rows
    return np.asarray(padded[origins[:, None] + np.arange(1, horizon + 1)])


def fill_forward(values: Floats, before: Floats) -> Floats:
    """Each missing cell of (..., T, C) takes the last known value above it; ``before`` (..., C) is above the first row.

    >>> fill_forward(np.asarray([[np.nan], [2.0], [np.nan]]), np.asarray([7.0])).ravel()
    array([7., 2., 2.])
    """
    stacked = np.concatenate([before[..., None, :], values], axis=-2)
    last = np.where(np.isnan(stacked), 0, np.arange(stacked.shape[-2])[:, None])
    np.maximum.accumulate(last, axis=-2, out=last)
    return np.asarray(np.take_along_axis(stacked, last, axis=-2)[..., 1:, :])


def complete_starts(missing: NDArray[np.bool_], span: int, what: str) -> NDArray[np.intp]:
    """First rows of all stretches of ``span`` rows none of which is ``missing`` (T,). Raises if there is none."""
    missing_before = np.concatenate([[0], np.cumsum(missing)])
    starts = np.flatnonzero(missing_before[span:] == missing_before[:-span])
    if not starts.size:
        raise TooShortError(
            f"{what} has no {span} successive rows (context + horizon) without a missing value among its "
            f"{len(missing)}; pass a longer source, a shorter context or horizon, or fill the gaps."
        )
    return starts
