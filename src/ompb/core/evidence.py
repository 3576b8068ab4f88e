r"""Evidence before any outcome: how far the base forecast z is from what memory makes of the same rows.

With q the pooled memory regression, novelty is

.. math:: r = \operatorname{mean}_h (z_h - q_h)^2 \,/\, s

where s is rarely exceeded on source windows that nothing was learned from. Where r > 1 the backbone's prior weight is
multiplied by

.. math:: r^{-power \cdot fade / (fade + n)}

so that the gate need not wait for outcomes; and as they speak, n rows of them since the *episode* of r > 1 began, the
evidence fades: a forecaster that knows of the change differs from memory and is right. An episode is over after a
season without r > 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, at_least, contiguous, dot, has_none, namespace, quantile, with_number, zeros
from ompb.core.members.memory import Memory
from ompb.floor.shapes import Shape

# s is exceeded in one window of a hundred of the source.
RARE = 0.99
# Least s, in squared source standard deviations: a forecaster that is the memory itself stays finite.
LEAST = 1e-6
# Rows without novelty that end an episode, where there is no season.
CALM = 24


@dataclass(frozen=True)
class EvidenceOptions:
    """Of the evidence."""

    power: float = 4.0  # 0: none
    fade: float = 3.0  # rows of outcomes that halve it


@dataclass(frozen=True)
class Usual:
    """How far base forecast and memory are apart on the source."""

    spread: Annotated[Array, Shape("N spans", positive=True)]  # s of each span of the memory

    @classmethod
    def of(cls, memory: Memory, rows: Array, base: Array) -> Usual:
        """From windows that nothing was learned from: their newest rows (N, n, R) and base forecasts (N, n, H)."""
        xp = namespace(base)
        spreads = []
        for span in memory.spans:
            gaps = mean_square(span.pooled_forecasts(rows) - base)
            spreads.append(at_least(quantile(gaps, RARE), LEAST))
        return cls(contiguous(xp.stack(spreads, axis=-1)))


class EvidenceState(NamedTuple):
    """How the present episode of novelty stands, on N lanes."""

    began: Annotated[Array, Shape("N", least=-1)]  # the origin it began with, -1 before the first
    heard: Annotated[Array, Shape("N", least=0)]  # rows of outcomes since
    calm: Annotated[Array, Shape("N", least=0)]  # rows since novelty last exceeded 1


@dataclass(frozen=True)
class Novelty:
    """How far base forecast and memory are apart, relative to what is usual."""

    usual: Usual
    memory: Memory
    voice: int  # place of the pooled memory among the voices

    def usual_with(self, known: int) -> Array:
        """S (N,) of the span that so many known rows fill."""
        return self.usual.spread[:, self.memory.longest(known)]

    def of(self, corrections: Array, usual: Array) -> Array:
        """R (N,) of a forecast, from the voices' corrections (N, K, H) and what is usual (N,)."""
        return mean_square(corrections[:, self.voice]) / usual


@dataclass(frozen=True)
class Evidence:
    """From novelty to what the backbone's prior is worth."""

    calm: int  # rows without novelty that end an episode
    options: EvidenceOptions

    def start(self, like: Array) -> EvidenceState:
        """No episode; ``like`` is any (N, H) array."""
        none = zeros(like, int(like.shape[0]))
        return EvidenceState(none - 1, none, none + self.calm)

    def issue(self, state: EvidenceState, origin: int, novelty: Array) -> tuple[Array | None, EvidenceState]:
        """A forecast of that novelty (N,) was issued: an episode begins, goes on, or comes nearer to its end.

        Returns the `log_weight` of it, too; None for 0 throughout: most forecasts are of no novelty, and spare the gate
        its part.
        """
        is_new = novelty > 1.0
        if has_none(is_new):
            return None, EvidenceState(state.began, state.heard, state.calm + 1.0)
        xp = namespace(novelty)
        begins = is_new & (state.calm >= self.calm)
        after = EvidenceState(
            began=with_number(state.began, begins, origin),
            heard=xp.where(begins, 0.0, state.heard),
            calm=xp.where(is_new, 0.0, state.calm + 1.0),
        )
        return self.log_weight(after, novelty), after

    def learn(self, state: EvidenceState, heard: Array) -> EvidenceState:
        """The newest row came; ``heard`` (N,) is 1 where it was an outcome."""
        return EvidenceState(state.began, state.heard + heard, state.calm)

    def learn_late(self, state: EvidenceState, row: int, heard: Array) -> EvidenceState:
        """The same of a row that came late, and may be older than the episode."""
        return self.learn(state, heard * (state.began < row))

    def log_weight(self, state: EvidenceState, novelty: Array) -> Array:
        """Ln of what the backbone's prior is multiplied by, (N,), under the state after `issue`."""
        power = self.options.power * self.options.fade / (self.options.fade + state.heard)
        return -power * namespace(novelty).log(at_least(novelty, 1.0))


def mean_square(gaps: Array) -> Array:
    """Mean over the last axis of the squares."""
    return dot(gaps, gaps) / gaps.shape[-1]
