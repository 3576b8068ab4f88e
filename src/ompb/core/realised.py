r"""Realised risk: what matured outcomes prove about the forecasts issued so far.

Forecasts are fixed before their outcome, so with l_i in [0, 1] the proxy loss of the i-th non-overlapping
outcome, any predictable guess g_i in [0, 1] and any lambda in [0, 1)

.. math:: \prod_i \exp\{ \lambda (E_{i-1} l_i - l_i) - \psi(\lambda)(l_i - g_i)^2 \},
          \qquad \psi(\lambda) = -\ln(1 - \lambda) - \lambda

is a supermartingale, under any dependence and any adaptation. Ville's inequality for a weighted grid of lambdas gives,
at all times at once with probability 1 - delta,

.. math:: \tfrac1n \textstyle\sum E_{i-1} l_i \le \tfrac1n \sum l_i
          + \min_j \frac{\ln(J / \delta) + \psi(\lambda_j) \sum (l_i - g_i)^2}{\lambda_j\, n}
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ompb.core.arrays import Array, namespace, over_series

# Small lambdas serve long streams, large ones the first outcomes.
GRID = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
# The guess before any outcome.
FIRST_GUESS = 0.5


@dataclass
class RealisedLoss:
    """Proxy losses of non-overlapping outcomes of S series, and the outcome now maturing."""

    channels: int
    tau: float
    outcomes: Array  # how many have matured: (S,)
    total: Array  # sum of their losses: (S,)
    deviation: Array  # sum of (l - g)^2: (S,)
    origin: int  # of the outcome now maturing; -1 before the first forecast
    newest: int  # origin of the newest matured outcome; -1 before the first
    errors: Array  # of the outcome now maturing, 0 where not heard: (N, H)
    heard: Array  # (N, H)

    @classmethod
    def start(cls, like: Array, channels: int, tau: float) -> RealisedLoss:
        """Nothing issued, nothing matured; ``like`` is any (N, H) array."""
        xp = namespace(like)
        series = like.shape[0] // channels
        outcomes, total, deviation = (xp.zeros((series,), dtype=like.dtype) for _ in range(3))
        errors, heard = xp.zeros_like(like), xp.zeros_like(like)
        return cls(channels, tau, outcomes, total, deviation, -1, -1, errors, heard)

    def issued(self, origin: int) -> None:
        """A forecast was issued; follow it if no other is being followed."""
        if self.origin < 0:
            self.origin = origin

    def learn(self, row: int, errors: Array, heard: Array) -> None:
        """A row's errors (N, H) by lead: the followed outcome matures by one lead."""
        if self.origin < 0:
            return
        place = row - self.origin - 1
        self.errors[:, place] = errors[:, place]
        self.heard[:, place] = heard[:, place]
        if place + 1 == errors.shape[1]:
            self._mature(row)

    def bound(self, delta: float) -> tuple[Array, Array]:
        """Mean loss and its time-uniform upper bound, (S,); 1 before the first outcome."""
        xp = namespace(self.total)
        count = xp.maximum(self.outcomes, 1.0)
        grid = xp.asarray(GRID, dtype=self.total.dtype)
        psi = -xp.log1p(-grid) - grid
        price = math.log(len(GRID) / delta)
        slack = xp.min((price + psi * self.deviation[:, None]) / (grid * count[:, None]), axis=-1)
        mean = self.total / count
        return mean, xp.where(self.outcomes > 0, xp.minimum(mean + slack, 1.0), 1.0)

    def _mature(self, row: int) -> None:
        """The followed outcome is complete (missing cells stay out of its mean); follow the next one."""
        xp = namespace(self.errors)
        squared = over_series(xp.vecdot(self.errors, self.errors), self.channels)
        cells = over_series(xp.sum(self.heard, axis=-1), self.channels)
        seen = xp.astype(cells > 0, cells.dtype)
        loss = xp.minimum(squared / xp.where(cells > 0, cells, 1.0) / self.tau**2, 1.0)
        guess = (FIRST_GUESS + self.total) / (1 + self.outcomes)
        self.deviation += seen * (loss - guess) ** 2
        self.total += seen * loss
        self.outcomes += seen
        self.newest, self.origin = self.origin, row
