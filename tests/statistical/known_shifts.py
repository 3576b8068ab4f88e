"""Runs over streams whose shift is known, with default settings: all seeds at once, each as it would be alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ompb import Calibrator, Ridge, Run, backtest, calibrate
from ompb.datasets.demo import Demo, demo_series
from ompb.datasets.synthetic import Shift, shifted_stream
from ompb.types import Floats

CONTEXT, HORIZON, SEASON = 96, 24, 24
STATIONARY_SEEDS = range(20)
SHIFTED_SEEDS = range(6)
SHIFTS: tuple[Shift, ...] = ("level", "scale", "phase", "dynamics")


class CrossChannelRidge:
    """A linear map from the windows of all channels to the outcomes of all: it knows how channels move together."""

    def __init__(self, source: Floats) -> None:
        starts = np.arange(len(source) - CONTEXT - HORIZON + 1)[:, None]
        self.mean, self.sd = source.mean(axis=0), source.std(axis=0)
        standard = (source - self.mean) / self.sd
        inputs = self._with_one(standard[starts + np.arange(CONTEXT)])
        outcomes = standard[starts + np.arange(CONTEXT, CONTEXT + HORIZON)].reshape(len(starts), -1)
        penalty = 0.01 * len(starts) * np.eye(inputs.shape[1])
        self.weights = np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ outcomes)

    def __call__(self, windows: Floats) -> Floats:
        said = self._with_one((windows - self.mean) / self.sd) @ self.weights
        return np.asarray(said.reshape(len(windows), HORIZON, -1) * self.sd + self.mean)

    def _with_one(self, windows: Floats) -> Floats:
        return np.column_stack([np.ones(len(windows)), windows.reshape(len(windows), -1)])


@lru_cache
def runs(shift: Shift) -> dict[int, Run]:
    """A run for each seed.

    Each channel alone, but for the phase shift, which misleads only a forecaster that looks across channels.
    """
    seeds = STATIONARY_SEEDS if shift == "none" else SHIFTED_SEEDS
    made = {seed: shifted_stream(shift, seed) for seed in seeds}
    sources, targets = ({seed: rows[part] for seed, rows in made.items()} for part in (0, 1))
    fitted = {
        seed: CrossChannelRidge(source) if shift == "phase" else Ridge.fit(source, CONTEXT, HORIZON)
        for seed, source in sources.items()
    }
    calibrators = calibrate(fitted, sources, context=CONTEXT, horizon=HORIZON, season=SEASON)
    return backtest(calibrators, fitted, targets)


@lru_cache
def demo_run() -> tuple[Demo, Run]:
    demo = demo_series()
    source, target = demo.values[: demo.source_rows], demo.values[demo.source_rows :]
    ridge = Ridge.fit(source, CONTEXT, HORIZON)
    calibrator = Calibrator.fit(ridge, source, context=CONTEXT, horizon=HORIZON, season=SEASON)
    return demo, backtest(calibrator, ridge, target)
