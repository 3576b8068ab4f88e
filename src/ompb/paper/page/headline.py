"""The few rows that a reader sees first: ETTh with a TCN, errors of who runs honestly, and what a leak is worth."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.errors import OptionError
from ompb.paper import printed
from ompb.paper.grid import OMPB, ORIGINAL, PRESET, TRIVIAL, Spot
from ompb.paper.page.compared import Grid, is_published

PLACES = tuple(Spot("etth", "tcn", horizon, split) for horizon in (24, 96) for split in ("id", "ood"))
START, END = "<!-- made by `ompb bench page` -->", "<!-- end of what `ompb bench page` made -->"


def headline(grid: Grid) -> Section:
    """At most eight rows of MAE; behind each number, in brackets, that of ``ompb`` on the same seeds."""
    lines = [
        _line(grid, OMPB, f"**`{OMPB}`**"),
        _line(grid, ORIGINAL, "bare TCN, frozen"),
        _line(grid, "retrain", "retrained as rows arrive"),
        _line(grid, PRESET, f"the paper's method, honestly (`{PRESET}`)"),
        *_best(grid, [name for name in _everywhere(grid) if is_published(name)], "best published rival"),
        *_best(grid, [name for name in _everywhere(grid) if name in TRIVIAL], "best trivial reference"),
        _line(grid, PRESET, "a leak: the paper's method shown rows to come", ONE_STEP),
        _printed(),
    ]
    return Section(
        title="ETTh, TCN, mean absolute error",
        notes=(
            "In standard deviations of the source, the first four fifths of ETTh1. ID is its last fifth, OOD is ETTh2. "
            f"In brackets: `{OMPB}` on the same seeds. Every row but the last two uses only rows that have arrived. "
            "The last two are of the paper's protocol, which shows a method all but the last of the rows it is about "
            f"to be scored on: no deployment has that. {_counted(grid)}".rstrip(),
        ),
        headings=("method", "seeds", *(f"{place.horizon} rows, {place.split.upper()}" for place in PLACES)),
        lines=tuple(line for line in lines if line),
        keys=1,
    )


def _counted(grid: Grid) -> str:
    """How many forecasts were scored, where that is known."""
    counts = {place.horizon: grid.windows(place) for place in PLACES if grid.windows(place)}
    return " ".join(f"{count} forecasts of {horizon} rows each." for horizon, count in counts.items())


def _line(grid: Grid, method: str, shown: str, protocol: str = HONEST) -> tuple[str, ...]:
    """Nothing where the method has not run at any of the places."""
    found = [grid.beside(place, method, protocol=protocol) for place in PLACES]
    if not any(found):
        return ()
    seeds = sorted({one.seeds for one in found if one})
    numbers = []
    for one in found:
        ours = f" ({one.ours:.3f})" if one and one.ours is not None and method != OMPB else ""
        numbers.append(f"{one.value:.3f}{ours}" if one else "")
    return shown, " or ".join(map(str, seeds)), *numbers


def _everywhere(grid: Grid) -> list[str]:
    """The methods that have run honestly at all of the places."""
    return sorted(set.intersection(*(set(grid.methods(place)) for place in PLACES)))


def _best(grid: Grid, methods: Sequence[str], shown: str) -> list[tuple[str, ...]]:
    """The method whose error is lowest relative to that of ``ompb``, in the mean of the places."""
    scores = {}
    for method in methods:
        ratios = [one.ratio for one in (grid.beside(place, method) for place in PLACES) if one and one.ratio]
        if len(ratios) == len(PLACES):
            scores[method] = statistics.fmean(1 / ratio for ratio in ratios)
    if not scores:
        return []
    best = min(scores, key=lambda method: scores[method])
    return [_line(grid, best, f"{shown} of {len(scores)} (`{best}`)")]


def _printed() -> tuple[str, ...]:
    numbers = printed.accuracy("etth_all_split")
    values = [numbers[p.dataset, p.backbone, "ompb", p.horizon, p.split, "mae"].value for p in PLACES]
    return "the same leak, as the paper prints it", "", *(f"{float(value):.3f}" for value in values)


def with_block(text: str, block: str) -> str:
    """A document with what stands between the two markers replaced."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise OptionError(f"the document has no place for what is made; put the lines {START!r} and {END!r} into it.")
    return f"{before}{START}\n\n{block}\n\n{END}{after}"
