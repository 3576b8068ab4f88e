"""Many series learned from and followed at once: a study for each of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ompb.errors import ForecasterError, InputError, OmpbError, TooShortError
from ompb.floor.names import counted, listed, rows_between, said_once
from ompb.rows.inputs import as_series
from ompb.seam.by_id import for_each
from ompb.seam.query import AnyForecaster
from ompb.seam.sources import calling
from ompb.studies.at_once import Progress, learn_and_follow
from ompb.studies.parts import is_brought
from ompb.studies.ready import Asked, Place, Ready
from ompb.studies.studies import Studies
from ompb.tables import ForecastLines, Reading, read_series
from ompb.tables.contents import name_of

# What can be wrong with one series while the others can be followed: too few rows, or no forecasts of it in a record.
LEFT_OUT = (TooShortError, ForecasterError)


def study_each(
    data: Any,
    *,
    source_end: Place,
    context: int,
    horizon: int,
    season: int | Literal["auto"] | None = "auto",
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster] | None = None,
    forecasts: str | os.PathLike[str] | None = None,
    unseen: int | float | None = None,
    column: str | None = None,
    reading: Reading | None = None,
    title: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Studies:
    """Learn from each series up to ``source_end`` and follow the rest, all of one shape at once: each as `study` does.

    A series that is too short to be learned from and followed, or that has no recorded forecasts, is left out:
    ``left_out`` of what is returned says why.

    Args:
        data: path of a long table (see `ompb.tables.read_series`), a long frame (unique_id, ds, y), or tables by id:
            arrays, frames or `ompb.tables.Table`.
        source_end: where the target of each begins: a date, or the number of its source rows.
        context: rows in a window.
        horizon: rows in a forecast.
        season: rows in a season, None for no season, "auto" to find that of each.
        forecaster: one for all or one for each by id. Without one a ridge regression is fitted to each source less its
            unseen part.
        forecasts: path of recorded forecasts instead, with a column unique_id (see `ompb.tables.read_forecasts`).
        unseen: rows (int) or share (float) at each source's end that the forecaster was not trained on; 0.25 for the
            built-in one.
        column: of the recorded forecasts, if it is not found by itself.
        reading: what to know about the file of ``data``.
        title: of the report.
        progress: called with (what is being done, steps done, steps in all).
        **options: fields of `ompb.Settings`.

    Raises what `study` raises; the message begins with the id of the series.

    >>> import numpy as np
    >>> waves = {name: np.sin(np.arange(400) / pace)[:, None] for pace, name in enumerate(("brisk", "calm"), start=2)}
    >>> found = study_each({**waves, "new": waves["calm"][:9]}, source_end=300, context=24, horizon=4, season=None)
    >>> found["calm"]
    Study('calm, followed by ompb': 100 forecasts of 4 leads, 1 channel; phases: target)
    >>> found
    Studies('2 series, followed by ompb': 2 series, 1 left out)
    """
    brought = is_brought(forecaster, forecasts, column)
    asked = Asked.of(source_end, context, horizon, season, unseen, brought, options)
    tables = read_series(Path(data), reading) if isinstance(data, str | os.PathLike) else as_series(data, "data")
    lines, notes = _lines_of(tables, None if forecasts is None else ForecastLines.read(Path(forecasts), column))
    series, left_out = _ready(tables, asked, forecaster, lines)
    every = list(series.values())
    found = learn_and_follow(every, asked, progress)
    of = f" of {name_of(Path(data))}" if isinstance(data, str | os.PathLike) else ""
    return Studies(
        title=title or f"{len(series)} series{of}, followed by ompb",
        each=dict(zip(series, found, strict=True)),
        left_out=left_out,
        facts=_facts(every, context),
        notes=(_size(every), *notes, *said_once({one.table.name: one.notes for one in every})),
    )


def _ready(
    tables: Mapping[Any, Any],
    asked: Asked,
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster] | None,
    lines: Mapping[Any, ForecastLines] | None,
) -> tuple[dict[Any, Ready], dict[Any, str]]:
    """The series that can be followed, at least one, and why each of the others cannot."""
    who: dict[Any, AnyForecaster | None] = (
        {**for_each("forecaster", forecaster, tables)}
        if isinstance(forecaster, Mapping)
        else dict.fromkeys(tables, forecaster)
    )
    series: dict[Any, Ready] = {}
    problems: dict[Any, OmpbError] = {}
    for one, table in tables.items():
        called = f"series {one!r}: "
        with calling(called):
            try:
                if lines is not None and one not in lines:
                    raise ForecasterError("there are no recorded forecasts of it; bring some.")
                own = None if lines is None else lines[one]
                series[one] = Ready.of(table, asked, who[one], own, name=str(one), called=called)
            except LEFT_OUT as problem:
                problems[one] = problem
    if not series:
        first = next(iter(problems))
        none = f"none of {len(tables)} series can be followed; " if len(tables) > 1 else ""
        with calling(f"{none}series {first!r}: "):
            raise problems[first]
    return series, {one: str(problem) for one, problem in problems.items()}


def _lines_of(
    tables: Mapping[Any, Any], forecasts: ForecastLines | None
) -> tuple[dict[Any, ForecastLines] | None, tuple[str, ...]]:
    """The recorded forecasts of each series that has some, if any were brought, and a note on those of others."""
    if forecasts is None:
        return None, ()
    found = forecasts.by_series()
    names = {str(one): one for one in tables}
    unknown = [name for name in found if name not in names]
    if len(unknown) == len(found):
        raise InputError(
            f"The forecasts have unique_id {unknown[0]!r}; the series are {listed(list(names))}. Name them alike."
        )
    note = (f"Forecasts of {listed(unknown)} are not used: there is no such series.",) if unknown else ()
    return {one: found[name] for name, one in names.items() if name in found}, note


def _facts(series: Sequence[Ready], context: int) -> dict[str, str]:
    """For the report: what is true of all series."""
    words = sorted({one.parts.forecaster for one in series})
    return {
        "series": f"{len(series)}: {listed([one.table.name for one in series])}",
        "forecaster": words[0] if len(words) == 1 else f"{words[0].split(',')[0]}, one for each series",
        "source": rows_between([one.parts.source.stop - one.parts.source.start for one in series]),
        "target": rows_between([one.parts.stream.stop - one.parts.stream.start - context + 1 for one in series]),
    }


def _size(series: Sequence[Ready]) -> str:
    rows = rows_between([len(one.table.values) for one in series])
    inserted = [one.inserted for one in series if one.inserted]
    where = f" in {len(inserted)} of them" if inserted else ""
    return f"{len(series)} series of {rows}, {counted(sum(inserted), 'missing time stamp')} inserted{where}."
