"""What signals do when nothing has changed: a stream over the last rows of the source, for many series at once.

It may look at the certificate windows: no forecast and no certificate depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

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
from ompb.types import Floats

# Rows at the end of the source that are rehearsed for the record of the warnings; the first ones only warm up.
REHEARSED = (BLOCKS + 2) * BLOCK
# Windows that members are shown together: none of what they see depends on what was learned.
SHOWN = 32


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
    def lengths(self) -> tuple[int, ...]:
        """Of all their spans."""
        return tuple(sorted({span.rows for memory in self.each for span in memory.spans}))

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


@dataclass(frozen=True, eq=False)
class Tail:
    """The last rows of series of one shape, and what these series taught."""

    sources: Sources
    spoken: Origins  # where the forecaster speaks
    fit: SourceFit

    @property
    def rows(self) -> int:
        """T."""
        return len(self.sources.first.rows.values)

    @property
    def first(self) -> int:
        """The first row that is rehearsed, with as much of a window before it as there is."""
        source = self.sources.first
        return max(source.context - 1, self.rows - source.horizon - REHEARSED)

    @property
    def spans(self) -> tuple[int, ...]:
        """Lengths of memory that the series keep."""
        memory = next((member for member in self.fit.members if isinstance(member, Memory)), None)
        return () if memory is None else _lengths(memory)

    def shape(self, longest: int) -> tuple[object, ...]:
        """What tails have in common that are rehearsed together, where a memory may have ``longest`` rows.

        Sources may be longer or shorter, as long as no memory can tell.
        """
        origins = self.spoken[self.spoken >= self.first] - self.rows
        can_tell = self.first + 1 < longest
        return self.sources.channels, self.first - self.rows, self.rows if can_tell else None, origins.tobytes()

    def lanes(self, reach: int) -> tuple[Floats, Floats]:
        """Rows (N, R) as they are, and filled ones (N, reach + R - 1), of which the newest of row r are r .. r + reach.

        Rows are counted from the first one.
        """
        measured = self.sources.measured.reshape(-1, self.rows)
        return measured[:, self.first :], self.sources.before(reach)[:, self.first + 1 :]

    def bases(self) -> Iterator[tuple[Origins, Floats]]:
        """Blocks of origins, counted from the first row, and base forecasts (N, n, H) at them."""
        for origins, base in self.sources.bases(self.spoken[self.spoken >= self.first]):
            yield origins - self.first, base


def rehearsed(tails: Sequence[Tail], settings: Settings, season: int | None) -> list[Record]:
    """The record of each series, tail after tail; these have one shape, and their memories may keep different spans.

    Those that keep the same are best side by side.
    """
    fitted, channels = _side_by_side([tail.fit for tail in tails]), tails[0].sources.channels
    rules = online_rules(fitted, replace(settings, certificate=False), channels, season)
    record = rehearsed_record(rules, tails, max(tails[0].sources.first.context, rules.mixture.reach))
    series = sum(len(tail.sources) for tail in tails)
    return [taken(record, series, [place]) for place in range(series)]


def _side_by_side(fits: Sequence[SourceFit]) -> SourceFit:
    """What several groups of series taught as one, but for the certificate windows, which are not looked at."""
    members: list[Member] = []
    usual: Any = None
    for same in zip(*(fit.members for fit in fits), strict=True):
        if isinstance(same[0], Memory):
            memories, usual = _memories(same, [fit.usual for fit in fits if fit.usual is not None])
            members.append(memories)
        else:
            members.append(joined(same))
    return replace(
        fits[0],
        members=tuple(members),
        base_variance=np.concatenate([fit.base_variance for fit in fits]),
        half_widths=np.concatenate([fit.half_widths for fit in fits]),
        usual=usual,
        scales=joined([fit.scales for fit in fits]),
        signals=joined([fit.signals for fit in fits]),
    )


def _memories(each: Sequence[Memory], usual: Sequence[Usual]) -> tuple[Memories, Usual]:
    """All memories, neighbours that keep the same spans as one, and what is usual of them."""
    alike = [list(group) for _, group in groupby(range(len(each)), lambda place: _lengths(each[place]))]
    memories = Memories.of([joined([each[place] for place in group]) for group in alike])
    return memories, memories.usual([joined([usual[place] for place in group]) for group in alike])


def _lengths(memory: Memory) -> tuple[int, ...]:
    return tuple(span.rows for span in memory.spans)


def rehearsed_record(rules: Online, tails: Sequence[Tail], reach: int) -> Record:
    """That of a stream over the last rows of all series."""
    measured, filled = (np.concatenate(part) for part in zip(*(tail.lanes(reach) for tail in tails), strict=True))
    values, state, row = np.ascontiguousarray(measured.T), rules.start(), 0
    for window in _windows(rules, tails, filled, reach):
        while row <= window.origin:  # those between, at which the forecaster is silent
            state = rules.reveal(state, row, values[row], state.guard)
            if row < window.origin:
                state = rules.pass_over(state, row)
            row += 1
        _, state = rules.issue(state, window.origin, window.rows, window.base, window.known, seen=window.seen)
    return state.warnings.record.whole_blocks()


class _Window(NamedTuple):
    """What a forecast is issued from, at an origin counted from the first row."""

    origin: int
    rows: Floats  # (N, reach)
    base: Floats  # (N, H)
    known: int  # rows of the source
    seen: tuple[Array, ...]  # by the members, of one window


def _windows(rules: Online, tails: Sequence[Tail], filled: Floats, reach: int) -> Iterator[_Window]:
    """Those of the stream, from filled rows (N, reach + R - 1)."""
    before = tails[0].first + 1
    for blocks in zip(*(tail.bases() for tail in tails), strict=True):
        said = np.concatenate([base for _, base in blocks])
        for first in range(0, said.shape[1], SHOWN):
            some = slice(first, first + SHOWN)
            origins, base = blocks[0][0][some], said[:, some]
            rows = np.take(filled, origins[:, None] + np.arange(reach), axis=1)
            known = tuple((before + origins).tolist())
            seen = rules.see(rows, base, known)
            for place, origin in enumerate(origins.tolist()):
                here = tuple(one[:, place : place + 1] for one in seen)
                yield _Window(origin, rows[:, place], base[:, place], known[place], here)
