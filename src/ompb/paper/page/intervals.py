"""What the intervals promise and what they keep, under the honest protocol."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST
from ompb.paper.page.compared import OURS, Grid

INTERVALS = {
    "coverage80": "80% coverage",
    "coverage95": "95% coverage",
    "width80": "80% width",
    "width95": "95% width",
    "crps": "CRPS",
    "nll": "NLL",
    "ece": "ECE",
}


def coverage(grid: Grid) -> Section:
    """How often outcomes lie inside the intervals of ``ompb``, from the worst place to the best."""
    levels: dict[tuple[str, int], dict[str, list[float]]] = {}
    for (place, protocol, method), seeds in grid.cells.items():
        if (protocol, method) == (HONEST, OURS):
            found = levels.setdefault((place.dataset, place.horizon), {"coverage80": [], "coverage95": []})
            for name, values in found.items():
                values += [metrics[name] for metrics in seeds.values() if name in metrics]
    return Section(
        title=f"Coverage of the intervals of `{OURS}`",
        notes=(
            "The share of outcomes inside, in the cell where it is lowest, in the mean, and where it is highest, over "
            "backbones, splits and seeds. At long horizons, and on ILI, few outcomes of the far leads are known "
            "before the stream ends.",
        ),
        headings=("data set", "horizon", "cells", "80 %: lowest", "mean", "highest", "95 %: lowest", "mean", "highest"),
        lines=tuple(
            (
                dataset,
                str(horizon),
                str(len(found["coverage80"])),
                *_range(found["coverage80"]),
                *_range(found["coverage95"]),
            )
            for (dataset, horizon), found in sorted(levels.items())
            if found["coverage80"] and found["coverage95"]
        ),
        keys=2,
    )


def _range(values: Sequence[float]) -> tuple[str, str, str]:
    return f"{min(values):.3f}", f"{statistics.fmean(values):.3f}", f"{max(values):.3f}"


def intervals(grid: Grid, title: str) -> Section:
    """Coverage, widths and scores of every method that has intervals."""
    found: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for (place, protocol, method), seeds in sorted(grid.cells.items()):
        if protocol == HONEST:
            cells = [metrics for metrics in seeds.values() if "coverage80" in metrics]
            if cells:
                found.setdefault((place.backbone, method), []).extend(cells)
    return Section(
        title=title,
        notes=(
            "Means over the cells in which a method has run; where cells differ, so does their difficulty. Coverage "
            "should be what the interval promises; widths and CRPS are in standard deviations of the source; ECE is "
            "the mean distance of coverage from promise. A method that gives no density has no CRPS and no NLL.",
        ),
        headings=("backbone", "method", "cells", *INTERVALS.values()),
        lines=tuple(
            (backbone, method, str(len(cells)), *_means(cells)) for (backbone, method), cells in sorted(found.items())
        ),
        keys=2,
    )


def _means(cells: Sequence[Mapping[str, float]]) -> Iterable[str]:
    for metric in INTERVALS:
        values = [metrics[metric] for metrics in cells if metric in metrics]
        yield f"{statistics.fmean(values):.3f}" if values else ""
