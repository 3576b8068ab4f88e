"""An analysis from its cells to its finding: which can be run here, which have run, and what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from ompb.bench.findings import Figure, Finding
from ompb.bench.joining import Joining
from ompb.bench.methods import lacking, unfit
from ompb.bench.runner import Grid, LeftOut
from ompb.bench.store import Cell, Store, export, exported, with_earlier
from ompb.bench.work import conditions
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.errors import InputError, OptionError, TooShortError
from ompb.floor.names import counted
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.costs import FILE as COSTS
from ompb.paper.costs import Costs

FULL, QUICK = Scope(), Scope(quick=True)
FOLDER = "findings"


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Why a cell cannot be run here."""

    left_out: LeftOut
    is_certain: bool  # False if data or a package that is not at hand could remove it


def runnable(cells: Iterable[Cell], folder: Path | None = None) -> Grid:
    """The cells that can be run with the data in a folder, and why others cannot: no data, too few rows, unfit."""
    found = _obstacles(cells, folder)
    left_out = {cell: obstacle.left_out for cell, obstacle in found.items() if obstacle is not None}
    return Grid(tuple(cell for cell in found if cell not in left_out), left_out)


def possible(cells: Iterable[Cell], folder: Path | None = None) -> set[Cell]:
    """The cells that can be run, or of which nobody can tell: their data or packages are not at hand."""
    found = _obstacles(cells, folder)
    return {cell for cell, obstacle in found.items() if obstacle is None or not obstacle.is_certain}


def _obstacles(cells: Iterable[Cell], folder: Path | None) -> dict[Cell, _Obstacle | None]:
    """What is in the way of each cell, in their order."""
    data_of = cache(partial(_data, folder=folder))
    lack_of = cache(lacking)  # a method that cannot be loaded would be tried anew for each cell, which takes a while
    return {cell: _obstacle(cell, data_of, lack_of) for cell in cells}


def _data(name: str, folder: Path | None) -> BenchmarkData | str:
    """A data set, or why it cannot be read."""
    try:
        return load(name, folder)
    except InputError as error:
        return str(error).rstrip(".")


def _obstacle(
    cell: Cell, data_of: Callable[[str], BenchmarkData | str], lack_of: Callable[[str], str | None]
) -> _Obstacle | None:
    data = data_of(cell.dataset)
    if isinstance(data, str):
        return _Obstacle(LeftOut(cell.dataset, data), is_certain=False)
    try:
        data.stream(cell.split, cell.horizon)
    except TooShortError as error:
        part = f"{cell.dataset}, {cell.split} at {cell.horizon} rows"
        return _Obstacle(LeftOut(part, str(error).rstrip(".")), is_certain=True)
    lack = lack_of(cell.method)
    if lack is not None:
        return _Obstacle(LeftOut(cell.method, lack), is_certain=False)
    reason = unfit(cell.method, conditions(data, cell))
    return None if reason is None else _Obstacle(LeftOut(cell.method, reason), is_certain=True)


def finding_in(runs: Runs, analysis: Analysis) -> Finding | None:
    """What the cells that have run show, of the full scope, else of the quick one; None if it was made from nothing."""
    for scope in (FULL, QUICK):
        finding = analysis.reduce(runs, scope)
        if any(finding.made_from.values()):
            return finding
    return None


@dataclass(frozen=True, slots=True)
class Shown:
    """What an analysis shows, and where it comes from."""

    finding: Finding
    store: Path
    path: Path  # of the exported finding, which may not be there
    is_exported: bool  # whether it is what is shown

    @property
    def exported(self) -> Finding | None:
        """As it was exported, if it was."""
        return Finding.read(self.path) if self.path.exists() else None

    def told(self) -> str:
        """From what it is shown, in a sentence."""
        if self.is_exported:
            return f"As exported to {self.path}: the store {self.store} has nothing that it is made from."
        made_from = self.finding.made_from
        if "cells" not in made_from:
            return f"Made now from the data at hand: {', '.join(made_from['data'])}."
        other = f" As exported, with another --store: {self.path}." if self.path.exists() else ""
        return f"Made now from {counted(int(made_from['cells']), 'cell')} in {self.store}.{other}"


