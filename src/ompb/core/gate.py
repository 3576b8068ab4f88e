r"""How far to trust the mixture: the belief in each of its voices, of which one is the bare forecaster.

The belief in a voice is the likelihood of Gaussian errors, twice `evidence` of them, whose variance is profiled out.
Losses are smoothed as if, beside the n revealed rows, `caution` more had been forecast by all as well as by the best:

.. math:: b_i \propto \pi_i \, \bigl(n \, \bar\ell_i + caution \cdot \min_j \bar\ell_j\bigr)^{-evidence}

So a large difference in loss opens the gate within a few rows, and a small one has to last. Here l is the discounted
mean over revealed rows of the voice's squared error, n their discounted count. Within a row, lead h counts 1/h: every
octave of leads says as much as any other, so that near leads, of which most is heard and least is chance, are not
drowned by the many far ones. The gate is the mass off the backbone. Before any outcome, and where that mass is below
`CLOSED`, it is exactly zero: the forecast is the backbone's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

from ompb.core.arrays import Array, namespace, over_series, zeros
from ompb.shapes import Shape

GateMode = Literal["channel", "shared", "open"]
# Mass off the backbone below which the correction is switched off altogether.
CLOSED = 0.01
# Keeps the logarithm of a zero loss finite; far below any squared error of standardised data.
TINY = 1e-300
# Log odds against the backbone beyond this are as good as certain, and their exponential is still finite.
OVERFLOW = 600.0


@dataclass(frozen=True)
class GateOptions:
    """Of the gate."""

    mode: GateMode = "channel"  # one per channel, one for all, or always open
    discount: float = 0.997
    evidence: float = 12.0  # weight ~ loss ** -evidence
    caution: float = 200.0  # rows in which all voices are taken to do as well as the best


class GateState(NamedTuple):
    """What was heard of K voices on N lanes."""

    loss: Annotated[Array, Shape("N K", least=0)]  # discounted sum over rows
    rows: Annotated[Array, Shape("N", least=0)]  # discounted count of rows


@dataclass(frozen=True)
class Gate:
    """From what was heard to the weights of the K voices."""

    prior: Array  # (K,)
    backbone: Array  # weights of a closed gate, 1 and zeros: (K,)
    leads: Array  # what lead h counts, 1/h: (H,)
    channels: int
    options: GateOptions

    @classmethod
    def of(cls, prior: Array, backbone: Array, horizon: int, channels: int, options: GateOptions) -> Gate:
        """A gate for leads 1 .. H."""
        xp = namespace(prior)
        leads = 1 / xp.arange(1, horizon + 1, dtype=prior.dtype, device=prior.device)
        return cls(prior, backbone, leads, channels, options)

    @cached_property
    def everyone(self) -> Array:
        """Ones: (K,)."""
        return namespace(self.prior).ones_like(self.prior)

    def start(self, lanes: int) -> GateState:
        """Nothing heard of N lanes yet."""
        return GateState(zeros(self.prior, lanes, self.prior.shape[0]), zeros(self.prior, lanes))

    def learn(self, state: GateState, errors: Array, observed: Array) -> GateState:
        """A row has passed; errors (N, K, H) of the voices, 0 but where ``observed`` (N, H) is 1."""
        faded = GateState(self.options.discount * state.loss, self.options.discount * state.rows)
        return self.learn_late(faded, errors, observed, age=0)

    def learn_late(self, state: GateState, errors: Array, observed: Array, age: int) -> GateState:
        """Errors of a row that came ``age`` rows late."""
        xp = namespace(errors)
        counted = xp.matmul(observed, self.leads)
        weight = xp.astype(counted > 0, counted.dtype) * self.options.discount**age
        loss = (weight / xp.maximum(counted, TINY))[:, None] * xp.matmul(errors * errors, self.leads)
        return GateState(state.loss + loss, state.rows + weight)

    def belief(self, state: GateState) -> Array:
        """Posterior weights of the voices, (N, K); the prior before any outcome."""
        xp = namespace(state.loss)
        loss, rows = state.loss, state.rows
        if self.options.mode == "shared":
            loss, rows = (xp.repeat(over_series(x, self.channels), self.channels, axis=0) for x in (loss, rows))
        least = xp.min(loss, axis=1) / xp.maximum(rows, TINY)
        log_loss = xp.log(loss + (self.options.caution * least + TINY)[:, None])
        log_odds = self.options.evidence * (xp.matmul(log_loss, self.backbone)[:, None] - log_loss)
        if self.options.mode == "open" and self.prior.shape[0] > 1:
            # against the best of the others: against the backbone all might vanish
            log_odds = xp.where(self.backbone > 0, -xp.inf, log_odds)
            log_odds = log_odds - xp.max(log_odds, axis=1)[:, None]
        odds = self.prior * xp.exp(xp.minimum(log_odds, OVERFLOW))
        return odds / xp.matmul(odds, self.everyone)[:, None]

    def weights(self, state: GateState, belief: Array) -> Array:
        """Weights (N, K) the forecast is mixed with: the belief, or the backbone alone where the gate is closed."""
        if self.options.mode == "open":
            return belief
        xp = namespace(belief)
        shut = (state.rows == 0) | (xp.matmul(belief, self.backbone) > 1 - CLOSED)
        return xp.where(shut[:, None], self.backbone, belief)
