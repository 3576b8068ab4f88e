r"""How far to trust the mixture: the belief in each of its voices, of which one is the bare forecaster.

The belief in a voice is the likelihood of Gaussian errors, twice `evidence` of them, whose variance is profiled out.
Losses are smoothed as if, beside the n revealed rows, `caution` more had been forecast by all as well as by the best:

.. math:: b_i \propto \pi_i \, \bigl(n \, \bar\ell_i + caution \cdot \min_j \bar\ell_j\bigr)^{-evidence}

So a large difference in loss opens the gate within a few rows, and a small one has to last. Here l is the discounted
mean over revealed rows of the voice's squared error, n their discounted count. Within a row, lead h counts 1/h: every
octave of leads says as much as any other, so that near leads, of which most is heard and least is chance, are not
drowned by the many far ones.

There are several *speeds*: a slow gate with a long memory and much caution, and a fast one that meets jumps. What each
would issue is judged in the same way, and the belief in the speeds mixes their beliefs in the voices.

The gate is the mass off the backbone. Where that mass is below `CLOSED`, and before any outcome unless novelty speaks
against the backbone (see `ompb.core.evidence`), it is exactly zero: the forecast is the backbone's own. An open gate
leaves the backbone out from the first forecast on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

from ompb.core.arrays import (
    Array,
    at_least,
    dot,
    has_all,
    has_none,
    lowest,
    namespace,
    over_series,
    small_product,
    tiny,
    zeros,
)
from ompb.floor.shapes import Shape

GateMode = Literal["channel", "shared", "open"]
# Mass off the backbone below which the correction is switched off altogether.
CLOSED = 0.01
# Belief in the first speed before any outcome; the others share the rest.
FIRST_SPEED = 0.7
# How the speeds are judged: what survives a row, and the caution.
SPEED_DISCOUNT, SPEED_CAUTION = 0.99, 50.0


@dataclass(frozen=True)
class GateOptions:
    """Of the gate."""

    mode: GateMode = "channel"  # one per channel, one for all, or always open
    discounts: tuple[float, ...] = (0.997, 0.98)  # of each speed: how much of what was heard survives a row
    cautions: tuple[float, ...] = (200.0, 20.0)  # of each speed: rows in which all voices do as well as the best
    evidence: float = 12.0  # weight ~ loss ** -evidence
    waits: bool = True  # closed until outcomes, or novelty, have spoken


class GateState(NamedTuple):
    """What was heard of K voices, and of what Z speeds made of them, on N lanes."""

    loss: Annotated[Array, Shape("N Z K", least=0)]  # of the voices, a discounted sum over rows
    rows: Annotated[Array, Shape("N Z", least=0)]  # discounted count of rows
    speed_loss: Annotated[Array, Shape("N Z", least=0)]  # of what each speed would have issued
    speed_rows: Annotated[Array, Shape("N", least=0)]


class Opinion(NamedTuple):
    """What the gate makes of it all."""

    by_speed: Array  # weights that each speed would mix with: (N, Z, K)
    weights: Array  # those the forecast is mixed with; the backbone alone where the gate is closed: (N, K)


@dataclass(frozen=True)
class Gate:
    """From what was heard to the weights of the K voices."""

    prior: Array  # (K,)
    bare: int  # the place of the bare forecaster among the voices
    leads: Array  # what lead h counts, 1/h: (H,)
    channels: int
    options: GateOptions

    @classmethod
    def of(cls, prior: Array, bare: int, horizon: int, channels: int, options: GateOptions) -> Gate:
        """A gate for leads 1 .. H."""
        xp = namespace(prior)
        leads = 1 / xp.arange(1, horizon + 1, dtype=prior.dtype, device=prior.device)
        return cls(prior, bare, leads, channels, options)

    @cached_property
    def backbone(self) -> Array:
        """Weights of a closed gate, 1 and zeros: (K,)."""
        return self._constant(tuple(float(place == self.bare) for place in range(self.prior.shape[0])))

    @cached_property
    def odds(self) -> Array:
        """Of the voices before any outcome, (K,); an open gate leaves the backbone out, unless it is alone."""
        left_out = self.options.mode == "open" and self.prior.shape[0] > 1
        return self.prior * (1 - self.backbone) if left_out else self.prior

    @cached_property
    def ruled_out(self) -> Array | None:
        """Infinite losses for voices that have no odds, else 0: (K,). None where every voice has some."""
        xp = namespace(self.prior)
        none = self.odds == 0
        return None if has_none(none) else xp.where(none, xp.inf, xp.zeros_like(self.prior))

    @cached_property
    def speed_odds(self) -> Array:
        """Of the speeds before any outcome, (Z,)."""
        others = self.speeds - 1
        return self._constant((FIRST_SPEED, *[(1 - FIRST_SPEED) / others] * others) if others else (1.0,))

    @cached_property
    def everyone(self) -> tuple[Array, Array]:
        """Ones for the voices (K,) and for the speeds (Z,), which add up faster than a sum."""
        return self._constant((1.0,) * self.prior.shape[0]), self._constant((1.0,) * self.speeds)

    @cached_property
    def discounts(self) -> Array:
        """Of the speeds, (Z,)."""
        return self._constant(self.options.discounts)

    @cached_property
    def cautions(self) -> Array:
        """Of the speeds, (Z,)."""
        return self._constant(self.options.cautions)

    @property
    def speeds(self) -> int:
        """Z."""
        return len(self.options.discounts)

    def start(self, lanes: int) -> GateState:
        """Nothing heard of N lanes yet."""
        shapes = (self.speeds, self.prior.shape[0]), (self.speeds,), (self.speeds,), ()
        none = (zeros(self.prior, lanes, *more) for more in shapes)
        return GateState(*none)

    def learn(self, state: GateState, heard: Array, loss: Array) -> GateState:
        """A row has passed. It was ``heard`` of where that is 1 (N,), with losses (N, K + Z), 0 where it was not."""
        voices = self.prior.shape[0]
        return GateState(
            self.discounts[:, None] * state.loss + loss[:, None, :voices],
            self.discounts * state.rows + heard[:, None],
            SPEED_DISCOUNT * state.speed_loss + loss[:, voices:],
            SPEED_DISCOUNT * state.speed_rows + heard,
        )

    def learn_late(self, state: GateState, heard: Array, loss: Array, age: int) -> GateState:
        """The same of a row that came ``age`` rows late: it counts as faded since."""
        voices = self.prior.shape[0]
        by_speed, of_speeds = self.discounts**age, SPEED_DISCOUNT**age
        return GateState(
            state.loss + by_speed[:, None] * loss[:, None, :voices],
            state.rows + by_speed * heard[:, None],
            state.speed_loss + of_speeds * loss[:, voices:],
            state.speed_rows + of_speeds * heard,
        )

    def opinion(self, state: GateState, log_weight: Array | None = None) -> Opinion:
        """Of what was heard, and of the evidence against the backbone: ln of a factor on its prior weight, (N,)."""
        xp = namespace(state.loss)
        heard, against, odds = state, log_weight, self.odds
        if self.options.mode == "shared":
            heard = GateState(*map(self._over_channels, state))
            against = None if log_weight is None else self._over_channels(log_weight)
        if against is not None:
            # never 0: it may still be the only voice whose losses leave it any belief
            factor = at_least(xp.exp(against), tiny(against))[:, None]
            odds = odds * (1 - self.backbone + self.backbone * factor)[:, None]
        by_speed = self._belief(odds, heard.loss, heard.rows, self.cautions, self.everyone[0], self.ruled_out)
        if self.options.waits and self.options.mode != "open" and not has_all(heard.rows):
            unheard = heard.rows == 0
            unheard = unheard if against is None else unheard & (against == 0)[:, None]
            by_speed = xp.where(unheard[..., None], self.backbone, by_speed)
        speeds = self._belief(self.speed_odds, heard.speed_loss, heard.speed_rows, SPEED_CAUTION, self.everyone[1])
        weights = small_product(speeds[:, None], by_speed)[:, 0]
        shut = weights[:, self.bare] > 1 - CLOSED
        if not has_none(shut):
            weights = xp.where(shut[:, None], self.backbone, weights)
        return Opinion(by_speed, weights)

    def _belief(
        self,
        odds: Array,
        loss: Array,
        rows: Array,
        caution: Array | float,
        everyone: Array,
        ruled_out: Array | None = None,
    ) -> Array:
        """The module's equation, (..., I), for losses (..., I) over so many rows (...).

        All is relative to the least loss of those with odds, so that nothing overflows and the best keeps its odds.
        """
        least = lowest(loss)
        nothing = tiny(loss)
        smooth = caution * least / at_least(rows, nothing) + nothing
        if ruled_out is not None:
            loss = loss + ruled_out
            least = lowest(loss)
        relative = (least + smooth)[..., None] / (loss + smooth[..., None])
        belief = odds * relative**self.options.evidence
        return belief / dot(belief, everyone)[..., None]

    def _over_channels(self, values: Array) -> Array:
        """The mean over a series' channels, for each of them."""
        return namespace(values).repeat(over_series(values, self.channels), self.channels, axis=0)

    def _constant(self, values: tuple[float, ...]) -> Array:
        return namespace(self.prior).asarray(values, dtype=self.prior.dtype, device=self.prior.device)
