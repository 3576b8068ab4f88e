"""How the methods stand under the honest protocol: where ``ompb`` loses, and all of them ranked."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST
from ompb.paper.beside import SAME, shown
from ompb.paper.grid import INTERVALS_ONLY, OMPB, ORIGINAL, PRESET, PUBLISHED, RETRAINED_ALONE, TRIVIAL, Spot
from ompb.paper.networks import DIVERGED, NO_FORECAST, are_apart, broken
from ompb.paper.page.compared import Beside, Grid, across_networks, is_published

HARM = 1.01  # times the error of the bare backbone
LOST = 1.005  # times the error of another method, or more: what counts as losing to it
NAMED = 2  # methods beside the best one that a loss names


class Scored(NamedTuple):
    """The MAE of a cell, and that of the network it stands on."""

    mae: float
    bare: float

    @property
    def ratio(self) -> float:
        """The first relative to the second."""
        return self.mae / self.bare


Errors: TypeAlias = Mapping[str, Scored]  # by method, of one place and seed


KINDS: Mapping[str, tuple[str, ...]] = {
    "bare backbone": (ORIGINAL,),
    "best trivial reference": TRIVIAL,
    "best published method": tuple(filter(is_published, PUBLISHED)),
    "paper's method": (PRESET,),
    "retrained backbone": RETRAINED_ALONE,
}


def best_of_each_kind(grid: Grid) -> dict[str, list[Beside]]:
    """The best rival of each kind, beside ours, at every place where one has run."""
    return {kind: found for kind, methods in KINDS.items() if (found := _best_rivals(grid, methods))}


def against_each_kind(grid: Grid) -> Section:
    """In how many places ``ompb`` is better and worse than each kind of rival, each place once."""
    best = best_of_each_kind(grid)
    lines = [_short_line(kind, found) for kind, found in best.items()]
    return Section(
        title=f"`{OMPB}` against each kind of rival",
        notes=(
            "A place is a data set, backbone, horizon and split. Both sides are means over the seeds that both have; "
            "of several rivals the best at that place counts, which is more than anyone can choose beforehand. "
            f"Ratio is the MAE of `{OMPB}` relative to the rival's; worse counts places where it is {LOST} or more."
            f"{_across(best)}",
            *broken(lines),
        ),
        headings=("rival", "places", "median ratio", "largest ratio", "worse in"),
        lines=tuple(lines),
        keys=1,
    )


def _best_rivals(grid: Grid, methods: Sequence[str]) -> list[Beside]:
    """Of these methods, at each place, the one relative to which ours is largest."""
    there = ([grid.beside(place, method) for method in methods] for place in grid.places)
    compared = ([one for one in found if one and one.ratio] for found in there)
    return [max(found, key=lambda one: one.ratio or 0) for found in compared if found]


def _across(best: Mapping[str, Sequence[Beside]]) -> str:
    """In how many comparisons the two stand on different networks, if there are any."""
    counts = {kind: sum(one.elsewhere for one in found) for kind, found in best.items()}
    words = [f"{kind} {count}" for kind, count in counts.items() if count]
    return f" Ratios around different networks of the same recipe: {', '.join(words)}." if words else ""


def _short_line(kind: str, found: Sequence[Beside]) -> tuple[str, ...]:
    ratios = [one.ratio for one in found if one.ratio is not None]
    worse = sum(ratio >= LOST for ratio in ratios)
    numbers = (shown(number, digits=3) for number in (statistics.median(ratios), max(ratios)))
    return kind, str(len(ratios)), *numbers, str(worse)


def losses(grid: Grid) -> Section:
    """Every place where some other method does better than ``ompb``, the largest loss first."""
    found = [(better[0].ratio, _loss(place, better)) for place in grid.places if (better := _better(grid, place))]
    lines = [line for _, line in sorted(found, reverse=True)]
    return Section(
        title=f"Where `{OMPB}` loses",
        notes=(
            f"Every place where the MAE of `{OMPB}` is {LOST} times that of another method, or more, and the method "
            "relative to which it is largest; means over the seeds that both have. Ratio is ours to theirs. "
            f"`{OMPB}` itself with a history, or around a retrained network, is not listed.",
            *across_networks(lines),
            *broken(lines),
        ),
        headings=(
            "data set", "backbone", "horizon", "split", "method", "seeds", OMPB, "it", "ratio", "better, too",
        ),
        lines=tuple(lines),
        keys=5,
    )  # fmt: skip


class _Better(NamedTuple):
    """A method that does better, by how much, and the words of its line."""

    ratio: float
    method: str
    words: tuple[str, ...]  # seeds, our error, its error, ratio


def _better(grid: Grid, place: Spot) -> list[_Better]:
    """The methods that do better at a place, the best of them first."""
    found = []
    for method in grid.methods(place):
        one = grid.beside(place, method)
        if not _is_ours(method) and one and one.ratio and one.ours and one.ratio >= LOST:
            words = (str(one.seeds), shown(one.ours), shown(one.value), one.shown_ratio(digits=4))
            found.append(_Better(one.ratio, method, words))
    return sorted(found, reverse=True)


def _loss(place: Spot, better: Sequence[_Better]) -> tuple[str, ...]:
    best, *others = better
    named = [one.method for one in others[:NAMED]]
    more = [f"{len(others) - NAMED} more"] if len(others) > NAMED else []
    return *_words(place), best.method, *best.words, ", ".join(named + more)


def _is_ours(method: str) -> bool:
    """Whether a method is ``ompb``, with a history, or around another network."""
    return OMPB in method.split("+")


def _words(place: Spot) -> tuple[str, str, str, str]:
    return place.dataset, place.backbone, str(place.horizon), place.split


def ranking(grid: Grid, title: str) -> Section:
    """All methods that forecast, best first."""
    cells = _ranked(grid)
    have = {name: [errors for errors in cells if name in errors] for name in {name for e in cells for name in e}}
    ranks = {name: statistics.fmean(_rank(name, errors) for errors in mine) for name, mine in have.items()}
    return Section(
        title=title,
        notes=(
            "At each place and with each seed the methods that have run are ranked by MAE; errors within "
            f"{SAME:.2%} tie. Cells are runs of a method: one place, one seed. Rank is the mean share of the other "
            "methods that are better: 0 is best. MAE / bare is the error relative to that of the network it corrects, "
            f"in a method's median cell and its worst, beside the median of `{OMPB}` at the same places; harm counts "
            f"cells more than {HARM - 1:.0%} worse than bare, and from {DIVERGED:g} times its error on a cell has "
            f"diverged. `{OMPB}` is better where its error is smaller, or, where the two stand on different networks, "
            "its MAE / bare. Where methods have run at other places, difficulty and rivals differ: then the last "
            "columns tell more than the rank.",
        ),
        headings=("method", "cells", "rank", "MAE / bare", "worst", f"{OMPB} / bare", "harm", f"{OMPB} better in"),
        lines=tuple(
            (name, str(len(have[name])), f"{ranks[name]:.3f}", *_against(name, have[name]))
            for name in sorted(have, key=lambda name: (ranks[name], name))
        ),
        keys=1,
    )


def _ranked(grid: Grid) -> list[Errors]:
    """Errors by method, of each cell in which the bare backbone and another method that forecasts have run."""
    cells: dict[tuple[Spot, int], dict[str, Scored]] = {}
    for (place, protocol, method), seeds in grid.cells.items():
        if protocol == HONEST and method not in INTERVALS_ONLY:
            bare = grid.bare_errors(place, method)
            for seed in seeds.keys() & grid.cells.get((place, HONEST, ORIGINAL), {}).keys():
                if bare[seed]:  # nothing is relative to no error
                    cells.setdefault((place, seed), {})[method] = Scored(seeds[seed].metrics["mae"], bare[seed])
    return [errors for errors in cells.values() if len(errors) > 1]


def _rank(name: str, errors: Errors) -> float:
    """The share of the other methods of a cell that are better; a tie counts half."""
    mine, others = errors[name].mae, [error.mae for other, error in errors.items() if other != name]
    tied = sum(_tie(error, mine) for error in others)
    ahead = sum(error < mine and not _tie(error, mine) for error in others)
    return (ahead + tied / 2) / len(others)


def _tie(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME)


def _is_ahead(one: Scored, other: Scored) -> bool:
    """Whether the first has the smaller error; across networks, relative to that of its own."""
    return one.ratio < other.ratio if are_apart(one.bare, other.bare) else one.mae < other.mae


def _against(name: str, cells: Sequence[Errors]) -> tuple[str, ...]:
    """How a method compares with the bare backbone, and with ours where both have run."""
    ratios = [errors[name].ratio for errors in cells]
    harmed = sum(ratio > HARM for ratio in ratios)
    both = [errors for errors in cells if OMPB in errors and name != OMPB]
    ours = statistics.median(errors[OMPB].ratio for errors in both) if both else None
    won = sum(_is_ahead(errors[OMPB], errors[name]) for errors in both)
    return (
        _told(statistics.median(ratios)),
        _told(max(ratios)),
        "" if ours is None else _told(ours),
        f"{harmed} of {len(cells)}",
        f"{won} of {len(both)}" if both else "",
    )


def _told(ratio: float) -> str:
    """An error relative to the network's, or that it is none any more."""
    return f"{ratio:.3f}" if ratio < DIVERGED else NO_FORECAST
