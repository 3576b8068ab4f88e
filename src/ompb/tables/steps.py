"""The even steps of a table: those a user names, or those its times nearly keep."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from ompb.errors import OptionError, TimeOrderError
from ompb.floor import checks
from ompb.floor.times import Grid, Times, Unit, shown

# How far from its place, as a share of the step, a time may lie to be rounded without being asked to.
JITTER = 0.1
SECOND = 1_000_000
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
MONTH = 30.4 * DAY  # on average, to tell how long a step is
# Steps that instruments have, in microseconds.
USUAL = tuple(
    unit * count
    for unit, counts in (
        (SECOND, (1, 2, 5, 10, 15, 20, 30)),
        (60 * SECOND, (1, 2, 3, 5, 6, 10, 12, 15, 20, 30)),
        (HOUR, (1, 2, 3, 4, 6, 8, 12)),
        (DAY, (1, 2, 7, 14)),
    )
    for count in counts
)
# The names of pandas and polars, old and new.
FIXED = {
    **dict.fromkeys(("us", "microsecond"), 1),
    **dict.fromkeys(("ms", "millisecond"), 1000),
    **dict.fromkeys(("s", "sec", "second", "S"), SECOND),
    **dict.fromkeys(("min", "T", "m", "minute"), 60 * SECOND),
    **dict.fromkeys(("h", "H", "hour"), HOUR),
    **dict.fromkeys(("D", "d", "day"), DAY),
    **dict.fromkeys(("W", "w", "week"), 7 * DAY),
}
CALENDAR: dict[str, tuple[int, Unit]] = {
    "B": (1, "business day"),
    **dict.fromkeys(("M", "ME", "BM", "BME"), (1, "month end")),
    **dict.fromkeys(("MS", "BMS", "mo", "month"), (1, "month")),
    **dict.fromkeys(("Q", "QE", "BQ", "BQE"), (3, "month end")),
    **dict.fromkeys(("QS", "BQS", "q", "quarter"), (3, "month")),
    **dict.fromkeys(("Y", "YE", "A", "BY", "BYE"), (12, "month end")),
    **dict.fromkeys(("YS", "AS", "BYS", "y", "year"), (12, "month")),
}
EXAMPLES = "15min, h, D, B (Monday to Friday), W, MS or ME (start or end of months), QE, YE"


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Times brought to their places, and the steps they keep."""

    times: Times
    grid: Grid
    moved: int = 0  # how far the furthest was, in microseconds
    rows: int = 0  # that were moved


def grid_of(freq: str) -> Grid:
    """The steps that a name stands for.

    >>> grid_of("15min"), grid_of("B"), grid_of("2QE")
    (Grid(step=900000000, unit='us'), Grid(step=1, unit='business day'), Grid(step=6, unit='month end'))
    """
    found = re.fullmatch(r"\s*(\d{0,6})\s*([A-Za-z]+)(-[A-Za-z]{3})?\s*", freq)
    count, name = (int(found[1] or 1), found[2]) if found else (0, "")
    for form in (name, name.removesuffix("s") if len(name) > 3 else name):
        if count and form in CALENDAR:
            step, unit = CALENDAR[form]
            return Grid(count * step, unit)
        if count and form in FIXED:
            return Grid(count * FIXED[form], "us")
    raise checks.refuse("freq", freq, f"names such as {EXAMPLES}, with a number before them if need be")


