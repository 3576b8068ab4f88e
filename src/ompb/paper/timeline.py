"""The certificate down a stream, beside the disagreement, the novelty, the severity of the shift and the error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.bench.findings import Figure, Finding, Panel, Section
from ompb.bench.store import Cell, Steps
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.drawing import course
from ompb.paper.grid import OMPB, ORIGINAL, STAND_IN, Spot
from ompb.paper.places import TCN, keys_of, live, number
from ompb.paper.severity import MEASURES, Severities, Severity
from ompb.paper.tally import made_from, missing
from ompb.types import Floats

NAME, TITLE = "timeline", "The certificate down the stream"
HORIZON = 24
QUARTERS = 4
SHOWN = {"value": "certificate", "disagreement": "disagreement", "novelty": "novelty"}  # and as tables show them
HEADINGS = {**SHOWN, **MEASURES, "mae": "MAE", "bare": "MAE, bare"}
PANELS = (
    ("Certificate", "proxy risk", {"value": "certificate", "source_risk": "source risk"}),
    ("Disagreement", "above the source's", {"disagreement": "disagreement"}),
    ("Novelty", "mean over channels", {"novelty": "novelty"}),
    ("Shift severity", "newest rows against the source", MEASURES),
    ("Error", "MAE", {"mae": "issued", "bare": "bare forecaster", "expected_error": "expected before the outcome"}),
)

Columns: TypeAlias = Mapping[str, tuple[NDArray[np.int64], Floats]]  # origins and values


def _places(scope: Scope) -> list[Spot]:
    where = [("etth", "ood")] if scope.quick else [("etth", "ood"), ("ili", "ood"), (STAND_IN, "ood_far")]
    return [Spot(dataset, TCN, HORIZON, split) for dataset, split in where]


def cells(scope: Scope) -> list[Cell]:
    """Our method, and the bare forecaster, whose error is the paper's."""
    return [live(place, method) for place in _places(scope) for method in (OMPB, ORIGINAL)]


def reduce(runs: Runs, scope: Scope) -> Finding:
    """A figure for each stream, and the mean of every signal over each quarter of it."""
    found, severities = runs.found(cells(scope)), Severities()
    figures: list[Figure] = []
    lines: list[tuple[str, ...]] = []
    for place in _places(scope):
        steps, bare = runs.steps(live(place)), runs.steps(live(place, ORIGINAL))
        if steps is not None:
            severity = severities.of(place.dataset, place.split)
            columns = _columns(steps, bare, severity)
            figures.append(_figure(place, columns))
            lines += _quarters(place, columns)
    text = (
        "The certificate, its disagreement and the novelty are known before the outcome; the severity reads inputs and "
        "is not used by the method. The errors are those of the forecasts issued at the same row."
    )
    lacking = [missing(cells(scope), found), *severities.absent]
    return Finding(
        NAME, TITLE, " ".join([text, *filter(None, lacking)]), (_section(lines),), tuple(figures), made_from(found)
    )


def _columns(steps: Steps, bare: Steps | None, severity: Severity | None) -> Columns:
    """Origins and values of everything that is shown, by name."""
    origins = steps["origin"]
    found = {name: (origins, steps[name]) for name in (*SHOWN, "source_risk", "expected_error", "mae") if name in steps}
    if bare is not None:
        found["bare"] = bare["origin"], bare["mae"]
    if severity is not None:
        found |= {name: (severity.origins, values) for name, values in severity.measures.items()}
    return found


def _figure(place: Spot, columns: Columns) -> Figure:
    panels = []
    for title, label, names in PANELS:
        curves = [course(shown, *columns[name]) for name, shown in names.items() if name in columns]
        if curves:
            panels.append(Panel(title, "row", label, tuple(curves)))
    return Figure(
        f"timeline-{place.dataset}-{place.split}",
        f"{place.dataset}, {place.split}, {place.backbone}, H = {place.horizon}",
        "Every panel runs over the rows of the stream. Points are means over neighbouring rows where there are many.",
        tuple(panels),
    )


def _quarters(place: Spot, columns: Columns) -> list[tuple[str, ...]]:
    """The mean of each column over each quarter of the rows that were forecast."""
    origins, _ = columns["mae"]
    edges = np.linspace(origins[0], origins[-1] + 1, QUARTERS + 1)
    lines = []
    for quarter in range(QUARTERS):
        means = []
        for name in HEADINGS:
            rows, values = columns.get(name, (origins[:0], np.empty(0)))
            inside = values[(rows >= edges[quarter]) & (rows < edges[quarter + 1])]
            means.append(number(float(np.mean(inside))) if len(inside) else "")
        lines.append((*keys_of(place), str(quarter + 1), *means))
    return lines


def _section(lines: list[tuple[str, ...]]) -> Section:
    return Section(
        "Means over the quarters of a stream",
        (
            "Certificate, disagreement (above that of the source) and novelty as issued; KS, Wasserstein, JS and MMD "
            "between the newest window and the source; MAE of what was issued and of the bare forecaster. Seed 0.",
        ),
        ("data", "backbone", "H", "split", "quarter", *HEADINGS.values()),
        tuple(lines),
        keys=5,
    )


ANALYSIS = Analysis(
    NAME, TITLE, ("cert_shift_timeseries_main", "cert_shift_timeseries_appendix"), cells, reduce, per_step=True
)
