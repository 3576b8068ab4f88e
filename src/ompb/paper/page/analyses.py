"""Every analysis by name: what it stands beside in the paper, how many cells it needs, and how long they took."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from ompb.bench.findings import Section
from ompb.errors import FormatError
from ompb.paper.analysis import Scope
from ompb.paper.catalogue import ANALYSES

UNMEASURED = "not measured"


def read_times(path: Path) -> dict[str, str]:
    """How long each analysis took, in words, from a CSV with analysis, scope, machine and time; none without it."""
    if not path.exists():
        return {}
    times: dict[str, list[str]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                words = f"{line['scope']}: {line['time']} on {line['machine']}"
                times.setdefault(line["analysis"], []).append(words)
    except KeyError as error:
        raise FormatError(
            f"{path} is not a table of times ({error}); its columns are analysis, scope, machine, time."
        ) from error
    return {name: "; ".join(found) for name, found in times.items()}


def analyses_table(times: Mapping[str, str]) -> Section:
    """One line per analysis of the catalogue."""
    return Section(
        title="Analyses",
        notes=(),
        headings=("name", "what", "in the paper", "cells", "quick", "time"),
        lines=tuple(
            (
                f"`{analysis.name}`",
                analysis.title,
                ", ".join(analysis.printed) or "not there",
                str(len(analysis.cells(Scope()))),
                str(len(analysis.cells(Scope(quick=True)))),
                times.get(analysis.name, UNMEASURED),
            )
            for analysis in ANALYSES
        ),
        keys=3,
    )
