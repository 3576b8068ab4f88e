"""The page of results: how the methods fare under the honest protocol and beside the paper, then every table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.standing import default_method, every_method, intervals
from ompb.bench.store import Result
from ompb.bench.tables import (
    IN_PAPER,
    ORIGINAL,
    PRESET,
    TABLES,
    Place,
    Printed,
    make_table,
    paper_backbone,
    printed_numbers,
    render,
)
from ompb.errors import OptionError

COMPARED = ("solid", "onenet", "proceed", PRESET)  # the methods of the paper's tables
FAR = 0.15  # relative difference from the paper's MAE that is worth a line

HEAD = """# Results

Made from `results/cells.csv` by `ompb bench page --paper DIR --notes results/notes.md`; the cells were run by
`ompb bench run` and exported by `ompb bench export`. Errors are in standard deviations of the source. Protocol *honest*
is what a deployment has; *one-step*, that of the paper's main tables, shows a method the complete outcome of each
forecast one step after it was issued, that is H - 1 of the H rows its next forecast is scored on. The row *copy*, which
adds the last residual it was shown, tells how much that is worth.
"""
DIFFERENCES = f"""## Where the paper's baselines and ours differ

Listed is the MAE, mean over seeds, where it lies more than {FAR:.0%} from the paper's; the last column is the same
ratio of the bare backbone.
"""


def results_page(results: Sequence[Result], paper: Path | None, notes: str = "") -> str:
    """Markdown of everything there is, with notes on what the numbers do not say."""
    if not results:
        raise OptionError("there is no finished cell; run some with `ompb bench run` first.")
    differences = _differences(results, paper) if paper is not None else ""
    parts = [HEAD, _made_by(results), notes, default_method(results), every_method(results), differences]
    parts += [intervals(results), _tables(results, paper)]
    return "\n".join(part for part in parts if part)


def _made_by(results: Sequence[Result]) -> str:
    """Commits, devices and versions behind the cells."""
    made: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        versions = ", ".join(f"{name} {number}" for name, number in sorted(result.versions.items()))
        made.setdefault((result.commit or "unknown", result.device, versions), []).append(result)
    lines = [
        (*by, ", ".join(sorted({result.cell.dataset for result in found})), str(len(found)))
        for by, found in sorted(made.items())
    ]
    headings = ("commit", "device", "versions", "data sets", "cells")
    return render([Section("What made the cells", (), headings, tuple(lines))], "markdown") + "\n"


def _differences(results: Sequence[Result], paper: Path) -> str:
    """Where our run of a method of the paper is far from the number it prints."""
    sections = []
    for table, (dataset, *_) in TABLES.items():
        printed = printed_numbers(paper, table)
        for protocol in (ONE_STEP, HONEST):
            cells = [r for r in results if (r.cell.dataset, r.cell.protocol) == (dataset, protocol)]
            both = _beside_paper(cells, printed)
            if any(method in COMPARED for *_, method in both):
                sections.append(_far_section(f"{dataset}, protocol {protocol}", both))
    return f"{DIFFERENCES}\n{render(sections, 'markdown')}\n" if sections else ""


def _beside_paper(results: Iterable[Result], printed: Printed) -> dict[Place, tuple[float, float]]:
    """Our MAE, mean over seeds, and the paper's, where there are both."""
    ours: dict[Place, list[float]] = {}
    for result in results:
        cell = result.cell
        ours.setdefault((cell.backbone, cell.horizon, cell.split, cell.method), []).append(result.metrics["mae"])
    both = {}
    for (backbone, horizon, split, method), found in ours.items():
        theirs = printed.get((paper_backbone(backbone), horizon, split, IN_PAPER.get(method, method), "mae"))
        if theirs:
            both[backbone, horizon, split, method] = statistics.fmean(found), float(theirs)
    return both


def _far_section(title: str, both: Mapping[Place, tuple[float, float]]) -> Section:
    ratios = {place: ours / theirs for place, (ours, theirs) in both.items()}
    compared = sorted(place for place in both if place[3] in COMPARED)
    far = [place for place in compared if abs(ratios[place] - 1) > FAR]
    lines = []
    for place in far:
        backbone, horizon, split, method = place
        ours, theirs = both[place]
        bare = ratios.get((backbone, horizon, split, ORIGINAL))
        numbers = (f"{ours:.4f}", f"{theirs:.4f}", f"{ratios[place]:.3f}", "" if bare is None else f"{bare:.3f}")
        lines.append((backbone, str(horizon), split, method, *numbers))
    return Section(
        title=title,
        notes=(f"{len(far)} of {len(compared)} lie more than {FAR:.0%} from the paper's MAE.",),
        headings=("backbone", "horizon", "split", "method", "ours", "paper", "ratio", f"ratio of `{ORIGINAL}`"),
        lines=tuple(lines),
    )


def _tables(results: Sequence[Result], paper: Path | None) -> str:
    """Every table that has a line."""
    made = [make_table(name, results, paper) for name in TABLES]
    drawn = [render(sections, "markdown") for sections in made if any(section.lines for section in sections)]
    return "\n\n".join(("## Every table", *drawn)) + "\n" if drawn else ""
