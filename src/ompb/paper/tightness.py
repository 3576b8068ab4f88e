"""Which kind of complexity is the tightest, against the number of windows.

The losses are realised proxies of every H-th forecast of a stream, whose outcomes do not overlap, in time order; their
first m stand for m certificate windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ompb.bench.findings import Curve, Figure, Panel, Section
from ompb.bench.store import Steps
from ompb.datasets.splits import ID
from ompb.paper.decomposition import Decomposition, realised_proxy
from ompb.paper.drawing import picked, rounded
from ompb.paper.grid import Spot
from ompb.paper.places import keys_of, number
from ompb.paper.prefixes import below_from, gammas, running_means
from ompb.types import Floats

BETTING, IID = "betting", "iid"
KINDS = (BETTING, "freedman", "subgamma", IID)
COUNTS = (10, 30, 100)  # windows at which Gamma is shown
LEAST_WINDOWS = 10  # a curve of fewer says nothing


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """What a stream says of the kinds."""

    spot: Spot
    losses: Floats  # (m,)
    part: Decomposition

    @classmethod
    def of(cls, spot: Spot, steps: Steps) -> Series:
        """From what was kept step by step."""
        return cls(spot, realised_proxy(steps)[:: spot.horizon], Decomposition.of(steps))

    @property
    def is_long(self) -> bool:
        """Whether there are enough windows to look at."""
        return len(self.losses) >= LEAST_WINDOWS

    def gammas(self, kind: str) -> Floats:
        """Gamma of the first 1, 2, .. m losses: (m,)."""
        return gammas(kind, self.losses)

    def below_iid_from(self, kind: str) -> int | None:
        """The number of windows from which on a kind stays below the one for independent windows."""
        return below_from(self.gammas(kind), self.gammas(IID))


def tighter(series: Sequence[Series]) -> list[str]:
    """Where each kind is below the one for independent windows, in words."""
    if not series:
        return []
    words = []
    for kind in KINDS[:-1]:
        found = [one.below_iid_from(kind) for one in series]
        counts = [count for count in found if count is not None]
        never = f", on {len(found) - len(counts)} never" if len(counts) < len(found) else ""
        reach = f"{min(counts)} to {max(counts)} windows on" if counts else "no number of windows on"
        words.append(f"{kind} from {reach}{never}")
    streams = {(one.spot.dataset, one.spot.split) for one in series}
    losses = f"On {len(series)} series of losses (different streams: {len(streams)})"
    return [f"{losses} Gamma is below that for independent windows: {'; '.join(words)}."]


def not_drawn(series: Sequence[Series]) -> list[str]:
    """Which settings `bound_figures` has no curve of, in words."""
    short = sorted((one for one in series if not one.is_long), key=lambda one: len(one.losses))
    most = {one.spot.dataset: len(one.losses) for one in short}
    few = [f"{name}: at most {count}" for name, count in most.items()]
    long = [one for one in series if one.is_long]
    homeless = [one.spot for one in long if not any(other.spot.split == ID for other in _alike(one, long))]
    named = dict.fromkeys(f"{spot.dataset}, {spot.backbone}, H = {spot.horizon}" for spot in homeless)
    words = [f"streams of fewer than {LEAST_WINDOWS} windows ({'; '.join(few)})"] if few else []
    words += [f"forecasters whose stream at home has not run ({'; '.join(named)})"] if named else []
    return [f"There are no curves of {' and of '.join(words)}."] if words else []


def gamma_section(series: Sequence[Series]) -> Section:
    """Gamma at some numbers of windows."""
    lines = []
    for one in series:
        for kind in KINDS:
            own = one.gammas(kind)
            shown = [number(own[count - 1]) if count <= len(own) else "" for count in COUNTS]
            first = "" if kind == IID else str(one.below_iid_from(kind) or "never")
            losses = number(one.losses.mean()), number(one.losses.std())
            lines.append((*keys_of(one.spot), kind, *shown, number(own[-1]), str(len(own)), *losses, first))
    return Section(
        "Gamma against the number of windows",
        (
            "Gamma of the first m realised proxies of every H-th forecast, in time order, delta = 0.05, no KL.",
            "Confidence costs ln(1 / delta) by betting and, as in the paper, ln(2 sqrt(m) / delta) by the others.",
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


def bound_figures(series: Sequence[Series]) -> tuple[Figure, ...]:
    """Gamma on the losses of each stream at home, and with it the full bound of every stream alike."""
    return tuple(_figure(home, _alike(home, series)) for home in series if home.spot.split == ID)


def _alike(home: Series, series: Sequence[Series]) -> list[Series]:
    def same(one: Series) -> tuple[str, str, int]:
        return one.spot.dataset, one.spot.backbone, one.spot.horizon

    return [one for one in series if same(one) == same(home)]


def _figure(home: Series, alike: Sequence[Series]) -> Figure:
    kept, risks = picked(len(home.losses)), running_means(home.losses)
    counts = tuple(float(place + 1) for place in kept)
    by_kind = {kind: home.gammas(kind) for kind in KINDS}
    panels = [_panel("Gamma", "Gamma", [Curve(kind, counts, rounded(by_kind[kind][kept])) for kind in KINDS])]
    for one in alike:
        curves = [Curve(kind, counts, rounded(one.part.full_with(risks, by_kind[kind])[kept])) for kind in KINDS]
        level = Curve("realised", counts, rounded(np.full(len(kept), one.part.target_risk)))
        panels.append(_panel(f"Full bound, {one.spot.split}", "proxy risk", [*curves, level]))
    spot = home.spot
    return Figure(
        f"proxy-{spot.dataset}-{spot.backbone}-{spot.horizon}".replace("@", "-"),
        f"Bounds against the number of windows, {spot.dataset}, {spot.backbone}, H = {spot.horizon}",
        "The losses of the stream at home stand for certificate windows. Where the mismatch is positive, the full "
        "bound is the realised risk plus Gamma and, where the disagreement fell, half of that fall.",
        tuple(panels),
    )


def _panel(title: str, y_label: str, curves: list[Curve]) -> Panel:
    return Panel(title, "windows m", y_label, tuple(curves))
