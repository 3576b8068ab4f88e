"""What signals do when nothing has changed: a stream over the last rows of the source, for many series at once.

It may look at the certificate windows: no forecast and no certificate depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ompb.calibrator import online_rules
from ompb.core.arrays import Array, zeros
from ompb.core.evidence import Usual
from ompb.core.features import View
from ompb.core.members.contract import Member
from ompb.core.members.memory import Memory
from ompb.core.online import Online
from ompb.core.record import BLOCK, BLOCKS, Record
from ompb.core.source import SourceFit
from ompb.live.lanes import joined, taken
from ompb.rows.windows import Origins
from ompb.seam.sources import Sources
from ompb.settings import Settings

# Rows at the end of the source that are rehearsed for the record of the warnings; the first ones only warm up.
REHEARSED = (BLOCKS + 2) * BLOCK


@dataclass(frozen=True)
class Memories(Memory):
    """Those of series that keep different spans, side by side; ``spans`` are those of the first."""

    each: tuple[Memory, ...]
    lanes: tuple[slice, ...]  # of each

    @classmethod
    def of(cls, memories: Sequence[Memory]) -> Memories:
        """Lanes after lanes."""
        ends = np.cumsum([0, *(memory.spans[0].own.shape[0] for memory in memories)]).tolist()
        return cls(memories[0].spans, tuple(memories), tuple(slice(*pair) for pair in pairwise(ends)))

    @cached_property
    def reach(self) -> int:  # type: ignore[override]
        """The longest span of all."""
        return max(memory.reach for memory in self.each)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Of all their spans."""
        return tuple(sorted({span.rows for memory in self.each for span in memory.spans}))

    def longest(self, known: int) -> int:
        """The place among all lengths of the longest that so many known rows fill."""
        return max(place for place, rows in enumerate(self.lengths) if place == 0 or rows <= known)

    def see(self, view: View) -> Array:
        """What each adds to the base forecasts of its lanes: (N, n, 2 H)."""
        said = zeros(view.base, *view.base.shape[:2], 2 * view.base.shape[2])
        for memory, lanes in zip(self.each, self.lanes, strict=True):
            base, features, profile, rows = (part[lanes] for part in view[:-1])
            said[lanes] = memory.see(View(base, features, profile, rows, view.known))
        return said

    def usual(self, each: Sequence[Usual]) -> Usual:
        """What is usual of each, by the place among all lengths."""
        spreads = [
            usual.spread[:, [memory.longest(rows) for rows in self.lengths]]
            for memory, usual in zip(self.each, each, strict=True)
        ]
        return Usual(np.concatenate(spreads))


def rehearsed(
    parts: Sequence[tuple[Sources, SourceFit]], spoken: Origins, settings: Settings, season: int | None
) -> list[Record]:
    """The record of each series, part after part: series of one shape, whose memories may keep different spans."""
    sources = Sources(tuple(source for group, _ in parts for source in group.each))
    fitted = _side_by_side([fit for _, fit in parts])
    rules = online_rules(fitted, replace(settings, certificate=False), sources.channels, season)
    record = rehearsed_record(rules, sources, spoken, max(sources.first.context, rules.mixture.reach))
    return [taken(record, len(sources), [place]) for place in range(len(sources))]


def _side_by_side(fits: Sequence[SourceFit]) -> SourceFit:
    """What several groups of series taught as one, but for the certificate windows, which are not looked at."""
    members: list[Member] = []
    usual: Any = None
    for same in zip(*(fit.members for fit in fits), strict=True):
        if isinstance(same[0], Memory):
            memories = Memories.of(same)
            members.append(memories)
            usual = memories.usual([fit.usual for fit in fits if fit.usual is not None])
        else:
            members.append(joined(same))
    return replace(
        fits[0],
        members=tuple(members),
        base_variance=np.concatenate([fit.base_variance for fit in fits]),
        usual=usual,
        scales=joined([fit.scales for fit in fits]),
        signals=joined([fit.signals for fit in fits]),
    )


def rehearsed_record(rules: Online, sources: Sources, spoken: Origins, reach: int) -> Record:
    """That of a stream over the last rows of all series."""
    last = len(sources.first.rows.values) - sources.first.horizon
    first = max(sources.first.context - 1, last - REHEARSED)
    values = np.ascontiguousarray(sources.measured.reshape(-1, sources.measured.shape[-1]).T)
    before = sources.before(reach)
    state, row = rules.start(), first
    for origins, base in sources.bases(spoken[spoken >= first]):
        for place, origin in enumerate(origins.tolist()):
            while row <= origin:  # those between, at which the forecaster is silent
                state = rules.reveal(state, row - first, values[row], state.guard)
                if row < origin:
                    state = rules.pass_over(state, row - first)
                row += 1
            newest = before[:, origin + 1 : origin + 1 + reach]
            _, state = rules.issue(state, origin - first, newest, base[:, place], origin + 1)
    return state.warnings.record.whole_blocks()
