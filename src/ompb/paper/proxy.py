"""What the certificate is made of, kind by kind, and how it compares with the proxy risk that came.

"In-sample" certificates read windows that the forecaster was trained on; "unseen" ones come with a forecaster that was
trained on the first three quarters of the source and are read on the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from ompb.bench.findings import Finding, Section
from ompb.bench.store import Cell
from ompb.datasets.splits import ID
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import HINT, Doubts
from ompb.paper.decomposition import Decomposition
from ompb.paper.grid import OMPB, STAND_IN, Spot, paper_backbone, paper_dataset, with_options
from ompb.paper.places import NOT_PAPERS, keys_of, live, number, places, ratio
from ompb.paper.prefixes import windows_behind
from ompb.paper.printed import Number, diagnostics
from ompb.paper.tally import made_from, notes_on
from ompb.paper.tightness import BETTING, IID, KINDS, Series, bound_figures, gamma_section, not_drawn, tighter

NAME, TITLE = "proxy", "The certificate, term by term"
PRINTED = "reg_proxy_full_cert"
INTRODUCTION = (
    "The certificate is source risk plus Gamma plus half of what the disagreement has risen. It bounds the realised "
    "proxy risk only as far as risk less half the disagreement is what it was on the source."
)
SAYS_NOTHING = "A bound above 1 on a risk that is at most 1 says nothing."  # as of the printed ones that are
UNSEEN = 0.25
HOME = Spot(STAND_IN, "autoformer", 96, ID)  # of two of the paper's settings; that of ILI has too few windows
UNSEEN_BACKBONE = "tcn@unseen"


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
    return own if scope.quick else list(dict.fromkeys((*own, *_of_paper(scope), HOME)))


def cells(scope: Scope) -> list[Cell]:
    """Every kind at every place, one seed: what differs between kinds is Gamma alone."""
    return [live(place, _method(kind, place)) for place, kind in product(_places(scope), KINDS)]


def reduce(runs: Runs, scope: Scope) -> Finding:
    """The parts of the certificate, the full bounds beside the paper's, and Gamma against the number of windows."""
    found = runs.found(cells(scope))
    steps = {result.cell: kept for result in found if (kept := runs.steps(result.cell)) is not None}
    parts = {cell: Decomposition.of(kept) for cell, kept in steps.items()}
    ours = {place: cell for place in _places(scope) if (cell := live(place, _method(BETTING, place))) in steps}
    series = [Series.of(place, steps[cell]) for place, cell in ours.items()]
    long = [one for one in series if one.is_long]
    text = [
        INTRODUCTION,
        *_held(_places(scope), parts),
        *tighter(long),
        *not_drawn(series),
        *notes_on(cells(scope), found),
    ]
    sections = (_parts(_places(scope), parts), _beside_paper(_of_paper(scope), parts), gamma_section(long))
    return Finding(NAME, TITLE, " ".join(text), sections, bound_figures(long), made_from(found))


def _held(where: list[Spot], parts: Mapping[Cell, Decomposition]) -> list[str]:
    """On how many streams the certificate of each kind lay above what came, in the mean."""
    counts = []
    for kind in KINDS:
        slacks = [parts[cell].slack for place in where if (cell := live(place, _method(kind, place))) in parts]
        counts += [f"{kind} {sum(slack >= 0 for slack in slacks)} of {len(slacks)}"] if slacks else []
    return [f"Its mean lay above the mean realised proxy risk on so many runs: {', '.join(counts)}."] if counts else []


def _parts(where: list[Spot], parts: Mapping[Cell, Decomposition]) -> Section:
    lines = []
    for place, kind in product(where, KINDS):
        part, independent = (parts.get(live(place, _method(name, place))) for name in (kind, IID))
        if part is not None:
            numbers = (
                part.median_value, part.median_source_risk, part.median_gamma, part.median_half_disagreement,
                part.target_risk, part.slack,
            )  # fmt: skip
            above, behind = f"{part.share_above:.1%}", _windows_behind(independent)
            lines.append((*keys_of(place), _seen(place), kind, *map(number, numbers), above, behind,
                          str(part.forecasts)))  # fmt: skip
    return Section(
        "What the certificate is made of",
        (
            "Value and parts are medians over forecasts; realised proxy risk and slack (value less realised) means.",
            "Above: share of the forecasts whose realised proxy, min(1, MSE / tau_y^2), lay above the value.",
            "In-sample: the forecaster was trained on the certificate windows, so the source risk is optimistic.",
            "m: certificate windows, of which Gamma for independent windows tells the number.",
            "A value of 1 or more says nothing: a source that gives few windows, as that of ILI, ends there.",
            "Seed 0; labels are shown as they mature.",
        ),
        (
            "data", "backbone", "H", "split", "windows", "kind", "value", "source risk", "Gamma", "disagreement / 2",
            "realised", "slack", "above", "m", "n",
        ),
        tuple(lines),
        keys=6,
    )  # fmt: skip


def _windows_behind(independent: Decomposition | None) -> str:
    """Blank where the kind for independent windows has not run."""
    return "" if independent is None else str(windows_behind(independent.median_gamma))


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
            empty = value is not None and value > 1
            own = doubts.shown(Number(number(value, 4), SAYS_NOTHING if empty else None))
            shown = doubts.shown(theirs), "" if empty else ratio(place.dataset, value, theirs)
            lines.append((*keys_of(place), words, own, *shown))
    return Section(
        "Realised proxy risk and full bounds beside the paper's",
        (
            "The full bound contains the mismatch that is left over once outcomes are known, so it cannot fail.",
            "The paper does not print its tau_y: a realised risk near 1 means that nearly every loss is clipped.",
            "Its martingale bound stands beside ours by Freedman's inequality and by betting.",
            HINT,
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


ANALYSIS = Analysis(NAME, TITLE, (PRINTED, "reg_proxy_bound_curves"), cells, reduce, per_step=True)
