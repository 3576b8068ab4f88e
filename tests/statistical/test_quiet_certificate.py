"""The disagreement is quiet while nothing changes, and speaks up before any outcome of a new regime is complete.

`certificate.disagreement_null` is the level it is to stay below without shift; warm-up is one ring of 64 windows.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from ompb import Calibrator, Ridge, Run, backtest
from ompb.datasets.demo import Demo, demo_series
from ompb.datasets.synthetic import shifted_stream
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, WARM_UP = 96, 24, 24, 64
SEEDS = range(20)


def run_over(source: Floats, target: Floats) -> Run:
    ridge = Ridge.fit(source, CONTEXT, HORIZON)
    calibrator = Calibrator.fit(ridge, source, context=CONTEXT, horizon=HORIZON, season=SEASON)
    return backtest(calibrator, ridge, target)


@lru_cache
def quiet_run(seed: int) -> Run:
    return run_over(*shifted_stream("none", seed))


@lru_cache
def demo_run() -> tuple[Demo, Run]:
    demo = demo_series()
    return demo, run_over(demo.values[: demo.source_rows], demo.values[demo.source_rows :])


def loud(run: Run) -> Floats:
    """1 where the disagreement is above its null, (n,)."""
    return np.asarray(run.certificate["disagreement"] > run.certificate["disagreement_null"], dtype=np.float64)


def at(run: Run, row: int) -> int:
    """Place of the forecast with that origin."""
    return int(np.flatnonzero(run.origins == row)[0])


@pytest.mark.slow
def test_quiet_without_shift() -> None:
    """Pooled over seeds: at most one reading in twenty above the null."""
    rates = [float(loud(quiet_run(seed))[WARM_UP:].mean()) for seed in SEEDS]
    assert np.mean(rates) <= 0.05, sorted(rates)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_seed_is_loud_for_more_than_one_episode_without_shift(seed: int) -> None:
    """A rare excursion of a stationary stream stays in the windows, and then in the ring, for that many rows."""
    assert loud(quiet_run(seed))[WARM_UP:].sum() <= CONTEXT + WARM_UP


def test_the_null_says_something() -> None:
    """A null of one would be quiet for ever: it is well inside the range of the disagreement."""
    nulls = [float(quiet_run(seed).certificate["disagreement_null"][0]) for seed in range(3)]
    assert all(0 < null < 0.6 for null in nulls), nulls


def test_demo_is_quiet_before_its_first_change() -> None:
    demo, run = demo_run()
    stop = at(run, demo.phases[0].stop - demo.source_rows)
    assert loud(run)[WARM_UP:stop].mean() <= 0.05


def test_demo_covariate_shift_is_heard_before_any_of_its_outcomes_is_complete() -> None:
    """The first forecast of the new regime is complete one horizon (24 rows, a season) after the change."""
    demo, run = demo_run()
    change = at(run, demo.phases[1].first - demo.source_rows)
    assert loud(run)[change : change + SEASON].any()


def test_demo_covariate_shift_raises_the_target_side() -> None:
    """It is the target's disagreement that rises, beyond all it did in the ring before the change."""
    demo, run = demo_run()
    change = at(run, demo.phases[1].first - demo.source_rows)
    target = run.certificate["target_disagreement"]
    before = target[change - WARM_UP : change]
    assert target[change + SEASON - 1] - target[change - 1] > np.ptp(before) / 2
