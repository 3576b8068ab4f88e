r"""The running bias: each lead's residuals, the newer the more.

.. math:: \hat y_h = z_h + b_h,\qquad b_h = (1 - d) \sum_{k \ge 0} d^k \, r_h(\text{k rows ago})

It knows nothing of the source, so it is the first to follow a forecaster that is off by the same amount all the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ompb.core.arrays import Array, zeros
from ompb.core.counts import Form
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Learner, Member, MemberOptions, MemberState, Speech, Untaught, Voices
from ompb.floor.shapes import Shape

# How much of the past survives a row.
DISCOUNT = 0.95


@dataclass(frozen=True, slots=True)
class BiasState(MemberState, tag="running bias"):
    """What was off of late."""

    total: Annotated[Array, Shape("N H")]  # discounted sum of residuals


@dataclass(frozen=True)
class Bias(Member, Voices, tag="running bias"):
    """One voice, which follows the newest residuals."""

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner:
        """It needs no source."""
        del features, options
        return Untaught(cls)

    def voices(self, options: MemberOptions) -> Voices:
        """Itself."""
        del options
        return self

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Its tag."""
        return (self.tag,)

    def see(self, view: View) -> Array:
        """The constant, whose weight a bias is: (N, n, 1)."""
        return view.features[..., :1]

    def start(self, like: Array) -> BiasState:
        """Nothing was off yet."""
        return BiasState(zeros(like, *like.shape))

    def speak(self, state: BiasState, seen: Array) -> Speech:
        """The same bias for every window, (N, 1, n, H)."""
        return Speech((state.total[:, None] * ((1 - DISCOUNT) * seen))[:, None], None)

    def learn(self, state: BiasState, row: int, residual: Array, observed: Array) -> BiasState:
        """The past fades, and the newest residuals are added."""
        del row, observed
        return BiasState(DISCOUNT * state.total + residual)

    def form(self, state: BiasState, row: int) -> Form:
        """All rows are alike."""
        del state, row
        return ()

    def learn_late(self, state: BiasState, row: int, newest: int, residual: Array, observed: Array) -> BiasState:
        """Faded as if they had come on time."""
        del observed
        return BiasState(state.total + DISCOUNT ** (newest - row) * residual)
