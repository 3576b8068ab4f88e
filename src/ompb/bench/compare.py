"""The trivial methods beside a finished run: the same origins, the same rows, the same base forecasts."""

from __future__ import annotations

import numpy as np

from ompb.backtest import Run
from ompb.bench.contract import Task, snapshots
from ompb.bench.methods import make, unfit
from ompb.bench.protocols import HONEST, Clock
from ompb.calibrator import Calibrator
from ompb.inputs import as_rows
from ompb.types import Floats
from ompb.windows import fill_forward

# Methods of the benchmark, by the name that reports show.
SHOWN = {"seasonal profile": "profile", "last value": "last", "running bias": "bias", "copied residual": "copy"}


def run_references(calibrator: Calibrator, run: Run, rows: object, season: int | None) -> dict[str, Floats]:
    """Forecasts (n, H, C) of every trivial method, by shown name, for the n origins of ``run``, learned honestly.

    ``rows`` are those the run was made from. The base forecast itself is left out, since ``run.base`` has it, and so
    is the seasonal profile where no whole season fits into the window.
    """
    values = as_rows(rows, "rows").values
    context, horizon = calibrator.context, calibrator.horizon
    task = Task(
        context=context,
        horizon=horizon,
        season=season,
        protocol=HONEST,
        source=values[:0],
        source_base=run.base[:0],
        trainable=False,
        seed=0,
    )
    methods = {shown: make(name, task) for shown, name in SHOWN.items() if unfit(name, task) is None}
    forecasts = {shown: np.empty_like(run.base) for shown in methods}
    filled = fill_forward(values, calibrator.centre)
    stream = snapshots(values, filled, run.base, Clock(HONEST, horizon, context - 1), context)
    for place, snapshot in enumerate(stream):
        for shown, method in methods.items():
            forecasts[shown][place] = method.step(snapshot).mean
    return forecasts
