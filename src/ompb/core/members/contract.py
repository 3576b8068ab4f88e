"""What a member of the mixture is: one or more voices, each a correction to the base forecast.

Offline a `Learner` is shown the learning windows block by block and leaves a `Member`, which is saved with the
calibrator. Online its `Voices` speak, and may learn: their state is a value of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ompb.core.arrays import Array
from ompb.core.counts import Form
from ompb.core.features import FeatureMap, View
from ompb.floor.shapes import Tagged


@dataclass(frozen=True)
class MemberOptions:
    """Of the members, offline and online."""

    discounts: tuple[float, ...] = (0.999,)  # one head each: how much of the past survives a row
    anchor: float = 800.0  # how many windows the source's word is worth, for ever
    patience: int = 32  # rows that a label may be late
    spans: tuple[int, ...] = ()  # lengths of memory, in rows; none for that of a window
    posterior_scale: float = 1.0  # factor on the heads' variance (miscalibration on purpose)


class MemberState(Tagged):
    """What voices have learned online: a frozen dataclass. Its place in a stream's file is named by its tag."""

    __slots__ = ()


class Speech(NamedTuple):
    """What k voices say of n windows."""

    corrections: Array  # to the base forecast: (N, k, n, H)
    leverage: Array | None  # their own uncertainty, in units of their noise: (N, k, n); None for no doubt


class Voices(ABC):
    """A member online. Those that never move need no more than the first three."""

    names: tuple[str, ...]
    reach: int = 0  # rows it looks back on, where a window is not enough

    @abstractmethod
    def see(self, view: View) -> Array:
        """All that the voices need of n windows, (N, n, any): computed once for each window."""

    @abstractmethod
    def speak(self, state: Any, seen: Array) -> Speech:
        """What the present state says of n windows."""

    @property
    def noise(self) -> Array | None:
        """Variance of each lead that one unit of leverage stands for, (N, H); None for voices without leverage."""
        return None

    def start(self, like: Array) -> MemberState | None:
        """The state a stream starts with, ``like`` being any (N, H) array; None for voices that never move."""
        del like
        return None

    def issue(self, state: Any, origin: int, seen: Array) -> tuple[Speech, Any]:
        """What is said of the window (N, 1, any) of a new origin, and the state once its inputs are taken in."""
        del origin
        return self.speak(state, seen), state

    def form(self, state: Any, row: int) -> Form | None:
        """What, beside arrays, decides how a row is learned and then issued from; None where that is its own.

        Rows of one form differ in arrays alone, the row's number among them as `along` gives it: one of them can be
        recorded and played for the others.
        """
        del row
        return () if state is None else None

    def pass_over(self, state: Any, origin: int) -> Any:
        """The state after an origin without a forecast."""
        del origin
        return state

    def learn(self, state: Any, row: int, residual: Array, observed: Array) -> Any:
        """The state once the newest row is known: residual y - z (N, H) by lead, observed (N, H) 1 where there is."""
        del row, residual, observed
        return state

    def learn_late(self, state: Any, row: int, newest: int, residual: Array, observed: Array) -> Any:
        """The same for a row that came late; ``newest`` is the newest row."""
        del row, newest, residual, observed
        return state

    def shift(self, state: Any) -> Array | None:
        """KL of each voice's law to the one it started with, (N, k); None for voices without one, which count as 0."""
        del state
        return None


class Learner(ABC):
    """Learns a member from the source: from its rows, from its windows, or from neither."""

    def read(self, rows: Array, outcomes: Array) -> None:
        """Take in the learning rows (S, C, T) with missing cells filled, and as they are, NaN where missing."""
        del rows, outcomes

    def add(self, view: View, outcomes: Array) -> None:
        """Take in a block of learning windows with their outcomes (N, n, H), NaN where missing.

        ``view.rows`` are those of the window alone; what lies before them is known to `read`.
        """
        del view, outcomes

    @abstractmethod
    def finish(self) -> Member:
        """What was learned."""


class Member(Tagged, ABC):
    """What the source taught one kind of voices: a frozen dataclass, saved by its tag, by which options name it."""

    @classmethod
    @abstractmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner | None:
        """Who learns it; None where the features leave it nothing to say."""

    @abstractmethod
    def voices(self, options: MemberOptions) -> Voices:
        """Its voices, online."""


class Fixed(Member, Voices):
    """A member with one voice that never moves, named by its tag: all it needs is a correction."""

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Its tag."""
        return (self.tag,)

    @abstractmethod
    def correction(self, view: View) -> Array:
        """What it adds to the base forecast, (N, n, H)."""

    def voices(self, options: MemberOptions) -> Voices:
        """Itself."""
        del options
        return self

    def see(self, view: View) -> Array:
        """Its correction, once and for all."""
        return self.correction(view)

    def speak(self, state: None, seen: Array) -> Speech:
        """What it saw, without any doubt."""
        del state
        return Speech(seen[:, None], None)


@dataclass(frozen=True)
class Untaught(Learner):
    """The learner of a member that needs no source."""

    make: Callable[[], Member]

    def finish(self) -> Member:
        """The member as it always is."""
        return self.make()
