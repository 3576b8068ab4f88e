"""How far the analyses are: which of the cells that they ask for have run."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ompb.bench.findings import Finding
from ompb.bench.store import SCORES, Cell, Store, collect
from ompb.bench.store import exported as read_exported
from ompb.paper.analysis import Analysis
from ompb.paper.running import FULL, QUICK, finding_path, possible

SCOPES = (FULL, QUICK)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of the cells that are asked for are there."""

    there: int
    asked: int

    @classmethod
    def of(cls, asked: Sequence[Cell], there: Container[Cell]) -> Progress:
        """Of these cells."""
        return cls(sum(cell in there for cell in asked), len(asked))

    def __str__(self) -> str:
        return f"{self.there} / {self.asked}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an analysis is, in each of `SCOPES`: in the store, and among exported cells."""

    name: str
    stored: tuple[Progress, ...]
    exported: tuple[Progress, ...]  # empty if it reads single steps, which are not exported
    made_from: Mapping[str, Any]  # what its exported finding was made from; empty if there is none


@dataclass(frozen=True, slots=True)
class Overview:
    """What has run, and how far that takes each analysis."""

    stored: tuple[Cell, ...]
    exported: tuple[Cell, ...]
    standings: tuple[Standing, ...]

    @classmethod
    def of(cls, analyses: Sequence[Analysis], store: Store, results: Path, folder: Path | None = None) -> Overview:
        """Of a store and a folder of results. Cells that cannot be run with the data in ``folder`` are not asked for.

        A cell of the store counts if what an analysis reads of it was kept.
        """
        stored = tuple(result.cell for result in collect(store))
        path = results / SCORES
        exported = tuple(result.cell for result in read_exported(path)) if path.exists() else ()
        whole, stepped, written = set(stored), {cell for cell in stored if store.has_steps(cell)}, set(exported)
        standings = [
            Standing(
                analysis.name,
                stored=_progress(asked, stepped if analysis.per_step else whole),
                exported=() if analysis.per_step else _progress(asked, written),
                made_from=_made_from(analysis, results),
            )
            for analysis, asked in zip(analyses, _asked(analyses, folder), strict=True)
        ]
        return cls(stored, exported, tuple(standings))


def _asked(analyses: Sequence[Analysis], folder: Path | None) -> list[list[list[Cell]]]:
    """The cells of each analysis and scope that can be run, as far as anybody can tell."""
    every = [[analysis.cells(scope) for scope in SCOPES] for analysis in analyses]
    fit = possible((cell for scopes in every for cells in scopes for cell in cells), folder)
    return [[[cell for cell in cells if cell in fit] for cells in scopes] for scopes in every]


def _progress(asked: Sequence[Sequence[Cell]], there: Container[Cell]) -> tuple[Progress, ...]:
    return tuple(Progress.of(cells, there) for cells in asked)


def _made_from(analysis: Analysis, results: Path) -> Mapping[str, Any]:
    path = finding_path(results, analysis)
    return Finding.read(path).made_from if path.exists() else {}
