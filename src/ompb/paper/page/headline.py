"""The few rows that a reader sees first: ETTh with a TCN, errors of who runs honestly, and what a leak is worth."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.errors import OptionError
from ompb.paper import printed
from ompb.paper.beside import shown
from ompb.paper.grid import HEADLINE, OMPB, ORIGINAL, PRESET, PUBLISHED, RETRAINED_ALONE, TRIVIAL, Spot
from ompb.paper.networks import broken
from ompb.paper.page.compared import MARK, Grid, across_networks, is_published

PLACES = tuple(Spot("etth", "tcn", horizon, split) for horizon in HEADLINE for split in ("id", "ood"))
LEAKS = "Every row but the last two uses only rows that have arrived. The last two are"
LEAK = "Every row but the last uses only rows that have arrived. The last is"
START, END = "<!-- made by `ompb bench page` -->", "<!-- end of what `ompb bench page` made -->"


def headline(grid: Grid) -> Section:
    """At most eight rows of MAE; behind each number, in brackets, that of ``ompb`` on the same seeds."""
    early = _line(grid, PRESET, "a leak: the paper's method shown rows to come", ONE_STEP)
    lines = [
        _line(grid, OMPB, f"**`{OMPB}`**"),
        _line(grid, ORIGINAL, "bare TCN, frozen"),
        *_best(grid, RETRAINED_ALONE, "retrained as rows arrive, best of {} ways"),
        _line(grid, PRESET, f"the paper's method, honestly (`{PRESET}`)"),
        *_best(grid, filter(is_published, PUBLISHED), "best published rival, variants counted, of {}"),
        *_best(grid, TRIVIAL, "best trivial reference of {}"),
        early,
        _printed("the same leak" if early else "a leak: the paper's method shown rows to come"),
    ]
    return Section(
        title="ETTh, TCN, mean absolute error",
        notes=(
            "In standard deviations of the source, the first four fifths of ETTh1. ID is its last fifth, OOD is ETTh2. "
            f"In brackets: `{OMPB}` on the same seeds. {LEAKS if early else LEAK} of the paper's protocol, which shows "
            "a method all but the last of the rows it is about to be scored on: no deployment has that. "
            f"{_counted(grid)}".rstrip(),
            *across_networks(lines),
            *broken(lines),
        ),
        headings=("method", "seeds", *(f"{place.horizon} rows, {place.split.upper()}" for place in PLACES)),
        lines=tuple(line for line in lines if line),
        keys=1,
    )


def _counted(grid: Grid) -> str:
    """How many forecasts were scored, where that is known."""
    counts: dict[int, set[int]] = {}
    for place in PLACES:
        counts.setdefault(place.horizon, set()).update(grid.windows(place))
    return " ".join(
        f"{' or '.join(map(str, sorted(found)))} forecasts of {horizon} rows each."
        for horizon, found in counts.items()
        if found
    )


def _line(grid: Grid, method: str, title: str, protocol: str = HONEST) -> tuple[str, ...]:
    """Nothing where the method has not run at any of the places."""
    found = [grid.beside(place, method, protocol=protocol) for place in PLACES]
    if not any(found):
        return ()
    seeds = sorted({one.seeds for one in found if one})
    numbers = []
    for one in found:
        ours = f" ({shown(one.ours, digits=3)})" if one and one.ours is not None and method != OMPB else ""
        mark = MARK if one and one.elsewhere else ""
        numbers.append(f"{shown(one.value, digits=3)}{ours}{mark}" if one else "")
    return title, " or ".join(map(str, seeds)), *numbers


def _best(grid: Grid, methods: Iterable[str], title: str) -> list[tuple[str, ...]]:
    """Of those that have run honestly at all places, the one whose error relative to ours is lowest on average."""
    scores = {}
    for method in methods:
        found = [grid.beside(place, method) for place in PLACES]
        to_ours = [one.value / one.ours for one in found if one and one.ours]
        if len(to_ours) == len(PLACES):
            scores[method] = statistics.fmean(to_ours)
    if not scores:
        return []
    best = min(scores, key=lambda method: scores[method])
    return [_line(grid, best, f"{title.format(len(scores))} (`{best}`)")]


def _printed(leak: str) -> tuple[str, ...]:
    numbers = printed.accuracy("etth_all_split")
    values = [numbers[p.dataset, p.backbone, "ompb", p.horizon, p.split, "mae"].value for p in PLACES]
    return f"{leak}, as the paper prints it", "", *(f"{float(value):.3f}" for value in values)


def with_block(text: str, block: str) -> str:
    """A document with what stands between the two markers replaced."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise OptionError(f"the document has no place for what is made; put the lines {START!r} and {END!r} into it.")
    return f"{before}{START}\n\n{block}\n\n{END}{after}"
