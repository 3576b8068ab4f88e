r"""How far to trust the head: a mixture whose first member is the bare forecaster.

Members are, in this order, the backbone, the seasonal profile (where there is one), the window regression and the
heads. The belief in one is the likelihood of Gaussian errors, twice `evidence` of them, whose variance is profiled out.
Losses are smoothed as if, beside the n revealed rows, `caution` more had been forecast by all as well as by the best:

.. math:: b_i \propto \pi_i \, \bigl(n \, \bar\ell_i + caution \cdot \min_j \bar\ell_j\bigr)^{-evidence}

So a large difference in loss opens the gate within a few rows, and a small one has to last. Here l is the discounted
mean over revealed rows of the member's squared error, n their discounted count. Within a row, lead h counts 1/h: every
octave of leads says as much as any other, so that near leads, of which most is heard and least is chance, are not
drowned by the many far ones. The gate is the mass off the backbone. Before any outcome, and where that mass is below
`CLOSED`, it is exactly zero: the forecast is the backbone's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace, over_series
from ompb.settings import GateMode, Settings

# Mass off the backbone below which the correction is switched off altogether.
CLOSED = 0.01
# Keeps the logarithm of a zero loss finite; far below any squared error of standardised data.
TINY = 1e-300
# Log odds against the backbone beyond this are as good as certain, and their exponential is still finite.
OVERFLOW = 600.0


@dataclass
class Gate:
    """Discounted losses of K members on N lanes, and the weights they imply."""

    prior: Array  # (K,)
    backbone: Array  # weights of a closed gate, 1 and zeros: (K,)
    leads: Array  # what lead h counts, 1/h: (H,)
    loss: Array  # discounted sum over rows: (N, K)
    rows: Array  # discounted count of rows: (N,)
    discount: float
    evidence: float
    caution: float
    mode: GateMode
    channels: int

    @classmethod
    def start(cls, lanes: int, horizon: int, prior: Array, channels: int, settings: Settings) -> Gate:
        """Nothing heard of N lanes yet."""
        xp = namespace(prior)
        return cls(
            prior=prior,
            backbone=xp.astype(xp.arange(prior.shape[0]) == 0, prior.dtype),
            leads=1 / xp.arange(1, horizon + 1, dtype=prior.dtype),
            loss=xp.zeros((lanes, prior.shape[0]), dtype=prior.dtype),
            rows=xp.zeros(lanes, dtype=prior.dtype),
            discount=settings.gate_discount,
            evidence=settings.evidence,
            caution=settings.caution,
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
        counted = xp.matmul(heard, self.leads)
        weight = xp.astype(counted > 0, counted.dtype) * self.discount**age
        self.loss += (weight / xp.maximum(counted, TINY))[:, None] * xp.matmul(errors * errors, self.leads)
        self.rows += weight

    def belief(self) -> Array:
        """Posterior weights of the members, (N, K); the prior before any outcome."""
        xp = namespace(self.loss)
        loss, rows = self.loss, self.rows
        if self.mode == "shared":
            loss, rows = (xp.repeat(over_series(x, self.channels), self.channels, axis=0) for x in (loss, rows))
        mean = loss / xp.maximum(rows, TINY)[:, None]
        smoothed = loss + self.caution * xp.min(mean, axis=1)[:, None]
        log_loss = xp.log(smoothed + TINY)
        log_odds = self.evidence * (log_loss[:, :1] - log_loss)
        odds = self.prior * xp.exp(xp.minimum(log_odds, OVERFLOW))
        if self.mode == "open":
            odds[:, 0] = 0.0
        return odds / xp.vecdot(odds, xp.ones_like(self.prior))[:, None]

    def weights(self, belief: Array) -> Array:
        """Weights (N, K) the forecast is mixed with: the belief, or the backbone alone where the gate is closed."""
        xp = namespace(belief)
        if self.mode == "open":
            return belief
        shut = (self.rows == 0) | (belief[:, 0] > 1 - CLOSED)
        return xp.where(shut[:, None], self.backbone, belief)
