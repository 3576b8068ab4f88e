"""What a kind of complexity is: how it reads the spread of the losses, and what it charges for it.

All kinds share kappa = KL(rho || pi) + ln(2 sqrt(m) / delta).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, namespace
from ompb.shapes import Shape, Tagged

# Before any window the loss may be anything in [0, 1]: middle, and largest possible variance.
START_MEAN, START_VARIANCE = 0.5, 0.25
# Weight of the newest window in the predictable moments, once 1/rate windows are in.
RATE = 0.05


class Spread(NamedTuple):
    """How much losses vary, as a kind sees it."""

    variance: Annotated[Array, Shape("S")]  # V, summed over windows
    scale: Annotated[Array, Shape("S")]  # c, the size of an increment


class Kind(Tagged, ABC):
    """A complexity term. A kind is a class with a tag, by which options name it."""

    @abstractmethod
    def spread(self, losses: Array, factor: float) -> Spread:
        """Of losses (S, m) in [0, 1] in time order; ``factor`` scales the variance."""

    @abstractmethod
    def gamma(self, kappa: Array, spread: Spread, windows: int) -> Array:
        """Gamma (S,) for m windows."""


def predictable_spread(losses: Array, factor: float) -> Spread:
    """V_m and c-bar of losses in time order, (..., m): each v_i uses losses before i only.

    c-bar is the largest predictable standard deviation, the scale of a sub-gamma increment.
    """
    xp = namespace(losses)
    mean = xp.full_like(losses[..., 0], START_MEAN)
    variance = xp.full_like(mean, START_VARIANCE)
    total, largest = xp.zeros_like(mean), xp.zeros_like(mean)
    for index in range(losses.shape[-1]):
        total = total + variance
        largest = xp.maximum(largest, variance)
        mean, variance = next_mean_and_variance(index, losses[..., index], mean, variance)
    return Spread(factor * total, xp.sqrt(factor * largest))


def next_mean_and_variance(index: int, loss: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    r"""Exponentially weighted mean and variance after window ``index`` (0, 1, ...), from those before it.

    .. math:: v \leftarrow v + r\,[(\ell - \mu)^2 - v],\quad \mu \leftarrow \mu + r\,(\ell - \mu),
       \quad r = \max(1 / (\mathrm{index} + 2), \mathrm{RATE})

    The start values count as one window. What is in force *before* a window is predictable for it.
    """
    rate = max(1 / (index + 2), RATE)
    return mean + rate * (loss - mean), variance + rate * ((loss - mean) ** 2 - variance)


def bernstein(kappa: Array, spread: Spread, windows: int) -> Array:
    r"""The martingale term of Freedman and of sub-gamma increments.

    .. math:: \Gamma = \frac{\sqrt{2 V \kappa}}{m} + \frac{c\, \kappa}{m}
    """
    return namespace(kappa).sqrt(2 * spread.variance * kappa) / windows + spread.scale * kappa / windows
