"""What the columns of a file are: times, series, values, covariates, row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ompb.errors import InputError
from ompb.floor.extras import extra
from ompb.floor.names import listed
from ompb.rows.frames import LONG
from ompb.tables.cells import looks_numeric
from ompb.tables.options import Reading
from ompb.tables.time_column import called, find_time, quoted, require_column

with extra("report", needed_by="ompb.tables"):
    import polars as pl

# Names, in lower case, of columns of whole numbers that tell series apart, and of values in long tables.
ID_NAMES = (LONG[0], "id", "series", "series_id", "item", "item_id", "store", "sensor", "sensor_id", "station", "site")
VALUE_NAMES = (LONG[2], "value", "values", "target")
# Share of rows that series and time together must tell apart.
TOLD_APART = 0.95


@dataclass(frozen=True, slots=True)
class Layout:
    """The part of each column."""

    time: str
    channels: tuple[str, ...]  # of a long table: the column of values
    ids: tuple[str, ...] = ()  # empty: the table is wide
    future: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()  # columns of a long table

    def __str__(self) -> str:
        if not self.ids:
            return "wide (one row for each time)"
        return f"long (series in {quoted(self.ids)}, values in {quoted(self.channels)})"


def recognise(frame: pl.DataFrame, reading: Reading, decimal: str = ".") -> Layout:
    """The layout of a frame, as far as the user leaves it open."""
    for name in (reading.time, *reading.id, reading.value, *reading.future):
        if name is not None:
            require_column(frame, name)
    numeric = partial(looks_numeric, missing=reading.missing, decimal=decimal)
    found = find_time(frame, reading, numeric)
    frame, time, notes = found.frame, found.time, [*found.notes]
    ids = reading.id or _found_ids(frame, time, [column.name for column in frame if not numeric(column)], reading)
    rest = [name for name in frame.columns if name not in (time, *ids, *reading.future)]
    if not ids:
        return Layout(time, _targets(rest, reading, time), (), reading.future, tuple(notes))
    value = _value(rest, [name for name in rest if numeric(frame[name])], reading)
    unused = tuple(name for name in rest if name != value)
    if unused:
        notes.append(f"Not used: {quoted(unused)}; the values are in {called(value)}.")
    return Layout(time, (value,), ids, reading.future, tuple(notes), unused)


def chosen(names: Sequence[str], reading: Reading, beside: Sequence[str] = ()) -> tuple[str, ...]:
    """Those of the series that the user wants, in the order of the table; ``beside`` are columns that are none."""
    targets, known = {*reading.target} - {*beside}, {*names, *beside}
    for name in (*reading.target, *reading.exclude):
        if name not in known:
            raise InputError(f"There is no column {name!r}; the table has {listed(list(names))}. Correct the name.")
    wanted = tuple(name for name in names if name not in reading.exclude and (not targets or name in targets))
    if not wanted:
        raise InputError(f"No column is left to forecast of {listed(list(names))}; exclude fewer.")
    return wanted


def _found_ids(frame: pl.DataFrame, time: str, words: Sequence[str], reading: Reading) -> tuple[str, ...]:
    """The column that tells series apart, if times repeat; empty if they do not."""
    if {LONG[0], reading.value or LONG[2]} <= set(frame.columns):
        return (LONG[0],)
    if time not in frame.columns or frame[time].n_unique() == frame.height:
        return ()
    taken = (time, reading.value, *reading.target, *reading.exclude, *reading.future)
    free = [name for name in frame.columns if name not in taken]
    maybe = [name for name in free if name in words or name.lower() in ID_NAMES]
    told = [name for name in maybe if frame.select(name, time).n_unique() >= TOLD_APART * frame.height]
    if len(told) > 1:
        raise InputError(
            f"Times repeat in {called(time)}, and {quoted(told)} may each tell the series apart; name one with --id."
        )
    if not told and len(maybe) > 1 and frame.select(time, *maybe).n_unique() >= TOLD_APART * frame.height:
        raise InputError(
            f"Times repeat in {called(time)}, and {quoted(maybe)} tell the series apart together; name those you need, "
            f"for example {' '.join(f'--id {name!r}' for name in maybe)}."
        )
    return tuple(told)


def _value(rest: Sequence[str], numeric: Sequence[str], reading: Reading) -> str:
    if reading.value is not None:
        return reading.value
    named = [name for name in rest if name in reading.target]
    named = named or [name for name in rest if name.lower() in VALUE_NAMES]
    free = [name for name in (named or numeric) if name not in reading.exclude]
    if len(free) != 1:
        raise InputError(
            f"The table has several series and {len(free)} columns of numbers beside them ({quoted(free) or 'none'}); "
            "name the one to forecast with --value."
        )
    return free[0]


def _targets(rest: Sequence[str], reading: Reading, time: str) -> tuple[str, ...]:
    if not rest:
        raise InputError(f"There is no numeric column beside the time column {time!r}; add the values.")
    return chosen(rest, reading)
