"""Which lines of a block are compared on which seeds, where not all have run with the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Seeds: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that have all of these seeds, by their place in the block; those ``again`` stand in an earlier one, too."""

    seeds: Seeds
    lines: tuple[int, ...]
    again: frozenset[int] = frozenset()


def groups(ran: Sequence[Collection[int]], anchors: Collection[int] = ()) -> list[Group]:
    """Lines that have run with so many seeds each, those with the most seeds first.

    Anchors that have the seeds of a later group stand in it again, so that its lines have something to be held against.
    A line that has run with none stands in the last.

    >>> [(group.seeds, group.lines) for group in groups([(0, 1), (0, 1), (0,), ()], anchors={1})]
    [((0, 1), (0, 1)), ((0,), (1, 2, 3))]
    """
    own = _own(ran, anchors)
    ordered = sorted({seeds for seeds in own if seeds}, key=lambda seeds: (-len(seeds), seeds)) or [()]
    return [_group(seeds, own, anchors, is_last=seeds == ordered[-1]) for seeds in ordered]


def _own(ran: Sequence[Collection[int]], anchors: Collection[int]) -> list[Seeds]:
    """The seeds by which each line is grouped: those that it shares with the anchor that has the most, if any.

    Where no anchor has run, the line that has the most stands for it.
    """
    counts = Counter(tuple(sorted(seeds)) for seeds in ran if seeds)
    held = {tuple(sorted(ran[line])) for line in anchors if ran[line]}
    most = min(held or counts, key=lambda seeds: (-len(seeds), -counts[seeds], seeds), default=())
    return [tuple(sorted(set(most).intersection(seeds) or seeds)) for seeds in ran]


def _group(seeds: Seeds, own: Sequence[Seeds], anchors: Collection[int], *, is_last: bool) -> Group:
    again = frozenset(line for line in anchors if set(own[line]) > set(seeds))
    lines = [line for line, its in enumerate(own) if its == seeds or line in again or (is_last and not its)]
    return Group(seeds, tuple(lines), again)
