"""Every analysis by name: what it stands beside in the paper, how many cells it needs, and how long they took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ompb.bench.findings import Section
from ompb.bench.store import SECONDS, WINDOWS, Cell, Result
from ompb.paper.analysis import Scope
from ompb.paper.catalogue import ANALYSES

NOTE = (
    "Time: what the online steps of the cells took that have run and noted it, added up: N processes take about an "
    "N-th of it. Learning from the source, and training the backbones, is not in it."
)


def analyses_table(results: Sequence[Result]) -> Section:
    """One line per analysis of the catalogue."""
    return Section(
        title="Analyses",
        notes=(NOTE,),
        headings=("name", "what", "in the paper", "cells", "time", "quick", "time"),
        lines=tuple(
            (
                f"`{analysis.name}`",
                analysis.title,
                ", ".join(analysis.printed) or "not there",
                *_measured(analysis.cells(Scope()), results),
                *_measured(analysis.cells(Scope(quick=True)), results),
            )
            for analysis in ANALYSES
        ),
        keys=3,
    )


def _measured(cells: Sequence[Cell], results: Iterable[Result]) -> tuple[str, str]:
    """How many cells there are, and what those took that have run and say so."""
    asked = set(cells)
    seconds = [
        result.timing[SECONDS] * result.facts[WINDOWS]
        for result in results
        if result.cell in asked and SECONDS in result.timing and WINDOWS in result.facts
    ]
    return str(len(cells)), f"{len(seconds)} in {sum(seconds) / 60:.0f} min" if seconds else ""
