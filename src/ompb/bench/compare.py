"""The trivial methods beside a finished run: the same origins, the same rows, the same base forecasts."""

from __future__ import annotations

import numpy as np

from ompb.backtest import Run
from ompb.bench.contract import Task, snapshots
from ompb.bench.methods import make, unfit
from ompb.bench.protocols import HONEST, Clock
from ompb.types import Floats
from ompb.windows import fill_forward

# Methods of the benchmark, by the name that reports show.
SHOWN = {"seasonal profile": "profile", "last value": "last", "running bias": "bias", "copied residual": "copy"}


def run_references(run: Run) -> dict[str, Floats]:
    """Forecasts (n, H, C) of every trivial method, by shown name, for the n origins of a run, learned honestly.

    The base forecast itself is left out, since ``run.base`` has it, and so is the seasonal profile where no whole
    season fits into the window.
    """
    calibrator = run.calibrator
    context, horizon = calibrator.context, calibrator.horizon
    task = Task(
        context=context,
        horizon=horizon,
        season=calibrator.season,
        protocol=HONEST,
        source=run.rows[:0],
        source_base=run.base[:0],
        trainable=False,
        seed=0,
    )
    methods = {shown: make(name, task) for shown, name in SHOWN.items() if unfit(name, task) is None}
    forecasts = {shown: np.empty_like(run.base) for shown in methods}
    # a forecaster need not speak at every row; what was not said is NaN, and so is what would be learned from it
    base = np.full((len(run.rows) - context + 1, *run.base.shape[1:]), np.nan)
    base[run.origins - context + 1] = run.base
    places = {int(origin): place for place, origin in enumerate(run.origins)}
    filled = fill_forward(run.rows, calibrator.centre)
    for snapshot in snapshots(run.rows, filled, base, Clock(HONEST, horizon, context - 1), context):
        for shown, method in methods.items():
            said = method.step(snapshot).mean
            if snapshot.origin in places:
                forecasts[shown][places[snapshot.origin]] = said
    return forecasts
