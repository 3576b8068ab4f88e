"""What a kind of complexity is: what it keeps of the losses, and what it charges for having seen only those.

    mean loss + Gamma  >=  average over the windows of E[loss | what came before],  with probability 1 - delta

The price of confidence is kappa = KL(rho || pi) + log term.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from ompb.core.arrays import Array, at_least, namespace
from ompb.floor.shapes import Tagged

# The constant in ln(C0 sqrt(m) / delta).
C0 = 2.0
# Before any window the loss may be anything in [0, 1]: middle, and largest possible variance.
START_MEAN, START_VARIANCE = 0.5, 0.25
# Weight of the newest window in the predictable moments, once 1/rate windows are in.
RATE = 0.05
ESTIMATED = "The predictable variance is an estimate from earlier certificate windows."


class Kind(Tagged, ABC):
    """A complexity term. A kind is a class with a tag, by which options name it."""

    assumption: ClassVar[str] = ""  # what must hold, beside what every kind asks for; in words

    @abstractmethod
    def summary(self, losses: Array, factor: float) -> Array:
        """All that Gamma needs of losses (..., m) in [0, 1] in time order: (..., any).

        ``factor`` scales the variance of kinds that estimate one.
        """

    @abstractmethod
    def gamma(self, kappa: Array, summary: Array, windows: int) -> Array:
        """Gamma (...) for m windows."""

    def log_term(self, windows: int, delta: float) -> float:
        """What confidence costs beside the KL: ln(C0 sqrt(m) / delta)."""
        return math.log(C0 * windows**0.5 / delta)


def predictable_spread(losses: Array, factor: float) -> tuple[Array, Array]:
    r"""V_m and c-bar of losses in time order, (..., m): each v_i uses losses before i only.

    .. math:: v \leftarrow v + r\,[(\ell - \mu)^2 - v],\quad \mu \leftarrow \mu + r\,(\ell - \mu),
       \quad r_i = \max(1 / (i + 2), \mathrm{RATE})

    The start values count as one window. c-bar is the largest predictable standard deviation, the scale of a sub-gamma
    increment.
    """
    xp = namespace(losses)
    index = xp.arange(losses.shape[-1], dtype=losses.dtype, device=losses.device)
    rate = at_least(1 / (index + 2), RATE)
    mean = before_each(losses, rate, START_MEAN)
    variance = before_each((losses - mean) ** 2, rate, START_VARIANCE)
    return factor * xp.sum(variance, axis=-1), xp.sqrt(factor * xp.max(variance, axis=-1))


def before_each(values: Array, rate: Array, start: float) -> Array:
    """x_0 = start and x_{i+1} = x_i + rate_i (value_i - x_i), without the last: (..., m).

    Affine maps are composed over spans of 1, 2, 4, ... places: a handful of products instead of a loop over windows.
    """
    xp = namespace(values)
    keep, add = 1 - rate, rate * values
    span = 1
    while span < values.shape[-1]:
        add = xp.concat([add[..., :span], add[..., span:] + keep[span:] * add[..., :-span]], axis=-1)
        keep = xp.concat([keep[:span], keep[span:] * keep[:-span]], axis=-1)
        span *= 2
    first = xp.full_like(values[..., :1], start)
    return xp.concat([first, add[..., :-1] + keep[:-1] * start], axis=-1)


def bernstein(kappa: Array, summary: Array, windows: int) -> Array:
    r"""The martingale term of Freedman and of sub-gamma increments, from V and c.

    .. math:: \Gamma = \frac{\sqrt{2 V \kappa}}{m} + \frac{c\, \kappa}{m}
    """
    variance, scale = summary[..., 0], summary[..., 1]
    return namespace(kappa).sqrt(2 * variance * kappa) / windows + scale * kappa / windows
