"""Times whose parts stand in columns of their own: date and hour, year and week, beginning and end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time
from typing import NamedTuple

import numpy as np

from ompb.floor.extras import extra
from ompb.rows.frames import TIME_NAMES
from ompb.tables.cells import looks_numeric
from ompb.tables.layout import ID_NAMES, TOLD_APART
from ompb.tables.options import Reading
from ompb.tables.stamps import holding_dates
from ompb.tables.weeks import first_days

with extra("report", needed_by="ompb.tables"):
    import polars as pl

_TIME_OF_DAY = r"^\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?\s*$"
_INTERVAL = r"^\s*(.*\d)\s+[-–—]\s+(\d.*)$"  # the beginning of a row and its end
_HOURS = ("hour", "hr", "he", "hour ending", "hour_ending", "hourending", "hour beginning", "hour_beginning")
# Names, in lower case, of columns that hold a part of a date, and which parts make a whole one.
_PART = re.compile(
    r"(?:(?:iso|epi|epidemiological|mmwr|calendar|reporting)[ _.-]?)?(year|quarter|month|week|day|hour|minute)"
)
_FORMS = (
    ("year", "month", "day", "hour", "minute"),
    ("year", "month", "day", "hour"),
    ("year", "month", "day"),
    ("year", "month"),
    ("year", "week"),
    ("year", "quarter"),
)


class Whole(NamedTuple):
    """Times (n,), the columns whose place they take, and what the user is told."""

    times: pl.Series
    parts: tuple[str, ...]
    note: str


def joined(frame: pl.DataFrame, reading: Reading) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The frame with one column of times in place of their parts, and a note; as it is if they are in one already.

    >>> frame = pl.DataFrame({"day": ["31.01.2024"], "hour": ["23:00"], "load": ["5"]})
    >>> joined(frame, Reading())[0].to_dict(as_series=False)
    {'day': ['31.01.2024 23:00'], 'load': ['5']}
    """
    said = {*reading.id, reading.value, *reading.target, *reading.exclude, *reading.future}
    free = [column for column in frame if column.name not in said]
    dates = [_as_date(column) for column in holding_dates(free) if reading.time in (None, column.name)]
    days = [column for column in dates if _is_bare(column)]
    found = _beginning(free, reading) or _day_and_time(free, days) or _day_and_hour(free, days)
    if found is None and reading.time is None and not holding_dates(free):
        found = _year_and_more(free)
        found = found if found is not None and _tells_apart(found, frame, reading) else None
    if found is None:
        return frame, ()
    first, *others = found.parts
    return frame.with_columns(found.times.alias(first)).drop(others).rename({first: found.times.name}), (found.note,)


def _tells_apart(found: Whole, frame: pl.DataFrame, reading: Reading) -> bool:
    """Whether the times tell most rows apart, those of each series; else there are parts that have no column."""
    names = [
        column.name
        for column in frame.drop(found.parts)
        if column.name in reading.id or column.name.lower() in ID_NAMES or not looks_numeric(column, reading.missing)
    ]
    return frame.select(found.times.alias(found.parts[0]), *names).n_unique() >= TOLD_APART * frame.height


def _beginning(free: Sequence[pl.Series], reading: Reading) -> Whole | None:
    """Of rows each of which has its beginning and its end in one cell."""
    both = [column for column in _texts(free) if _all_like(column, _INTERVAL)]
    begins = holding_dates(column.str.extract(_INTERVAL, 1) for column in both)
    asked = [column for column in begins if reading.time in (None, column.name)]
    if len(asked) != 1:
        return None
    (times,) = asked
    return Whole(times, (times.name,), f"{times.name!r} tells when a row begins and ends: it counts by its beginning.")


def _day_and_time(free: Sequence[pl.Series], days: Sequence[pl.Series]) -> Whole | None:
    """Of dates in one column and times of day in another, as meters and spreadsheets write them."""
    clocks = [column for column in _texts(free) if _all_like(column, _TIME_OF_DAY)]
    if len(days) != 1 or len(clocks) != 1:
        return None
    (day,), (clock,) = days, clocks
    whole = day.cast(pl.String).str.strip_chars() + " " + clock.str.strip_chars()
    return Whole(whole, (day.name, clock.name), f"{clock.name!r} is the time of day of {day.name!r}.")


