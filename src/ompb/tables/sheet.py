"""A file whose columns are understood: one table of all its series, or one for each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

import numpy as np

from ompb.floor.names import counted
from ompb.floor.times import Times
from ompb.rows.frames import distinct, pivoted
from ompb.seam.sources import calling
from ompb.tables.clock import Clock
from ompb.tables.layout import Layout, chosen
from ompb.tables.options import Reading
from ompb.tables.steps import Placed, placed
from ompb.tables.table import Covariates, Table
from ompb.tables.time_column import called
from ompb.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """The n rows of a file in the order of series and time."""

    name: str  # of the file
    kind: str  # of the file and its layout, in words
    layout: Layout
    reading: Reading
    clock: Clock
    times: Times  # (n,), increasing within each series
    cells: dict[str, Floats]  # (n,) each, of targets and covariates
    labels: list[str]  # the series of each row; empty in a wide table
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the series of a long table that are wanted; none in a wide one."""
        if not self.labels:
            return ()
        beside = (*self.layout.channels, *self.layout.unused)
        return chosen(distinct(self.labels)[0], self.reading, beside)

    def table(self, *, even: bool = True) -> Table:
        """All of it: the series of a long table are channels, each with covariates of its own."""
        table = self._long() if self.labels else self._part(slice(None), self.layout.channels)
        return self._placed(table) if even else table

    def series(self) -> dict[str, Table]:
        """A table of one channel for each series of a long table, by name."""
        ends = np.flatnonzero(np.diff(distinct(self.labels)[1])) + 1
        parts = {self.labels[first]: slice(first, stop) for first, stop in pairwise((0, *ends, len(self.labels)))}
        found = {}
        for name in self.names:
            with calling(f"series {name!r}: "):
                found[name] = self._placed(replace(self._part(parts[name], self.layout.channels), name=name))
        return found

    def _part(self, rows: slice, channels: tuple[str, ...]) -> Table:
        """Some rows as they stand, before they are on even steps."""
        return Table(
            values=np.stack([self.cells[name][rows] for name in channels], axis=1),
            times=self.times[rows],
            channels=channels,
            time_name=self.layout.time,
            name=self.name,
            kind=self.kind,
            notes=self.notes,
            clock=self.clock,
            future=_covariates({name: self.cells[name][rows] for name in self.layout.future}),
        )

    def _long(self) -> Table:
        columns = {}
        for column in (*self.layout.channels, *self.layout.future):
            columns[column], names, times = pivoted(self.labels, self.times, self.cells[column])
        places = [names.index(name) for name in self.names]
        future = {
            f"{column} of {names[place]}": columns[column][:, place]
            for column in self.layout.future
            for place in places
        }
        return replace(
            self._part(slice(0), self.layout.channels),
            values=columns[self.layout.channels[0]][:, places],
            channels=self.names,
            times=times,
            future=_covariates(future),
        )

    def _placed(self, table: Table) -> Table:
        """The table with its times on even steps."""
        if len(table.times) < 2:
            return table
        freq, notes = self.reading.freq, table.notes
        found: Placed = placed(table.times, freq, called(table.time_name))
        if found.rows:
            span = timedelta(microseconds=found.moved)
            notes = (*notes, f"{counted(found.rows, 'time')} rounded to steps of {found.grid}, by {span} at most.")
        if freq is None and found.grid.unit == "business day":
            notes = (
                *notes,
                "No time falls on a weekend: rows are counted in business days, and a holiday is a missing row.",
            )
        return replace(table, times=found.times, grid=found.grid, moved=found.moved, notes=notes)


def _covariates(columns: dict[str, Floats]) -> Covariates | None:
    return Covariates(np.stack(list(columns.values()), axis=1), tuple(columns)) if columns else None
