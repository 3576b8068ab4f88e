"""What findings say in words: what they were made from, what is missing, and how often one method beats another."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ompb.bench.findings import Section
from ompb.bench.store import COMMIT, Cell, Result
from ompb.floor.names import counted
from ompb.paper.beside import Entry, Measured, Place
from ompb.paper.grid import PAPERS_DATA, paper_backbone

MOST_NAMED = 12  # methods that a note on missing cells names


def made_from(results: Sequence[Result]) -> dict[str, Any]:
    """How many cells, and the commits and devices they were run with."""
    return {
        "cells": len(results),
        # as they are exported: else one that is in a store and in a table would be two
        "commits": sorted({result.commit[:COMMIT] for result in results if result.commit}),
        "devices": sorted({result.device for result in results}),
    }


def missing(wanted: Sequence[Cell], results: Iterable[Result]) -> str:
    """How many cells are not there, by protocol and method; empty if none."""
    there = {result.cell for result in results}
    absent = Counter(f"{cell.method} {cell.protocol}" for cell in wanted if cell not in there)
    if not absent:
        return ""
    if absent.total() == len(wanted):
        return f"None of the {counted(len(wanted), 'cell')} asked for has run."
    named = [f"{name} {count}" for name, count in absent.most_common(MOST_NAMED)]
    more = f", and others {absent.total() - sum(dict(absent.most_common(MOST_NAMED)).values())}"
    rest = more if len(absent) > MOST_NAMED else ""
    return f"Missing: {absent.total()} of {len(wanted)} cells ({', '.join(named)}{rest})."


def notes_on(wanted: Iterable[Cell], results: Iterable[Result], **where: str) -> tuple[str, ...]:
    """The note on what is missing, if anything is, of the cells of a section: ``dataset="ili"``."""
    here = [cell for cell in wanted if all(getattr(cell, field) == value for field, value in where.items())]
    note = missing(here, results)
    return (note,) if note else ()


def never_asked(blocks: Iterable[Sequence[Entry]], measured: Measured, wanted: Iterable[Cell]) -> tuple[str, ...]:
    """The note on lines that have the paper's numbers alone because nobody asks for their cells, if there are any."""
    asked = {_as_in_paper(Place.of(cell)) for cell in wanted}  # weights of any origin can be asked for
    alone = {
        entry.place
        for block in blocks
        for entry in block
        if entry.printed and entry.place not in measured.results and _as_in_paper(entry.place) not in asked
    }
    if not alone:
        return ()
    names = ", ".join(f"`{name}`" for name in sorted({place.method for place in alone}))
    protocols = " and ".join(sorted({place.protocol for place in alone}))
    stand_in = all(place.spot.dataset not in PAPERS_DATA for place in alone)
    data = " on data that stand in for the paper's" if stand_in else ""
    return (f"Lines with the paper's numbers alone: {names} are not asked for under {protocols}{data}.",)


def _as_in_paper(place: Place) -> Place:
    """With the paper's name of its backbone."""
    return replace(place, spot=replace(place.spot, backbone=paper_backbone(place.spot.backbone)))


@dataclass(frozen=True, slots=True)
class Duel:
    """How the MAE of one method compares with another's, over places that both have run in and neither diverged."""

    ratios: tuple[float, ...]  # the first's to the second's
    diverged: int = 0  # places that are left out because one of the two has

    @classmethod
    def of(cls, measured: Measured, first: tuple[str, str], second: tuple[str, str], metric: str = "mae") -> Duel:
        """Of two pairs of protocol and method."""
        places = sorted(place for place in measured.results if (place.protocol, place.method) == first)
        found = [measured.relative(place, Place(place.spot, *second), metric) for place in places]
        ratios = [ratio for ratio in found if ratio is not None]
        known = tuple(ratio for ratio in ratios if math.isfinite(ratio))
        return cls(known, len(ratios) - len(known))

    @property
    def won(self) -> int:
        """In how many places the first is better."""
        return sum(ratio < 1 for ratio in self.ratios)

    @property
    def median(self) -> float:
        """Of the ratios; there must be one."""
        return statistics.median(self.ratios)

    def __str__(self) -> str:
        rest = f", left out: {self.diverged} where either has diverged" if self.diverged else ""
        return f"in {self.won} of {len(self.ratios)} places (median ratio {self.median:.3f}{rest})"


Side: TypeAlias = tuple[str, str]  # protocol and method


def duels(measured: Measured, pairs: Iterable[tuple[Side, Side]]) -> dict[tuple[Side, Side], Duel]:
    """Of the pairs that have met."""
    found = {pair: Duel.of(measured, *pair) for pair in pairs}
    return {pair: duel for pair, duel in found.items() if duel.ratios}


def sentence(pair: tuple[Side, Side], duel: Duel) -> str:
    """How a pair has met, in words."""
    first, second = (f"`{method}` ({protocol})" for protocol, method in pair)
    return f"{first} has a smaller MAE than {second} {duel}."


def who_is_ahead(met: Mapping[tuple[Side, Side], Duel]) -> tuple[Section, ...]:
    """A line for each pair, whose protocol is the same; nothing where none has met."""
    lost = [
        f"{one[1]} against {other[1]} ({one[0]}) {duel.diverged}" for (one, other), duel in met.items() if duel.diverged
    ]
    left_out = (f"Left out are places where either has diverged: {', '.join(lost)}.",) if lost else ()
    lines = tuple(
        (method, protocol, against, str(len(duel.ratios)), str(duel.won), f"{duel.median:.3f}")
        for ((protocol, method), (_, against)), duel in met.items()
    )
    section = Section(
        title="Who is ahead",
        notes=("Ratio is the MAE of the method to that of the other, over the seeds that both have.", *left_out),
        headings=("method", "protocol", "against", "places", "smaller in", "median ratio"),
        lines=lines,
        keys=3,
    )
    return (section,) if lines else ()
