"""Which column of a file holds the times, and which only numbers its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

from ompb.errors import InputError
from ompb.floor.extras import extra
from ompb.floor.names import listed, opened
from ompb.rows.frames import LONG, TIME_NAMES
from ompb.tables.options import Reading
from ompb.tables.stamps import ACCEPTED, are_dates, holding_dates

with extra("report", needed_by="ompb.tables"):
    import polars as pl

# Names under which pandas and others write the numbers of rows.
UNNAMED = ("", "Unnamed: 0", "column_0", "__index_level_0__", "level_0")
INDEX = (*UNNAMED, "index")
ROW_NUMBER = "row number"  # the time of a table without times


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The name of the time column, all columns but row numbers that are not needed, and what to tell the user."""

    time: str
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def find_time(frame: pl.DataFrame, reading: Reading, numeric: Callable[[pl.Series], bool]) -> Found:
    """The time column: the one that is named, else found by its name or its dates, else row numbers."""
    _require_names(frame)
    said = {reading.time, *reading.id, reading.value, *reading.target, *reading.exclude, *reading.future}
    numbered = [column.name for column in frame if column.name not in said and _numbers_rows(column)][:1]
    others = frame.drop(numbered)
    dates = _time_columns(others, reading)
    if not dates and numbered:
        return Found(numbered[0], frame, (f"There is no column of times: {called(numbered[0])} numbers the rows.",))
    rising = [column.name for column in others if _rises(column)]
    if not dates and not rising and all(numeric(column) for column in others):
        return Found(ROW_NUMBER, frame, ("There is no column of times: rows are counted.",))
    words = next((column for column in others if not numeric(column)), None)
    time = _only(dates, frame, rising, words)
    notes = [f"{opened(called(name))} holds row numbers and is left out." for name in numbered]
    if time in UNNAMED:
        notes.append(f"{opened(called(time))} holds the times.")
    return Found(time, others, tuple(notes))


def _require_names(frame: pl.DataFrame) -> None:
    """Raise if columns are named by dates: there is no header, or the table lies on its side."""
    dates = list(compress(frame.columns, are_dates(frame.columns)))
    if len(dates) > 1:
        raise InputError(
            f"The columns {listed(dates)} are times; turn the table round, so that there is a row for each time."
        )
    if dates:
        raise InputError(f"The first line of the file is {listed(frame.columns)}: put a line of names above it.")


def require_column(frame: pl.DataFrame, name: str) -> None:
    """Raise unless the frame has that column."""
    if name not in frame.columns:
        raise InputError(f"There is no column {name!r}; the file has {listed(frame.columns)}. Correct the name.")


def called(name: str) -> str:
    """A column as messages call it."""
    return f"the column {name!r}" if name else "the column without a name"


def quoted(names: Sequence[str]) -> str:
    """Columns in a row, as messages call them.

    >>> quoted(["a", "b"])
    "'a', 'b'"
    """
    return listed([repr(name) for name in names])


def _numbers_rows(column: pl.Series) -> bool:
    """Whether a column is an index that was written along: 0, 1, 2, ..., or with rows left out if it has no name."""
    if column.name not in INDEX or column.null_count() or column.dtype == pl.Float64:
        return False
    if not (column.dtype == pl.String or column.dtype.is_integer()):
        return False
    steps = column.cast(pl.Int64, strict=False).diff().drop_nulls()
    if len(steps) < len(column) - 1:
        return False
    return bool((steps > 0).all()) if column.name in UNNAMED else bool((steps == 1).all())


def _rises(column: pl.Series) -> bool:
    """Whether a column is of whole numbers each larger than the one before, as times and row numbers are."""
    whole = column.cast(pl.Int64, strict=False) if column.dtype == pl.String or column.dtype.is_integer() else None
    return (
        whole is not None and len(whole) > 2 and not whole.null_count() and bool((whole.diff().drop_nulls() > 0).all())
    )


def _time_columns(frame: pl.DataFrame, reading: Reading) -> list[str]:
    """Columns that may hold the times."""
    if reading.time is not None:
        return [reading.time]
    if set(LONG) <= set(frame.columns):
        return [LONG[1]]
    taken = {*reading.id, reading.value, *reading.target, *reading.exclude, *reading.future}
    free = [column for column in frame if column.name not in taken]
    named = [column.name for column in free if column.name.lower() in TIME_NAMES]
    return named or [column.name for column in holding_dates(free)]


def _only(found: Sequence[str], frame: pl.DataFrame, rising: Sequence[str], words: pl.Series | None) -> str:
    """The one column that was found; ``words`` is the first that holds texts, in which times may be."""
    if len(found) == 1:
        return found[0]
    columns = listed(frame.columns)
    if found:
        raise InputError(
            f"Found {len(found)} time columns ({listed(list(found))}) among {columns}; name one with --time (a date "
            "and a time of day have to be joined in one column)."
        )
    if frame.width == 1:
        raise InputError(
            f"The file has one column only, {columns}; if another sign stands between cells, say it with --sep, for "
            "example --sep space."
        )
    maybe = f" ({quoted(rising)} may be it)" if rising else ""
    odd = f"; {words.drop_nulls()[0]!r} in {called(words.name)} is no time: {ACCEPTED}" if words is not None else ""
    raise InputError(f"Found no time column among {columns}; name it with --time{maybe}, or add one of dates{odd}.")
