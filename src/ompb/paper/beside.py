"""Tables in which our numbers stand beside the paper's: the same seeds for all that is compared, doubts marked."""

from __future__ import annotations

import itertools
import math
import statistics
import string
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST, ONE_STEP, Clock
from ompb.bench.store import WINDOWS, Cell, Result
from ompb.paper.grid import OMPB, ORIGINAL, PAPERS_DATA, PRESET, Spot, paper_dataset
from ompb.paper.groups import Group, groups
from ompb.paper.networks import NO_FORECAST, Seeded, are_apart, bare_errors, broken, diverged
from ompb.paper.printed import Number

Stream: TypeAlias = tuple[str, int, str]  # a data set, a horizon and a split

ERRORS = {"mae": "MAE", "mse": "MSE"}
ANCHORS = (ORIGINAL, OMPB, PRESET)  # what methods that have run with fewer seeds are held against
SAME = 1e-4  # relative difference of errors that means nothing: one backbone run twice on a GPU made 1e-5
GUESSED = ("ili",)  # the paper's data, but nobody knows which of their rows
HINT = "Which rows of ili the paper has is not known exactly: what stands beside its numbers there is a hint."
SEEDS = "Numbers are means over the seeds in the last column, behind ± their standard deviation. n counts forecasts."
ELSEWHERE = f"Lines known to be around another network of the same recipe than `{ORIGINAL}` beside them"
GROUPS = (
    "Methods are compared on the same seeds: first those that have run with the most, then the others, beside which "
    f"{', '.join(f'`{name}`' for name in ANCHORS)} stand again on these fewer seeds, without the paper's numbers."
)
PAPERS = f"The paper's numbers are of the {ONE_STEP} protocol, it says nothing of seeds; ratio is ours to the paper's."


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A cell without its seed."""

    spot: Spot
    protocol: str
    method: str

    @classmethod
    def of(cls, cell: Cell) -> Place:
        """That of a cell."""
        return cls(Spot(cell.dataset, cell.backbone, cell.horizon, cell.split), cell.protocol, cell.method)

    @property
    def stream(self) -> Stream:
        """What is forecast here, and how far ahead."""
        return self.spot.dataset, self.spot.horizon, self.spot.split


@dataclass(frozen=True, slots=True)
class Measured:
    """Results by place and seed."""

    results: Mapping[Place, Seeded]
    scored: Mapping[Stream, int]  # forecasts, as many for every method

    @classmethod
    def of(cls, results: Iterable[Result]) -> Measured:
        """Of finished cells."""
        found: dict[Place, dict[int, Result]] = {}
        scored: dict[Stream, int] = {}
        for result in results:
            place = Place.of(result.cell)
            found.setdefault(place, {})[result.cell.seed] = result
            if WINDOWS in result.facts:  # results of early versions do not say it
                scored[place.stream] = result.facts[WINDOWS]
        return cls(found, scored)

    def common_seeds(self, places: Iterable[Place]) -> tuple[int, ...]:
        """The seeds of all of these places that have run at all."""
        there = [set(self.results[place]) for place in places if place in self.results]
        return tuple(sorted(set.intersection(*there))) if there else ()

    def mean(self, place: Place, metric: str, seeds: Collection[int]) -> float | None:
        """Over these seeds; None if the place has not run with all of them, or has no such metric.

        Infinite if one of them has diverged: then it says nothing more.
        """
        found = self.results.get(place, {})
        if not seeds or not set(seeds) <= found.keys():
            return None
        if self._diverged(place) & set(seeds):
            return math.inf
        values = [found[seed].metrics.get(metric) for seed in seeds]
        known = [value for value in values if value is not None]
        return statistics.fmean(known) if len(known) == len(values) else None

    def spread(self, place: Place, metric: str, seeds: Collection[int]) -> float | None:
        """Standard deviation over these seeds; None for fewer than two, and where no mean over them says anything."""
        if len(seeds) < 2 or self.mean(place, metric, seeds) in (None, math.inf):
            return None
        return statistics.stdev(self.results[place][seed].metrics[metric] for seed in seeds)

    def relative(self, place: Place, other: Place, metric: str = "mae") -> float | None:
        """The mean of a place to that of another, over the seeds that both have; None without either.

        Infinite if one of the two has diverged.
        """
        seeds = self.common_seeds((place, other)) if other in self.results else ()
        one, by = (self.mean(there, metric, seeds) for there in (place, other))
        if one is None or not by:
            return None
        return math.inf if math.inf in (one, by) else one / by

    def is_elsewhere(self, place: Place, seeds: Collection[int]) -> bool:
        """Whether one of these cells is known to stand on another network than the bare backbone's."""
        cells, bare = self.results.get(place, {}), self._bare(place)
        own, there = bare_errors(cells, *bare), bare_errors(bare[0] or bare[1])
        return any(are_apart(own[seed], there[seed]) for seed in own.keys() & there.keys() & set(seeds))

    def _diverged(self, place: Place) -> set[int]:
        """The seeds that have."""
        return diverged(self.results.get(place, {}), *self._bare(place))

    def _bare(self, place: Place) -> tuple[Seeded, Seeded]:
        """What the bare backbone did under the same protocol, which counts first, and under the honest one."""
        here, honest = (Place(place.spot, protocol, ORIGINAL) for protocol in (place.protocol, HONEST))
        return self.results.get(here, {}), self.results.get(honest, {})

    def words(self, place: Place, metric: str, seeds: Collection[int]) -> str:
        """A mean and its spread as tables have them, blank if there is no mean."""
        return shown(self.mean(place, metric, seeds), self.spread(place, metric, seeds))

    def ratio(self, place: Place, metric: str, seeds: Collection[int], theirs: Number | None) -> str:
        """Of a mean to the paper's number; blank on data that are not the paper's, and for what is no forecast."""
        if place.spot.dataset not in PAPERS_DATA:
            return ""
        return ratio(self.mean(place, metric, seeds), theirs)

    def windows(self, place: Place) -> str:
        """How many forecasts were scored; empty if none was, or nobody knows."""
        return str(self.scored.get(place.stream, "")) if place in self.results else ""


