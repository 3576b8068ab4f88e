"""How ``ompb`` stands against each kind of rival, at every place, as one picture."""

from __future__ import annotations

from ompb.bench.findings import Curve, Figure, Panel
from ompb.paper.drawing import rounded
from ompb.paper.grid import OMPB
from ompb.paper.page.compared import Grid
from ompb.paper.page.standing import best_of_each_kind

CAPTION = (
    f"The MAE of `{OMPB}` relative to that of the best rival of a kind, in order: below 1 `{OMPB}` is better, and "
    "where a curve crosses 1 tells in which share of the places. A place is a backbone, horizon and split."
)


def picture(grid: Grid) -> Figure:
    """A panel for each data set in which a rival has run."""
    panels = (
        Panel(dataset, "share of the places, %", f"MAE of {OMPB} / rival's", _curves(grid.of_dataset(dataset)))
        for dataset in grid.datasets
    )
    kept = tuple(panel for panel in panels if panel.curves)
    return Figure("against-each-kind", f"`{OMPB}` against each kind of rival, place by place", CAPTION, kept)


def _curves(grid: Grid) -> tuple[Curve, ...]:
    """The ratios of each kind from the smallest to the largest, each in the middle of its share."""
    curves = []
    for kind, found in best_of_each_kind(grid).items():
        ratios = sorted(one.ratio for one in found if one.ratio is not None)
        shares = tuple(round(100 * (place + 0.5) / len(ratios), 2) for place in range(len(ratios)))
        curves.append(Curve(kind, shares, rounded(ratios)))
    return tuple(curves)
