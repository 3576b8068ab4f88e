"""Numbers as curves hold them: few points, few digits, nothing that is not finite."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ompb.bench.findings import Curve
from ompb.types import Floats

MOST_POINTS = 400  # of a curve
DIGITS = 5  # that count


def rounded(values: ArrayLike) -> tuple[float | None, ...]:
    """Five digits of each value; None where it is not finite.

    >>> rounded([1 / 3, float("nan"), 123456.7])
    (0.33333, None, 123460.0)
    """
    every = np.asarray(values, dtype=np.float64).tolist()
    return tuple(float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in every)


def picked(count: int, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """At most so many of the places 0 .. count - 1, evenly spread, first and last among them.

    >>> picked(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def block_means(values: ArrayLike, most: int = MOST_POINTS) -> Floats:
    """Means over at most so many blocks of neighbours, in order; what is not known stays out, NaN if nothing is.

    >>> block_means([1, 3, 5, 7, 9], 2).tolist()
    [3.0, 8.0]
    """
    flat = np.asarray(values, dtype=np.float64)
    size = max(1, math.ceil(len(flat) / most))
    starts = np.arange(0, len(flat), size)
    known = np.isfinite(flat)
    sums, counts = (np.add.reduceat(x, starts) for x in (np.where(known, flat, 0.0), known.astype(np.float64)))
    return np.asarray(np.divide(sums, counts, out=np.full(len(starts), np.nan), where=counts > 0))


def course(name: str, x: ArrayLike, y: ArrayLike) -> Curve:
    """A line through time: means over blocks of neighbours where there are more points than are drawn."""
    return _curve(name, block_means(x), block_means(y))


def cloud(name: str, x: ArrayLike, y: ArrayLike) -> Curve:
    """Points: those of which both values are known, thinned evenly."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.flatnonzero(np.isfinite(first) & np.isfinite(second))
    kept = known[picked(len(known))] if len(known) else known
    drawn = _curve(name, first[kept], second[kept])
    return Curve(name, drawn.x, drawn.y, "points")


def _curve(name: str, x: Floats, y: Floats) -> Curve:
    places = rounded(x)
    pairs = [(place, value) for place, value in zip(places, rounded(y), strict=True) if place is not None]
    return Curve(name, tuple(place for place, _ in pairs), tuple(value for _, value in pairs))
