"""Times of rows: stamps as ``datetime64[us]`` (naive, in UTC) or as int64, and the even steps they lie on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import DtypeError, ShapeError, TimeOrderError, TooShortError

Times: TypeAlias = NDArray[Any]  # datetime64[us] or int64, for which numpy has no common type
Stamp: TypeAlias = np.datetime64 | int
Unit: TypeAlias = Literal["us", "business day", "month", "month end", "row"]

LAST = np.datetime64("9999-12-31T23:59:59.999999", "us")  # the years 1 to 9999 are those that Python can show
MOST = 4 * 10**18  # integer times lie between -MOST and MOST: so their differences fit into int64
MOST_INSERTED = 10  # rows per row read; more means that the most frequent step is not the step of the data

# Days that bring a stamp to a fixed point of a month, and the days of a month that point may lie in: every month has 28
# days, and the day after a month's last is the first of the next.
_SHIFT: dict[Unit, int] = {"month": 0, "month end": 1}
_DAYS: dict[Unit, int] = {"month": 28, "month end": 1}
# Days without a Saturday or Sunday among them that make a table one of business days: two weeks, hardly by chance.
_WORKING = 10

ACCEPTED = "accepted: dates or date-times (ISO 8601 as text) of the years 1 to 9999, or whole numbers within 4e18"


def as_stamp(value: Any, what: str) -> Stamp:
    """One time as datetime64[us], brought to UTC if it has a time zone, or as int.

    >>> as_stamp("2024-01-31T12:00+02:00", "at")
    np.datetime64('2024-01-31T10:00:00.000000')
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        if abs(int(value)) > MOST:
            raise TimeOrderError(f"{what} is {value}; {ACCEPTED}. Count from a later start.")
        return int(value)
    found = iso_stamp(value) if isinstance(value, str) else _date_time(value, what)
    if found is None:
        raise DtypeError(f"{what} is {value!r}, a {type(value).__name__}; {ACCEPTED}.")
    return found


def as_times(values: Any, what: str) -> Times:
    """Times (n,) as a fresh array of datetime64[us] or int64, in the order given.

    >>> as_times([date(2024, 1, 1), date(2024, 1, 2)], "times").astype(str).tolist()
    ['2024-01-01T00:00:00.000000', '2024-01-02T00:00:00.000000']
    """
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if array.ndim != 1 or not array.size:
        raise ShapeError(f"{what} have shape {array.shape}; accepted: a flat sequence with one time for each row.")
    if array.dtype.kind in "iu":
        for row in {int(array.argmin()), int(array.argmax())}:
            as_stamp(array[row], f"row {row} of {what}")
        return array.astype(np.int64)
    if array.dtype.kind == "M":
        return _in_microseconds(array, lambda row: f"row {row} of {what}")
    stamps = [as_stamp(value, f"row {row} of {what}") for row, value in enumerate(array.tolist())]
    if len({isinstance(stamp, int) for stamp in stamps}) > 1:
        raise DtypeError(f"{what} mix whole numbers and dates; pass one or the other.")
    return np.array(stamps, dtype=np.int64 if isinstance(stamps[0], int) else "datetime64[us]")


def iso_stamp(text: str) -> np.datetime64 | None:
    """An ISO 8601 date or date-time, in UTC if it has an offset; None for any other text."""
    try:
        return _in_utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return None


def shown(stamp: Any) -> str:
    """A stamp as messages show it."""
    return str(stamp).removesuffix(".000000")


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


