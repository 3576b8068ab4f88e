"""What the certificate is made of, kind by kind, and how it compares with the proxy risk that came.

"In-sample" certificates read windows that the forecaster was trained on; "unseen" ones come with a forecaster that was
trained on the first three quarters of the source and are read on the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.store import Cell, Steps
from ompb.datasets.splits import ID
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Doubts
from ompb.paper.decomposition import Decomposition, realised_proxy
from ompb.paper.drawing import picked, rounded
from ompb.paper.grid import OMPB, STAND_IN, Spot, paper_backbone, paper_dataset, with_options
from ompb.paper.places import NOT_PAPERS, keys_of, live, number, places, ratio
from ompb.paper.prefixes import below_from, gammas, running_means
from ompb.paper.printed import diagnostics
from ompb.paper.tally import made_from, missing
from ompb.types import Floats

NAME, TITLE = "proxy", "The certificate, term by term"
PRINTED = "reg_proxy_full_cert"
IID, BETTING = "iid", "betting"
KINDS = (BETTING, "freedman", "subgamma", IID)
UNSEEN = 0.25
UNSEEN_BACKBONE = "tcn@unseen"
COUNTS = (10, 30, 100)  # windows at which Gamma is shown
LEAST_WINDOWS = 10  # a curve of fewer says nothing


def _method(kind: str, place: Spot) -> str:
    """Betting is our own kind and goes without saying."""
    options = {} if kind == BETTING else {"kind": kind}
    return with_options(OMPB, **options, **({"unseen": UNSEEN} if place.backbone == UNSEEN_BACKBONE else {}))


def _of_paper(scope: Scope) -> list[Spot]:
    """The four settings of the paper's table."""
    found = [Spot("etth", "tcn", 96, "ood"), Spot("ili", scope.gpt4ts, 48, "ood")]
    return found + [Spot(STAND_IN, "autoformer", 96, split) for split in ("ood_near", "ood_far")]


def _places(scope: Scope) -> list[Spot]:
    own = places(scope) + places(scope, UNSEEN_BACKBONE)
    return own if scope.quick else list(dict.fromkeys(own + _of_paper(scope)))


def cells(scope: Scope) -> list[Cell]:
    """Every kind at every place, one seed: what differs between kinds is Gamma alone."""
    return [live(place, _method(kind, place)) for place, kind in product(_places(scope), KINDS)]


def reduce(runs: Runs, scope: Scope) -> Finding:
    """The parts of the certificate, the full bounds beside the paper's, and Gamma against the number of windows."""
    found = runs.found(cells(scope))
    steps = {result.cell: kept for result in found if (kept := runs.steps(result.cell)) is not None}
    parts = {cell: Decomposition.of(kept) for cell, kept in steps.items()}
    streams = [place for place in _places(scope) if live(place, _method(BETTING, place)) in steps]
    curved = [place for place in streams if _has_curve(place, steps)]
    sections = [_parts(_places(scope), parts), _beside_paper(_of_paper(scope), parts), _gamma_table(curved, steps)]
    figures = [_figure(place, curved, steps, parts) for place in curved if place.split == ID]
    return Finding(NAME, TITLE, _text(parts, missing(cells(scope), found)), tuple(sections), tuple(figures),
                   made_from(found))  # fmt: skip


def _text(parts: Mapping[Cell, Decomposition], lacking: str) -> str:
    words = [
        "The certificate is source risk plus Gamma plus half of what the disagreement has risen. It bounds the "
        "realised proxy risk only as far as risk less half the disagreement is what it was on the source."
    ]
    if parts:
        held = sum(part.slack >= 0 for part in parts.values())
        words.append(f"Its mean lay above the mean realised proxy risk on {held} of {len(parts)} runs.")
    return " ".join([*words, lacking]).strip()


def _parts(where: list[Spot], parts: Mapping[Cell, Decomposition]) -> Section:
    lines = []
    for place, kind in product(where, KINDS):
        part = parts.get(live(place, _method(kind, place)))
        if part is not None:
            numbers = (
                part.median_value, part.median_source_risk, part.median_gamma, part.median_half_disagreement,
                part.target_risk, part.slack,
            )  # fmt: skip
            above = f"{part.share_above:.1%}"
            lines.append((*keys_of(place), _seen(place), kind, *map(number, numbers), above, str(part.forecasts)))
    return Section(
        "What the certificate is made of",
        (
            "Value and parts are medians over forecasts; realised proxy risk and slack (value less realised) means.",
            "Above: share of the forecasts whose realised proxy, min(1, MSE / tau_y^2), lay above the value.",
            "In-sample: the forecaster was trained on the certificate windows, so the source risk is optimistic.",
            "A value of 1 or more says nothing: a source that gives few windows, as that of ILI, ends there.",
            "Seed 0; labels are shown as they mature.",
        ),
        (
            "data", "backbone", "H", "split", "windows", "kind", "value", "source risk", "Gamma", "disagreement / 2",
            "realised", "slack", "above", "n",
        ),
        tuple(lines),
        keys=6,
    )  # fmt: skip


def _seen(place: Spot) -> str:
    return "unseen" if place.backbone == UNSEEN_BACKBONE else "in-sample"