@dataclass(slots=True)
class Doubts:
    """Letters for what speaks against printed numbers, in the order in which they are met."""

    letters: dict[str, str] = field(default_factory=dict)

    def shown(self, number: Number | None) -> str:
        """A number as printed, with the letter of its doubt."""
        if number is None:
            return ""
        if number.doubt is None:
            return number.value
        letter = self.letters.setdefault(number.doubt, _letters(len(self.letters)))
        return f"{number.value} [{letter}]"

    def notes(self) -> tuple[str, ...]:
        """What the letters mean."""
        return tuple(f"[{letter}] {doubt}" for doubt, letter in self.letters.items())


def _letters(place: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    alphabet = string.ascii_lowercase
    first, last = divmod(place, len(alphabet))
    return (alphabet[first - 1] if first else "") + alphabet[last]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line to be: what it is about, where its numbers are, and what the paper prints, by metric."""

    keys: tuple[str, ...]
    place: Place
    printed: Mapping[str, Number] = field(default_factory=dict)


def compare(
    title: str,
    keys: Sequence[str],
    blocks: Iterable[Sequence[Entry]],
    measured: Measured,
    notes: Iterable[str] = (),
    metrics: Mapping[str, str] = ERRORS,
) -> Section:
    """A table of entries that have a number of ours or the paper's. Those of a block are compared: same seeds.

    The paper's columns are there if any entry has a number of it.
    """
    kept = [
        block
        for block in (
            [entry for entry in block if entry.printed or entry.place in measured.results] for block in blocks
        )
        if block
    ]
    entries = list(itertools.chain.from_iterable(kept))
    beside = any(entry.printed for entry in entries)
    doubts = Doubts()
    grouped = [(block, _groups(block, measured)) for block in kept]
    lines = [
        _line(entry, measured, group.seeds, metrics, doubts if beside else None)
        for block, found in grouped
        for group in found
        for entry in _members(block, group)
    ]
    per_metric = ("{}", "paper", "ratio") if beside else ("{}",)
    headings = [heading.format(name) for name in metrics.values() for heading in per_metric]
    said = [GROUPS] if any(len(found) > 1 for _, found in grouped) else []
    said += _elsewhere(grouped, measured)
    said += broken(lines)
    return Section(
        title=title,
        notes=(*_protocol_notes(entries), *notes, *_data_notes(entries, measured, beside), *said, *doubts.notes()),
        headings=(*keys, *headings, "n", "seeds"),
        lines=tuple(lines),
        keys=len(keys),
    )


def _elsewhere(grouped: Iterable[tuple[Sequence[Entry], Sequence[Group]]], measured: Measured) -> list[str]:
    """Which lines, if any, are not held against what corrects the same network."""
    names = Counter(
        entry.place.method
        for block, found in grouped
        for group in found
        for entry in _members(block, group)
        if measured.is_elsewhere(entry.place, group.seeds)
    )
    lines = ", ".join(f"`{name}` {count}" for name, count in sorted(names.items()))
    return [f"{ELSEWHERE}: {lines}."] if names else []


def _groups(block: Sequence[Entry], measured: Measured) -> list[Group]:
    anchors = [line for line, entry in enumerate(block) if entry.place.method in ANCHORS]
    return groups([tuple(measured.results.get(entry.place, ())) for entry in block], anchors)


def _members(block: Sequence[Entry], group: Group) -> list[Entry]:
    """Those of a group; what stands there again leaves the paper's numbers where it stood first."""
    return [replace(block[line], printed={}) if line in group.again else block[line] for line in group.lines]


def _line(
    entry: Entry, measured: Measured, seeds: Collection[int], metrics: Iterable[str], doubts: Doubts | None
) -> tuple[str, ...]:
    numbers = []
    for metric in metrics:
        numbers.append(measured.words(entry.place, metric, seeds))
        if doubts is not None:
            theirs = entry.printed.get(metric)
            numbers += [doubts.shown(theirs), measured.ratio(entry.place, metric, seeds, theirs)]
    ran = entry.place in measured.results
    return (*entry.keys, *numbers, measured.windows(entry.place), " ".join(map(str, seeds)) if ran else "")


def shown(mean: float | None, spread: float | None = None, digits: int = 4) -> str:
    """A number as tables have it, blank if there is none; an infinite one is that of what has diverged.

    >>> shown(0.5, 0.01), shown(None), shown(-0.00001), shown(math.inf)  # and none is -0
    ('0.5000 ± 0.0100', '', '0.0000', 'diverged')
    """
    if mean is None:
        return ""
    if math.isinf(mean):
        return NO_FORECAST
    return f"{mean:z.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def ratio(ours: float | None, printed: Number | None) -> str:
    """Ours by the paper's, blank where there are not both, and where ours has diverged.

    >>> ratio(0.3, Number("0.2")), ratio(None, Number("0.2")), ratio(0.3, Number("0")), ratio(math.inf, Number("0.2"))
    ('1.500', '', '', '')
    """
    if ours is None or math.isinf(ours) or printed is None or not float(printed):
        return ""
    return f"{ours / float(printed):.3f}"


def _protocol_notes(entries: Iterable[Entry]) -> list[str]:
    """What a protocol that leaks shows too early, and where it does if not everywhere."""
    everywhere, leaks = set[tuple[str, int]](), dict[int, set[tuple[str, int]]]()
    for entry in entries:
        spot = entry.place.spot
        clock = Clock(entry.place.protocol, spot.horizon)
        everywhere.add((spot.dataset, spot.horizon))
        if clock.leaks and clock.delay is not None:
            leaks.setdefault(clock.delay, set()).add((spot.dataset, spot.horizon))
    return [_leak(delay, sorted(leaks[delay] if leaks[delay] < everywhere else ())) for delay in sorted(leaks)]


def _leak(delay: int, where: Iterable[tuple[str, int]]) -> str:
    named = ", ".join(f"{dataset} at H = {horizon}" for dataset, horizon in where)
    scored = "the H rows it is scored on" + (f": {named}" if named else "")
    return f"LEAKS: a delay of {delay} shows a method H-{delay} of {scored}."


def _data_notes(entries: Sequence[Entry], measured: Measured, beside: bool) -> list[str]:
    notes = [SEEDS] if any(entry.place in measured.results for entry in entries) else []
    if beside:
        notes.append(PAPERS)
    names = sorted({entry.place.spot.dataset for entry in entries if entry.printed})
    strangers = [name for name in names if name not in PAPERS_DATA]
    notes += [HINT] if set(names) & set(GUESSED) else []
    notes += [f"{name} is not the paper's {paper_dataset(name)}, so there is no ratio." for name in strangers]
    return notes
