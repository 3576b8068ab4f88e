"""Errors as curves over the rows of a stream."""

from __future__ import annotations

import numpy as np

from ompb.backtest import Run
from ompb.types import Floats


def error_by_row(run: Run, forecast: Floats) -> Floats:
    """Standardised absolute error of the forecasts about each row, over leads and channels, (T,); NaN where none is."""
    error = np.abs(forecast - run.outcome) / run.scale
    known = ~np.isnan(error)
    rows = run.origins[:, None] + np.arange(1, forecast.shape[1] + 1)
    by_pair = (np.where(known, error, 0.0).sum(axis=2), known.sum(axis=2))
    total, count = (np.bincount(rows.ravel(), values.ravel()).astype(np.float64) for values in by_pair)
    return _ratio(total, count)


def rolling_mean(values: Floats, length: int) -> Floats:
    """Mean of the known ones among the last ``length`` values, at each place; NaN where none is known.

    >>> rolling_mean(np.array([1.0, 3.0, np.nan, 5.0]), 2)
    array([1., 2., 3., 5.])
    """
    known = ~np.isnan(values)
    total, count = (_rolling_sum(x, length) for x in (np.where(known, values, 0.0), known.astype(np.float64)))
    return _ratio(total, count)


def _ratio(total: Floats, count: Floats) -> Floats:
    return np.asarray(np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0))


def _rolling_sum(values: Floats, length: int) -> Floats:
    return np.convolve(values, np.ones(min(length, len(values))))[: len(values)]
