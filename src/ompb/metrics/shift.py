"""How far apart two samples are: channel by channel, and jointly.

Unknown (NaN) values are dropped, so each channel is judged on what is known of it. The distance to a sample
in which nothing is known is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ompb.errors import ShapeError
from ompb.floor.extras import extra
from ompb.floor.names import counted
from ompb.metrics.point import aligned, known_mean, require_no_infinity
from ompb.rows.scaler import Scaler
from ompb.types import Floats

BINS = 50  # fine enough for bimodal channels, coarse enough for a few hundred rows
MMD_ROWS = 1000  # per sample: a kernel matrix of at most 2000 x 2000, 32 MB
# Squared distances that are this share of the largest are rounding errors, and count as zero.
ROUNDING = 1e-30
MMD_SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class ShiftTable:
    """Distances between two samples: one value per channel, (C,), and one over all channels together."""

    channels: tuple[str, ...]
    ks: Floats  # in [0, 1]
    wasserstein: Floats  # in the units of the channel
    jensen_shannon: Floats  # a divergence in nats, in [0, ln 2]
    mmd: Floats  # a distance, in [0, sqrt 2]
    mmd_joint: float

    def means(self) -> dict[str, float]:
        """Mean over the channels of each distance, by name; a channel without a value does not count."""
        return {
            "ks": known_mean(self.ks),
            "wasserstein": known_mean(self.wasserstein),
            "jensen_shannon": known_mean(self.jensen_shannon),
            "mmd": known_mean(self.mmd),
        }


def shift_table(a: ArrayLike, b: ArrayLike, channels: Sequence[str]) -> ShiftTable:
    """Every distance between the samples ``a`` (n, C) and ``b`` (m, C).

    The joint distance uses the rows in which every channel is known.

    >>> rng = np.random.default_rng(7)
    >>> table = shift_table(rng.normal(0, 1, (400, 2)), rng.normal([0, 3], 1, (300, 2)), ["still", "moved"])
    >>> table.ks.round(2)
    array([0.09, 0.87])
    >>> table.wasserstein.round(1)
    array([0.2, 3.1])
    """
    first, second = _tables(a, b, len(channels))
    pairs = [(first[:, c], second[:, c]) for c in range(len(channels))]
    return ShiftTable(
        channels=tuple(channels),
        ks=np.array([ks(x, y) for x, y in pairs]),
        wasserstein=np.array([wasserstein(x, y) for x, y in pairs]),
        jensen_shannon=np.array([jensen_shannon(x, y) for x, y in pairs]),
        mmd=np.array([mmd(x, y) for x, y in pairs]),
        mmd_joint=mmd(first, second),
    )


def ks(x: ArrayLike, y: ArrayLike) -> float:
    r"""Kolmogorov-Smirnov statistic of two flat samples: the largest gap of their distribution functions.

    .. math:: \sup_v |F_x(v) - F_y(v)|

    >>> ks([1, 2, 3, 4], [3, 4, 5, 6])
    0.5
    """
    x, y = _known(x, y, flat=True)
    if not (len(x) and len(y)):
        return math.nan
    # Not scipy's ks_2samp, whose p-value, unused here, fails on samples of one or two values.
    values = np.concatenate([x, y])
    below_x = np.searchsorted(np.sort(x), values, side="right") / len(x)
    below_y = np.searchsorted(np.sort(y), values, side="right") / len(y)
    return float(np.abs(below_x - below_y).max())


def wasserstein(x: ArrayLike, y: ArrayLike) -> float:
    r"""Wasserstein-1 distance of two flat samples, in their units.

    .. math:: \int |F_x(v) - F_y(v)| \, dv

    >>> wasserstein([0, 1], [2, 5])
    3.0
    """
    x, y = _known(x, y, flat=True)
    if not (len(x) and len(y)):
        return math.nan
    with extra("report", needed_by="ompb.metrics.shift"):  # here, so that the command starts without it
        from scipy.stats import wasserstein_distance
    return float(wasserstein_distance(x, y))


def jensen_shannon(x: ArrayLike, y: ArrayLike) -> float:
    r"""Jensen-Shannon divergence (not its root) in nats between histograms of two flat samples.

    .. math:: \tfrac12 KL(p \| m) + \tfrac12 KL(q \| m), \qquad m = (p + q) / 2

    p and q are histograms over the same 50 equal bins from the least to the largest pooled value. It is 0 for
    equal histograms and ln 2 for disjoint ones.

    >>> round(jensen_shannon([0, 1, 2], [7, 8, 9]), 4)
    0.6931
    """
    x, y = _known(x, y, flat=True)
    if not (len(x) and len(y)):
        return math.nan
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    if low == high:
        return 0.0
    p, q = (np.histogram((sample - low) / (high - low), bins=BINS, range=(0, 1))[0] for sample in (x, y))
    with extra("report", needed_by="ompb.metrics.shift"):  # here, so that the command starts without it
        from scipy.spatial.distance import jensenshannon
    return float(jensenshannon(p, q)) ** 2


def mmd(x: ArrayLike, y: ArrayLike, *, scaled: bool = True) -> float:
    r"""Maximum mean discrepancy (root of the biased estimate) of samples (n, C) and (m, C), or flat ones.

    .. math:: \left( \overline{k(x, x')} + \overline{k(y, y')} - 2\,\overline{k(x, y)} \right)^{1/2},
        \qquad k(u, v) = \exp\left( -\|u - v\|^2 / 2 h^2 \right)

    The means run over all pairs, a row with itself included. Channels are first divided by their pooled
    standard deviation, unless ``scaled`` is false; h is the median of the non-zero distances between pooled
    rows. Rows with an unknown value are dropped, and a sample of more than 1000 rows is thinned to 1000, drawn
    without replacement by a fixed seed.

    >>> round(mmd([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), 6)
    0.0
    >>> round(mmd([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), 3)
    0.984
    """
    x, y = _known(x, y, flat=False)
    if not (len(x) and len(y)):
        return math.nan
    # Sorted, so that the order of the rows cannot reach the deviation, not even by rounding: one last bit of it
    # would decide whether two nearly equal rows are at a distance of zero.
    scale = Scaler.fit(np.sort(np.concatenate([x, y]), axis=0)).scale if scaled else 1.0
    rows, others = _thinned(x / scale), _thinned(y / scale)
    with extra("report", needed_by="ompb.metrics.shift"):  # here, so that the command starts without it
        from scipy.spatial.distance import cdist, pdist
    # Each pair once: the others are the same by symmetry, and a row is at no distance from itself.
    squares = [pdist(rows, "sqeuclidean"), pdist(others, "sqeuclidean"), cdist(rows, others, "sqeuclidean").ravel()]
    pooled = np.concatenate(squares)
    apart = pooled > ROUNDING * pooled.max()
    if not apart.any():
        return 0.0
    width = 2 * np.median(pooled if apart.all() else pooled[apart])
    within, within_others, across = (float(np.exp(-part / width).sum()) for part in squares)
    n, m = len(rows), len(others)
    # Rounding can leave equal samples a hair below zero.
    return math.sqrt(max(0.0, 1 / n + 2 * within / n**2 + 1 / m + 2 * within_others / m**2 - 2 * across / (n * m)))


def _tables(a: ArrayLike, b: ArrayLike, channels: int) -> tuple[Floats, Floats]:
    (first,), (second,) = aligned(a=a), aligned(b=b)
    for name, table in (("a", first), ("b", second)):
        if table.ndim != 2 or table.shape[1] != channels:
            raise ShapeError(
                f"{name} has shape {table.shape}; pass (rows, {channels}), one column for each channel name."
            )
    return first, second


def _known(x: ArrayLike, y: ArrayLike, *, flat: bool) -> tuple[Floats, Floats]:
    """What is known of both samples: values (n,) when ``flat``, else complete rows (n, C)."""
    (first,), (second,) = aligned(x=x), aligned(y=y)
    if first.ndim != second.ndim or first.ndim not in ((1,) if flat else (1, 2)):
        accepted = "two flat samples" if flat else "two flat samples or two tables (rows, channels)"
        raise ShapeError(f"x has shape {first.shape} and y {second.shape}; pass {accepted}.")
    if first.shape[1:] != second.shape[1:]:
        raise ShapeError(
            f"x has {counted(first.shape[1], 'channel')} and y {second.shape[1]}; pass the common ones, in one order."
        )
    require_no_infinity("x", first)
    require_no_infinity("y", second)
    if flat:
        return first[~np.isnan(first)], second[~np.isnan(second)]
    return _complete_rows(first), _complete_rows(second)


def _complete_rows(sample: Floats) -> Floats:
    rows = sample.reshape(len(sample), math.prod(sample.shape[1:]))
    return rows[~np.isnan(rows).any(axis=1)]


def _thinned(rows: Floats) -> Floats:
    if len(rows) <= MMD_ROWS:
        return rows
    return np.random.default_rng(MMD_SEED).choice(rows, MMD_ROWS, replace=False)
