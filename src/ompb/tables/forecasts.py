"""Forecasts that were made elsewhere, in a table with one line for each series, origin and lead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import DtypeError, InputError, TimeOrderError
from ompb.floor.names import counted, listed
from ompb.floor.times import Times
from ompb.rows.frames import distinct, parts_of_each
from ompb.tables.cells import looks_numeric, numbers
from ompb.tables.contents import Contents, read_contents
from ompb.tables.options import Reading
from ompb.tables.reading import identities
from ompb.tables.rows import Places, Rows
from ompb.tables.stamps import Stamps, stamps_of
from ompb.tables.steps import nearest
from ompb.tables.table import Table, with_future
from ompb.tables.time_column import require_column
from ompb.types import Floats

Ints: TypeAlias = NDArray[np.int64]

ID, TIME, CUTOFF, FORECAST = "unique_id", "ds", "cutoff", "y_hat"
OUTCOME = "y"  # Nixtla's tables have it, too
BANDS = ("-lo-", "-hi-", "_lo_", "_hi_", "lower", "upper")  # parts of names of columns with the ends of intervals


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTable:
    """Forecasts (T, horizon, C) by the row of their cutoff, NaN where there is none, and what was left out."""

    forecasts: Floats
    notes: tuple[str, ...] = ()


def read_forecasts(path: str | Path, table: Table, horizon: int, column: str | None = None) -> RecordedTable:
    """Recorded forecasts of a table: ``[t, h - 1, c]`` is the one made at row t for row t + h of channel c.

    The file has the columns unique_id (may be absent when the table has one channel), ds, cutoff (the last row known
    when it was made), and the forecasts: in ``column``, else in y_hat, else in the only other column of numbers that is
    neither y nor an end of an interval, as in the tables that Nixtla's cross_validation makes. Leads are counted in
    rows of the table, so pass one without gaps (see ``regular``). Leads beyond the horizon, and series that the table
    does not have, are left out and noted; so are copied lines.
    """
    return ForecastLines.read(path, column).of(table, horizon)


@dataclass(frozen=True, slots=True, eq=False)
class ForecastLines:
    """The lines of a file of forecasts, or those of one series."""

    name: str  # of the file
    rows: Rows
    made: Stamps  # when: the cutoffs
    due: Stamps  # for when
    column: str  # of the forecasts
    decimal: str = "."

    @classmethod
    def read(cls, path: str | Path, column: str | None = None) -> ForecastLines:
        """All of a file; what it has to hold, `read_forecasts` says."""
        contents = read_contents(path)
        rows = Rows.of(contents, Reading())
        values = _forecast_column(contents, column)
        made, due = (stamps_of(rows.frame[name], rows.where) for name in (CUTOFF, TIME))
        return cls(contents.name, rows, made, due, values, contents.decimal)

    def by_series(self) -> dict[str, ForecastLines]:
        """Those of each series, by its unique_id."""
        frame = self.rows.frame
        require_column(frame, ID)
        names, numbered = distinct(identities(frame[ID], self.rows.where))
        unnamed = replace(self, rows=replace(self.rows, frame=frame.drop(ID)))
        return {name: unnamed.among(places) for name, places in zip(names, parts_of_each(numbered), strict=True)}

    def among(self, kept: Places) -> ForecastLines:
        """Some of them."""
        return replace(self, rows=self.rows.among(kept), made=self.made.among(kept), due=self.due.among(kept))

    def of(self, table: Table, horizon: int) -> RecordedTable:
        """As an array beside the rows of a table."""
        channel, unused = _channels(self.rows, table)
        lines = self.among(np.flatnonzero(channel >= 0)) if unused else self
        rows, channel = lines.rows, channel[channel >= 0]
        known = with_future(table.times, horizon)
        origin, _ = _positions(lines.made, CUTOFF, table, table.times)
        place, beyond = _positions(lines.due, TIME, table, known)
        lead = np.where(beyond, horizon + 1, place - origin)
        _require_later(rows, lead)
        kept = lead <= horizon
        notes = (*rows.notes, *unused)
        if self.due.offset is not None and not table.clock.known:
            notes += (
                f"{self.name}: its times have offsets of UTC and those of the table have none, so that these are taken "
                "for UTC; if they are not, name their clock with --timezone.",
            )
        if not kept.all():
            left = int((~kept).sum())
            notes += (f"{self.name}: leads beyond the horizon of {horizon} are left out ({left} lines).",)
        forecasts = np.full((len(table.times), horizon, len(table.channels)), np.nan)
        cells = np.ravel_multi_index((origin[kept], lead[kept] - 1, channel[kept]), forecasts.shape)
        values = numbers(rows.frame[self.column], decimal=self.decimal, where=rows.where)[kept]
        once = _without_copies(rows, np.flatnonzero(kept), cells, values)
        if len(once) < len(cells):
            notes += (f"{self.name}: {counted(len(cells) - len(once), 'line')} left out: copies of another one.",)
        forecasts.flat[cells[once]] = values[once]
        return RecordedTable(forecasts, notes)


def _forecast_column(contents: Contents, column: str | None) -> str:
    """The column of forecasts."""
    frame = contents.frame
    for needed in (TIME, CUTOFF):
        if needed not in frame.columns:
            raise InputError(
                f"{contents.name!r} has no column {needed!r}, only {listed(frame.columns)}; a table of forecasts needs "
                f"{ID} (unless there is one channel), {TIME}, {CUTOFF} (the last time known when it was made) and "
                f"{FORECAST}: rename or add columns."
            )
    if column is not None:
        require_column(frame, column)
    if column is not None or FORECAST in frame.columns:
        return column or FORECAST
    models = [
        one.name
        for one in frame
        if one.name not in ("", "index", ID, TIME, CUTOFF, OUTCOME)
        and not any(band in one.name.lower() for band in BANDS)
        and looks_numeric(one, decimal=contents.decimal)
    ]
    if len(models) != 1:
        raise InputError(
            f"{contents.name!r} has no column {FORECAST!r}, and {listed(models) or 'no other column'} may hold the "
            "forecasts; name the column with --model."
        )
    return models[0]


def _channels(rows: Rows, table: Table) -> tuple[Ints, tuple[str, ...]]:
    """The channel of each line, -1 where the table has no such one, and what is said of those lines."""
    if ID not in rows.frame.columns and len(table.channels) == 1:
        return np.zeros(rows.frame.height, dtype=np.int64), ()
    require_column(rows.frame, ID)
    names, numbered = distinct(identities(rows.frame[ID], rows.where))
    place = {channel: number for number, channel in enumerate(table.channels)}
    unknown = [name for name in names if name not in place]
    if len(unknown) == len(names):
        raise InputError(
            f"The forecasts have unique_id {unknown[0]!r}; the table has the channels {listed(table.channels)}. "
            "Rename them alike."
        )
    note = (f"Forecasts of {listed(unknown)} are not used: the table has no such channel.",) if unknown else ()
    return np.array([place.get(name, -1) for name in names])[numbered], note


def _positions(found: Stamps, name: str, table: Table, stamps: Times) -> tuple[Ints, NDArray[np.bool_]]:
    """The position of each time of a column among ``stamps``, which are sorted, and whether it lies after them."""
    times = table.clock.rows(found)
    if times.dtype.kind != stamps.dtype.kind:
        held, wanted = ("integers", "dates") if times.dtype.kind == "i" else ("dates", "integers")
        raise DtypeError(f"Column {name!r} holds {held} and the table's times are {wanted}; write both alike.")
    positions = nearest(times, stamps)
    slack = np.timedelta64(table.moved, "us") if stamps.dtype.kind == "M" else 0
    beyond = (times > stamps[-1] + slack) & (name == TIME)
    missed = (np.abs(stamps[positions] - times) > slack) & ~beyond
    if missed.any():
        raise TimeOrderError(
            f"{name} = {table.clock.shown(times[missed][0])} is not on the table's steps from "
            f"{table.clock.shown(stamps[0])} to {table.clock.shown(stamps[-1])}; drop such forecasts, fill the gaps of "
            "the table, or raise the horizon."
        )
    return positions.astype(np.int64), beyond


def _require_later(rows: Rows, lead: Ints) -> None:
    wrong = np.flatnonzero(lead < 1)
    if len(wrong):
        row = int(wrong[0])
        raise TimeOrderError(
            f"The forecast {_told(rows, row)} has lead {lead[row]}; leads begin with 1, for cutoff is the last time "
            "known: drop it."
        )


def _without_copies(rows: Rows, kept: Ints, cells: Ints, values: Floats) -> Ints:
    """The places of the first line for each of the ``cells``; another one must have the same value."""
    _, first, which = np.unique(cells, return_index=True, return_inverse=True)
    before = values[first][which]
    other = np.flatnonzero(~((values == before) | (np.isnan(values) & np.isnan(before))))
    if len(other):
        raise TimeOrderError(
            f"The forecast {_told(rows, int(kept[other[0]]))} repeats one of the same series with another value; keep "
            "one of them."
        )
    return first.astype(np.int64)


def _told(rows: Rows, row: int) -> str:
    return f"for ds = {rows.frame[TIME][row]} from cutoff = {rows.frame[CUTOFF][row]} in {rows.where(row)}"
