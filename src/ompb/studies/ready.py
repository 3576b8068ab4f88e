"""A series that can be learned from and followed: what is known of it before anything is learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ompb.errors import OptionError, TooShortError
from ompb.floor import checks
from ompb.floor.extras import extra
from ompb.floor.names import counted, in_words, opened
from ompb.offline.fitting import Order, certificate_start
from ompb.rows.inputs import as_rows
from ompb.rows.phases import Phase
from ompb.seam.given import Given
from ompb.seam.query import AnyForecaster, Forecaster
from ompb.studies.ahead import known_ahead
from ompb.studies.late import without_late
from ompb.studies.parts import UNSEEN_SHARE, Parts, as_unseen, choose, unseen_rows
from ompb.tables import ForecastLines, Table, regular, split_row, with_future
from ompb.tables.suspicion import suspicions
from ompb.types import Floats

with extra("report", needed_by="ompb.study"):
    import polars as pl

Place: TypeAlias = str | int  # of a table: an ISO date or date-time, or a number of rows


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of every series."""

    source_end: str
    order: Order

    @classmethod
    def of(
        cls, source_end: Any, context: Any, horizon: Any, season: Any, unseen: Any, brought: bool, options: Any
    ) -> Asked:
        """Checked, as far as that needs no rows; ``brought`` are the forecasts, or their forecaster, by the user."""
        if season is not None and season != "auto":
            season = checks.count("season", season, least=2, or_else="auto, None, or ")
        if unseen is None and not brought:
            unseen = UNSEEN_SHARE
        order = Order.of(context, horizon, season, None if unseen is None else as_unseen(unseen), 1, options)
        return cls(str(source_end), order)


@dataclass(frozen=True, eq=False)
class Ready:
    """A table, which of its rows are learned from and which are followed, and what the user should be told of it."""

    table: Table
    future: Floats | None  # covariates known ahead, (T + horizon, K)
    parts: Parts
    phases: tuple[Phase, ...]  # in rows of the stream
    size: str  # in words
    notes: tuple[str, ...]
    inserted: int  # missing time stamps
    called: str = ""  # what an error says first, where there are other series

    @classmethod
    def of(
        cls,
        data: Any,
        asked: Asked,
        forecaster: AnyForecaster | None,
        forecasts: ForecastLines | None,
        phases: Mapping[str, Place] | None = None,
        name: str | None = None,
        called: str = "",
    ) -> Ready:
        """From a `Table`, a frame or an array, which bears this name if one is given."""
        table, inserted = _on_even_steps(data, name)
        order = asked.order
        size = f"{counted(len(table.values), 'row')} of {counted(len(table.channels), 'channel')}"
        notes = [*table.notes, *suspicions(table)]
        table, future, said = known_ahead(table, order.horizon, forecaster is not None)
        source_rows = split_row(table, asked.source_end)
        _require_room(table, source_rows, order)
        if forecaster is None:
            built_in = forecasts is None
            kept = unseen_rows(order.unseen, source_rows) if built_in else 0
            span = order.context + order.horizon if built_in else 1
            table, late = without_late(table, source_rows - (kept or 0), source_rows, span)
            said += late
        said += _without_outcome(table, source_rows)
        parts = choose(table, source_rows, order, forecaster, forecasts)
        learned = parts.source.stop - parts.source.start
        certificate_start(learned, order.unseen, order.settings.certificate_share, order.context + order.horizon)
        judged_by = _phases(table, parts, source_rows, phases or {"target": source_rows})
        return cls(table, future, parts, judged_by, size, (*notes, *said, *parts.notes), inserted, called)

    def learned(self, by: Forecaster) -> Given:
        """What is learned from."""
        part, future = self.parts.source, self.future
        rows = pl.DataFrame(self.table.values[part], schema=list(self.table.channels), orient="row")
        return Given(by, rows, self.table.times[part], None if future is None else future[part], self.called)

    def followed(self, by: Forecaster, horizon: int) -> Given:
        """What is followed."""
        part, future = self.parts.stream, self.future
        ahead = None if future is None else future[part.start : part.stop + horizon]
        return Given(by, self.table.values[part], self.table.times[part], ahead, self.called)

    def sentence(self) -> str:
        """How large it is."""
        return f"{self.table.name}: {self.size}, {counted(self.inserted, 'missing time stamp')} inserted."

    def facts(self, context: int) -> dict[str, str]:
        """For the report."""
        clock = self.table.clock
        words = {"times": f"{clock} in words and files; UTC in pictures"} if clock.known else {}
        return {"data": self.table.name, **self.parts.facts(self.table, context), **words}


def _on_even_steps(data: Any, name: str | None) -> tuple[Table, int]:
    """The data as rows on even steps, and how many of them were inserted."""
    if isinstance(data, Table):
        return regular(data if name is None else replace(data, name=name))
    rows = as_rows(data, "data")
    times = np.arange(len(rows.values)) if rows.times is None else rows.times
    return Table(rows.values, times, rows.names, "row", name or "data"), rows.inserted


def _require_room(table: Table, source_rows: int, order: Order) -> None:
    """Refuse sizes that the source cannot fill, and times whose next ``horizon`` stamps cannot be written."""
    span = order.context + order.horizon
    if source_rows < span:
        raise TooShortError(
            f"the source has {source_rows} rows; it needs at least {span} (context + horizon), so move its end, or "
            "shorten context or horizon."
        )
    if isinstance(order.season, int) and source_rows < order.season:
        raise TooShortError(
            f"the source has {source_rows} rows, less than the season of {order.season}; move its end, or pass a "
            "shorter season, auto or none."
        )
    with_future(table.times, order.horizon)


def _without_outcome(table: Table, source_rows: int) -> tuple[str, ...]:
    """What is said of channels that have values in the source alone; the first target row is no outcome."""
    known = ~np.isnan(table.values)
    if len(known) == source_rows + 1:
        return ()
    ended = np.flatnonzero(known.any(axis=0) & ~known[source_rows + 1 :].any(axis=0))
    return tuple(
        f"{opened(in_words(table.channels[place]))} has no value after "
        f"{table.shown(np.flatnonzero(known[:, place])[-1])}, and so no outcome in the target: it is forecast, and "
        "scores do not count it. Let the source end earlier (--source-end), or leave it out (--exclude)."
        for place in ended
    )


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
