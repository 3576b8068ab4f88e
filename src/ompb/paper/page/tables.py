"""Every number there is, a table per data set and metric; then aims, runs with a history, and what made the cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Result
from ompb.paper.beside import GUESSED, HINT, Doubts, ratio, shown
from ompb.paper.grid import OMPB, PAPERS_DATA, Spot
from ompb.paper.main import FIRST, IN_PAPER, TABLES, of_paper
from ompb.paper.networks import DIVERGED, broken
from ompb.paper.page.compared import Beside, Grid, across_networks
from ompb.paper.page.material import Aim
from ompb.paper.printed import Number, accuracy

METRICS = ("mae", "mse")
HISTORY = f"{OMPB}+history"


def full_tables(grid: Grid, dataset: str) -> list[Section]:
    """One table per metric of all methods on a data set, beside ``ompb`` and the paper."""
    return [_full_table(grid.of_dataset(dataset), dataset, metric) for metric in METRICS]


def _full_table(grid: Grid, dataset: str, metric: str) -> Section:
    doubts = Doubts()
    lines = [_line(grid, place, method, metric, doubts) for place in grid.places for method in _rows(grid, place)]
    stands_in = () if dataset in PAPERS_DATA else (f"{dataset} is not the paper's data: its numbers have no ratio.",)
    return Section(
        title=f"{dataset}: {metric.upper()}",
        notes=(
            f"Honest: means over the seeds that a method shares with `{OMPB}`, whose mean over the same seeds stands "
            f"beside; ratio is that of `{OMPB}` to the method. LEAKS: one-step shows a method H-1 of the H rows it is "
            "scored on; beside it what the paper prints for that protocol, and the ratio of ours to it. Seeds: how "
            f"many, honest and one-step. Diverged: an MAE from {DIVERGED:g} times that of the bare backbone on.",
            *across_networks(lines),
            *stands_in,
            *((HINT,) if dataset in GUESSED else ()),
            *doubts.notes(),
        ),
        headings=(
            "backbone",
            "horizon",
            "split",
            "method",
            "seeds",
            "honest",
            OMPB,
            "ratio",
            "one-step",
            "paper",
            "ratio",
        ),
        lines=tuple(lines),
    )


def _rows(grid: Grid, place: Spot) -> list[str]:
    """The methods of a place: ours and the trivial ones first."""
    names = {*grid.methods(place), *grid.methods(place, ONE_STEP)}
    first = [name for name in FIRST if name in names]
    return first + sorted(names - set(first))


def _line(grid: Grid, place: Spot, method: str, metric: str, doubts: Doubts) -> tuple[str, ...]:
    honest, early = (grid.beside(place, method, metric, protocol) for protocol in (HONEST, ONE_STEP))
    early_error = None if early is None else early.value
    theirs = _printed(place, method, metric)
    return (
        *(place.backbone, str(place.horizon), place.split, method),
        " / ".join(str(one.seeds) if one else "0" for one in (honest, early)),
        *_beside(honest, is_ours=method == OMPB),
        shown(early_error),
        doubts.shown(theirs),
        ratio(early_error, theirs) if place.dataset in PAPERS_DATA else "",
    )


def _beside(one: Beside | None, *, is_ours: bool) -> tuple[str, str, str]:
    """A method's error, ours on the same seeds, and the ratio of ours to it."""
    if one is None:
        return "", "", ""
    return shown(one.value), *(("", "") if is_ours else (shown(one.ours), one.shown_ratio()))


def _printed(place: Spot, method: str, metric: str) -> Number | None:
    if method == OMPB:
        return None  # the paper's method of that name is ompb-paper here
    tables = [table for table, datasets in TABLES.items() if place.dataset in datasets]
    numbers = [of_paper(accuracy(table), place, IN_PAPER.get(method, method)) for table in tables]
    return next((found[metric] for found in numbers if metric in found), None)


def aims(grid: Grid, wanted: Iterable[Aim]) -> Section:
    """What was aimed at and what came of it."""
    lines = []
    for aim in wanted:
        reached = grid.beside(aim.place, OMPB, aim.metric)
        if reached:
            words = (aim.place.dataset, aim.place.backbone, str(aim.place.horizon), aim.place.split, aim.metric.upper())
            verdict = "met" if reached.value <= aim.value else "missed"
            lines.append((*words, str(reached.seeds), shown(reached.value), f"{aim.value:.4g}", verdict))
    return Section(
        title="What we aimed at",
        notes=("Set before the runs.", *broken(lines)),
        headings=("data set", "backbone", "horizon", "split", "metric", "seeds", OMPB, "aim", "verdict"),
        lines=tuple(lines),
        keys=5,
    )


def history(grid: Grid) -> Section:
    """``ompb`` with and without the source as its memory's history, where the stream goes on where the source ends."""
    lines = []
    for place in grid.places:
        with_it = grid.beside(place, HISTORY)
        if with_it and with_it.ours is not None:
            words = (place.dataset, place.backbone, str(place.horizon), place.split)
            without = replace(with_it, value=with_it.ours, ours=with_it.value)
            numbers = shown(without.value), shown(without.ours), without.shown_ratio()
            lines.append((*words, str(with_it.seeds), *numbers))
    return Section(
        title="With the source as history",
        notes=(
            "MAE where the stream goes on where the source ends, so that the source may fill the memory before the "
            "first forecast. Ratio: with history to without.",
            *across_networks(lines),
            *broken(lines),
        ),
        headings=("data set", "backbone", "horizon", "split", "seeds", OMPB, HISTORY, "ratio"),
        lines=tuple(lines),
    )


def made_by(results: Sequence[Result]) -> Section:
    """Commits, devices and versions behind the cells, and where their networks were trained."""
    made: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        versions = ", ".join(f"{name} {number}" for name, number in sorted(result.versions.items()))
        by = result.commit or "unknown", result.device, versions, result.trained_on or ""
        made.setdefault(by, []).append(result)
    lines = [
        (*by, ", ".join(sorted({result.cell.dataset for result in found})), str(len(found)))
        for by, found in sorted(made.items())
    ]
    headings = ("commit", "device", "versions", "network trained on", "data sets", "cells")
    notes = (
        "Commit, device and versions made the steps of a cell; where its network was trained is blank if unknown.",
    )
    return Section("Commits, devices and versions", notes, headings, tuple(lines))
