"""What turning single options does, on ETTh2 with the TCN at 96 rows: disagreement scale, draws, variance, mode."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell, Result
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Doubts, Entry, Measured, Place, compare, ratio, shown
from ompb.paper.costs import Costs
from ompb.paper.grid import OMPB, PRESET, PROTOCOLS, QUICK, Spot, cells, references, with_options
from ompb.paper.networks import broken
from ompb.paper.printed import Number
from ompb.paper.tally import made_from, notes_on

NAME = "sensitivity"
SIDES = ((PRESET, ONE_STEP), (PRESET, HONEST), (OMPB, HONEST))
UNITS = (
    "Cert. and Dis. are means over the stream of what a method says before each forecast. `ompb-paper` adds up a raw "
    "squared error, `ompb` a loss from 0 to 1, so their levels differ. One seed."
)
SWEPT = Spot("etth", "tcn", 96, "ood")
QUICK_STEP = 4  # of the values, a quick scope takes one in so many
FACTORS = ("0.25", "0.5", "1", "2", "4", "8", "16", "32", "64")


@dataclass(frozen=True, slots=True)
class Sweep:
    """One option, the values it takes, and what makes it work."""

    table: str  # the paper's
    title: str
    option: str
    values: Mapping[str, Any]  # by their name in the paper's table
    defaults: Mapping[str, Any]  # by method
    metrics: tuple[str, ...]
    needs: Mapping[str, Any]  # other options of `ompb` without which this one does nothing

    def names(self, method: str) -> dict[str, str]:
        """The method with each value in turn; the default value leaves the name as it is."""
        values = dict(self.values)
        if self.defaults[method] not in values.values():
            values[f"{self.defaults[method]:g} (default)"] = self.defaults[method]
            values = dict(sorted(values.items(), key=lambda item: item[1]))
        return {
            word: with_options(
                method, **self._needs(method), **({} if value == self.defaults[method] else {self.option: value})
            )
            for word, value in values.items()
        }

    def label(self, method: str) -> str:
        """The method as it is but for the option: with what makes that work."""
        return with_options(method, **self._needs(method))

    def _needs(self, method: str) -> Mapping[str, Any]:
        return self.needs if method == OMPB else {}


DRAWS = Sweep(
    "k_sensitivity_runtime",
    "Forecasts drawn",
    "draws",
    {word: int(word) for word in ("2", "4", "8", "16", "32")},
    {PRESET: 5, OMPB: 0},
    ("mae", "mse", "cert", "time_ms"),
    {},
)
SWEEPS = (
    Sweep(
        "tau_sensitivity",
        "Scale of the disagreement",
        "tau_d_factor",
        {word: float(word) for word in FACTORS},
        {PRESET: 1.0, OMPB: 3.0},
        ("mae", "mse", "cert", "dis"),
        {},
    ),
    DRAWS,
    Sweep(
        "variance_proxy_sensitivity",
        "Variance in the complexity term",
        "variance_factor",
        {word: float(word) for word in ("0.5", "1", "2", "4")},
        {PRESET: 1.0, OMPB: 1.0},
        ("mae", "mse", "cert"),
        {"kind": "freedman"},
    ),
    Sweep(
        "disagreement_normalization",
        "Bound on the disagreement",
        "disagreement",
        {"clipped": "clipped", "normalized": "normalised", "unclipped": "unclipped"},
        {PRESET: "clipped", OMPB: "clipped"},
        ("mae", "mse", "cert", "dis"),
        {},
    ),
)
HEADINGS = {"mae": "MAE", "mse": "MSE", "cert": "Cert.", "dis": "Dis.", "time_ms": "ms a step"}
METRICS = {"mae": "mae", "mse": "mse", "cert": "certificate", "dis": "disagreement"}
WITH_RATIO = ("mae", "mse")
MOVED = ("mae", "cert")  # what the table in short has


def spot_of(scope: Scope) -> Spot:
    """The one stream."""
    return Spot(*QUICK, "ood") if scope.quick else SWEPT


def wanted(scope: Scope) -> list[Cell]:
    """Every value of every sweep, or a few if the scope is quick, and the references."""
    spot = [spot_of(scope)]
    found = [cell for protocol in PROTOCOLS for cell in cells(spot, protocol, references("etth"))]
    for sweep in SWEEPS:
        for method, protocol in SIDES:
            names = list(sweep.names(method).values())
            found += cells(spot, protocol, names[:: QUICK_STEP if scope.quick else 1])
    return list(dict.fromkeys(found))


def reduce(runs: Runs, scope: Scope) -> Finding:
    """A section for each sweep and side, the references, and curves of errors, certificate and time."""
    asked = wanted(scope)
    results = runs.found(asked)
    spot = spot_of(scope)
    measured = Measured.of(results)
    read = {result.cell: _read(result, measured, runs.costs) for result in results}
    further = {DRAWS.table: runs.costs.notes()}
    sections = [_in_short(spot, read)]
    sections += [
        _section(sweep, spot, read, (*_lacking(sweep, asked, results), *further.get(sweep.table, ())))
        for sweep in SWEEPS
    ]
    bare = [
        [Entry((name, protocol), Place(spot, protocol, name)) for name in references("etth")] for protocol in PROTOCOLS
    ]
    sections.append(compare("The same stream without either", ("method", "protocol"), bare, measured))
    panels = [
        _panel(SWEEPS[0], "mae", spot, read),
        _panel(SWEEPS[0], "cert", spot, read),
        _panel(SWEEPS[1], "mae", spot, read),
        _panel(SWEEPS[1], "time_ms", spot, read),
        _panel(SWEEPS[2], "mae", spot, read),
        _panel(SWEEPS[2], "cert", spot, read),
    ]
    figure = Figure(
        name=NAME,
        title="What turning single options does",
        caption="Relative to the first value of each sweep: a flat line at 1 means that the option hardly matters.",
        panels=tuple(panel for panel in panels if panel.curves),
    )
    return Finding(
        analysis=NAME,
        title="What turning single options does",
        text=_text(spot, read),
        sections=tuple(section for section in sections if section.lines),
        figures=(figure,) if figure.panels else (),
        made_from=made_from(results),
    )


def _lacking(sweep: Sweep, asked: Sequence[Cell], results: Iterable[Result]) -> tuple[str, ...]:
    names = {name for method in (PRESET, OMPB) for name in sweep.names(method).values()}
    return notes_on([cell for cell in asked if cell.method in names], results)


def _read(result: Result, measured: Measured, costs: Costs) -> dict[str, float]:
    """The metrics of a sweep by the names of the printed numbers; what a row takes, and infinite ones if diverged."""
    place = Place.of(result.cell)
    told = {name: measured.mean(place, metric, (result.cell.seed,)) for name, metric in METRICS.items()}
    found = {name: value for name, value in told.items() if value is not None}
    cost = costs.of(place.spot.sizes, result.cell.method)
    return found if cost is None else {**found, "time_ms": cost.milliseconds}


def _section(sweep: Sweep, spot: Spot, read: Mapping[Cell, Mapping[str, float]], notes: tuple[str, ...]) -> Section:
    """The paper's numbers stand beside its own method; at another horizon than its own there are none."""
    doubts, lines = Doubts(), []
    theirs = printed.sensitivity(sweep.table) if spot == spot_of(Scope()) else {}
    for method, protocol in SIDES:
        for word, name in sweep.names(method).items():
            ours = read.get(spot.cell(protocol, name))
            if ours is not None:
                papers = {metric: theirs.get((word, metric)) for metric in sweep.metrics if method == PRESET}
                numbers = [_numbers(metric, ours.get(metric), papers.get(metric), doubts) for metric in sweep.metrics]
                lines.append((sweep.label(method), protocol, word, *itertools.chain.from_iterable(numbers)))
    headings = [
        heading
        for metric in sweep.metrics
        for heading in (HEADINGS[metric], "paper", *(("ratio",) if metric in WITH_RATIO else ()))
    ]
    return Section(
        title=f"{sweep.title} ({sweep.table})",
        notes=(UNITS, *notes, *broken(lines), *doubts.notes()),
        headings=("method", "protocol", sweep.option, *headings),
        lines=tuple(lines),
        keys=3,
    )


