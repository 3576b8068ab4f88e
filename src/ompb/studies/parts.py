"""Which rows of a table are learned from and which are followed, and who forecasts them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ompb import checks
from ompb.errors import ForecasterError, OptionError
from ompb.extras import extra
from ompb.forecasters import Recorded, Ridge
from ompb.query import AnyForecaster
from ompb.tables import Table, read_forecasts
from ompb.tables.contents import readable
from ompb.types import Floats

with extra("report", needed_by="ompb.study"):
    import polars as pl

UNSEEN_SHARE = 0.25  # of the source, on which the built-in forecaster is not trained


@dataclass(frozen=True, eq=False)
class Parts:
    """The two parts of a table, as slices of its rows, and a forecaster for each."""

    source: slice
    stream: slice  # with the context - 1 source rows that fill the first window
    on_source: AnyForecaster
    on_stream: AnyForecaster
    unseen: int | None
    forecaster: str  # in words
    notes: tuple[str, ...] = ()

    def facts(self, table: Table, context: int) -> dict[str, str]:
        """For the report."""
        return {
            "forecaster": self.forecaster,
            "source": _span(table, self.source),
            "target": _span(table, slice(self.stream.start + context - 1, self.stream.stop)),
            "not trained on": f"the last {self.unseen} source rows" if self.unseen else "not known",
        }


def choose(
    table: Table,
    source_rows: int,
    context: int,
    horizon: int,
    forecaster: AnyForecaster | None,
    forecasts: str | os.PathLike[str] | None,
    unseen: int | float | None,
    column: str | None,
) -> Parts:
    """With the given forecaster, with recorded forecasts, or with the built-in ridge."""
    source, stream = slice(0, source_rows), slice(source_rows - context + 1, len(table.values))
    if forecasts is not None:
        if forecaster is not None:
            raise OptionError("both a forecaster and recorded forecasts were given; pass one of them.")
        return _brought(table, source, stream, context, horizon, Path(forecasts), unseen, column)
    if isinstance(forecaster, Recorded) and forecaster.times is None:
        raise OptionError(
            "Recorded forecasts without times count from the first row of one part and serve no other; give them "
            "times, or pass the path of a table of them as forecasts=."
        )
    if forecaster is not None:
        kept = None if unseen is None else unseen_rows(unseen, source_rows)
        return Parts(source, stream, forecaster, forecaster, kept, f"the given {type(forecaster).__name__}")
    kept = unseen_rows(UNSEEN_SHARE if unseen is None else unseen, source_rows)
    rows = pl.DataFrame(table.values[: source_rows - kept], schema=list(table.channels), orient="row")  # with names
    ridge = Ridge.fit(rows, context, horizon)
    trained = f"built-in ridge regression, trained on the first {source_rows - kept} rows, then frozen"
    return Parts(source, stream, ridge, ridge, kept, trained)


def unseen_rows(unseen: Any, source_rows: int) -> int:
    """Rows at the source's end, from a number of rows or a share of the source.

    >>> unseen_rows(500, 2000), unseen_rows(0.25, 2000)
    (500, 500)
    """
    accepted = f"rows that leave some of the {source_rows} source rows (500), or a share of them (0.25)"
    wanted = checks.number("unseen", unseen, accepted, 0, source_rows, ends=(False, False))
    rows = round(wanted * source_rows) if wanted < 1 else wanted
    if not 0 < rows < source_rows or rows != int(rows):
        raise checks.refuse("unseen", unseen, accepted)
    return int(rows)


def _brought(
    table: Table,
    source: slice,
    stream: slice,
    context: int,
    horizon: int,
    path: Path,
    unseen: int | float | None,
    column: str | None,
) -> Parts:
    """As much of both parts as the recorded forecasts cover."""
    read = read_forecasts(path, table, horizon, column)
    recorded = read.forecasts
    first, last = _covered(recorded, source.stop, horizon)
    source = slice(max(0, first - context + 1), source.stop)
    forecaster = Recorded(recorded, table.times)
    notes = [*read.notes]
    if source.start:
        notes.append(f"The forecasts begin at {table.shown(first)}: {source.start} source rows are not used.")
    if last < len(table.values) - 1:
        notes.append(f"The forecasts end at {table.shown(last)}: later rows are outcomes only.")
    return Parts(
        source=source,
        stream=stream,
        on_source=forecaster,
        on_stream=forecaster,
        unseen=None if unseen is None else unseen_rows(unseen, source.stop - source.start),
        forecaster=f"forecasts recorded in {readable(path.name)}",
        notes=tuple(notes),
    )


def _covered(recorded: Floats, source_rows: int, horizon: int) -> tuple[int, int]:
    """The first and the last origin with a forecast; there are some for source and target."""
    covered = np.flatnonzero(~np.isnan(recorded).all(axis=(1, 2)))
    for part, found in (("source", covered < source_rows - horizon), ("target", covered >= source_rows)):
        if not found.any():
            raise ForecasterError(
                f"the forecasts have no cutoff in the {part}; bring forecasts for source and target, or move the "
                "source's end."
            )
    return int(covered[0]), int(covered[-1])


def _span(table: Table, rows: slice) -> str:
    return f"{rows.stop - rows.start} rows, {table.shown(rows.start)} to {table.shown(rows.stop - 1)}"