@dataclass(frozen=True, slots=True)
class Grid:
    """Even steps: of microseconds, business days (Monday to Friday), months, ends of months, or an integer time.

    >>> grid = Grid.of(as_times(["2024-01-31", "2024-02-29", "2024-03-31"], "times"), "the table")
    >>> grid
    Grid(step=1, unit='month end')
    >>> grid.after(as_stamp("2024-12-31", "at"), 2).astype("datetime64[D]").astype(str).tolist()
    ['2025-01-31', '2025-02-28']
    """

    step: int
    unit: Unit

    @classmethod
    def of(cls, times: Times, what: str) -> Grid:
        """The most frequent step of increasing times.

        Those at one point of their months step by months, and days that never fall on a weekend by business days.
        """
        if len(times) < 2:
            raise TooShortError(f"{what} has {len(times)} rows; two are needed to know its time step.")
        require_increasing(times, what)
        unit = _unit(times)
        steps, counts = np.unique(np.diff(_ticks(times, unit)[0]), return_counts=True)
        return cls(int(steps[np.argmax(counts)]), unit)

    def __str__(self) -> str:
        if self.unit == "us":
            return str(timedelta(microseconds=self.step))
        return str(self.step) if self.unit == "row" else f"{self.step} {self.unit}{'s' * (self.step > 1)}"

    def after(self, stamp: Stamp, rows: int) -> Times:
        """The next ``rows`` stamps (rows,)."""
        ticks, phase = self._ticks(np.asarray([stamp]))
        limit = MOST if self.unit == "row" else int(self._ticks(np.asarray([LAST]))[0][0])
        if int(ticks[0]) + self.step * rows > limit:  # Python's integers do not overflow
            raise TimeOrderError(f"{rows} steps of {self} after {shown(stamp)} go too far; {ACCEPTED}.")
        return self._stamps(ticks + self.step * np.arange(1, rows + 1), phase)

    def before(self, stamp: Stamp, rows: int) -> Stamp:
        """The stamp ``rows`` steps earlier.

        >>> Grid(15, "row").before(145, 3)
        100
        """
        ticks, phase = self._ticks(np.asarray([stamp]))
        earlier = self._stamps(ticks - self.step * rows, phase)[0]
        return int(earlier) if self.unit == "row" else np.datetime64(earlier)

    def rows_between(self, earlier: Stamp, later: Stamp) -> int:
        """Steps from one stamp to a later one, at least 1. Raises `TimeOrderError` if it is none, or off the grid.

        Raises `DtypeError` for a stamp of another kind.

        >>> Grid(15, "row").rows_between(100, 145)
        3
        """
        self._require_kind(earlier)
        self._require_kind(later)
        if not later > earlier:
            raise TimeOrderError(f"the time {shown(later)} does not lie after {shown(earlier)}; pass a later one.")
        return int(self.places(np.asarray([earlier, later]))[1])

    def places(self, times: Times) -> NDArray[np.int64]:
        """How many steps each of these times lies after the first of them, (n,)."""
        ticks, phase = self._ticks(times)
        places, rest = np.divmod(ticks - ticks[0], self.step)
        off = np.flatnonzero((rest != 0) | (phase != phase[0]))
        if off.size:
            raise TimeOrderError(
                f"The time {shown(times[off[0]])} is off the grid that starts at {shown(times[0])} with steps of "
                f"{self}; resample to even steps, or number the rows in an integer time column."
            )
        return np.asarray(places)

    def _stamps(self, ticks: NDArray[np.int64], phase: Times) -> Times:
        """The times at these ticks, each so far beyond its own."""
        if self.unit == "business day":
            return np.asarray(_business_days(ticks) + phase)
        if self.unit in _SHIFT:
            shift = np.timedelta64(_SHIFT[self.unit], "D")
            return np.asarray(ticks.astype("datetime64[M]").astype("datetime64[us]") + phase - shift)
        return ticks if self.unit == "row" else ticks.astype("datetime64[us]")

    def _require_kind(self, stamp: Stamp) -> None:
        if (np.asarray(stamp).dtype.kind == "M") != (self.unit != "row"):
            wanted = "whole numbers" if self.unit == "row" else "dates"
            raise DtypeError(f"the time {shown(stamp)} is of another kind than the times so far; pass {wanted}.")

    def _ticks(self, times: Times) -> tuple[NDArray[np.int64], Times]:
        self._require_kind(times[0])
        return _ticks(times, self.unit)