def placed(times: Times, freq: str | None, where: str) -> Placed:
    """Sorted times on even steps: those of ``freq``, else those they keep, but for a jitter that is rounded away.

    With ``freq``, each time goes to the nearest place, however far; without, at most a tenth of a step.
    """
    if times.dtype.kind != "M":
        if freq is not None:
            raise OptionError(f"freq = {freq!r} speaks of dates, and the table's times are integers; leave it out.")
        return Placed(times, Grid.of(times, where))
    grid = Grid.of(times, where) if freq is None else grid_of(freq)
    if _keeps(grid, times):
        return Placed(times, grid)
    if freq is None:
        grid = _usual(times) or grid
    near = _nearest(grid, times)
    moved = np.abs(times - near).astype("timedelta64[us]").astype(np.int64)
    worst = int(np.argmax(moved))
    if freq is None and moved[worst] > JITTER * _length(grid):
        raise TimeOrderError(
            f"The times in {where} keep no even steps: {shown(times[worst])} lies "
            f"{timedelta(microseconds=int(moved[worst]))} from the nearest step of {grid}. Name the step with "
            f"--freq ({EXAMPLES}) and times are brought to the nearest one; or number the rows instead."
        )
    twice = np.flatnonzero(near[1:] == near[:-1])
    if len(twice):
        one, other = times[twice[0]], times[twice[0] + 1]
        raise TimeOrderError(
            f"The times {shown(one)} and {shown(other)} in {where} fall on the same step of {grid}; name a shorter "
            "step with --freq, or keep one row for each."
        )
    return Placed(near, grid, int(moved[worst]), int((moved > 0).sum()))


def nearest(times: Times, stamps: Times) -> Times:
    """The place among increasing ``stamps`` that each of ``times`` is nearest to, (n,) of int."""
    after = np.clip(np.searchsorted(stamps, times), 1, max(len(stamps) - 1, 1))
    if len(stamps) == 1:
        return np.zeros(len(times), dtype=np.int64)
    closer = times - stamps[after - 1] < stamps[after] - times
    return np.asarray(after - closer)


def _keeps(grid: Grid, times: Times) -> bool:
    try:
        grid.places(times)
    except TimeOrderError:
        return False
    return True


def _usual(times: Times) -> Grid | None:
    """The usual step nearest to a short step of these times, if one is near: long ones are gaps."""
    typical = float(np.quantile(np.diff(times).astype(np.int64), 0.25))
    if typical > 25 * DAY:
        months = round(typical / MONTH)
        from_start = (times - times.astype("datetime64[M]")).astype(np.int64)
        return Grid(months, "month" if np.median(from_start) < MONTH / 2 else "month end")
    step = min(USUAL, key=lambda usual: abs(typical - usual))
    return Grid(step, "us") if abs(typical - step) <= JITTER * step else None


def _length(grid: Grid) -> float:
    """Of a step, in microseconds."""
    return grid.step * {"us": 1, "business day": DAY, "month": MONTH, "month end": MONTH, "row": 1}[grid.unit]


def _nearest(grid: Grid, times: Times) -> Times:
    if grid.unit == "us":
        phase = _phase(times, grid.step)
        ticks = np.rint((times.astype(np.int64) - phase) / grid.step).astype(np.int64)
        return np.asarray((ticks * grid.step + phase).astype("datetime64[us]"))
    days = times.astype("datetime64[D]")
    if grid.unit == "business day":
        return np.busday_offset(days, 0, roll="backward").astype("datetime64[us]")
    months = times.astype("datetime64[M]")
    before, after = (months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]"))
    if grid.unit == "month end":
        before, after = before - 1, after - 1
    near = np.where(days - before <= after - days, before, after).astype("datetime64[M]")
    if grid.step > 1:  # to the month of the year that most of them lie in
        first = np.bincount(near.astype(np.int64) % grid.step).argmax()
        near = (np.rint((near.astype(np.int64) - first) / grid.step).astype(np.int64) * grid.step + first).astype(
            "datetime64[M]"
        )
    first_day = near.astype("datetime64[D]")
    return (first_day if grid.unit == "month" else (near + 1).astype("datetime64[D]") - 1).astype("datetime64[us]")


def _phase(times: Times, step: int) -> int:
    """How long after whole steps, counted from a Monday, most times lie: as round a time as their scatter allows."""
    ticks = times.astype(np.int64) - 4 * DAY  # 1970-01-05 was a Monday
    angles = 2 * np.pi * (ticks % step) / step
    middle = float(np.angle(np.exp(1j * angles).mean())) / (2 * np.pi) * step
    off = ((ticks - middle + step / 2) % step) - step / 2
    scatter = 2 * float(np.abs(off).max())
    for unit in (DAY, HOUR, 60 * SECOND, SECOND):
        rounded = round(middle / unit) * unit
        if abs(middle - rounded) <= scatter:
            return rounded + 4 * DAY
    return round(middle) + 4 * DAY
