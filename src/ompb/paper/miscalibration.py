"""A posterior that is too sure or not sure enough: its variance scaled, its mean left as it is.

The variance of the heads enters the disagreement, and so the certificate. Its scale tau_d is read off the source under
the same variance, so that much of the factor cancels; intervals are set by the errors themselves and need not follow.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.store import Cell, Result, Steps
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.association import association
from ompb.paper.decomposition import Decomposition
from ompb.paper.drawing import course, rounded
from ompb.paper.grid import OMPB, STAND_IN, Spot, with_options
from ompb.paper.places import TCN, keys_of, live, number
from ompb.paper.tally import made_from, missing

NAME, TITLE = "miscalibration", "A posterior too sure, or not sure enough"
HORIZON = 24
SCALES = (0.0625, 0.25, 1.0, 4.0, 16.0)  # on the posterior variance
DRAWN = {"value": "Certificate", "target_disagreement": "Disagreement"}  # signals down the stream


def _places(scope: Scope) -> list[Spot]:
    where = (
        [("etth", "ood")] if scope.quick else [("etth", "id"), ("etth", "ood"), ("ili", "ood"), (STAND_IN, "ood_far")]
    )
    return [Spot(dataset, TCN, HORIZON, split) for dataset, split in where]


def _cell(place: Spot, scale: float) -> Cell:
    return live(place, OMPB if scale == 1 else with_options(OMPB, posterior_scale=scale))


def cells(scope: Scope) -> list[Cell]:
    """Every scale on every stream, one seed."""
    return [_cell(place, scale) for place in _places(scope) for scale in SCALES]


def reduce(runs: Runs, scope: Scope) -> Finding:
    """Certificate, disagreement, coverage and error by scale, and the first two down the stream."""
    found = runs.found(cells(scope))
    by_cell = {result.cell: result for result in found}
    lines: list[tuple[str, ...]] = []
    figures: list[Figure] = []
    for place in _places(scope):
        here = {
            scale: (by_cell[cell], steps)
            for scale in SCALES
            if (cell := _cell(place, scale)) in by_cell and (steps := runs.steps(cell)) is not None
        }
        if here:
            lines += [(*keys_of(place), f"{scale:g}", *_numbers(*kept)) for scale, kept in here.items()]
            figures.append(_figure(place, here))
    text = (
        "The factor is on the variance of the heads, whose means are left as they are. The scale of the disagreement "
        "is read off the source under the same variance, so that much of the factor cancels; the intervals keep their "
        "coverage from the errors themselves."
    )
    words = " ".join(filter(None, [text, missing(cells(scope), found)]))
    return Finding(NAME, TITLE, words, (_section(lines),), tuple(figures), made_from(found))


def _numbers(result: Result, steps: Steps) -> tuple[str, ...]:
    part = Decomposition.of(steps)
    ranked = association(steps["value"], steps["mae"])
    return (
        number(part.median_value),
        number(part.median_source_risk),
        number(float(np.median(steps["source_disagreement"]))),
        number(float(np.median(steps["target_disagreement"]))),
        number(float(np.median(steps["disagreement"]))),
        number(ranked.spearman if ranked else None),
        *(number(result.metrics.get(metric)) for metric in ("coverage80", "coverage95", "width80", "mae")),
    )


def _section(lines: list[tuple[str, ...]]) -> Section:
    return Section(
        "By the factor on the posterior variance",
        (
            "Medians over the stream: value, source risk, disagreement on the source and on the stream, and its rise. "
            "rho: Spearman's between value and MAE. Coverage and width are those of the intervals. Seed 0.",
        ),
        (
            "data", "backbone", "H", "split", "factor", "value", "source risk", "D source", "D stream", "rise", "rho",
            "coverage 80", "coverage 95", "width 80", "MAE",
        ),
        tuple(lines),
        keys=5,
    )  # fmt: skip


def _figure(place: Spot, here: Mapping[float, tuple[Result, Steps]]) -> Figure:
    panels = [
        Panel(title, "row", title.lower(), tuple(course(f"x {scale:g}", steps["origin"], steps[name])
                                                 for scale, (_, steps) in here.items()))
        for name, title in DRAWN.items()
    ]  # fmt: skip
    scales = tuple(f"{scale:g}" for scale in here)
    covered = tuple(
        Curve(f"{level} %", scales, rounded([result.metrics.get(f"coverage{level}", np.nan)
                                             for result, _ in here.values()]), "bars")
        for level in (80, 95)
    )  # fmt: skip
    panels.append(Panel("Coverage of the whole stream", "factor on the variance", "coverage", covered))
    return Figure(
        f"miscalibration-{place.dataset}-{place.split}",
        f"{place.dataset}, {place.split}, {place.backbone}, H = {place.horizon}",
        "Points are means over neighbouring rows where there are many.",
        tuple(panels),
    )


ANALYSIS = Analysis(NAME, TITLE, ("posterior_miscalibration_diagnostics",), cells, reduce, per_step=True)
