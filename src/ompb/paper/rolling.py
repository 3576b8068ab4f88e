"""Errors along a stream as curves: means over the rows just past, few points, few digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ompb.bench.findings import Curve
from ompb.types import Floats

MOST_POINTS = 400
PART = 20  # of a stream that a mean goes over: one twentieth


def rolling_mean(values: ArrayLike, rows: int) -> Floats:
    r"""Trailing means :math:`\frac1r \sum_{i=0}^{r-1} v_{t-i}`, (n - r + 1,).

    >>> rolling_mean([1, 2, 6, 4], 2).tolist()
    [1.5, 4.0, 5.0]
    """
    sums = np.cumsum(np.concatenate([[0.0], np.asarray(values, dtype=np.float64)]))
    return np.asarray((sums[rows:] - sums[:-rows]) / rows)


def rolling_curve(name: str, origins: ArrayLike, values: ArrayLike) -> Curve:
    """The mean over the last twentieth of a stream, at no more than 400 of its origins."""
    places = np.asarray(origins)
    rows = max(1, len(places) // PART)
    means = rolling_mean(values, rows)
    kept = np.unique(np.linspace(0, len(means) - 1, min(len(means), MOST_POINTS)).round().astype(np.int64))
    x = places[rows - 1 :][kept]
    return Curve(name, tuple(float(place) for place in x), tuple(float(f"{mean:.4g}") for mean in means[kept]))
