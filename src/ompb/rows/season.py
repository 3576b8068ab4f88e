"""The season, from the source's own autocorrelation."""

from __future__ import annotations

import numpy as np

from ompb.types import Floats

# Multiples of a lag at which the autocorrelation is read, at most.
MOST = 8
# A season is at most this share of the lags that are read.
LONGEST = 1 / 3
# What the contrasts at the multiples have to sum to: a season that was seen seldom must be the stronger.
CLEAR = 0.8
# A season is nearly as clear as all lags up to so many times as long, among which are its multiples.
NEARLY, REACH = 0.8, 4
# Slow movements are taken off by a moving average over this share of the rows, at most so many: a series may hold many
# seasons and still wander. What it leaves of a lag beyond this share of its own length is its own doing.
SHARE, SPAN, WITHIN = 1 / 10, 200, 1 / 4
# Keeps the slope of a channel without a known cell finite.
TINY = 1e-300
# What rounding leaves of the square of a channel that does not vary, as a share.
ROUNDING = 1e-28


def find_season(values: Floats) -> int | None:
    r"""The shortest lag at whose multiples the mean autocorrelation of rows (T, C) stands out; None if none does.

    .. math:: c(p) = \operatorname{mean}_{k \le K} \rho(kp) - \operatorname{mean}_{p/2 < j \le (K + 1/2) p} \rho(j)

    A lag that is one row off is K rows off at its last multiple, so chance does not move the flat peak of a smooth
    season; and slow movements raise both means alike. Where they drown a short season all the same, it stands out once
    a moving average is taken off: that is tried first, and believed at lags far shorter than the average.

    >>> find_season(np.sin(2 * np.pi * np.arange(400)[:, None] / 24))
    24
    """
    span = min(SPAN, int(SHARE * len(values)))
    short = _clearest(_less_moving_average(values, span), int(WITHIN * span)) if WITHIN * span >= 2 else None
    return _clearest(values, len(values)) if short is None else short


def _clearest(values: Floats, most: int) -> int | None:
    """The shortest lag up to ``most`` that stands out, in rows as they are."""
    correlation = _autocorrelation(values, 3 * len(values) // 4)
    if correlation is None:
        return None
    longest = int(LONGEST * (len(correlation) - 1))
    contrasts, multiples = _contrasts(correlation, longest, min(longest, REACH * most))
    inner = contrasts[1:-1]
    clear = (inner >= contrasts[:-2]) & (inner >= contrasts[2:]) & (multiples[1:-1] * inner > CLEAR)
    for lag in (1 + np.flatnonzero(clear[:most])).tolist():
        if contrasts[lag] >= NEARLY * contrasts[lag : REACH * lag + 1].max():
            return lag
    return None


def _contrasts(correlation: Floats, longest: int, most: int) -> tuple[Floats, Floats]:
    """The contrast c at each lag up to ``longest + 1``, and K; from 2 to ``most``, elsewhere c is lower than any."""
    lags, sums = len(correlation) - 1, np.cumsum(correlation)
    contrasts, multiples = np.full(longest + 2, -2.0), np.zeros(longest + 2)
    every = np.arange(2, most + 1)
    counts = np.minimum(MOST, (lags / every - 0.5).astype(np.int64))
    for count in np.unique(counts).tolist():
        chosen = every[counts == count]
        before, last = chosen // 2, count * chosen + chosen // 2
        around = (sums[last] - sums[before]) / (last - before)
        contrasts[chosen] = correlation[chosen[:, None] * np.arange(1, count + 1)].mean(axis=1) - around
        multiples[chosen] = count
    return contrasts, multiples


def _less_moving_average(values: Floats, span: int) -> Floats:
    """Rows less the mean of the known cells of the ``span`` rows around each; fewer at the ends."""
    known = np.isfinite(values)
    rows = np.arange(len(values))
    first, last = np.maximum(rows - span // 2, 0), np.minimum(rows - span // 2 + span, len(values))

    def around(cells: Floats) -> Floats:
        sums = np.concatenate([np.zeros_like(cells[:1]), np.cumsum(cells, axis=0)])
        return np.asarray(sums[last] - sums[first])

    # near zero, so that sums do not cost small movements their digits
    level = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    average = around(np.where(known, values - level, 0.0)) / np.maximum(around(known.astype(np.float64)), 1.0)
    return np.asarray(values - level - average)


def _autocorrelation(values: Floats, lags: int) -> Floats | None:
    """Mean over channels, at lags 0 to ``lags``, of rows without their trend; None if no channel varies."""
    rows = len(values)
    known = np.isfinite(values)

    def centred(column: Floats) -> Floats:
        """Less its mean over the known cells; 0 elsewhere."""
        mean = np.where(known, column, 0.0).sum(0) / np.maximum(known.sum(0), 1)
        return np.where(known, column - mean, 0.0)

    level, time = centred(values), centred(np.linspace(-1, 1, rows)[:, None])
    slope = (level * time).sum(0) / np.maximum((time**2).sum(0), TINY)
    power = np.abs(np.fft.rfft(level - slope * time, 2 * rows, axis=0)) ** 2
    covariance = np.fft.irfft(power, axis=0)[: lags + 1]
    varying = covariance[0] > ROUNDING * (np.where(known, values, 0.0) ** 2).sum(0)
    if not varying.any():
        return None
    correlation = (covariance[:, varying] / covariance[0, varying]).mean(axis=1)
    return np.asarray(correlation * rows / (rows - np.arange(lags + 1)))  # the sums behind lag k have rows - k terms