def regular(
    values: NDArray[np.float64], times: Times, what: str, grid: Grid | None = None
) -> tuple[NDArray[np.float64], Times, int]:
    """Rows (T, C) and times with an all-NaN row for each missing stamp, and how many rows were inserted.

    The steps are those of ``grid``, else the most frequent ones. Raises `TimeOrderError` for times that are descending,
    repeated or off the grid.

    >>> values, times, inserted = regular(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 3]), "the table")
    >>> values[:, 0], times, inserted
    (array([ 1.,  2., nan,  4.]), array([0, 1, 2, 3]), 1)
    """
    require_increasing(times, what)
    if grid is None and len(times) < 2:
        return values, times, 0
    grid = grid or Grid.of(times, what)
    places = grid.places(times)
    length = int(places[-1]) + 1
    inserted = length - len(times)
    if inserted > MOST_INSERTED * len(times):
        raise TimeOrderError(
            f"Even steps of {grid} would need {inserted} new rows beside the {len(times)} there are in {what}; "
            "resample to a coarser step, or number the rows in an integer time column."
        )
    full = np.full((length, values.shape[1]), np.nan)
    full[places] = values
    return full, np.concatenate([times[:1], grid.after(times[0], length - 1)]), inserted


def _date_time(value: Any, what: str) -> np.datetime64 | None:
    """A date or date-time of Python, NumPy or pandas; None for anything else."""
    if isinstance(value, np.datetime64):
        return np.datetime64(_in_microseconds(np.asarray([value]), lambda _: what)[0])
    if isinstance(value, datetime):
        if value != value:  # pandas' NaT is a datetime
            raise TimeOrderError(f"{what} is {value}, no time; drop that row or give its time.")
        try:
            return _in_utc(value)
        except OverflowError as error:
            raise TimeOrderError(f"{what} is {value}; {ACCEPTED}.") from error
    if isinstance(value, date):
        return np.datetime64(value, "us")
    if hasattr(value, "to_timestamp"):  # a period of pandas counts by its start
        return _date_time(value.to_timestamp(), what)
    return None


def _in_utc(stamp: datetime) -> np.datetime64:
    return np.datetime64(stamp.astimezone(UTC).replace(tzinfo=None) if stamp.tzinfo else stamp, "us")


def _in_microseconds(times: Times, place: Callable[[int], str]) -> Times:
    """Times of any unit of NumPy as datetime64[us]. The years come first: a cast to microseconds may overflow."""
    absent = np.isnat(times)
    if absent.any():
        raise TimeOrderError(f"{place(int(np.argmax(absent)))} is NaT, no time; drop that row or give its time.")
    years = times.astype("datetime64[Y]").astype(np.int64) + 1970
    wrong = np.flatnonzero((years < 1) | (years > 9999))
    if wrong.size:
        raise TimeOrderError(f"{place(int(wrong[0]))} is of the year {years[wrong[0]]}; {ACCEPTED}.")
    return times.astype("datetime64[us]")


def _unit(times: Times) -> Unit:
    if times.dtype.kind != "M":
        return "row"
    for unit, days in _DAYS.items():
        phase = _ticks(times, unit)[1]
        if (phase == phase[0]).all() and phase[0] < np.timedelta64(days, "D"):
            return unit
    return "business day" if _skips_weekends(times) else "us"


def _skips_weekends(times: Times) -> bool:
    """Whether stamps of at least two weeks are a day apart, at one time of day, and never on a weekend."""
    days = times.astype("datetime64[D]")
    steps = np.diff(times)
    daily = 2 * int((steps == np.timedelta64(1, "D")).sum()) > len(steps)
    return bool(len(times) >= _WORKING and daily and (np.ptp(times - days) == 0) and np.is_busday(days).all())


def _business_days(ticks: NDArray[np.int64]) -> Times:
    """Midnight of the business days that lie so many after that of 1970-01-01, a Thursday."""
    return np.busday_offset(np.datetime64("1970-01-01"), ticks).astype("datetime64[us]")


def _ticks(times: Times, unit: Unit) -> tuple[NDArray[np.int64], Times]:
    """Times counted in that unit, and how far each lies beyond its tick."""
    times = times if unit == "row" else times.astype("datetime64[us]")
    if unit == "business day":  # a weekend is counted as the Monday after it, from which it lies days away
        ticks = np.busday_count(np.datetime64("1970-01-01"), times.astype("datetime64[D]"))
        return ticks.astype(np.int64), times - _business_days(ticks)
    if unit not in _SHIFT:
        return times.astype(np.int64), np.zeros(len(times), dtype="timedelta64[us]")
    shifted = times + np.timedelta64(_SHIFT[unit], "D")
    months = shifted.astype("datetime64[M]")
    return months.astype(np.int64), shifted - months
