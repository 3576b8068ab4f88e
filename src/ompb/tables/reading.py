"""A file as a table: cells, columns, times and steps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import InputError, TimeOrderError
from ompb.extras import extra
from ompb.frames import distinct, pivoted
from ompb.names import counted
from ompb.tables.cells import holds_any, maybe_thousands, numbers, sign_beside
from ompb.tables.clock import Clock
from ompb.tables.contents import Contents, read_contents
from ompb.tables.layout import Layout, chosen, recognise
from ompb.tables.lines import Where, row_of_table
from ompb.tables.options import Reading
from ompb.tables.rows import Rows
from ompb.tables.stamps import Stamps, stamps_of
from ompb.tables.steps import Placed, placed
from ompb.tables.table import Covariates, Table
from ompb.tables.time_column import called
from ompb.times import Times
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
    reading = reading or Reading()
    contents = read_contents(path, reading.sep, reading.decimal)
    rows = Rows.of(contents, reading)
    layout = recognise(rows.frame, reading, contents.decimal)
    rows = rows.of_columns(layout.time, *layout.ids, *layout.channels, *layout.future)
    if reading.timezone is None:  # else an hour may come twice
        rows = rows.without_copies()
    stamps = stamps_of(rows.frame[layout.time], rows.where)
    if np.sign(np.diff(stamps.utc).astype(np.int64)).sum() < 0:  # from the newest to the oldest
        rows, stamps = rows.turned(), stamps.turned()
    table = _table(contents, rows, stamps, layout, reading)
    table = replace(table, notes=(*layout.notes, *rows.notes, *table.notes))
    return _placed(table, reading.freq) if even else table


def identities(column: pl.Series, where: Where = row_of_table) -> list[str]:
    """The series of each row as text, without the quote that `write_table` puts before a formula."""
    texts = column.cast(pl.String).str.replace(QUOTED_FORMULA, "$1")
    if texts.null_count():
        row = int(texts.is_null().arg_max() or 0)
        raise InputError(f"Column {column.name!r} is empty in {where(row)}; name the series of that row.")
    return texts.to_list()


def _table(contents: Contents, rows: Rows, stamps: Stamps, layout: Layout, reading: Reading) -> Table:
    """All but the steps."""
    labels = _labels(rows, layout.ids) if layout.ids else None
    clock = Clock.of(stamps, reading.timezone)
    times = clock.rows(stamps, None if labels is None else distinct(labels)[1])
    order, notes = _order(times, labels, layout, clock, rows.where)
    times = times[order]
    columns = rows.frame.select(*layout.channels, *layout.future)
    cells = {
        column.name: numbers(
            column, reading.missing, contents.decimal, flags=column.name in layout.future, where=rows.where
        )[order]
        for column in columns
    }
    notes += (
        *_signs_left_out(columns, reading.missing),
        *_never_missing(columns, reading.missing, contents.decimal),
        *(_maybe_thousands(columns, contents) if reading.decimal is None else ()),
    )
    table = Table(np.empty((0, 0)), times, (), layout.time, contents.name, f"{contents.kind}; {layout}", notes, clock)
    if labels is None:
        future = {name: cells[name] for name in layout.future}
        values = np.stack([cells[name] for name in layout.channels], axis=1)
        return replace(table, values=values, channels=layout.channels, future=_covariates(future))
    return _from_long(table, cells, [labels[row] for row in order], layout, reading)


def _from_long(table: Table, cells: dict[str, Floats], labels: list[str], layout: Layout, reading: Reading) -> Table:
    """One channel for each series, and a covariate of its own for each of them."""
    values, names, times = pivoted(labels, table.times, cells[layout.channels[0]])
    wanted = chosen(names, reading, (*layout.channels, *layout.unused))
    places = [names.index(name) for name in wanted]
    future = {
        f"{column} of {names[place]}": pivoted(labels, table.times, cells[column])[0][:, place]
        for column in layout.future
        for place in places
    }
    return replace(table, values=values[:, places], channels=wanted, times=times, future=_covariates(future))


def _covariates(columns: dict[str, Floats]) -> Covariates | None:
    return Covariates(np.stack(list(columns.values()), axis=1), tuple(columns)) if columns else None


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


def _placed(table: Table, freq: str | None) -> Table:
    """The table with its times on even steps."""
    if len(table.times) < 2:
        return table
    found: Placed = placed(table.times, freq, called(table.time_name))
    notes = table.notes
    if found.rows:
        span = timedelta(microseconds=found.moved)
        notes = (*notes, f"{counted(found.rows, 'time')} rounded to steps of {found.grid}, by {span} at most.")
    if freq is None and found.grid.unit == "business day":
        notes = (
            *notes,
            "No time falls on a weekend: rows are counted in business days, and a holiday is a missing row.",
        )
    return replace(table, times=found.times, grid=found.grid, moved=found.moved, notes=notes)