def _day_and_hour(free: Sequence[pl.Series], days: Sequence[pl.Series]) -> Whole | None:
    """Of dates that come again and again, with a column that is called the hour."""
    named = [column for column in free if column.name.lower() in _HOURS]
    hours = _hours_of(_whole_numbers(named[0])) if len(named) == 1 else None
    if hours is None or len(days) != 1 or days[0].n_unique() == len(days[0]):
        return None
    (day,), (hour,) = days, named
    from_one = ", from 1 to 24: the first begins at 00:00" if hours[1] else ""
    whole = day.cast(pl.String).str.strip_chars() + " " + _two_digits(hours[0]) + ":00"
    return Whole(whole, (day.name, hour.name), f"{hour.name!r} is the hour of {day.name!r}{from_one}.")


def _year_and_more(free: Sequence[pl.Series]) -> Whole | None:
    """Of columns that are called year and month, year and week and the like, where there is no date."""
    if any(column.name.lower() in TIME_NAMES for column in free):
        return None
    named = [(part[1], column) for column in free if (part := _PART.fullmatch(column.name.lower()))]
    columns = dict(named)
    form = next((form for form in _FORMS if set(form) <= set(columns)), ())
    wholes = {part: whole for part in form if (whole := _whole_numbers(columns[part])) is not None}
    if not form or len(columns) < len(named) or len(wholes) < len(form):  # two columns of years say nothing
        return None
    times, more = _weeks(wholes) if "week" in form else _dates(wholes)
    if times is None:
        return None
    names = tuple(columns[part].name for part in form)
    listed = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}"
    return Whole(times.alias(", ".join(names)), names, f"{listed} are parts of one time{more}.")


def _weeks(parts: dict[str, pl.Series]) -> tuple[pl.Series | None, str]:
    found = first_days(parts["year"].to_numpy(), parts["week"].to_numpy())
    return (None, "") if found is None else (pl.Series(np.datetime_as_string(found[0])), f", weeks of {found[1]}")


def _dates(parts: dict[str, pl.Series]) -> tuple[pl.Series | None, str]:
    """ISO 8601; None if one is no date, or of a year without its century."""
    first = pl.repeat(1, len(parts["year"]), eager=True)
    hours = _hours_of(parts.get("hour", 0 * first))
    if hours is None or bool((parts["year"] < 1000).any()):
        return None, ""
    months = 3 * parts["quarter"] - 2 if "quarter" in parts else parts["month"]
    days = parts["year"].cast(pl.String) + "-" + _two_digits(months) + "-" + _two_digits(parts.get("day", first))
    times = days + "T" + _two_digits(hours[0]) + ":" + _two_digits(parts.get("minute", 0 * first))
    missing = times.str.to_datetime("%Y-%m-%dT%H:%M", strict=False).null_count()
    return None if missing else times, ", hours from 1 to 24: the first begins at 00:00" if hours[1] else ""


def _hours_of(numbers: pl.Series | None) -> tuple[pl.Series, bool] | None:
    """Hours from 0 to 23, and whether they were counted from 1 to 24; None if they are no hours."""
    found = set() if numbers is None else set(numbers)
    if numbers is None or not found <= set(range(25)) or {0, 24} <= found:
        return None
    return (numbers - 1, True) if 24 in found else (numbers, False)


def _whole_numbers(column: pl.Series) -> pl.Series | None:
    """None if some cell is no whole number; one may be written as 2024.0."""
    if not (column.dtype == pl.String or column.dtype.is_numeric()):
        return None
    plain = column.str.strip_chars() if column.dtype == pl.String else column
    numbers = plain.cast(pl.Float64, strict=False)
    whole = not numbers.null_count() and bool((numbers.is_finite() & (numbers == numbers.floor())).all())
    return numbers.cast(pl.Int64) if whole else None


def _two_digits(numbers: pl.Series) -> pl.Series:
    return numbers.cast(pl.String).str.zfill(2)


def _as_date(column: pl.Series) -> pl.Series:
    """Date-times that are all at midnight as dates, others as they are."""
    naive = column.dtype == pl.Datetime and getattr(column.dtype, "time_zone", None) is None
    return column.dt.date() if naive and bool((column.dt.time() == time(0)).all()) else column


def _is_bare(column: pl.Series) -> bool:
    """Whether dates come without a time of day."""
    return column.dtype == pl.Date or (column.dtype == pl.String and not column.str.contains(":", literal=True).any())


def _texts(columns: Sequence[pl.Series]) -> list[pl.Series]:
    return [column for column in columns if column.dtype == pl.String]


def _all_like(column: pl.Series, form: str) -> bool:
    known = column.drop_nulls()
    return len(known) > 0 and bool(known.str.contains(form).all())
