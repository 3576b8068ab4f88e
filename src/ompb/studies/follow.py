"""One table, learned from up to some row and followed from there, row by row."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ompb.seam.query import AnyForecaster
from ompb.studies.at_once import Progress, learn_and_follow
from ompb.studies.parts import is_brought
from ompb.studies.ready import Asked, Place, Ready
from ompb.studies.result import Study
from ompb.tables import ForecastLines, Reading, read_table


def study(
    data: Any,
    *,
    source_end: Place,
    context: int,
    horizon: int,
    season: int | Literal["auto"] | None = "auto",
    forecaster: AnyForecaster | None = None,
    forecasts: str | os.PathLike[str] | None = None,
    unseen: int | float | None = None,
    column: str | None = None,
    reading: Reading | None = None,
    phases: Mapping[str, Place] | None = None,
    title: str | None = None,
    facts: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Study:
    """Learn from a table up to ``source_end``, follow the rest as a stream, and let trivial references follow too.

    The last context - 1 rows before ``source_end`` fill the first window, so that the first row after it already gets
    a forecast.

    Args:
        data: path of a text or Parquet file (see `ompb.tables.read_table`), a `Table`, a frame or an array (T, C).
            Missing time stamps are inserted as missing rows. The series of a long table are channels of one system;
            for one study of each, see `ompb.studies.study_each`.
        source_end: where the target begins: a date, or the number of source rows.
        context: rows in a window.
        horizon: rows in a forecast.
        season: rows in a season, None for no season, "auto" to find it.
        forecaster: as `ompb.Calibrator.fit` takes it. Without one a ridge regression is fitted to the source less its
            unseen part.
        forecasts: path of recorded forecasts instead (see `ompb.tables.read_forecasts`).
        unseen: rows (int) or share (float) at the source's end that the forecaster was not trained on; 0.25 for the
            built-in one.
        column: of the recorded forecasts, if it is not found by itself.
        reading: what to know about the file of ``data``.
        phases: where each phase of the target begins, in order of time, by name; each ends where the next begins.
            By default one phase, "target".
        title: of the report.
        facts: for the report's table of settings, beside those that are known.
        progress: called with (what is being done, steps done, steps in all).
        **options: fields of `ompb.Settings`.

    Raises:
        InputError, OptionError, ForecasterError: before anything is learned, where that is possible.

    >>> import numpy as np
    >>> load = np.sin(np.arange(400) / 2)[:, None] + np.random.default_rng(0).normal(0, 0.1, (400, 1))
    >>> result = study(load, source_end=300, context=24, horizon=4, season=None)
    >>> result
    Study('data, followed by ompb': 100 forecasts of 4 leads, 1 channel; phases: target)
    >>> [line.name for line in result.scores()["target"]]
    ['bare forecaster', 'last value', 'running bias', 'copied residual', 'ompb']
    """
    brought = is_brought(forecaster, forecasts, column)
    asked = Asked.of(source_end, context, horizon, season, unseen, brought, options)
    table = read_table(Path(data), reading) if isinstance(data, str | os.PathLike) else data
    lines = None if forecasts is None else ForecastLines.read(Path(forecasts), column)
    ready = Ready.of(table, asked, forecaster, lines, phases)
    (found,) = learn_and_follow([ready], asked, progress)
    return replace(found, title=title or found.title, facts={**found.facts, **(facts or {})})
