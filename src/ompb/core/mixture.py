"""The mixture: all members together, as K voices with names and a prior.

A member is one class in one file of `ompb.core.members`; it joins by being imported and named here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from ompb.core.arrays import Array, namespace, zeros
from ompb.core.counts import Form
from ompb.core.features import FeatureMap, View
from ompb.core.members.backbone import NAME, Backbone
from ompb.core.members.bias import Bias
from ompb.core.members.contract import Learner, Member, MemberOptions, MemberState, Speech, Voices
from ompb.core.members.head import Heads, SourceHead
from ompb.core.members.memory import Memory
from ompb.core.members.persistence import Persistence
from ompb.core.members.profile import Profile
from ompb.core.members.regression import WindowRegression

# The members of the mixture, in order.
MEMBERS = (Backbone, Profile, WindowRegression, SourceHead, Memory, Bias)
# Those that speak where `Settings.members` names them. Rehearsals on sources did not gain by persistence.
OTHERS = (Persistence,)

States: TypeAlias = tuple[MemberState | None, ...]


class Chorus(NamedTuple):
    """What all K voices say of n windows."""

    corrections: Array  # to the base forecast: (N, K, n, H)
    leverage: Array  # their own uncertainty, in units of their noise, 0 for no doubt: (N, K, n)


def learners(names: tuple[str, ...], features: FeatureMap, options: MemberOptions) -> list[Learner]:
    """Who learns the members of these names; those that the features leave nothing to say are left out."""
    asked = (Member.tags[name].learner(features, options) for name in names)
    return [learner for learner in asked if learner is not None]


@dataclass(frozen=True)
class Mixture:
    """K voices on N lanes. What belongs to one member is a tuple over members, what to one voice an axis of K."""

    members: tuple[Voices, ...]
    prior: Array  # belief in each voice before any outcome: (K,)
    noise: Array  # variance of each lead that one unit of a voice's leverage stands for: (N, K, H)

    @classmethod
    def of(cls, members: tuple[Member, ...], backbone_prior: float, options: MemberOptions, like: Array) -> Mixture:
        """The members online; ``like`` is any (N, H) array. The voices beside the backbone share the rest evenly."""
        xp = namespace(like)
        voices = tuple(member.voices(options) for member in members)
        names = tuple(name for one in voices for name in one.names)
        others = len(names) - 1
        rest = (1 - backbone_prior) / max(others, 1)
        prior = [(backbone_prior if others else 1.0) if name == NAME else rest for name in names]
        noise = []
        for one in voices:
            of_one = one.noise
            noise += [zeros(like, *like.shape) if of_one is None else of_one for _ in one.names]
        return cls(
            members=voices,
            prior=xp.asarray(prior, dtype=like.dtype, device=like.device),
            noise=xp.stack(noise, axis=1),
        )

    @cached_property
    def reach(self) -> int:
        """Rows that some member looks back on."""
        return max(member.reach for member in self.members)

    @property
    def size(self) -> int:
        """K."""
        return int(self.prior.shape[0])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the K voices."""
        return tuple(name for member in self.members for name in member.names)

    def start(self) -> States:
        """The states a stream starts with."""
        return tuple(member.start(self.noise[:, 0]) for member in self.members)

    def see(self, view: View) -> tuple[Array, ...]:
        """What each member needs of n windows."""
        return tuple(member.see(view) for member in self.members)

    def whitened(self, seen: tuple[Array, ...]) -> Array | None:
        """The whitened features (N, F) among what members see of one window; None without a head."""
        return None if self._head is None else seen[self._head][:, 0]

    @cached_property
    def backbone_place(self) -> int:
        """The place of the bare forecaster among the voices."""
        return self.names.index(NAME)

    @property
    def has_head(self) -> bool:
        """Whether features are whitened."""
        return self._head is not None

    @cached_property
    def _head(self) -> int | None:
        """The place of the heads among the members."""
        return next((place for place, member in enumerate(self.members) if isinstance(member, Heads)), None)

    def speak(self, states: States, seen: tuple[Array, ...]) -> Chorus:
        """What all voices say of n windows."""
        return joined([m.speak(state, one) for m, state, one in zip(self.members, states, seen, strict=True)])

    def issue(self, states: States, origin: int, seen: tuple[Array, ...]) -> tuple[tuple[Speech, ...], States]:
        """What each member says of the window of a new origin, to be `joined`, and the states after it."""
        parts, after = [], []
        for member, state, one in zip(self.members, states, seen, strict=True):
            speech, next_state = member.issue(state, origin, one)
            parts.append(speech)
            after.append(next_state)
        return tuple(parts), tuple(after)

    def form(self, states: States, row: int) -> Form | None:
        """That of all members; None if one has none."""
        forms = tuple(member.form(state, row) for member, state in zip(self.members, states, strict=True))
        return None if None in forms else forms

    def pass_over(self, states: States, origin: int) -> States:
        """The states after an origin without a forecast."""
        return self._each(states, lambda member, state: member.pass_over(state, origin))

    def learn(self, states: States, row: int, residual: Array, observed: Array) -> States:
        """The states once the newest row is known."""
        return self._each(states, lambda member, state: member.learn(state, row, residual, observed))

    def learn_late(self, states: States, row: int, newest: int, residual: Array, observed: Array) -> States:
        """The states once an older row is known."""
        return self._each(states, lambda member, state: member.learn_late(state, row, newest, residual, observed))

    def shift(self, states: States) -> Array:
        """KL of each voice's law to the one it started with, (N, K); 0 for those that never move."""
        xp = namespace(self.noise)
        parts = []
        for member, state in zip(self.members, states, strict=True):
            shift = member.shift(state)
            parts.append(zeros(self.noise, self.noise.shape[0], len(member.names)) if shift is None else shift)
        return xp.concat(parts, axis=1)

    def _each(self, states: States, change: Callable[[Voices, MemberState], Any]) -> States:
        """The next states; members without one never change."""
        pairs = zip(self.members, states, strict=True)
        return tuple(None if state is None else change(member, state) for member, state in pairs)


def joined(parts: Sequence[Speech]) -> Chorus:
    """Several members' speech as one, voices in their order."""
    xp = namespace(parts[0].corrections)
    corrections = xp.concat([part.corrections for part in parts], axis=1)
    leverage = zeros(corrections, *corrections.shape[:3])
    first = 0
    for part in parts:
        last = first + part.corrections.shape[1]
        if part.leverage is not None:
            leverage[:, first:last] = part.leverage
        first = last
    return Chorus(corrections, leverage)
