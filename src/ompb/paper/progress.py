"""How far the analyses are: which of the cells that they ask for have run."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from ompb.bench.store import Cell, Store, collect
from ompb.paper.analysis import Analysis
from ompb.paper.running import FULL, QUICK, possible

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
    """How far an analysis is, in each of `SCOPES`."""

    name: str
    stored: tuple[Progress, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """What has run, and how far that takes each analysis."""

    stored: tuple[Cell, ...]
    standings: tuple[Standing, ...]

    @classmethod
    def of(cls, analyses: Sequence[Analysis], store: Store, folder: Path | None = None) -> Overview:
        """Of a store. Cells that cannot be run with the data in ``folder`` are not asked for.

        A cell counts if what an analysis reads of it was kept.
        """
        stored = tuple(result.cell for result in collect(store))
        asked = {analysis.name: [analysis.cells(scope) for scope in SCOPES] for analysis in analyses}
        fit = possible((cell for scopes in asked.values() for cells in scopes for cell in cells), folder)
        whole, stepped = set(stored), {cell for cell in stored if store.has_steps(cell)}
        standings = []
        for analysis in analyses:
            scopes = [[cell for cell in cells if cell in fit] for cells in asked[analysis.name]]
            kept = stepped if analysis.per_step else whole
            standings.append(Standing(analysis.name, tuple(Progress.of(cells, kept) for cells in scopes)))
        return cls(stored, tuple(standings))
