"""The references of a finished run: the same origins, the same rows, the same base forecasts."""

from __future__ import annotations

import numpy as np

from ompb.backtest import Run
from ompb.bench.references import Original, Profile, Reference, references
from ompb.calibrator import Calibrator
from ompb.inputs import as_table, fill_forward
from ompb.types import Floats


def run_references(calibrator: Calibrator, run: Run, rows: object, season: int | None) -> dict[str, Floats]:
    """Forecasts (n, H, C) of every reference, by name, for the n origins of ``run``.

    ``rows`` are those the run was made from. The base forecast itself is left out, since ``run.base`` has it, and so
    is the seasonal profile where no whole season fits into the window.
    """
    values, _ = as_table(rows, "rows")
    filled = fill_forward(values, calibrator.centre)
    steppers = _usable(season, calibrator.context)
    forecasts = {name: np.empty_like(run.base) for name in steppers}
    for place, (origin, base) in enumerate(zip(run.origins.tolist(), run.base, strict=True)):
        window = filled[origin + 1 - calibrator.context : origin + 1]
        for name, stepper in steppers.items():
            forecasts[name][place] = stepper.step(values[origin], window, base)
    return forecasts


def _usable(season: int | None, context: int) -> dict[str, Reference]:
    """Fresh references, without those that have nothing to say here."""
    seasonal = season is not None and season <= context
    fresh = references(season if season is not None else 1)
    idle = Original if seasonal else (Original, Profile)
    return {name: reference for name, reference in fresh.items() if not isinstance(reference, idle)}
