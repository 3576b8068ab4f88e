"""A table in memory: evenly timed rows of named channels, and what a reader should be told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ompb.errors import InputError, OptionError, TooShortError
from ompb.floor.checks import count
from ompb.floor.names import in_words, listed, opened
from ompb.floor.times import Grid, Times, shown
from ompb.floor.times import regular as regular_rows
from ompb.tables.clock import Clock
from ompb.tables.stamps import whole_number
from ompb.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """Columns known ahead of time, beside the rows of a table."""

    values: Floats  # (T, K)
    names: tuple[str, ...]  # (K,)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A multivariate series: ``values`` (T, C) with NaN for missing, ``times`` (T,) strictly increasing.

    Times are datetime64[us] (see `ompb.tables.clock` for whose) or, for an integer time column, int64.
    """

    values: Floats
    times: Times
    channels: tuple[str, ...]
    time_name: str
    name: str = "data"  # of the file
    kind: str = ""  # of the file and its layout, in words
    notes: tuple[str, ...] = ()  # what was done to it that the user may not expect
    clock: Clock = field(default_factory=Clock)
    grid: Grid | None = None  # the steps of the times, if they are known
    moved: int = 0  # how far the furthest time was rounded, in microseconds
    future: Covariates | None = None

    def select(self, channels: Sequence[str]) -> Table:
        """The same rows with these channels only, in this order."""
        for channel in channels:
            if channel not in self.channels:
                raise InputError(f"The table has no channel {channel!r}; it has {', '.join(self.channels)}.")
        columns = [self.channels.index(channel) for channel in channels]
        return replace(self, values=self.values[:, columns], channels=tuple(channels))

    def shown(self, row: int) -> str:
        """The time of a row, by the table's clock."""
        return self.clock.shown(self.times[row])


def left_out_empty(channel: str) -> str:
    """What is said of a channel without values."""
    return f"{opened(in_words(channel))} has no value at all and is left out."


def without_empty(table: Table) -> Table:
    """Without channels that have no value, which a note names, as ``ompb run`` does it; all of them if none has any."""
    kept = [name for name, column in zip(table.channels, table.values.T, strict=True) if not np.isnan(column).all()]
    if not kept or len(kept) == len(table.channels):
        return table
    said = tuple(left_out_empty(name) for name in table.channels if name not in kept)
    return replace(table.select(kept), notes=(*table.notes, *said))


def common_channels(a: Table, b: Table) -> tuple[str, ...]:
    """The channels that both tables have, in the order of the first; at least one."""
    common = tuple(channel for channel in a.channels if channel in b.channels)
    if not common:
        raise InputError(
            f"No channel is in both tables: one has {listed(a.channels)}, the other {listed(b.channels)}; rename the "
            "columns that mean the same."
        )
    return common


def regular(table: Table) -> tuple[Table, int]:
    """The table with an all-NaN row for each missing stamp, and how many were inserted: see `ompb.floor.times.regular`.

    Covariates of an inserted row are those of the row before.

    >>> table = Table(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 3]), ("y",), "row")
    >>> full, inserted = regular(table)
    >>> full.values[:, 0], inserted
    (array([ 1.,  2., nan,  4.]), 1)
    """
    values, times, inserted = regular_rows(table.values, table.times, table.name, table.grid)
    if not inserted:
        return table, 0
    future = table.future
    if future is not None:
        last = np.searchsorted(table.times, times, side="right") - 1
        future = replace(future, values=future.values[last])
    return replace(table, values=values, times=times, future=future), inserted


def with_future(times: Times, horizon: int) -> Times:
    """The times of a table followed by the next ``horizon`` stamps."""
    return np.concatenate([times, Grid.of(times, "The table").after(times[-1], count("horizon", horizon))])


def split_row(table: Table, place: str, name: str = "source_end") -> int:
    """How many rows lie before a place, from a number of rows or a date or date-time by the table's clock.

    Rows at or after the date lie behind it. Both parts must have a row; ``name`` says in errors whose place it is.

    >>> days = np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]").astype("datetime64[us]")
    >>> table = Table(np.zeros((4, 1)), days, ("y",), "date")
    >>> split_row(table, "3"), split_row(table, "2024-01-02")
    (3, 1)
    """
    if len(table.times) < 2:
        raise TooShortError(f"the table has {len(table.times)} row; pass one with rows for both source and target.")
    rows, shown = whole_number(place), place
    if rows is None:
        rows, shown = _rows_before(table, place, name), repr(place)
    if not 0 < rows < len(table.times):
        dates = f", or a date like 2024-01-31, after {table.shown(0)} and up to {table.shown(-1)}"
        most = len(table.times) - 1
        few = ", which are too few for it" if rows > most else ""
        raise TooShortError(
            f"{name} = {shown} does not split the {most + 1} rows in two{few}; pass 1 to {most} rows"
            f"{'' if table.times.dtype.kind == 'i' else dates}."
        )
    return rows


def _rows_before(table: Table, place: str, name: str) -> int:
    if existing := table.clock.next_after_skipped(place):
        raise OptionError(
            f"{name} = {place!r} does not exist in {table.clock}, where clocks go forward over it; the next time that "
            f"does is {existing}: write that."
        )
    stamp = table.clock.row_time(place)
    if stamp is None:
        raise OptionError(
            f"{name} = {place!r} is neither a number of rows nor a date; write 1000, 2024-01-31 or 2024-01-31T12:00."
        )
    if table.times.dtype.kind == "i":
        raise OptionError(
            f"{name} = {place!r} is a date and the table's times are integers, from {shown(table.times[0])}; pass a "
            "number of rows."
        )
    return int(np.searchsorted(table.times, stamp))
