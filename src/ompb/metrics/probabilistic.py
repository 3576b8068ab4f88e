"""Scores of intervals and predictive laws; an entry with anything unknown (NaN) does not count.

All but the continuous ranked probability score, which is scoringrules', need numpy alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ompb.errors import InputError, OptionError, ShapeError
from ompb.floor.extras import extra
from ompb.metrics.point import aligned, known_mean, require_no_infinity
from ompb.types import Floats


def coverage(lower: ArrayLike, upper: ArrayLike, outcome: ArrayLike) -> float:
    r"""Share of known outcomes inside their closed interval.

    .. math:: \frac1n \sum_i 1\{l_i \le y_i \le u_i\}

    Arrays of one shape; an end may be infinite. NaN when nothing is known.

    >>> coverage([0, 0, 0, 0], [1, 1, 1, 1], [0.5, 1.0, 3.0, np.nan])
    0.6666666666666666
    """
    low, high, y = aligned(lower=lower, upper=upper, outcome=outcome)
    _require_ordered(low, high)
    require_no_infinity("outcome", y)
    unknown = np.isnan(low) | np.isnan(high) | np.isnan(y)
    return known_mean(np.where(unknown, np.nan, (low <= y) & (y <= high)))


def width(lower: ArrayLike, upper: ArrayLike) -> float:
    r"""Mean length of the intervals, in the units of the data; infinite if one of them is.

    .. math:: \frac1n \sum_i (u_i - l_i)

    >>> width([0.0, 1.0], [1.0, 4.0])
    2.0
    """
    low, high = aligned(lower=lower, upper=upper)
    _require_ordered(low, high)
    return known_mean(high - low)


def winkler(lower: ArrayLike, upper: ArrayLike, outcome: ArrayLike, level: float) -> float:
    r"""Mean interval score: the length, and 2 / (1 - level) for each unit that an outcome lies outside.

    .. math:: u - l + \frac{2}{1 - b} \bigl( (l - y)_+ + (y - u)_+ \bigr)

    In the units of the data. Of all intervals, those between the true (1 - b) / 2 and (1 + b) / 2 quantiles score best.

    >>> winkler([0.0, 0.0], [1.0, 1.0], [0.5, 1.5], level=0.5)
    2.0
    """
    low, high, y = aligned(lower=lower, upper=upper, outcome=outcome)
    _require_ordered(low, high)
    require_no_infinity("outcome", y)
    (b,) = _levels("level", [level])
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return known_mean(high - low + 2 / (1 - b) * outside)


def pinball(quantile: ArrayLike, outcome: ArrayLike, q: float) -> float:
    r"""Mean loss of a q-quantile, in the units of the data; the true quantile has the least.

    .. math:: \max\bigl( q (y - x), (q - 1) (y - x) \bigr)

    Twice its mean over all q in (0, 1) is the continuous ranked probability score.

    >>> pinball([1.0, 1.0], [2.0, 0.0], q=0.9)
    0.5
    """
    said, y = aligned(quantile=quantile, outcome=outcome)
    require_no_infinity("quantile", said)
    require_no_infinity("outcome", y)
    (share,) = _levels("q", [q])
    return known_mean(np.maximum(share * (y - said), (share - 1) * (y - said)))


def nll(mean: ArrayLike, sd: ArrayLike, outcome: ArrayLike) -> float:
    r"""Mean negative log density of the outcomes, in nats, under independent Gaussians.

    .. math:: \tfrac12 z^2 + \ln\sigma + \tfrac12\ln 2\pi, \qquad z = (y - \mu) / \sigma

    >>> round(nll([0.0], [1.0], [0.0]), 4)
    0.9189
    """
    centre, scale, y = _law(mean, sd, outcome)
    z = (y - centre) / scale
    return known_mean(0.5 * z**2 + np.log(scale) + 0.5 * math.log(2 * math.pi))


def crps(mean: ArrayLike, sd: ArrayLike, outcome: ArrayLike) -> float:
    r"""Mean continuous ranked probability score of Gaussian forecasts, in the units of the data.

    .. math:: \int (F(x) - 1\{x \ge y\})^2 dx
        = \sigma \left( z (2\Phi(z) - 1) + 2\varphi(z) - 1/\sqrt\pi \right),
        \qquad z = (y - \mu) / \sigma

    It becomes the absolute error as the standard deviation goes to zero.

    >>> round(crps([0.0], [1.0], [0.0]), 4)
    0.2337
    """
    with extra("bench", needed_by="ompb.metrics.probabilistic.crps"):
        from scoringrules import crps_normal
    centre, scale, y = _law(mean, sd, outcome)
    return known_mean(crps_normal(y, centre, scale))


def ece(nominal: ArrayLike, observed: ArrayLike) -> float:
    r"""Expected calibration error: the mean gap between promised and observed coverage over a grid of levels.

    .. math:: \frac1L \sum_l |c_l - \hat c_l|

    ``nominal`` and ``observed`` (L,); a level whose observed coverage is NaN does not count.

    >>> round(ece([0.5, 0.8, 0.9], [0.4, 0.8, 0.95]), 4)
    0.05
    """
    promised, found = aligned(nominal=_levels("nominal", nominal), observed=observed)
    if ((found < 0) | (found > 1)).any():
        worst = found[(found < 0) | (found > 1)][0]
        raise InputError(f"observed holds {worst:g}; coverage is a share in [0, 1], so divide percentages by 100.")
    return known_mean(np.abs(promised - found))


def _require_ordered(lower: Floats, upper: Floats) -> None:
    crossed = (lower > upper) | np.isposinf(lower) | np.isneginf(upper)
    if crossed.any():
        low, high = lower[crossed][0], upper[crossed][0]
        raise InputError(
            f"{int(crossed.sum())} intervals are not intervals, the first being [{low:g}, {high:g}]; "
            "pass the lower ends first, each at most its upper end."
        )


def _law(mean: ArrayLike, sd: ArrayLike, outcome: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Means, standard deviations and outcomes, checked."""
    centre, scale, y = aligned(mean=mean, sd=sd, outcome=outcome)
    for name, values in (("mean", centre), ("sd", scale), ("outcome", y)):
        require_no_infinity(name, values)
    if (scale <= 0).any():
        raise InputError(
            f"sd holds {scale[scale <= 0][0]:g}; a standard deviation is positive, so use NaN where unknown."
        )
    return centre, scale, y


def _levels(name: str, values: ArrayLike) -> Floats:
    (levels,) = aligned(**{name: values})
    if levels.ndim != 1 or not levels.size:
        raise ShapeError(f"{name} has shape {levels.shape}; pass a flat, non-empty list of levels.")
    if not ((levels > 0) & (levels < 1)).all():
        raise OptionError(f"{name} = {levels.tolist()} are not all inside (0, 1); write 80 % as 0.8.")
    return levels
