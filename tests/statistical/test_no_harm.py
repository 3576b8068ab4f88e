"""Default settings on streams whose shift is known: no harm without shift, gains with it, honest intervals throughout.

Errors are standardised with the source scale; a forecast counts once its outcome is complete.
"""

from __future__ import annotations

import numpy as np
import pytest
from known_shifts import CONTEXT, HORIZON, SEASON, SHIFTED_SEEDS, SHIFTS, STATIONARY_SEEDS, demo_run, runs

from ompb import Run
from ompb.bench.compare import run_references
from ompb.datasets.synthetic import Shift
from ompb.types import Floats

REFERENCES = ("original", "seasonal profile", "last value", "running bias", "copied residual")


def mse(run: Run, forecasts: Floats) -> float:
    complete = np.isfinite(run.outcome).all(axis=(1, 2))
    return float(np.mean((((forecasts - run.outcome) / run.scale)[complete]) ** 2))


def reference_mse(run: Run) -> dict[str, float]:
    """The bare forecaster and every trivial method beside the run."""
    said = run_references(run)
    return {name: mse(run, forecasts) for name, forecasts in {"original": run.base, **said}.items()}


def inside(run: Run, level: float) -> Floats:
    """1 or 0 for each (origin, lead, channel), NaN where the outcome is unknown."""
    lower, upper = run.interval(level)
    hit = (lower <= run.outcome) & (run.outcome <= upper)
    return np.where(np.isfinite(run.outcome), hit, np.nan)


def outcome_rows(run: Run) -> Floats:
    """The row of the stream that each (origin, lead) speaks of."""
    return np.asarray(run.origins[:, None] + np.arange(1, HORIZON + 1))


# ------------------------------------------------------------------------------------------------------- accuracy


@pytest.mark.slow
@pytest.mark.parametrize("seed", STATIONARY_SEEDS)
def test_no_harm_without_shift(seed: int) -> None:
    run = runs("none")[seed]
    assert mse(run, run.mean) <= 1.02 * mse(run, run.base)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SHIFTED_SEEDS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_gain_under_shift(shift: Shift, seed: int) -> None:
    run = runs(shift)[seed]
    assert mse(run, run.mean) < mse(run, run.base)


@pytest.mark.slow
@pytest.mark.parametrize("shift", SHIFTS)
def test_median_under_shift_is_below_every_trivial_reference(shift: Shift) -> None:
    ours = np.median([mse(run, run.mean) for run in runs(shift).values()])
    trivial = [reference_mse(run) for run in runs(shift).values()]
    medians = {name: float(np.median([scores[name] for scores in trivial])) for name in REFERENCES}
    assert {name: value for name, value in medians.items() if value <= ours} == {}


@pytest.mark.parametrize("phase", ["no shift", "covariate shift", "concept shift"])
def test_demo_no_harm_in_any_phase(phase: str) -> None:
    demo, run = demo_run()
    stretch = next(p for p in demo.phases if p.name == phase)
    origins = run.origins + demo.source_rows
    here = (origins >= stretch.first) & (origins < stretch.stop - HORIZON)
    error = [np.mean(((f - run.outcome)[here] / run.scale) ** 2) for f in (run.mean, run.base)]
    assert error[0] <= 1.02 * error[1]


# ------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_coverage_without_shift(level: float) -> None:
    """Pooled over seeds, forecasts issued after a warm-up of five seasons."""
    pooled = [inside(run, level)[run.origins >= CONTEXT + 5 * SEASON].ravel() for run in runs("none").values()]
    assert abs(np.nanmean(np.concatenate(pooled)) - level) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("shift", SHIFTS)
def test_coverage_twenty_seasons_into_a_shift(shift: Shift, level: float) -> None:
    """On every seed, outcomes that start twenty seasons after the stream did."""
    for run in runs(shift).values():
        assert abs(np.nanmean(inside(run, level)[run.origins >= 20 * SEASON]) - level) <= 0.04


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_demo_coverage_without_shift(level: float) -> None:
    """Pairs of forecast and outcome row, counted by the latter, after a warm-up of five seasons."""
    demo, run = demo_run()
    rows = outcome_rows(run)
    here = (rows >= CONTEXT + 5 * SEASON) & (rows < demo.phases[0].stop - demo.source_rows)
    assert abs(np.nanmean(inside(run, level)[here]) - level) <= 0.02


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("phase", [1, 2])
def test_demo_coverage_twenty_seasons_after_a_change(phase: int, level: float) -> None:
    demo, run = demo_run()
    stretch, rows = demo.phases[phase], outcome_rows(run) + demo.source_rows
    here = (rows >= stretch.first + 20 * SEASON) & (rows < stretch.stop)
    assert abs(np.nanmean(inside(run, level)[here]) - level) <= 0.04
