"""Errors against the horizon: a panel for each backbone and split, with what a reader looks for first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ompb.bench.findings import Curve, Figure, Panel
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.paper.beside import Measured, Place
from ompb.paper.drawing import rounded
from ompb.paper.grid import NO_PROFILE, OMPB, ORIGINAL, PRESET, Spot

Printed: TypeAlias = Callable[[Spot], float | None]  # what the paper has for its own method, if it is of these data

PAPER = f"the paper's OMPB, {ONE_STEP}"
CAPTION = (
    f"Mean absolute errors, means over the seeds that all curves of ours have. {ONE_STEP} is a leak: it shows a method "
    "H - 1 of the H rows it is scored on."
)


def drawn(dataset: str) -> dict[str, tuple[str, str]]:
    """Protocol and method of each curve, by its name: of all that has run with every seed."""
    trivial = "last" if dataset in NO_PROFILE else "profile"
    honest = {name: (HONEST, name) for name in (OMPB, ORIGINAL, trivial, PRESET)}
    return honest | {f"{PRESET}, {ONE_STEP}": (ONE_STEP, PRESET)}


def by_horizon(table: str, dataset: str, measured: Measured, printed: Printed) -> Figure:
    """Of a data set; panels are those of backbones and splits that have run at two horizons or more."""
    spots = sorted({place.spot for place in measured.results if place.spot.dataset == dataset})
    streams = dict.fromkeys((spot.backbone, spot.split) for spot in spots)
    panels = (
        _panel([spot for spot in spots if (spot.backbone, spot.split) == stream], measured, printed)
        for stream in streams
    )
    return Figure(
        f"{table}-{dataset}-horizons",
        f"Errors on {dataset} against the horizon",
        CAPTION,
        tuple(panel for panel in panels if panel.curves),
    )


def _panel(spots: Sequence[Spot], measured: Measured, printed: Printed) -> Panel:
    curves = [
        *(_curve(name, spots, means) for name, means in _means(spots, measured).items()),
        _curve(PAPER, spots, [printed(spot) for spot in spots]),
    ]
    title = f"{spots[0].backbone}, {spots[0].split}"
    return Panel(title, "horizon", "MAE", tuple(curve for curve in curves if len(curve.x) > 1))


def _means(spots: Sequence[Spot], measured: Measured) -> dict[str, list[float | None]]:
    """Of every curve at each spot, over the seeds that those have that have run there."""
    places = {name: [Place(spot, *what) for spot in spots] for name, what in drawn(spots[0].dataset).items()}
    seeds = [measured.common_seeds(at_spot) for at_spot in zip(*places.values(), strict=True)]
    return {
        name: [measured.mean(place, "mae", those) for place, those in zip(there, seeds, strict=True)]
        for name, there in places.items()
    }


def _curve(name: str, spots: Sequence[Spot], errors: Sequence[float | None]) -> Curve:
    """At the horizons where there is a number; what has diverged leaves a gap."""
    if sum(error is not None for error in errors) < 2:
        return Curve(name, (), ())
    y = rounded([math.nan if error is None else error for error in errors])
    return Curve(name, tuple(str(spot.horizon) for spot in spots), y)
