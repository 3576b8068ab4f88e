"""The trivial methods beside a finished run: the same origins, the same rows, the same base forecasts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ompb.backtest import Run
from ompb.bench.contract import Task, snapshots
from ompb.bench.methods import make, unfit
from ompb.bench.protocols import HONEST, Clock
from ompb.rows.windows import fill_forward
from ompb.seam.sources import in_parts
from ompb.types import Floats

# Methods of the benchmark, by the name that reports show.
SHOWN = {"seasonal profile": "profile", "last value": "last", "running bias": "bias", "copied residual": "copy"}


# Channels that are followed at once: enough to share the cost of a row, few enough for what is said to fit.
AT_ONCE = 256


def run_references(run: Run) -> dict[str, Floats]:
    """Forecasts (n, H, C) of every trivial method, by shown name, for the n origins of a run, learned honestly.

    The base forecast itself is left out, since ``run.base`` has it, and so is the seasonal profile where no whole
    season fits into the window.
    """
    return references_of_each([run])[0]


def references_of_each(runs: Sequence[Run]) -> list[dict[str, Floats]]:
    """`run_references` of many runs: those of one shape side by side, for every method takes a channel by itself."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, run in enumerate(runs):
        cal = run.calibrator
        shape = (run.rows.shape, cal.context, cal.horizon, cal.season, run.origins.tobytes())
        groups.setdefault(shape, []).append(place)
    found: dict[int, dict[str, Floats]] = {}
    for group in groups.values():
        channels = runs[group[0]].calibrator.channels
        for places in in_parts(group, AT_ONCE // channels):
            said = _side_by_side([runs[place] for place in places])
            for number, place in enumerate(places):
                own = slice(number * channels, (number + 1) * channels)
                found[place] = {shown: forecast[..., own].copy() for shown, forecast in said.items()}
    return [found[place] for place in range(len(runs))]


def _side_by_side(runs: Sequence[Run]) -> dict[str, Floats]:
    """What every method says of runs of one shape, whose channels stand beside each other in (n, H, runs * C)."""
    calibrator, origins = runs[0].calibrator, runs[0].origins
    context, horizon = calibrator.context, calibrator.horizon
    rows, said = (np.concatenate(parts, axis=-1) for parts in zip(*((run.rows, run.base) for run in runs), strict=True))
    task = Task(
        context=context,
        horizon=horizon,
        season=calibrator.season,
        protocol=HONEST,
        source=rows[:0],
        source_base=said[:0],
        trainable=False,
        seed=0,
    )
    methods = {shown: make(name, task) for shown, name in SHOWN.items() if unfit(name, task) is None}
    forecasts = {shown: np.empty_like(said) for shown in methods}
    # a forecaster need not speak at every row; what was not said is NaN, and so is what would be learned from it
    base = np.full((len(rows) - context + 1, *said.shape[1:]), np.nan)
    base[origins - context + 1] = said
    places = {int(origin): place for place, origin in enumerate(origins)}
    filled = fill_forward(rows, np.concatenate([run.calibrator.centre for run in runs]))
    for snapshot in snapshots(rows, filled, base, Clock(HONEST, horizon, context - 1), context):
        for shown, method in methods.items():
            forecast = method.step(snapshot).mean
            if snapshot.origin in places:
                forecasts[shown][places[snapshot.origin]] = forecast
    return forecasts
