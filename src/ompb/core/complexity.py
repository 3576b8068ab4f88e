"""Gamma: what the certificate pays for having seen only m windows, in three kinds.

All share kappa = KL(rho || pi) + ln(2 sqrt(m) / delta).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ompb.core.arrays import Array, namespace
from ompb.types import Kind

# The constant in ln(C0 sqrt(m) / delta).
C0 = 2.0
# Largest increment of a loss in [0, 1].
B = 1.0
# Before any window the loss may be anything in [0, 1]: middle, and largest possible variance.
START_MEAN, START_VARIANCE = 0.5, 0.25
# Weight of the newest window in the predictable moments, once 1/rate windows are in.
RATE = 0.05

Gamma: TypeAlias = Callable[[Array, Array, Array, int], Array]


def iid(kappa: Array, variance: Array, scale: Array, windows: int) -> Array:  # noqa: ARG001
    """Independent windows: sqrt(kappa / (2 m)). Breaks when windows depend on each other."""
    xp = namespace(kappa)
    return xp.sqrt(kappa / (2 * windows))


def freedman(kappa: Array, variance: Array, scale: Array, windows: int) -> Array:
    """Bounded martingale: sqrt(2 V kappa) / m + scale kappa / m, V the summed predictable variance, scale = B / 3."""
    xp = namespace(kappa)
    return xp.sqrt(2 * variance * kappa) / windows + scale * kappa / windows


def subgamma(kappa: Array, variance: Array, scale: Array, windows: int) -> Array:
    """Sub-gamma martingale, for unbounded losses: sqrt(2 V kappa) / m + c kappa / m."""
    xp = namespace(kappa)
    return xp.sqrt(2 * variance * kappa) / windows + scale * kappa / windows


KINDS: dict[Kind, Gamma] = {"iid": iid, "freedman": freedman, "subgamma": subgamma}


def next_moments(index: int, loss: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    r"""Exponentially weighted mean and variance after window ``index`` (0, 1, ...), from those before it.

    .. math:: v \leftarrow v + r\,[(\ell - \mu)^2 - v],\quad \mu \leftarrow \mu + r\,(\ell - \mu),
       \quad r = \max(1 / (\mathrm{index} + 2), \mathrm{RATE})

    The start values count as one window. What is in force *before* a window is predictable for it.
    """
    rate = max(1 / (index + 2), RATE)
    return mean + rate * (loss - mean), variance + rate * ((loss - mean) ** 2 - variance)


def predictable_variance(losses: Array) -> tuple[Array, Array]:
    """V_m (...) and c-bar (...) of losses in time order, (..., m): each v_i uses losses before i only.

    c-bar is the largest predictable standard deviation, the scale of a sub-gamma increment.
    """
    xp = namespace(losses)
    mean = xp.full_like(losses[..., 0], START_MEAN)
    variance = xp.full_like(mean, START_VARIANCE)
    total, largest = xp.zeros_like(mean), xp.zeros_like(mean)
    for index in range(losses.shape[-1]):
        total = total + variance
        largest = xp.maximum(largest, variance)
        mean, variance = next_moments(index, losses[..., index], mean, variance)
    return total, xp.sqrt(largest)