def _numbers(metric: str, ours: float | None, theirs: Number | None, doubts: Doubts) -> tuple[str, ...]:
    words = shown(ours, digits=2 if metric == "time_ms" else 4), doubts.shown(theirs)
    return (*words, ratio(ours, theirs)) if metric in WITH_RATIO else words


def _panel(sweep: Sweep, metric: str, spot: Spot, read: Mapping[Cell, Mapping[str, float]]) -> Panel:
    """Each side's curve over the values of the paper's table, and the paper's own."""
    curves = []
    for method, protocol in SIDES:
        names = sweep.names(method)
        values = [read.get(spot.cell(protocol, names[word]), {}).get(metric) for word in sweep.values]
        curves.append(_relative(f"{sweep.label(method)}, {protocol}", tuple(sweep.values), values))
    if spot == spot_of(Scope()):
        theirs = printed.sensitivity(sweep.table)
        curves.append(_relative("paper", tuple(sweep.values), [float(theirs[word, metric]) for word in sweep.values]))
    return Panel(
        title=f"{sweep.title}: {HEADINGS[metric]}",
        x_label=sweep.option,
        y_label=f"{HEADINGS[metric]}, relative",
        curves=tuple(curve for curve in curves if curve is not None),
    )


def _relative(name: str, words: tuple[str, ...], values: list[float | None]) -> Curve | None:
    first = values[0]
    if not first or not math.isfinite(first):
        return None
    known = (None if value is None or math.isinf(value) else value for value in values)
    return Curve(name, words, tuple(None if value is None else float(f"{value / first:.5g}") for value in known))


