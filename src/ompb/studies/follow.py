"""The one way to learn from the first part of a table and to follow the rest, row by row."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ompb import checks
from ompb.backtest import backtest
from ompb.calibrator import Calibrator
from ompb.errors import OptionError, TooShortError
from ompb.extras import extra
from ompb.inputs import as_rows
from ompb.names import counted
from ompb.phases import Phase
from ompb.query import AnyForecaster
from ompb.settings import Settings
from ompb.studies.ahead import known_ahead
from ompb.studies.late import without_late
from ompb.studies.parts import UNSEEN_SHARE, Parts, choose, unseen_rows
from ompb.studies.result import Study
from ompb.tables import Reading, Table, read_table, regular, split_row, with_future
from ompb.tables.suspicion import suspicions

with extra("report", needed_by="ompb.study"):
    import polars as pl

Place: TypeAlias = str | int  # of a table: an ISO date or date-time, or a number of rows
Progress: TypeAlias = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


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
            Missing time stamps are inserted as missing rows.
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
    Study('data, followed by ompb': 100 forecasts of 4 leads, 1 channels; phases: target)
    >>> [line.name for line in result.scores()["target"]]
    ['bare forecaster', 'last value', 'running bias', 'copied residual', 'ompb']
    """
    Settings.of(**options)
    context, horizon = checks.count("context", context), checks.count("horizon", horizon)
    table, inserted = _series(data, reading)
    size = f"{counted(len(table.values), 'row')} of {counted(len(table.channels), 'channel')}"
    notes = [
        f"{table.name}: {size}, {counted(inserted, 'missing time stamp')} inserted.",
        *table.notes,
        *suspicions(table),
    ]
    table, future, said = known_ahead(table, horizon, forecaster is not None)
    source_rows = split_row(table, str(source_end))
    if season is not None and season != "auto":
        season = checks.count("season", season, least=2, most=source_rows, or_else="auto, None, or ")
    _require_room(table, source_rows, context, horizon)
    if forecaster is None:
        kept = 0 if forecasts is not None else unseen_rows(UNSEEN_SHARE if unseen is None else unseen, source_rows)
        span = 1 if forecasts is not None else context + horizon
        table, late = without_late(table, source_rows - kept, source_rows, span)
        said += late
    parts = choose(table, source_rows, context, horizon, forecaster, forecasts, unseen, column)
    judged_by = _phases(table, parts, source_rows, phases or {"target": source_rows})
    calibrator = Calibrator.fit(
        parts.on_source,
        pl.DataFrame(table.values[parts.source], schema=list(table.channels), orient="row"),
        context=context,
        horizon=horizon,
        season=season,
        unseen=parts.unseen,
        times=table.times[parts.source],
        future=None if future is None else future[parts.source],
        progress=partial(progress, "Learning from the source") if progress else None,
        **options,
    )
    run = backtest(
        calibrator,
        parts.on_stream,
        table.values[parts.stream],
        times=table.times[parts.stream],
        future=None if future is None else future[parts.stream.start : parts.stream.stop + horizon],
        progress=partial(progress, "Following the target") if progress else None,
    )
    clock = {"times": f"{table.clock} in words and files; UTC in pictures"} if table.clock.known else {}
    return Study.of(
        run,
        title=title or f"{table.name}, followed by ompb",
        phases=judged_by,
        facts={"data": table.name, **parts.facts(table, context), **clock, **(facts or {})},
        notes=(*notes, *said, *parts.notes),
        clock=table.clock,
    )


def _series(data: Any, reading: Reading | None) -> tuple[Table, int]:
    """The data as rows on even steps, and how many of them were inserted."""
    if isinstance(data, str | os.PathLike):
        return regular(read_table(Path(data), reading))
    if isinstance(data, Table):
        return regular(data)
    rows = as_rows(data, "data")
    times = np.arange(len(rows.values)) if rows.times is None else rows.times
    return Table(rows.values, times, rows.names, "row"), rows.inserted


def _require_room(table: Table, source_rows: int, context: int, horizon: int) -> None:
    """Refuse sizes that the source cannot fill, and times whose next ``horizon`` stamps cannot be written."""
    if source_rows < context + horizon:
        raise TooShortError(
            f"the source has {source_rows} rows; it needs at least {context + horizon} (context + horizon), so move "
            "its end, or shorten context or horizon."
        )
    with_future(table.times, horizon)


def _phases(table: Table, parts: Parts, source_rows: int, begins: Mapping[str, Place]) -> tuple[Phase, ...]:
    """The phases in rows of the stream, from where each begins in the table."""
    edges = [split_row(table, str(place), f"phase {name!r}") for name, place in begins.items()]
    for name, first, stop in zip(begins, edges, [*edges[1:], parts.stream.stop], strict=True):
        if not source_rows <= first < stop:
            raise OptionError(
                f"phase {name!r} begins at row {first} and ends before row {stop}; phases are stretches of the target, "
                f"rows {source_rows} to {parts.stream.stop - 1}, in order of time."
            )
    edges = [row - parts.stream.start for row in (*edges, parts.stream.stop)]
    return tuple(Phase(name, first, stop) for name, first, stop in zip(begins, edges[:-1], edges[1:], strict=True))
