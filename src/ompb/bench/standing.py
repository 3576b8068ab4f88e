"""How the methods stand under the honest protocol: the default one, then all of them, then their intervals."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST
from ompb.bench.store import Cell, Result
from ompb.bench.tables import ORIGINAL, TRIVIAL, render

DEFAULT = "ompb"
HARM = 1.01  # times the error of the bare backbone
SAME = 1e-4  # relative difference of errors that means nothing: one backbone run twice on a GPU made 1e-5
INTERVALS = {
    "coverage80": "80% coverage",
    "coverage95": "95% coverage",
    "width80": "80% width",
    "width95": "95% width",
    "crps": "CRPS",
    "ece": "ECE",
}
Errors: TypeAlias = Mapping[str, float]  # MAE by method

EVERY_METHOD = f"""## Every method under the honest protocol

In each cell (data set, backbone, horizon, split, seed) the methods that have run there are ranked by MAE, the smallest
first; errors within {SAME:.2%} tie. *Rank* is the mean over cells of the share of the other methods that are better:
0 is best of all, 1 worst. *MAE ratio* is the mean of the MAE relative to the bare backbone,
`{ORIGINAL}`, and *harm* counts the cells in which a method is more than {HARM - 1:.0%} worse than that.

Not every method has run in every cell. Where *cells* differ, so do the difficulty of the cells and the number of
rivals, and neither ranks nor ratios settle which method is better; the last column compares a method with
`{DEFAULT}` in the cells that both have. Methods that only add intervals to the forecast of the backbone are not ranked.
"""
INTERVALS_HEAD = """## Intervals under the honest protocol

