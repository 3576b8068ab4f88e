"""The rows of a file that are read, each with its place in the file, which messages tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.floor.extras import extra
from ompb.floor.names import counted, opened
from ompb.tables.contents import Contents
from ompb.tables.date_parts import joined
from ompb.tables.heading import has_units
from ompb.tables.lines import Where
from ompb.tables.options import Reading

with extra("report", needed_by="ompb.tables"):
    import polars as pl

Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Cells, and what a user should be told of rows that are not among them."""

    frame: pl.DataFrame
    places: Places  # of each row, among all rows of the file
    told: Where  # such a place, in words
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, contents: Contents, reading: Reading) -> Rows:
        """Those of a file, without a line of units, and with the parts of times in one column."""
        frame = contents.frame
        rows = cls(frame, np.arange(frame.height), contents.where, contents.notes)
        if has_units(frame, reading.missing, contents.decimal):
            words = ", ".join(cell for cell in frame.row(0) if cell is not None)
            note = f"{opened(rows.where(0))} is left out: no row, but {words}."
            rows = rows.without(np.arange(frame.height) == 0, note)
        frame, notes = joined(rows.frame, reading)
        return replace(rows, frame=frame, notes=(*rows.notes, *notes))

    def where(self, row: int) -> str:
        """The place of a row, in words."""
        return self.told(int(self.places[row]))

    def of_columns(self, time: str, *others: str) -> Rows:
        """These columns alone. Rows are counted if there is no time; else those without any cell are left out."""
        names = list(dict.fromkeys((time, *others)))
        if time not in self.frame.columns:
            return replace(self, frame=self.frame.with_row_index(time).select(names))
        empty = self.frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
        count = int(empty.sum())
        rows = self.without(empty, f"{counted(count, 'empty line')} left out.") if count else self
        return replace(rows, frame=rows.frame.select(names))

    def without_copies(self) -> Rows:
        """The first of rows that are the same, cell by cell."""
        again = ~self.frame.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
        copies = int(again.sum())
        if not copies:
            return self
        return self.without(again, f"{counted(copies, 'row')} left out: copies of another one, cell by cell.")

    def turned(self) -> Rows:
        """The last one first."""
        return replace(self, frame=self.frame.reverse(), places=self.places[::-1])

    def without(self, left_out: NDArray[np.bool_], note: str) -> Rows:
        """All but some, with a note on them."""
        return replace(self.among(np.flatnonzero(~left_out)), notes=(*self.notes, note))

    def among(self, kept: Places) -> Rows:
        """Some of them."""
        return replace(self, frame=self.frame[kept], places=self.places[kept])
