"""Which rows of a table are learned from and which are followed, and who forecasts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.errors import ForecasterError, OptionError, TooShortError
from ompb.floor import checks
from ompb.floor.extras import extra
from ompb.forecasters import Recorded, Ridge
from ompb.offline.fitting import Order
from ompb.seam.query import AnyForecaster
from ompb.studies.lacking import require_whole
from ompb.tables import ForecastLines, Table
from ompb.types import Floats

with extra("report", needed_by="ompb.study"):
    import polars as pl

UNSEEN_SHARE = 0.25  # of the source, on which the built-in forecaster is not trained


@dataclass(frozen=True, eq=False)
class Parts:
    """The two parts of a table, as slices of its rows, and the forecaster of both."""

    source: slice
    stream: slice  # with the context - 1 source rows that fill the first window
    by: AnyForecaster
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
    order: Order,
    forecaster: AnyForecaster | None,
    forecasts: ForecastLines | None,
) -> Parts:
    """With the given forecaster, with recorded forecasts, or with the built-in ridge."""
    source, stream = slice(0, source_rows), slice(source_rows - order.context + 1, len(table.values))
    if forecasts is not None:
        return _brought(table, source, stream, order, forecasts)
    if isinstance(forecaster, Recorded) and forecaster.times is None:
        raise OptionError(
            "Recorded forecasts without times count from the first row of one part and serve no other; give them "
            "times, or pass the path of a table of them as forecasts=."
        )
    kept = unseen_rows(order.unseen, source_rows)
    if forecaster is not None:
        return Parts(source, stream, forecaster, kept, f"the given {type(forecaster).__name__}")
    trained = source_rows - (kept or 0)
    rows = pl.DataFrame(table.values[:trained], schema=list(table.channels), orient="row")  # with names
    ridge = Ridge.fit(rows, order.context, order.horizon)
    words = f"built-in ridge regression, trained on the first {trained} rows, then frozen"
    return Parts(source, stream, ridge, kept, words)


def is_brought(forecaster: Any, forecasts: Any, column: str | None) -> bool:
    """Whether a forecaster or recorded forecasts were given; raises if both were, or a column of none."""
    if forecaster is not None and forecasts is not None:
        raise OptionError("both a forecaster and recorded forecasts were given; pass one of them.")
    if column is not None and forecasts is None:
        raise OptionError(
            f"{column!r} names a column of recorded forecasts (--model, in Python column=), and there are none; bring "
            "the table (--forecasts, in Python forecasts=), or name no column."
        )
    return forecaster is not None or forecasts is not None


def as_unseen(unseen: Any) -> int | float:
    """A number of rows (int) or a share of the source (float), checked.

    >>> as_unseen(500.0), as_unseen(0.25)
    (500, 0.25)
    """
    accepted = "rows at the end of the source (500), or a share of it (0.25)"
    wanted = checks.number("unseen", unseen, accepted, 0, checks.MOST, ends=(False, False))
    if wanted >= 1 and wanted != int(wanted):
        raise checks.refuse("unseen", unseen, accepted)
    return int(wanted) if wanted >= 1 else wanted


def unseen_rows(unseen: int | float | None, source_rows: int) -> int | None:
    """Rows at the source's end; None if it is not known what the forecaster has seen.

    >>> unseen_rows(500, 2000), unseen_rows(0.25, 2000)
    (500, 500)
    """
    if unseen is None:
        return None
    rows = unseen if isinstance(unseen, int) else round(unseen * source_rows)
    if not 0 < rows < source_rows:
        raise TooShortError(
            f"the source has {source_rows} rows, and unseen = {unseen} leaves one side of it empty; pass another "
            "number of rows (500), or a share (0.25)."
        )
    return rows


def _brought(table: Table, source: slice, stream: slice, order: Order, forecasts: ForecastLines) -> Parts:
    """As much of both parts as the recorded forecasts cover."""
    read = forecasts.of(table, order.horizon)
    recorded = read.forecasts
    first, last = _covered(recorded, source.stop, order.horizon)
    source = slice(max(0, first - order.context + 1), source.stop)
    learned = np.arange(source.start + order.context - 1, source.stop - order.horizon)
    require_whole(recorded, np.concatenate([learned, np.arange(source.stop, len(recorded))]), table, forecasts.name)
    notes = [*read.notes]
    if source.start:
        notes.append(f"The forecasts begin at {table.shown(first)}: {source.start} source rows are not used.")
    if last < len(table.values) - 1:
        notes.append(f"The forecasts end at {table.shown(last)}: later rows are outcomes only.")
    return Parts(
        source=source,
        stream=stream,
        by=Recorded(recorded, table.times),
        unseen=unseen_rows(order.unseen, source.stop - source.start),
        forecaster=f"forecasts recorded in {forecasts.name}",
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
