r"""How far to trust the head: a mixture whose first member is the bare forecaster.

Members are, in this order, the backbone, the seasonal profile (where there is one), the window regression and the
heads. Who is best differs with the lead, so each *group* of leads g has a belief of its own: the evidence of 2 kappa
independent Gaussian errors whose variance was profiled out, where kappa grows with the n revealed rows:

.. math:: b_{gi} \propto \pi_i \, \bar\ell_{gi}^{\,-\kappa},\qquad \kappa = evidence \cdot \min(1, n / ramp)

with the discounted mean over revealed rows of the member's squared error (mean over the group's leads) as l. Long leads
are heard of late: until then, and by the share `HINT` ever after, what is known of the other groups speaks for them.

The gate is the mass off the backbone, its mean over leads. Before any outcome, and for a group in which that mass is
below `CLOSED`, it is exactly zero: the forecast is the backbone's own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ompb.core.arrays import Array, namespace, over_series
from ompb.settings import GateMode, Settings

# Mass off the backbone below which the correction is switched off altogether.
CLOSED = 0.01
# Groups of leads at most. Their ends are in geometric progression.
GROUPS = 4
# Weight of what is known of all groups together in the loss of one.
HINT = 0.03
# Keeps the logarithm of a zero loss finite; far below any squared error of standardised data.
TINY = 1e-300
# Log odds against the backbone beyond this are as good as certain, and their exponential is still finite.
OVERFLOW = 600.0


def lead_groups(like: Array, horizon: int) -> Array:
    """Which leads make up a group: (G, H), 1 or 0.

    Of 24 leads the first 2, the next 3, the next 6 and the last 13 make a group.
    """
    xp = namespace(like)
    edges = sorted({0, *(round(horizon ** (part / GROUPS)) for part in range(1, GROUPS + 1))})
    leads = xp.arange(horizon)
    inside = [(leads >= first) & (leads < last) for first, last in itertools.pairwise(edges)]
    return xp.astype(xp.stack(inside), like.dtype)


@dataclass
class Gate:
    """Discounted losses of K members on N lanes, and the weights they imply."""

    prior: Array  # (K,)
    backbone: Array  # weights of a closed gate, 1 and zeros: (K,)
    groups: Array  # of leads: (G, H)
    hints: Array  # what the loss of one group counts for another, 1 and `HINT`s: (G, G)
    loss: Array  # discounted sum over rows: (N, K, G)
    rows: Array  # discounted count of rows: (N, G)
    discount: float
    evidence: float
    ramp: float
    mode: GateMode
    channels: int

    @classmethod
    def start(cls, lanes: int, prior: Array, groups: Array, channels: int, settings: Settings) -> Gate:
        """Nothing heard of N lanes yet."""
        xp = namespace(prior)
        count, members = groups.shape[0], prior.shape[0]
        return cls(
            prior=prior,
            backbone=xp.astype(xp.arange(members) == 0, prior.dtype),
            groups=groups,
            hints=xp.eye(count, dtype=prior.dtype) + HINT,
            loss=xp.zeros((lanes, members, count), dtype=prior.dtype),
            rows=xp.zeros((lanes, count), dtype=prior.dtype),
            discount=settings.gate_discount,
            evidence=settings.evidence,
            ramp=settings.ramp,
            mode=settings.gate,
            channels=channels,
        )

    def fade(self) -> None:
        """A row has passed."""
        self.loss *= self.discount
        self.rows *= self.discount

    def learn(self, errors: Array, heard: Array, age: int) -> None:
        """Take in the members' errors (N, K, H) on a row, 0 but where ``heard`` (N, H) is 1, ``age`` rows late."""
        xp = namespace(errors)
        into_groups = xp.matrix_transpose(self.groups)
        leads = xp.matmul(heard, into_groups)
        weight = xp.minimum(leads, 1.0) * self.discount**age
        self.loss += (weight / xp.maximum(leads, 1.0))[:, None] * xp.matmul(errors * errors, into_groups)
        self.rows += weight

    def belief(self) -> Array:
        """Posterior weights of the members, (N, G, K); the prior before any outcome."""
        xp = namespace(self.loss)
        loss, rows = self.loss, self.rows
        if self.mode == "shared":
            loss, rows = (xp.repeat(over_series(x, self.channels), self.channels, axis=0) for x in (loss, rows))
        kappa = self.evidence * xp.minimum(rows[:, :1] / self.ramp, 1.0)  # no row is heard of without lead 1
        loss, rows = xp.matmul(loss, self.hints), xp.matmul(rows, self.hints)
        log_loss = xp.matrix_transpose(xp.log(loss / xp.maximum(rows, TINY)[:, None] + TINY))
        log_odds = kappa[..., None] * (log_loss[..., :1] - log_loss)
        odds = self.prior * xp.exp(xp.minimum(log_odds, OVERFLOW))
        if self.mode == "open":
            odds[..., 0] = 0.0
        return odds / xp.vecdot(odds, xp.ones_like(self.prior))[..., None]

    def weights(self, belief: Array) -> Array:
        """Weights (N, K, H) the forecast is mixed with: the belief, or the backbone alone where the gate is closed."""
        xp = namespace(belief)
        if self.mode != "open":
            shut = (self.rows[:, :1] == 0) | (belief[..., 0] > 1 - CLOSED)
            belief = xp.where(shut[..., None], self.backbone, belief)
        return self.by_lead(belief)

    def by_lead(self, belief: Array) -> Array:
        """A belief (N, G, K) for every lead: (N, K, H)."""
        xp = namespace(belief)
        return xp.matmul(xp.matrix_transpose(belief), self.groups)
