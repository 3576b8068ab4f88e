"""Many tables learned from and followed at once: what `study` does, with a series for each id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from ompb import checks
from ompb.backtest import backtest
from ompb.errors import OptionError, TooShortError
from ompb.extras import extra
from ompb.fitting import calibrate
from ompb.forecasters import Ridge
from ompb.inputs import Rows, as_rows, as_series
from ompb.phases import Phase
from ompb.query import AnyForecaster
from ompb.settings import Settings
from ompb.sources import calling
from ompb.studies.parts import UNSEEN_SHARE, unseen_rows
from ompb.studies.result import Study
from ompb.times import Times, as_stamp, shown

with extra("report", needed_by="ompb.studies"):
    import polars as pl

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


def study_each(
    data: Any,
    *,
    source_end: str | int,
    context: int,
    horizon: int,
    season: int | Literal["auto"] | None = "auto",
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster] | None = None,
    unseen: int | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[Any, Study]:
    """Learn from each series up to ``source_end`` and follow the rest, all of one shape at once.

    Args:
        data: tables by id (arrays or frames), or a long frame (unique_id, ds, y).
        source_end: where the target of each begins: a date, or the number of source rows.
        context: rows in a window.
        horizon: rows in a forecast.
        season: rows in a season, None for no season, "auto" to find that of each.
        forecaster: one for all or one for each by id. Without one a ridge regression is fitted to each source less its
            unseen part.
        unseen: rows (int) or share (float) at each source's end that the forecaster was not trained on; 0.25 for the
            built-in one.
        progress: called with (what is being done, steps done, steps in all).
        **options: fields of `ompb.Settings`.

    Raises what `study` raises; the message begins with the id of the series.

    >>> waves = {name: np.sin(np.arange(400) / pace)[:, None] for pace, name in enumerate(("brisk", "calm"), start=2)}
    >>> study_each(waves, source_end=300, context=24, horizon=4, season=None)["calm"]
    Study("'calm', followed by ompb": 100 forecasts of 4 leads, 1 channels; phases: target)
    """
    Settings.of(**options)
    context, horizon = checks.count("context", context), checks.count("horizon", horizon)
    tables: dict[Any, Rows] = {}
    ends: dict[Any, int] = {}
    ridges: dict[Any, Ridge] = {}
    for one, table in as_series(data, "data").items():
        with calling(f"series {one!r}: "):
            rows = tables[one] = as_rows(table, "data")
            end = ends[one] = _source_rows(rows, source_end, context + horizon)
            if forecaster is None:
                kept = unseen_rows(UNSEEN_SHARE if unseen is None else unseen, end)
                ridges[one] = Ridge.fit(rows.values[: end - kept], context, horizon)
    by = ridges if forecaster is None else forecaster
    calibrators = calibrate(
        by,
        {one: _named(rows, slice(0, ends[one])) for one, rows in tables.items()},
        context=context,
        horizon=horizon,
        season=season,
        unseen=UNSEEN_SHARE if forecaster is None and unseen is None else unseen,
        times={one: _times(rows)[: ends[one]] for one, rows in tables.items()},
        progress=partial(progress, "Learning from the sources") if progress else None,
        **options,
    )
    starts = {one: end - context + 1 for one, end in ends.items()}  # so that the first target row has a forecast
    runs = backtest(
        calibrators,
        by,
        {one: rows.values[starts[one] :] for one, rows in tables.items()},
        times={one: _times(rows)[starts[one] :] for one, rows in tables.items()},
        progress=partial(progress, "Following the targets") if progress else None,
    )
    who = "built-in ridge regression" if forecaster is None else "given"
    return {
        one: Study.of(
            run,
            title=f"{one!r}, followed by ompb",
            phases=(Phase("target", context - 1, len(run.rows)),),
            facts={"data": str(one), "forecaster": who, "source": f"{ends[one]} rows"},
            notes=(f"{tables[one].inserted} missing time stamps inserted.",),
        )
        for one, run in runs.items()
    }


def _source_rows(rows: Rows, source_end: str | int, least: int) -> int:
    """How many rows lie before the source's end; rows at or after a date lie behind it."""
    count, place = len(rows.values), as_stamp(source_end, "source_end") if _is_date(source_end) else int(source_end)
    if not isinstance(place, int):
        if rows.times is None or rows.times.dtype.kind != "M":
            raise OptionError(f"source_end = {source_end!r} is a date, and the rows have none; pass a number of rows.")
        place = int(np.searchsorted(rows.times, place))
    if not 0 < place < count:
        span = "" if rows.times is None else f", or a date after {shown(rows.times[0])}, up to {shown(rows.times[-1])}"
        raise OptionError(
            f"source_end = {source_end!r} does not split the {count} rows in two; pass 1 to {count - 1} rows{span}."
        )
    if place < least:
        raise TooShortError(
            f"the source has {place} rows; it needs at least {least} (context + horizon), so move its end, or shorten "
            "context or horizon."
        )
    return place


def _is_date(place: str | int) -> bool:
    return isinstance(place, str) and not place.strip().isdigit()


def _named(rows: Rows, part: slice) -> pl.DataFrame:
    return pl.DataFrame(rows.values[part], schema=list(rows.names), orient="row")


def _times(rows: Rows) -> Times:
    """Row numbers where there are no times."""
    return np.arange(len(rows.values)) if rows.times is None else rows.times
