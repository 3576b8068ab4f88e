"""Forecasts to look at: one from the middle of each stream, with the bare forecast, the 80 % band and the outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.steps import SHOWN_LEVEL
from ompb.bench.store import Cell, Steps
from ompb.datasets.benchmark import BenchmarkData
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.drawing import picked, rounded
from ompb.paper.grid import SPLITS, STAND_IN, Spot
from ompb.paper.places import TCN, data_at_hand, keys_of, live, number
from ompb.paper.tally import made_from, missing
from ompb.rows.scaler import Scaler
from ompb.types import Floats

NAME, TITLE = "examples", "Forecasts to look at"
HORIZONS = (24, 96, 336)
DRAWN = 1  # of the three that are kept: the one half way down the stream
CHANNEL = 0


def _places(scope: Scope) -> list[Spot]:
    if scope.quick:
        return [Spot("etth", TCN, 24, split) for split in SPLITS["etth"]]
    return [Spot(STAND_IN, scope.gpt4ts, horizon, split) for horizon in HORIZONS for split in SPLITS[STAND_IN]]


def cells(scope: Scope) -> list[Cell]:
    """Our method, one seed."""
    return [live(place) for place in _places(scope)]


def reduce(runs: Runs, scope: Scope) -> Finding:
    """A figure for each horizon with a panel for each stream, and the errors of all forecasts that were kept."""
    found = runs.found(cells(scope))
    dataset = _places(scope)[0].dataset
    data = data_at_hand(dataset)
    kept = {place: steps for place in _places(scope) if (steps := runs.steps(live(place))) is not None}
    figures = []
    for horizon in sorted({place.horizon for place in kept}):
        here = {place: steps for place, steps in kept.items() if place.horizon == horizon}
        figures.append(_figure(horizon, dataset, [_panel(place, steps, data) for place, steps in here.items()]))
    lines = [line for place, steps in kept.items() for line in _lines(place, steps)]
    text = (
        "Forecasts are chosen by their place in the stream, not by how they turned out: the one half way down is "
        "drawn, and those a quarter and three quarters down are in the table, too."
    )
    lacking = [missing(cells(scope), found), data if isinstance(data, str) else ""]
    words = " ".join([text, *filter(None, lacking)])
    return Finding(NAME, TITLE, words, (_section(lines),), tuple(figures), made_from(found))


def _figure(horizon: int, dataset: str, panels: Sequence[Panel]) -> Figure:
    return Figure(
        f"examples-{dataset}-{horizon}",
        f"{dataset}, H = {horizon}",
        f"Standardised with the source; rows count from the origin. The band is the {SHOWN_LEVEL:.0%} interval.",
        tuple(panels),
    )


def _panel(place: Spot, steps: Steps, data: BenchmarkData | str) -> Panel:
    values = {name: steps[f"shown_{name}"][DRAWN, :, CHANNEL] for name in ("mean", "base", "outcome", "lower", "upper")}
    places = picked(place.horizon)
    leads = tuple(float(lead + 1) for lead in places)
    band = Curve(f"{SHOWN_LEVEL:.0%} interval", leads, rounded(values["lower"][places]), "band",
                 rounded(values["upper"][places]))  # fmt: skip
    curves = [
        Curve(words, leads, rounded(values[name][places]))
        for name, words in (("outcome", "outcome"), ("base", "bare forecaster"), ("mean", "ompb"))
    ]
    origin = int(steps["shown_origin"][DRAWN])
    channel = "channel 1"
    if not isinstance(data, str):
        channel = data.channels[CHANNEL]
        curves.insert(0, _window(_rows(place, data)[origin + 1 - data.context : origin + 1]))
    return Panel(f"{place.split}, origin {origin}", "row", channel, (band, *curves))


def _rows(place: Spot, data: BenchmarkData) -> Floats:
    """The drawn channel of a stream."""
    return Scaler.fit(data.source).standardise(data.stream(place.split, place.horizon))[:, CHANNEL]


def _window(rows: Floats) -> Curve:
    """What was known at the origin: its last row is row 0."""
    return Curve("window", tuple(float(row) for row in range(1 - len(rows), 1)), rounded(rows))


def _lines(place: Spot, steps: Steps) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for kept, origin in enumerate(steps["shown_origin"].tolist()):
        outcome = steps["shown_outcome"][kept]
        ours, bare = (float(np.abs(steps[f"shown_{name}"][kept] - outcome).mean()) for name in ("mean", "base"))
        inside = (steps["shown_lower"][kept] <= outcome) & (outcome <= steps["shown_upper"][kept])
        lines.append((*keys_of(place), str(origin), number(bare), number(ours), number(ours / bare, 2),
                      f"{inside.mean():.0%}"))  # fmt: skip
    return lines


def _section(lines: Sequence[tuple[str, ...]]) -> Section:
    return Section(
        "The forecasts that were kept",
        (
            "MAE over leads and all channels, standardised; inside: share of the outcome in the 80 % band. Single "
            "forecasts are no evidence: see the tables of accuracy. Seed 0.",
        ),
        ("data", "backbone", "H", "split", "origin", "MAE, bare", "MAE", "ratio", "inside"),
        tuple(lines),
        keys=5,
    )


ANALYSIS = Analysis(NAME, TITLE, ("WEATHER_forecast",), cells, reduce, per_step=True)
