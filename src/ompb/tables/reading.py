"""A file as tables: cells, columns, times and steps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import InputError, TimeOrderError
from ompb.floor.extras import extra
from ompb.floor.times import Times
from ompb.rows.frames import distinct
from ompb.tables.cells import holds_any, maybe_thousands, numbers, sign_beside
from ompb.tables.clock import Clock
from ompb.tables.contents import Contents, read_contents
from ompb.tables.layout import Layout, recognise
from ompb.tables.lines import Where, row_of_table
from ompb.tables.options import Reading
from ompb.tables.rows import Rows
from ompb.tables.sheet import Sheet
from ompb.tables.stamps import stamps_of
from ompb.tables.table import Table
from ompb.tables.time_column import called
from ompb.types import Floats

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
    rows = Rows.of(contents, reading)
    layout = recognise(rows.frame, reading, contents.decimal)
    rows = rows.of_columns(layout.time, *layout.ids, *layout.channels, *layout.future)
    if reading.timezone is None:  # else an hour may come twice
        rows = rows.without_copies()
    stamps = stamps_of(rows.frame[layout.time], rows.where)
    if np.sign(np.diff(stamps.utc).astype(np.int64)).sum() < 0:  # from the newest to the oldest
        rows, stamps = rows.turned(), stamps.turned()
    labels = _labels(rows, layout.ids) if layout.ids else None
    clock = Clock.of(stamps, reading.timezone)
    times = clock.rows(stamps, None if labels is None else distinct(labels)[1])
    order, said = _order(times, labels, layout, clock, rows.where)
    columns = rows.frame.select(*layout.channels, *layout.future)
    return Sheet(
        name=contents.name,
        kind=f"{contents.kind}; {layout}",
        layout=layout,
        reading=reading,
        clock=clock,
        times=times[order],
        cells={name: cells[order] for name, cells in _cells(columns, rows, contents, layout, reading).items()},
        labels=[labels[row] for row in order] if labels is not None else [],
        notes=(*layout.notes, *rows.notes, *said, *_doubts(columns, contents, reading)),
    )


def identities(column: pl.Series, where: Where = row_of_table) -> list[str]:
    """The series of each row as text, without the quote that `write_table` puts before a formula."""
    texts = column.cast(pl.String).str.replace(QUOTED_FORMULA, "$1")
    if texts.null_count():
        row = int(texts.is_null().arg_max() or 0)
        raise InputError(f"Column {column.name!r} is empty in {where(row)}; name the series of that row.")
    return texts.to_list()


def _cells(
    columns: pl.DataFrame, rows: Rows, contents: Contents, layout: Layout, reading: Reading
) -> dict[str, Floats]:
    """The numbers of targets and covariates, by name, (n,) each."""
    return {
        column.name: numbers(
            column, reading.missing, contents.decimal, flags=column.name in layout.future, where=rows.where
        )
        for column in columns
    }


def _doubts(columns: pl.DataFrame, contents: Contents, reading: Reading) -> tuple[str, ...]:
    """What the user should know of how cells were read."""
    return (
        *_signs_left_out(columns, reading.missing),
        *_never_missing(columns, reading.missing, contents.decimal),
        *(_maybe_thousands(columns, contents) if reading.decimal is None else ()),
    )


def _labels(rows: Rows, ids: tuple[str, ...]) -> list[str]:
    return ["/".join(parts) for parts in zip(*(identities(rows.frame[name], rows.where) for name in ids), strict=True)]


def _signs_left_out(columns: pl.DataFrame, missing: Sequence[str]) -> tuple[str, ...]:
    signs = {column.name: sign_beside(column, missing) for column in columns}
    return tuple(f"{sign!r} beside the numbers of {called(name)} is left out." for name, sign in signs.items() if sign)


def _never_missing(columns: pl.DataFrame, missing: Sequence[str], decimal: str) -> tuple[str, ...]:
    """What is said of words for missing cells that no cell has."""
    absent = [word for word in missing if not any(holds_any(column, word, decimal) for column in columns)]
    return tuple(f"No cell is {word}, which --missing names: nothing was left out for it." for word in absent)


def _maybe_thousands(columns: pl.DataFrame, contents: Contents) -> tuple[str, ...]:
    """A doubt that only the user can settle; where commas stand between cells, a point is a point."""
    texts = [column.alias("") for column in columns if column.dtype == pl.String]
    if contents.sep == "," or not texts or not maybe_thousands(pl.concat(texts), contents.decimal):
        return ()
    other = "," if contents.decimal == "." else "."
    return (
        f"Every number with a {contents.decimal} has three digits after it, which are taken for decimals: if the sign "
        f"sets thousands apart, say --decimal {other}",
    )


def _order(
    times: Times, labels: list[str] | None, layout: Layout, clock: Clock, where: Where
) -> tuple[Places, tuple[str, ...]]:
    """Rows sorted by series and time, and a note if times did not increase; one that comes twice is refused."""
    series = np.zeros(len(times), dtype=np.int64) if labels is None else distinct(labels)[1]
    order = np.lexsort((times, series))
    ordered = times[order]
    twice = np.flatnonzero((np.diff(series[order]) == 0) & (ordered[1:] == ordered[:-1]))
    if len(twice):
        one, other = sorted(order[twice[0] : twice[0] + 2].tolist())
        of = called(layout.time) if labels is None else f"the series {labels[one]!r}"
        of = f"{of} (second time: {where(other)})"
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
