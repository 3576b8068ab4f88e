"""The page of results: how the default method fares under the honest protocol, then every table."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ompb.bench.protocols import HONEST
from ompb.bench.store import Cell, Result
from ompb.bench.tables import ORIGINAL, TABLES, TRIVIAL, make_table, render
from ompb.errors import OptionError

DEFAULT = "ompb"
HARM = 1.01  # times the error of the bare backbone
Errors: TypeAlias = Mapping[str, float]  # MAE by method

HEAD = """# Results

Made from `results/cells.csv` by `ompb bench page`; the cells were run by `ompb bench run` and exported by
`ompb bench export`. Errors are in standard deviations of the source. Protocol *honest* is what a deployment has;
*one-step*, that of the paper's main tables, shows a method the complete outcome of each forecast one step after it was
issued, that is H - 1 of the H rows its next forecast is scored on. The row *copy*, which adds the last residual it was
shown, tells how much that is worth.
"""


def results_page(results: Sequence[Result], paper: Path | None) -> str:
    """Markdown of everything there is."""
    if not results:
        raise OptionError("there is no finished cell; run some with `ompb bench run` first.")
    parts = [HEAD, _made_by(results), _standing(results)]
    for name in TABLES:
        sections = make_table(name, results, paper)
        if any(section.lines for section in sections):
            parts.append(render(sections, "markdown"))
    return "\n".join(parts) + "\n"


def _made_by(results: Sequence[Result]) -> str:
    """Commits, devices and versions behind the cells."""
    commits = sorted({result.commit or "unknown" for result in results})
    devices = sorted({result.device for result in results})
    versions = sorted({f"{name} {number}" for result in results for name, number in result.versions.items()})
    return (
        f"{len(results)} cells; commit {', '.join(commit[:12] for commit in commits)}; "
        f"device {', '.join(devices)}; {', '.join(versions)}.\n"
    )


def _standing(results: Iterable[Result]) -> str:
    """How often the default method harms, and how often it beats each trivial reference, honest cells only."""
    cells = {cell: errors for cell, errors in _honest(results).items() if {DEFAULT, ORIGINAL} <= errors.keys()}
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


def _honest(results: Iterable[Result]) -> dict[Cell, Errors]:
    """MAE of each method, by the cell without its method."""
    found: dict[Cell, dict[str, float]] = {}
    for result in results:
        if result.cell.protocol == HONEST:
            place = dataclasses.replace(result.cell, method="")
            found.setdefault(place, {})[result.cell.method] = result.metrics["mae"]
    return dict(found)
