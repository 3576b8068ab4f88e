"""Weeks that are told by their number in a year, as offices of health write them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ompb.floor.times import Times

# The weekday, 0 = Monday, on which weeks begin; the first of a year is the one with its fourth day.
ISO, MMWR = "ISO 8601, which begin on Monday", "MMWR (CDC), which begin on Sunday"
_BEGIN = {ISO: 0, MMWR: 6}
_WEEK = np.timedelta64(7, "D")


def first_days(years: NDArray[np.int64], weeks: NDArray[np.int64]) -> tuple[Times, str] | None:
    """The day on which each of the weeks (n,) begins, and by which calendar; None if they are no weeks of any.

    Of calendars that have all of these weeks, it is the one in which fewest are left out, else that of ISO 8601: they
    differ in which years have 53.

    >>> first_days(np.array([2014, 2015]), np.array([53, 1]))
    (array(['2014-12-28', '2015-01-04'], dtype='datetime64[D]'), 'MMWR (CDC), which begin on Sunday')
    """
    if not len(years) or years.min() < 1000 or years.max() > 9000 or weeks.min() < 1 or weeks.max() > 53:
        return None
    found = {}
    for calendar, begin in _BEGIN.items():
        starts = _first_week(years, begin) + (weeks - 1) * _WEEK
        if (starts < _first_week(years + 1, begin)).all():
            found[calendar] = starts
    if not found:
        return None
    calendar = min(found, key=lambda name: _left_out(found[name]))
    return found[calendar], calendar


def _first_week(years: NDArray[np.int64], begin: int) -> Times:
    """The day on which the first week of each year begins."""
    fourth = (years - 1970).astype("datetime64[Y]").astype("datetime64[D]") + 3
    weekday = (fourth.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    return np.asarray(fourth - (weekday - begin) % 7)


def _left_out(starts: Times) -> int:
    different = np.unique(starts)
    return int((different[-1] - different[0]) / _WEEK) + 1 - len(different)
