"""What the intervals promise and what they keep, under the honest protocol."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST
from ompb.paper.grid import OMPB
from ompb.paper.networks import DIVERGED
from ompb.paper.page.compared import Grid

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
        if (protocol, method) == (HONEST, OMPB):
            found = levels.setdefault((place.dataset, place.horizon), {"coverage80": [], "coverage95": []})
            for name, values in found.items():
                values += [result.metrics[name] for result in seeds.values() if name in result.metrics]
    return Section(
        title=f"Coverage of the intervals of `{OMPB}`",
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
    found: dict[tuple[str, str], _Cells] = {}
    for place, protocol, method in sorted(grid.cells):
        if protocol != HONEST:
            continue
        seeds = grid.cells[place, protocol, method]
        scored = {seed: result.metrics for seed, result in seeds.items() if "coverage80" in result.metrics}
        gone = grid.diverged(place, method)
        if scored or gone:
            cells = found.setdefault((place.backbone, method), _Cells())
            cells.kept += [metrics for seed, metrics in scored.items() if seed not in gone]
            cells.diverged += len(gone)
    return Section(
        title=title,
        notes=(
            "Means over the cells in which a method has run; where cells differ, so does their difficulty. Coverage "
            "should be what the interval promises; widths and CRPS are in standard deviations of the source; ECE is "
            "the mean distance of coverage from promise. A method that gives no density has no CRPS and no NLL. "
            f"Diverged: further cells, whose MAE is {DIVERGED:g} times that of the bare backbone or more; they are in "
            "no mean.",
        ),
        headings=("backbone", "method", "cells", "diverged", *INTERVALS.values()),
        lines=tuple((*by, *cells.words()) for by, cells in sorted(found.items())),
        keys=2,
    )


@dataclass(slots=True)
class _Cells:
    """Of a method around a backbone: the scores of what is a forecast, and how many cells are none."""

    kept: list[Mapping[str, float]] = field(default_factory=list)
    diverged: int = 0

    def words(self) -> Iterable[str]:
        """Counts and means, as a line has them."""
        yield str(len(self.kept))
        yield str(self.diverged or "")
        for metric in INTERVALS:
            values = [metrics[metric] for metrics in self.kept if metric in metrics]
            yield f"{statistics.fmean(values):.3f}" if values else ""
