"""A small finished run that the report tests share."""

import dataclasses
import functools
from typing import Any

import numpy as np

import ompb
from ompb.datasets.synthetic import shifted_stream
from ompb.studies import Phase, Studies, Study, study_each
from ompb.types import Floats

CONTEXT, HORIZON, SEASON = 24, 6, 12


@functools.cache
def fitted(certificate: bool = True) -> tuple[Any, ompb.Calibrator, Floats]:
    source, target = shifted_stream("level", seed=1, source_rows=700, target_rows=160, channels=2, season=SEASON)
    forecaster = ompb.Ridge.fit(source[:500], CONTEXT, HORIZON)
    options: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, "unseen": 200}
    times = np.datetime64("2024-01-01T00", "h") + np.arange(-len(source), 0)
    calibrator = ompb.Calibrator.fit(forecaster, source, certificate=certificate, times=times, **options)
    return forecaster, calibrator, target


@functools.cache
def small_study(certificate: bool = True) -> Study:
    """160 rows in two phases that meet at row 100, some cells missing."""
    forecaster, calibrator, target = fitted(certificate)
    rows = target.copy()
    rows[60:63, 0] = np.nan
    times = np.datetime64("2024-01-01T00", "h") + np.arange(len(rows))
    run = ompb.backtest(calibrator, forecaster, rows, times=times)
    phases = (Phase("early", CONTEXT - 1, 100), Phase("late", 100, len(rows)))
    return Study.of(run, title="A <small> run", phases=phases, facts={"seed": "1"})


def renamed(run: ompb.Run, names: tuple[str, ...]) -> ompb.Run:
    """The run with other names for its channels."""
    return dataclasses.replace(run, calibrator=dataclasses.replace(run.calibrator, names=names))


@functools.cache
def eight() -> Studies:
    """Eight series by number, of 100 target rows each; one that is too short is left out."""
    tables = {}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        walk = np.sin(2 * np.pi * np.arange(300) / 6) + 0.1 * rng.normal(size=300).cumsum()
        tables[seed] = walk[:, None]
    forecaster = ompb.SeasonalProfile(horizon=4, season=6)
    return study_each(
        {**tables, 8: tables[0][:10]}, source_end=200, context=12, horizon=4, season=6, forecaster=forecaster
    )