def _beside_paper(where: list[Spot], parts: Mapping[Cell, Decomposition]) -> Section:
    printed = diagnostics(PRINTED)
    lines, doubts = [], Doubts()
    for place in where:
        subject = f"{paper_backbone(place.backbone)}/H{place.horizon}/{place.split}"
        ours = {kind: parts.get(live(place, _method(kind, place))) for kind in KINDS}
        for metric, kind in _PRINTED_METRICS:
            theirs = printed[paper_dataset(place.dataset), subject, metric]
            part = ours[kind]
            value = None if part is None else part.target_risk if metric == "target_proxy_risk" else part.full
            words = "realised proxy risk" if metric == "target_proxy_risk" else f"full bound, {kind}"
            lines.append(
                (*keys_of(place), words, number(value, 4), doubts.shown(theirs), ratio(place.dataset, value, theirs))
            )
    return Section(
        "Realised proxy risk and full bounds beside the paper's",
        (
            "The full bound contains the mismatch that is left over once outcomes are known, so it cannot fail.",
            "The paper does not print its tau_y: a realised risk near 1 means that nearly every loss is clipped.",
            "Its martingale bound stands beside ours by Freedman's inequality and by betting.",
            NOT_PAPERS,
            *doubts.notes(),
        ),
        ("data", "backbone", "H", "split", "quantity", "ours", "paper", "ratio"),
        tuple(lines),
        keys=5,
    )


_PRINTED_METRICS = (
    ("target_proxy_risk", BETTING),
    ("full_mart_bound", BETTING),
    ("full_mart_bound", "freedman"),
    ("full_iid_bound", IID),
)


def _losses(place: Spot, steps: Mapping[Cell, Steps]) -> Floats:
    """Realised proxies of every H-th forecast, whose outcomes do not overlap, in time order."""
    return realised_proxy(steps[live(place, _method(BETTING, place))])[:: place.horizon]


def _has_curve(place: Spot, steps: Mapping[Cell, Steps]) -> bool:
    return len(_losses(place, steps)) >= LEAST_WINDOWS


def _gamma_table(streams: list[Spot], steps: Mapping[Cell, Steps]) -> Section:
    lines = []
    for place in streams:
        losses = _losses(place, steps)
        rival = gammas(IID, losses)
        for kind in KINDS:
            own = gammas(kind, losses)
            shown = [number(own[count - 1]) if count <= len(own) else "" for count in COUNTS]
            first = "" if kind == IID else str(below_from(own, rival) or "never")
            lines.append((*keys_of(place), kind, *shown, number(float(own[-1])), str(len(own)), number(losses.mean()),
                          number(losses.std()), first))  # fmt: skip
    return Section(
        "Gamma against the number of windows",
        (
            "Gamma of the first m realised proxies of every H-th forecast, in time order, delta = 0.05, no KL.",
            "Below i.i.d. from: the number of windows from which on the kind stays below the term for independent "
            "windows, which overlooks that windows depend on each other.",
        ),
        (
            "data", "backbone", "H", "split", "kind", *(f"m = {count}" for count in COUNTS), "all", "m", "mean loss",
            "sd", "below i.i.d. from",
        ),
        tuple(lines),
        keys=5,
    )  # fmt: skip


def _figure(
    home: Spot, streams: list[Spot], steps: Mapping[Cell, Steps], parts: Mapping[Cell, Decomposition]
) -> Figure:
    """Gamma on the losses of the stream at home, and the full bound of every stream with it."""
    losses = _losses(home, steps)
    kept, risks = picked(len(losses)), running_means(losses)
    counts = tuple(float(place + 1) for place in kept)
    by_kind = {kind: gammas(kind, losses) for kind in KINDS}
    alike = [
        place
        for place in streams
        if (place.dataset, place.backbone, place.horizon) == (home.dataset, home.backbone, home.horizon)
    ]
    panels = [_panel("Gamma", "Gamma", [Curve(kind, counts, rounded(by_kind[kind][kept])) for kind in KINDS])]
    for place in alike:
        part = parts[live(place, _method(BETTING, place))]
        curves = [Curve(kind, counts, rounded(part.full_with(risks, by_kind[kind])[kept])) for kind in KINDS]
        level = Curve("realised", counts, rounded(np.full(len(kept), part.target_risk)))
        panels.append(_panel(f"Full bound, {place.split}", "proxy risk", [*curves, level]))
    name = f"proxy-{home.dataset}-{home.backbone}-{home.horizon}".replace("@", "")
    return Figure(
        name,
        f"Bounds against the number of windows, {home.dataset}, {home.backbone}, H = {home.horizon}",
        f"The first m realised proxies of every {home.horizon}th forecast of the stream at home stand for certificate "
        "windows. Where the mismatch is positive, the full bound is the realised risk plus Gamma.",
        tuple(panels),
    )


def _panel(title: str, y_label: str, curves: list[Curve]) -> Panel:
    return Panel(title, "windows m", y_label, tuple(curves))


ANALYSIS = Analysis(NAME, TITLE, (PRINTED, "reg_proxy_bound_curves"), cells, reduce, per_step=True)