def _in_short(spot: Spot, read: Mapping[Cell, Mapping[str, float]]) -> Section:
    """Between what each option moves the error and the certificate, ours and the paper's."""
    doubts = Doubts()
    lines: list[tuple[str, ...]] = []
    for sweep in SWEEPS:
        ours = _ours_in_short(sweep, spot, read)
        lines += ours
        if ours and spot == spot_of(Scope()):
            lines.append((sweep.option, "paper", ONE_STEP, str(len(sweep.values)), *_papers_ends(sweep, doubts)))
    ends = [f"{HEADINGS[metric]}, {end}" for metric in MOVED for end in ("least", "most")]
    headings = ("option", "method", "protocol", "values", *ends)
    return Section("How far each option moves them", doubts.notes(), headings, tuple(lines), keys=3)


def _ours_in_short(sweep: Sweep, spot: Spot, read: Mapping[Cell, Mapping[str, float]]) -> list[tuple[str, ...]]:
    """A line for each side that has run."""
    lines = []
    for method, protocol in SIDES:
        found = [read[cell] for cell in _cells(sweep, method, protocol, spot) if cell in read]
        ends = [shown(end) for metric in MOVED for end in _ends(one[metric] for one in found if metric in one)]
        if found:
            lines.append((sweep.option, sweep.label(method), protocol, str(len(found)), *ends))
    return lines


def _papers_ends(sweep: Sweep, doubts: Doubts) -> list[str]:
    numbers = printed.sensitivity(sweep.table)
    by_metric = ([numbers[word, metric] for word in sweep.values] for metric in MOVED)
    return [doubts.shown(end) for found in by_metric for end in (min(found, key=float), max(found, key=float))]


def _ends(values: Iterable[float]) -> tuple[float | None, float | None]:
    """The least and the most of what has not diverged."""
    known = [value for value in values if math.isfinite(value)]
    return (min(known), max(known)) if known else (None, None)


def _cells(sweep: Sweep, method: str, protocol: str, spot: Spot) -> list[Cell]:
    return [spot.cell(protocol, name) for name in sweep.names(method).values()]


def _text(spot: Spot, read: Mapping[Cell, Mapping[str, float]]) -> str:
    """What all options together do to the error of each side, and to its certificate."""
    sentences = []
    for metric in MOVED:
        words = []
        for method, protocol in SIDES:
            cells_of = dict.fromkeys(cell for sweep in SWEEPS for cell in _cells(sweep, method, protocol, spot))
            values = [value for cell in cells_of if (value := read.get(cell, {}).get(metric)) is not None]
            words += [f"of `{method}` ({protocol}) {_reach(values)}"] if len(values) > 1 else []
        if words:
            sentences.append(f"Over all values of all options the {HEADINGS[metric]} {', '.join(words)}.")
    return " ".join(sentences) or "No sweep has run yet."


def _reach(values: Sequence[float]) -> str:
    """Where they lie, in words.

    >>> _reach([0.53251, 0.53249]), _reach([0.5, 0.6]), _reach([0.5, 0.6, math.inf])
    ('stays at 0.5325', 'lies between 0.5000 and 0.6000', 'lies between 0.5000 and 0.6000, but for 1 that has diverged')
    """
    least, most = map(shown, _ends(values))
    lost = sum(map(math.isinf, values))
    if lost == len(values):
        return "has diverged"
    rest = f", but for {lost} that {'has' if lost == 1 else 'have'} diverged" if lost else ""
    return f"stays at {least}{rest}" if least == most else f"lies between {least} and {most}{rest}"


ANALYSIS = Analysis(NAME, "Sensitivity to single options", tuple(sweep.table for sweep in SWEEPS), wanted, reduce)
