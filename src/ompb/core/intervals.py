r"""Predictive law of each lead, and the online conformal layer that keeps its coverage.

.. math:: \mathrm{var}_h = \sigma_h^2 (1 + q),\qquad
   \sigma_h^2 \leftarrow \beta \sigma_h^2 + (1 - \beta) \frac{(y_h - \hat y_h)^2}{1 + q}

q = phi^T P phi is the head's leverage: sigma_h^2 q is the posterior variance, sigma_h^2 the residual variance, both
from matured labels only. The half-width at level b is c_b standard deviations; each row moves ln c_b up by
rate * (share of its leads outside - (1 - b)), so the long-run share outside is 1 - b whatever the errors' law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from ompb.core.arrays import Array, namespace

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
ALLOWED = tuple(1 - level for level in LEVELS)  # share outside
GAUSSIAN = tuple(NormalDist().inv_cdf(0.5 + level / 2) for level in LEVELS)
# ln c may leave the Gaussian half-width by this much: a bounded integrator cannot wind up.
REACH = math.log(5.0)
# A variance never falls below this (in squared source standard deviations): constant streams stay finite.
FLOOR = 1e-12


@dataclass
class Intervals:
    """Residual variance and half-widths of N lanes."""

    variance: Array  # sigma_h^2: (N, H)
    log_factor: Array  # ln of c_b over its Gaussian value: (N, levels)
    half_widths: Array  # c_b in standard deviations: (N, levels)
    gaussian: Array  # its Gaussian value: (levels,)
    allowed: Array  # share that may lie outside: (levels,)
    discount: float
    rate: float

    @classmethod
    def start(cls, variance: Array, discount: float, rate: float) -> Intervals:
        """Gaussian intervals with the source's residual variance (N, H)."""
        xp = namespace(variance)
        factors = xp.zeros((variance.shape[0], len(LEVELS)), dtype=variance.dtype)
        gaussian, allowed = (xp.asarray(values, dtype=variance.dtype) for values in (GAUSSIAN, ALLOWED))
        return cls(xp.asarray(variance, copy=True), factors, factors + gaussian, gaussian, allowed, discount, rate)

    def sd(self, leverage: Array) -> Array:
        """Predictive standard deviation (N, H) at a leverage (N,)."""
        xp = namespace(self.variance)
        return xp.sqrt(self.variance * (1 + leverage[:, None]))

    def learn(self, error: Array, precision: Array, shrink: Array, heard: Array, leads: Array) -> None:
        """A row's errors with the 1/sd and 1/(1 + q) they were issued with, each (N, H).

        ``heard`` (N, H) is 1 where there is an error, ``leads`` (N,) its sum; the rest of the arrays is 0 elsewhere.
        """
        xp = namespace(error)
        fade = (1 - self.discount) * heard
        self.variance = xp.maximum(self.variance + fade * (error * error * shrink - self.variance), FLOOR)
        outside = xp.astype(xp.abs(error * precision)[:, None] > self.half_widths[..., None], error.dtype)
        share = xp.matmul(outside, heard[..., None])[..., 0] / xp.maximum(leads, 1.0)[:, None]
        allowed = xp.minimum(leads, 1.0)[:, None] * self.allowed
        moved = self.log_factor + self.rate * (share - allowed)
        self.log_factor = xp.maximum(xp.minimum(moved, REACH), -REACH)
        self.half_widths = self.gaussian * xp.exp(self.log_factor)
