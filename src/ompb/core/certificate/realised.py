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
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, namespace, over_series, zeros
from ompb.shapes import Shape

# Small lambdas serve long streams, large ones the first outcomes.
GRID = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
# The guess before any outcome.
FIRST_GUESS = 0.5


class RealisedState(NamedTuple):
    """Proxy losses of non-overlapping outcomes of S series, and the outcome now maturing."""

    outcomes: Annotated[Array, Shape("S", least=0)]  # how many have matured
    total: Annotated[Array, Shape("S", least=0)]  # sum of their losses
    deviation: Annotated[Array, Shape("S", least=0)]  # sum of (l - g)^2
    errors: Annotated[Array, Shape("N H")]  # of the outcome now maturing, 0 where not observed
    observed: Annotated[Array, Shape("N H", least=0, most=1)]
    origin: int | None  # of the outcome now maturing
    newest: int | None  # origin of the newest matured outcome


@dataclass(frozen=True)
class RealisedRisks:
    """Follows one forecast after the other until its outcome is complete."""

    channels: int
    tau: float  # tau_y

    def start(self, like: Array) -> RealisedState:
        """Nothing issued, nothing matured; ``like`` is any (N, H) array."""
        series = like.shape[0] // self.channels
        outcomes, total, deviation = (zeros(like, series) for _ in range(3))
        errors, observed = zeros(like, *like.shape), zeros(like, *like.shape)
        return RealisedState(outcomes, total, deviation, errors, observed, None, None)

    def issue(self, state: RealisedState, origin: int) -> RealisedState:
        """A forecast was issued; follow it if no other is being followed."""
        return state._replace(origin=origin) if state.origin is None else state

    def learn(self, state: RealisedState, row: int, errors: Array, observed: Array) -> RealisedState:
        """A row's errors (N, H) by lead: the followed outcome matures by one lead."""
        if state.origin is None:
            return state
        place = row - state.origin - 1
        # dead places: an earlier state writes them again before it reads them
        state.errors[:, place] = errors[:, place]
        state.observed[:, place] = observed[:, place]
        return self._mature(state) if place + 1 == errors.shape[1] else state

    def bound(self, state: RealisedState, delta: float) -> tuple[Array, Array]:
        """Mean loss and its time-uniform upper bound, (S,); 1 before the first outcome."""
        xp = namespace(state.total)
        count = xp.maximum(state.outcomes, 1.0)
        grid = xp.asarray(GRID, dtype=state.total.dtype, device=state.total.device)
        psi = -xp.log1p(-grid) - grid
        price = math.log(len(GRID) / delta)
        slack = xp.min((price + psi * state.deviation[:, None]) / (grid * count[:, None]), axis=-1)
        mean = state.total / count
        return mean, xp.where(state.outcomes > 0, xp.minimum(mean + slack, 1.0), 1.0)

    def _mature(self, state: RealisedState) -> RealisedState:
        """The followed outcome is complete (missing cells stay out of its mean); the next forecast is followed."""
        xp = namespace(state.errors)
        squared = over_series(xp.vecdot(state.errors, state.errors), self.channels)
        cells = over_series(xp.sum(state.observed, axis=-1), self.channels)
        seen = xp.astype(cells > 0, cells.dtype)
        loss = xp.minimum(squared / xp.where(cells > 0, cells, 1.0) / self.tau**2, 1.0)
        guess = (FIRST_GUESS + state.total) / (1 + state.outcomes)
        return state._replace(
            deviation=state.deviation + seen * (loss - guess) ** 2,
            total=state.total + seen * loss,
            outcomes=state.outcomes + seen,
            newest=state.origin,
            origin=None,
        )
