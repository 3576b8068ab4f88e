r"""Predictive law of each lead, and the rules that keep its coverage.

.. math:: \mathrm{var}_h = \sigma_h^2 (1 + q),\qquad
   \sigma_h^2 \leftarrow \beta \sigma_h^2 + (1 - \beta) \frac{(y_h - \hat y_h)^2}{1 + q}

q is the mixture's leverage: sigma_h^2 q is the posterior variance, sigma_h^2 the residual variance, both from matured
labels only. The half-width at level b is c_b standard deviations; a rule says how c_b moves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

from ompb.core.arrays import Array, namespace, zeros
from ompb.normal import gaussian_half_width
from ompb.shapes import Shape, Tagged

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
# A variance never falls below this (in squared source standard deviations): constant streams stay finite.
FLOOR = 1e-12
# ln c may leave the Gaussian half-width by this much: a bounded integrator cannot wind up.
REACH = math.log(5.0)


@dataclass(frozen=True)
class IntervalOptions:
    """Of the intervals."""

    discount: float = 0.99  # how much of the residual variance survives a row
    rate: float = 0.05  # step of the conformal factor


class IntervalState(Tagged):
    """What an interval rule has learned; a frozen dataclass with the residual variance."""

    __slots__ = ()
    variance: Array  # sigma_h^2: (N, H)


class IntervalRule(Tagged, ABC):
    """How intervals are learned. A rule is a class with a tag, by which options name it."""

    def __init__(self, options: IntervalOptions, like: Array) -> None:
        self.options = options
        xp = namespace(like)
        gaussian, outside = tuple(map(gaussian_half_width, LEVELS)), tuple(1 - level for level in LEVELS)
        self.gaussian = xp.asarray(gaussian, dtype=like.dtype, device=like.device)  # half-widths: (levels,)
        self.outside = xp.asarray(outside, dtype=like.dtype, device=like.device)  # share allowed there: (levels,)

    @abstractmethod
    def start(self, variance: Array) -> IntervalState:
        """The state a stream starts with, from the source's residual variance (N, H)."""

    @abstractmethod
    def half_widths(self, state: IntervalState) -> Array:
        """c_b in standard deviations for `LEVELS`, (N, levels)."""

    @abstractmethod
    def learn(
        self, state: IntervalState, error: Array, precision: Array, shrink: Array, observed: Array
    ) -> IntervalState:
        """A row's errors with the 1/sd and 1/(1 + q) they were issued with, each (N, H).

        ``observed`` (N, H) is 1 where there is an error, which is 0 elsewhere.
        """

    def sd(self, state: IntervalState, leverage: Array) -> Array:
        """Predictive standard deviation (N, H) at a leverage (N,)."""
        return namespace(state.variance).sqrt(state.variance * (1 + leverage[:, None]))

    def next_variance(self, state: IntervalState, error: Array, shrink: Array, observed: Array) -> Array:
        """sigma_h^2 after a row, (N, H): the module's equation."""
        xp = namespace(error)
        fade = (1 - self.options.discount) * observed
        return xp.maximum(state.variance + fade * (error * error * shrink - state.variance), FLOOR)


@dataclass(frozen=True, slots=True)
class ConformalState(IntervalState, tag="conformal"):
    """Residual variance and conformal factors of N lanes."""

    variance: Annotated[Array, Shape("N H", positive=True)]
    log_factor: Annotated[Array, Shape("N levels", least=-REACH, most=REACH)]  # ln of c_b over its Gaussian value


class Conformal(IntervalRule, tag="conformal"):
    """Each row moves ln c_b up by rate * (share of its leads outside - (1 - b)).

    So the long-run share outside is 1 - b whatever the errors' law.
    """

    def start(self, variance: Array) -> ConformalState:
        """Gaussian intervals."""
        xp = namespace(variance)
        return ConformalState(xp.asarray(variance, copy=True), zeros(variance, variance.shape[0], len(LEVELS)))

    def half_widths(self, state: IntervalState) -> Array:
        """The Gaussian half-width times the factor."""
        assert isinstance(state, ConformalState)
        return self.gaussian * namespace(state.log_factor).exp(state.log_factor)

    def learn(
        self, state: IntervalState, error: Array, precision: Array, shrink: Array, observed: Array
    ) -> ConformalState:
        """Move variance and factors."""
        assert isinstance(state, ConformalState)
        xp = namespace(error)
        leads = xp.vecdot(observed, observed)  # observed is 0 or 1
        half_widths = self.half_widths(state)
        outside = xp.astype(xp.abs(error * precision)[:, None] > half_widths[..., None], error.dtype)
        share = xp.matmul(outside, observed[..., None])[..., 0] / xp.maximum(leads, 1.0)[:, None]
        allowed = xp.minimum(leads, 1.0)[:, None] * self.outside
        moved = state.log_factor + self.options.rate * (share - allowed)
        log_factor = xp.maximum(xp.minimum(moved, REACH), -REACH)
        return ConformalState(self.next_variance(state, error, shrink, observed), log_factor)
