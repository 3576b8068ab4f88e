"""A file as tables: cells, columns, times and steps, one after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import InputError, TimeOrderError
from ompb.extras import extra
from ompb.frames import distinct
from ompb.names import counted
from ompb.tables.cells import numbers
from ompb.tables.clock import Clock
from ompb.tables.contents import read_contents
from ompb.tables.layout import Layout, recognise
from ompb.tables.options import Reading
from ompb.tables.sheet import Sheet
from ompb.tables.stamps import Stamps, stamps_of
from ompb.tables.table import Table
from ompb.tables.time_column import called
from ompb.times import Times

with extra("report", needed_by="ompb.tables"):
    import polars as pl

# The quote that `write_table` puts before a text that a spreadsheet would run.
QUOTED_FORMULA = r"^'([=+\-@\t\r])"
DAY = np.timedelta64(1, "D")

Places: TypeAlias = NDArray[np.intp]


def read_table(path: str | Path, reading: Reading | None = None, *, even: bool = True) -> Table:
    r"""The user's own table, from text (CSV and its kin, gzip too) or Parquet; ``-`` is standard input.

    Wide: one column of times, the others are channels. Long: several rows for each time, one column tells the series
    apart and one holds the values; channels come in order of first appearance, rows are the union of the times. What
    cannot be told from the file, or should be otherwise, a `Reading` says. Times must keep ``even`` steps, but for gaps
    and a little jitter.

    Times are dates or date-times, or integers; without any, rows are counted. Empty cells and NA, N/A, NaN, null,
    None, X (in any case) are missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "load.csv"
    >>> _ = path.write_text("date;load;temperature\n2024-01-01;5,5;X\n2024-01-02;6;-1\n")
    >>> table = read_table(path)
    >>> table.channels
    ('load', 'temperature')
    >>> table.values
    array([[ 5.5,  nan],
           [ 6. , -1. ]])
    """
    return _sheet(path, reading or Reading()).table(even=even)


def read_series(path: str | Path, reading: Reading | None = None, *, together: bool = False) -> dict[str, Table]:
    """Each series of a file, by name, on even steps of its own.

    A wide table is one series, of all its channels, called as the file. A long one has a series of one channel for each
    id; ``together``, or where there is one id only, it is one series whose channels they are, as `read_table` has it.
    """
    sheet = _sheet(path, reading or Reading())
    if together or len(sheet.names) < 2:
        return {sheet.name: sheet.table()}
    return sheet.series()


def _sheet(path: str | Path, reading: Reading) -> Sheet:
    contents = read_contents(path, reading.sep, reading.decimal)
    frame = _without_empty(contents.frame)
    layout = recognise(frame, reading, contents.decimal)
    if layout.time not in frame.columns:
        frame = frame.with_row_index(layout.time)
    frame = frame.select(*dict.fromkeys((layout.time, *layout.ids, *layout.channels, *layout.future)))
    frame, notes = _without_copies(frame) if reading.timezone is None else (frame, ())  # an hour may come twice
    frame, stamps = _forward(frame, layout.time)
    labels = _labels(frame, layout.ids) if layout.ids else None
    clock = Clock.of(stamps, reading.timezone)
    times = clock.rows(stamps, None if labels is None else distinct(labels)[1])
    order, said = _order(times, labels, layout, clock)
    cells = {
        name: numbers(frame[name], reading.missing, contents.decimal, flags=name in layout.future)[order]
        for name in (*layout.channels, *layout.future)
    }
    return Sheet(
        name=contents.name,
        kind=f"{contents.kind}; {layout}",
        layout=layout,
        reading=reading,
        clock=clock,
        times=times[order],
        cells=cells,
        labels=[labels[row] for row in order] if labels is not None else [],
        notes=(*layout.notes, *notes, *said),
    )


def identities(column: pl.Series) -> list[str]:
    """The series of each row as text, without the quote that `write_table` puts before a formula."""
    texts = column.cast(pl.String).str.replace(QUOTED_FORMULA, "$1")
    if texts.null_count():
        row = int(texts.is_null().arg_max() or 0)
        raise InputError(f"Column {column.name!r} is empty in data row {row + 1}; name the series of that row.")
    return texts.to_list()


def _without_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Without columns that have neither name nor cells: those after a separator at the end of each line."""
    return frame.drop([column.name for column in frame if not column.name and column.null_count() == len(column)])


def _without_copies(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    different = frame.unique(maintain_order=True)
    copies = frame.height - different.height
    return different, (f"{counted(copies, 'row')} left out: copies of another one, cell by cell.",) if copies else ()


def _forward(frame: pl.DataFrame, time: str) -> tuple[pl.DataFrame, Stamps]:
    """Rows and their times, turned round where they run from the newest to the oldest."""
    stamps = stamps_of(frame[time])
    if np.sign(np.diff(stamps.utc).astype(np.int64)).sum() >= 0:
        return frame, stamps
    offset = None if stamps.offset is None else stamps.offset[::-1]
    return frame.reverse(), replace(stamps, wall=stamps.wall[::-1], offset=offset)


def _labels(frame: pl.DataFrame, ids: tuple[str, ...]) -> list[str]:
    return ["/".join(parts) for parts in zip(*(identities(frame[name]) for name in ids), strict=True)]


def _order(times: Times, labels: list[str] | None, layout: Layout, clock: Clock) -> tuple[Places, tuple[str, ...]]:
    """Rows sorted by series and time, and a note if times did not increase; one that comes twice is refused."""
    series = np.zeros(len(times), dtype=np.int64) if labels is None else distinct(labels)[1]
    order = np.lexsort((times, series))
    ordered = times[order]
    twice = np.flatnonzero((np.diff(series[order]) == 0) & (ordered[1:] == ordered[:-1]))
    if len(twice):
        of = called(layout.time) if labels is None else f"the series {labels[order[twice[0]]]!r}"
        raise TimeOrderError(_said_twice(ordered[twice[0]], len(twice), of, ordered, clock, labels is None))
    if np.array_equal(order, np.argsort(series, kind="stable")):
        return order, ()
    return order, ("The rows were not in the order of time and are sorted.",)


def _said_twice(stamp: object, count: int, of: str, times: Times, clock: Clock, wide: bool) -> str:
    others = {1: "", 2: ", and so does 1 other"}.get(count, f", and so do {count - 1} others")
    fault = f"The time {clock.shown(stamp)} appears twice in {of}{others}"
    steps = np.abs(np.diff(times))
    finer = times.dtype.kind == "M" and bool((steps[steps != np.timedelta64(0)] < DAY).any())
    if finer and not clock.known:
        return (
            f"{fault}. If clocks went back there, name the zone of the times, for example --timezone Europe/Berlin, "
            "and both hours are kept; otherwise keep one row for each time."
        )
    series = ", or name the column that tells several series apart with --id" if wide else ""
    return f"{fault}; keep one row for each time{series}."
