"""Times of a table: ``datetime64[us]`` (in UTC when the file has an offset), or int64 row numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import DtypeError, OptionError, TimeOrderError, TooShortError
from ompb.extras import extra

with extra("report", needed_by="ompb.datasets.times"):
    import polars as pl

Ints: TypeAlias = NDArray[np.int64]
Times: TypeAlias = NDArray[Any]  # datetime64[us] or int64, for which numpy has no common type

INTEGERS = (-(2**62), 2**62)
DATES = (np.datetime64("0001-01-01T00:00:00.000000"), np.datetime64("9999-12-31T23:59:59.999999"))
ACCEPTED = {
    True: "beyond 2**62; accepted: integers from -2**62 to 2**62, so number the rows instead",
    False: "beyond the calendar; accepted: years 1 to 9999, so correct it",
}


def starts_with_stamp(column: pl.Series) -> bool:
    """Whether a column looks like dates or date-times."""
    if column.dtype != pl.String:
        return column.dtype in (pl.Date, pl.Datetime)
    first = next(iter(column.drop_nulls()), "")
    return whole_number(first) is None and iso_stamp(first) is not None


def whole_number(text: str) -> int | None:
    """The integer a text spells; None for any other text."""
    try:
        return int(text)
    except ValueError:
        return None


def iso_stamp(text: str) -> np.datetime64 | None:
    """An ISO 8601 date or date-time, in UTC if it has an offset; None for any other text."""
    try:
        stamp = datetime.fromisoformat(text.strip())
        naive = stamp.astimezone(UTC).replace(tzinfo=None) if stamp.tzinfo else stamp
    except (ValueError, OverflowError):
        return None
    return np.datetime64(naive, "us")


def times_of(column: pl.Series) -> Times:
    """The column as datetime64[us] or int64; an error names the first cell that is neither."""
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise TimeOrderError(f"Column {column.name!r} has no time in data row {row + 1}; drop or fill that row.")
    if column.dtype.is_integer():
        return column.cast(pl.Int64).to_numpy()
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if column.dtype in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("us")).to_numpy()
    if column.dtype == pl.String:
        return _parsed(column)
    raise DtypeError(
        f"The time column {column.name!r} has the type {column.dtype} (first value {column[0]}); "
        "pass dates, date-times or integers."
    )


def _parsed(column: pl.Series) -> Times:
    whole = column.str.strip_chars().cast(pl.Int64, strict=False)
    if not whole.null_count():
        return whole.to_numpy()
    stamps = [iso_stamp(text) for text in column]
    refused = [text for text, stamp in zip(column, stamps, strict=True) if stamp is None]
    if refused:
        # Among integers the odd one out is the culprit.
        culprit = next((text for text in refused if whole_number(text) is None), refused[0])
        raise DtypeError(
            f"The time column {column.name!r} holds {culprit!r}; "
            "write times as 2024-01-31 or 2024-01-31 23:00:00 (ISO 8601), or as integers."
        )
    return np.array(stamps, dtype="datetime64[us]")


def require_increasing(times: Times, where: str) -> None:
    """Raise `TimeOrderError` unless each time is later than the one before; ``where`` names the table."""
    wrong = np.flatnonzero(times[1:] <= times[:-1])
    if len(wrong):
        before, after = shown(times[wrong[0]]), shown(times[wrong[0] + 1])
        fault = "appears twice" if before == after else f"comes after {before}"
        raise TimeOrderError(
            f"The time {after} {fault} in {where}; each time must be later than the one before, "
            "so sort the rows and keep one for each time."
        )


def shown(stamp: Any) -> str:
    """A stamp as messages show it."""
    return str(stamp).removesuffix(".000000")


def require_representable(times: Times, horizon: int = 0) -> None:
    """Raise `TimeOrderError` where times, or ``horizon`` steps after them, could be neither computed with nor written.

    Integers reach to 2**62 on either side, so that a difference still fits into 64 bits; dates from year 1 to 9999.
    """
    unit = _tick_type(times) if len(times) else times.dtype.str
    is_integer = times.dtype.kind == "i"
    ends = INTEGERS if is_integer else tuple(int(end.astype(unit).astype(np.int64)) for end in DATES)
    counted = times.astype(unit).astype(np.int64)
    # Python's integers, which do not overflow.
    first, last = int(counted.min(initial=ends[1])), int(counted.max(initial=ends[0]))
    if not (ends[0] <= first and last <= ends[1]):
        beyond = times[np.argmin(counted) if first < ends[0] else np.argmax(counted)]
        raise TimeOrderError(f"The time {shown(beyond)} is {ACCEPTED[is_integer]}.")
    if horizon and len(times) > 1 and last + modal_step(times) * horizon > ends[1]:
        raise TimeOrderError(
            f"The {horizon} steps after {shown(times[-1])} reach a time that is {ACCEPTED[is_integer]}, "
            "or drop the last rows."
        )


def _tick_type(times: Times) -> str:
    """What a step counts: calendar months if all times lie at one point of their month, else microseconds."""
    if times.dtype.kind == "i":
        return "int64"
    within = times - times.astype("datetime64[M]")
    return "datetime64[M]" if (within == within[0]).all() else "datetime64[us]"


def ticks(times: Times) -> Ints:
    """Times counted in the unit of their steps."""
    return times.astype(_tick_type(times)).astype(np.int64)


def modal_step(times: Times) -> int:
    """The most frequent step, in ticks."""
    steps, counts = np.unique(np.diff(ticks(times)), return_counts=True)
    return int(steps[np.argmax(counts)])


def steps_from(start: Any, numbers: Ints, times: Times) -> Times:
    """The stamps that lie these numbers of most frequent steps of ``times`` after ``start``."""
    tick = start.astype(_tick_type(times))
    stamps: Times = (tick + modal_step(times) * numbers).astype(times.dtype) + (start - tick)
    return stamps


def with_future(times: Times, horizon: int) -> Times:
    """The times followed by the next ``horizon`` stamps."""
    if horizon < 1:
        raise OptionError(f"horizon = {horizon} is not a positive number of rows; pass at least 1.")
    if len(times) < 2:
        raise TooShortError(f"The table has {len(times)} rows; two are needed to know its time step.")
    require_representable(times, horizon)
    return np.concatenate([times, steps_from(times[-1], np.arange(1, horizon + 1), times)])