Means over the cells in which a method has run. Coverage is the share of outcomes inside the interval, and should be
what the interval promises; widths and CRPS are in standard deviations of the source, smaller is better; ECE is the mean
distance of coverage from promise. A method that gives no density has no CRPS. Where *cells* differ, so do the cells.
"""


def default_method(results: Iterable[Result]) -> str:
    """How often the default method harms, and how often it beats each trivial reference."""
    cells = {cell: errors for cell, errors in _errors(results).items() if {DEFAULT, ORIGINAL} <= errors.keys()}
    if not cells:
        return ""
    ratios = {cell: errors[DEFAULT] / errors[ORIGINAL] for cell, errors in cells.items()}
    harmed = {cell: ratio for cell, ratio in ratios.items() if ratio > HARM}
    lines = [
        f"## `{DEFAULT}` under the honest protocol",
        "",
        f"{len(cells)} cells. Median MAE relative to the bare backbone: {statistics.median(ratios.values()):.3f}. "
        f"Cells in which it is more than {HARM - 1:.0%} worse: {len(harmed)}.",
        "",
        "| reference | cells | better than it in |",
        "|---|---|---|",
    ]
    for name in TRIVIAL:
        both = [errors for errors in cells.values() if name in errors]
        if both:
            wins = sum(errors[DEFAULT] < errors[name] for errors in both)
            lines.append(f"| {name} | {len(both)} | {wins / len(both):.0%} |")
    lines += ["", "Cells in which the bare backbone or a trivial reference does better:", ""]
    lines += ["| cell | ompb | better |", "|---|---|---|"]
    for cell, errors in sorted(cells.items()):
        better = {n: errors[n] for n in (ORIGINAL, *TRIVIAL) if n in errors and errors[n] < errors[DEFAULT]}
        if better:
            named = ", ".join(f"{name} {value:.4f}" for name, value in better.items())
            lines.append(f"| {cell.dataset} {cell.backbone} {cell.horizon} {cell.split} seed {cell.seed} | "
                         f"{errors[DEFAULT]:.4f} | {named} |")  # fmt: skip
    return "\n".join(lines) + "\n"


def every_method(results: Sequence[Result]) -> str:
    """All methods that forecast, best first: per data set and backbone, then over everything."""
    cells = _ranked(results)
    if not cells:
        return ""
    sections = [
        _ranking(f"{dataset}, {backbone}", [cells[cell] for cell in group])
        for (dataset, backbone), group in groupby(sorted(cells), key=lambda cell: (cell.dataset, cell.backbone))
    ]
    sections.append(_ranking("All data sets and backbones", list(cells.values())))
    return f"{EVERY_METHOD}\n{render(sections, 'markdown')}\n"


def intervals(results: Iterable[Result]) -> str:
    """Coverage, widths and scores of every method that has intervals, a table per data set."""
    found = sorted((result for result in _honest(results) if _has_intervals(result)), key=_line_of)
    if not found:
        return ""
    sections = [
        Section(
            title=dataset,
            notes=(),
            headings=("backbone", "method", "cells", *INTERVALS.values()),
            lines=tuple(_interval_line(list(group)) for _, group in groupby(rest, key=_line_of)),
        )
        for dataset, rest in groupby(found, key=lambda result: result.cell.dataset)
    ]
    return f"{INTERVALS_HEAD}\n{render(sections, 'markdown')}\n"


def _honest(results: Iterable[Result]) -> list[Result]:
    return [result for result in results if result.cell.protocol == HONEST]


def _errors(results: Iterable[Result]) -> dict[Cell, Errors]:
    """MAE of each method, by the cell without its method."""
    found: dict[Cell, dict[str, float]] = {}
    for result in _honest(results):
        place = dataclasses.replace(result.cell, method="")
        found.setdefault(place, {})[result.cell.method] = result.metrics["mae"]
    return dict(found)


def _ranked(results: Sequence[Result]) -> dict[Cell, Errors]:
    """The cells in which the bare backbone and another method that forecasts have run."""
    cells = {cell: errors for cell, errors in _errors(results).items() if ORIGINAL in errors}
    unranked = {
        name
        for name in {result.cell.method for result in _honest(results) if _has_intervals(result)} - {ORIGINAL}
        if all(_tie(errors[name], errors[ORIGINAL]) for errors in cells.values() if name in errors)
    }
    forecasts = {
        cell: {name: error for name, error in errors.items() if name not in unranked} for cell, errors in cells.items()
    }
    return {cell: errors for cell, errors in forecasts.items() if len(errors) > 1}


def _has_intervals(result: Result) -> bool:
    return "coverage80" in result.metrics


def _tie(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME)


def _ranking(title: str, cells: Sequence[Errors]) -> Section:
    have = {name: [errors for errors in cells if name in errors] for name in {name for e in cells for name in e}}
    ranks = {name: statistics.fmean(_rank(name, errors) for errors in mine) for name, mine in have.items()}
    return Section(
        title=title,
        notes=(),
        headings=("method", "cells", "rank", "MAE ratio", "harm", f"`{DEFAULT}` better in"),
        lines=tuple(
            (name, str(len(have[name])), f"{ranks[name]:.3f}", *_against(name, have[name]))
            for name in sorted(have, key=lambda name: (ranks[name], name))
        ),
    )


def _rank(name: str, errors: Errors) -> float:
    """The share of the other methods of a cell that are better; a tie counts half."""
    others = [error for other, error in errors.items() if other != name]
    tied = sum(_tie(error, errors[name]) for error in others)
    ahead = sum(error < errors[name] and not _tie(error, errors[name]) for error in others)
    return (ahead + tied / 2) / len(others)


def _against(name: str, cells: Sequence[Errors]) -> tuple[str, str, str]:
    """How a method compares with the bare backbone, and with the default method where both have run."""
    ratios = [errors[name] / errors[ORIGINAL] for errors in cells]
    harmed = sum(ratio > HARM for ratio in ratios)
    both = [errors for errors in cells if DEFAULT in errors and name != DEFAULT]
    lost = sum(errors[DEFAULT] < errors[name] for errors in both)
    return f"{statistics.fmean(ratios):.3f}", f"{harmed} of {len(cells)}", f"{lost} of {len(both)}" if both else ""


def _line_of(result: Result) -> tuple[str, str, str]:
    return result.cell.dataset, result.cell.backbone, result.cell.method


def _interval_line(results: Sequence[Result]) -> tuple[str, ...]:
    """Means over the cells of one method on one backbone; blank what it does not have."""
    _, backbone, method = _line_of(results[0])
    values = [[result.metrics[metric] for result in results if metric in result.metrics] for metric in INTERVALS]
    means = (f"{statistics.fmean(found):.3f}" if found else "" for found in values)
    return (backbone, method, str(len(results)), *means)
