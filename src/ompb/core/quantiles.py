r"""The shape of a forecaster's own quantiles, to be stretched as a whole.

A forecaster that gives quantiles says how far each lies off its median. Between the quantiles it gives, and beyond the
outermost, that spread d is linear in the normal law's own, so that a normal law stays one:

.. math:: d(z) = \text{linear between } (0, 0), (z_\tau, |q_\tau - q_{1/2}|), \qquad
   s = \tfrac12 \bigl( d_-(z_0) + d_+(z_0) \bigr) / z_0, \qquad w_b = d(z_b) / (z_b \, s)

s is its own standard deviation, read at one level; w_b is the shape, one for each tracked level and side, and 1 for a
normal law. What is learned of errors multiplies s, and what is learned of misses w_b. Neither can mend a zero: s is at
least a hundredth of the source's residual sd, and w_b is believed within the factor by which half-widths may move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ompb.core.arrays import Array, at_least, at_most, namespace
from ompb.core.intervals import LEVELS, REACH
from ompb.floor.normal import gaussian_half_width

# The level at which the scale is read: most forecasters give its quantiles, and the sd of many laws agrees with it.
SCALE_AT = LEVELS.index(0.8)
# The least own standard deviation, over the source's residual one.
LEAST = 0.01


@dataclass(frozen=True)
class OwnShape:
    """Turns the spreads of Q quantiles, the median left out, into a scale and shapes at the tracked levels."""

    weights: Array  # of each spread at the tracked levels over their z, below and then above: (2 levels, Q)

    @classmethod
    def of(cls, quantiles: tuple[float, ...], like: Array) -> OwnShape:
        """For quantiles in increasing order, 0.5 among them and others on both sides."""
        places = tuple(tau for tau in quantiles if tau != 0.5)
        rows = []
        for sign in (-1.0, 1.0):
            side = [place for place, tau in enumerate(places) if sign * (tau - 0.5) > 0]
            side.sort(key=lambda place: abs(places[place] - 0.5))  # from the median outwards
            knots = [gaussian_half_width(abs(2 * places[place] - 1)) for place in side]
            for z in map(gaussian_half_width, LEVELS):
                row = [0.0] * len(places)
                for place, weight in zip(side, _linear(z, knots), strict=True):
                    row[place] = sign * weight / z
                rows.append(row)
        return cls(namespace(like).asarray(rows, dtype=like.dtype, device=like.device))

    def read(self, spreads: Array, source_variance: Array) -> tuple[Array, Array]:
        """Own sd (N, H), and shapes (N, 2, levels, H) below and above, of spreads (N, Q, H): q - median."""
        xp = namespace(spreads)
        slopes = xp.reshape(xp.matmul(self.weights, spreads), (spreads.shape[0], 2, len(LEVELS), -1))
        least = LEAST * xp.sqrt(source_variance)
        scale = xp.maximum((slopes[:, 0, SCALE_AT] + slopes[:, 1, SCALE_AT]) / 2, least + math.ulp(0.0))
        shape = slopes / scale[:, None, None]
        return scale, at_least(at_most(shape, math.exp(REACH)), math.exp(-REACH))


def _linear(z: float, knots: list[float]) -> list[float]:
    """What each knot's value counts at z: linear from 0 at 0 from knot to knot, and proportional beyond the last."""
    weights = [0.0] * len(knots)
    right = next((place for place, knot in enumerate(knots) if z <= knot), None)
    if right is None:
        weights[-1] = z / knots[-1]
    elif right == 0:
        weights[0] = z / knots[0]
    else:
        weights[right] = (z - knots[right - 1]) / (knots[right] - knots[right - 1])
        weights[right - 1] = 1 - weights[right]
    return weights