def finding_of(analysis: Analysis, store: Store, folder: Path) -> Shown:
    """What an analysis shows: of a store, else as it was written to the findings of a folder of results."""
    path = finding_path(folder, analysis)
    runs = Runs.of(store, Costs.read(folder / COSTS))
    found = finding_in(runs.stepped() if analysis.needs_steps else runs, analysis)
    if found is not None:
        return Shown(found, store.folder, path, is_exported=False)
    if not path.exists():
        raise OptionError(f"{_nothing_of(analysis, store)}, and there is no {path}; {_remedy(analysis)}.")
    return Shown(Finding.read(path), store.folder, path, is_exported=True)


def _nothing_of(analysis: Analysis, store: Store) -> str:
    if analysis.cells(FULL):
        kept = " with its single steps" if analysis.needs_steps else ""
        return f"no cell of the analysis {analysis.name!r} is in {store.folder}{kept}"
    return f"the data that the analysis {analysis.name!r} is made from are not at hand"


def _remedy(analysis: Analysis) -> str:
    run = f"run some by `ompb bench run --analysis {analysis.name} --quick`, name another store"
    first = run if analysis.cells(FULL) else "name their folder with --folder or the variable OMPB_DATA"
    return f"{first}, or stand in the clone, or name --results DIR, for what was exported"


def finding_path(results: Path, analysis: Analysis) -> Path:
    """Where a folder of results keeps what an analysis shows."""
    return results / FOLDER / f"{analysis.name}.json"


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: how many cells, which findings, and what it did to those that were there."""

    cells: int
    findings: tuple[Path, ...]
    joining: Joining


def export_all(
    store: Store, cells: Path, analyses: Sequence[Analysis], *, add: bool = False, other_networks: bool = False
) -> Exported:
    """Write every cell to tables, and every finding beside them that has a cell.

    With ``add``, cells that the tables have and the store lacks stay there. Findings are made of all cells or, where
    their tables need single steps, of those of the store; of these, one that was made from more stays, and so does one
    that needs no cells, and a figure that the store lacks the steps to draw. A cell takes the place of one on another
    network only with ``other_networks``, else `OptionError`.
    """
    own = Runs.of(store, Costs.read(cells.parent / COSTS))
    earlier = exported(cells) if add and cells.exists() else []
    joining = Joining.of(own.results, earlier)
    if not other_networks:
        joining.require_same_networks()
    count, written = export(store, cells, earlier), []
    every = replace(own, results=tuple(with_earlier(own.results, earlier)))
    for analysis in analyses:
        if add and not analysis.cells(FULL):
            continue
        finding = finding_in(own.stepped() if analysis.needs_steps else every, analysis)
        path = finding_path(cells.parent, analysis)
        if finding and not (add and analysis.needs_steps and _is_fuller(path, finding)):
            (_with_figures_of(path, finding) if add and analysis.draws_steps else finding).write(path)
            written.append(path)
    return Exported(count, tuple(written), joining)


def export_steps(store: Store, cells: Path, analyses: Sequence[Analysis]) -> tuple[Path, ...]:
    """Make the findings that read single steps anew of those in a store, and leave cells as they are.

    One that only draws steps has its tables of the exported cells, and keeps the figures that the store cannot draw.
    One that was made from more cells stays.
    """
    own = Runs.of(store, Costs.read(cells.parent / COSTS))
    there = replace(own, results=tuple(exported(cells)))
    written = []
    for analysis in (one for one in analyses if one.per_step and any(map(store.has_steps, one.cells(FULL)))):
        finding = finding_in(own.stepped() if analysis.needs_steps else there, analysis)
        path = finding_path(cells.parent, analysis)
        if finding and not _is_fuller(path, finding):
            (_with_figures_of(path, finding) if analysis.draws_steps else finding).write(path)
            written.append(path)
    return tuple(written)


def _with_figures_of(path: Path, finding: Finding) -> Finding:
    """With the figures that stand there, where they show more: a store may lack steps that were drawn once."""
    drawn = {figure.name: figure for figure in Finding.read(path).figures} if path.exists() else {}
    for figure in finding.figures:
        drawn[figure.name] = max(figure, drawn.get(figure.name, figure), key=_curves)
    return replace(finding, figures=tuple(drawn.values()))


def _curves(figure: Figure) -> int:
    return sum(len(panel.curves) for panel in figure.panels)


def _is_fuller(path: Path, finding: Finding) -> bool:
    """Whether what stands there was made from more cells."""
    return path.exists() and _size(Finding.read(path)) > _size(finding)


def _size(finding: Finding) -> int:
    """How many cells it was made from."""
    return int(finding.made_from.get("cells", 0))
