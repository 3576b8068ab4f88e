"""The clock that a table's times are told by, so that results can be told by the same.

Rows are counted in UTC, where no hour comes twice and none is left out. Days are not: a day from midnight to midnight
may have 23 or 25 hours, so a table with one stamp a day, always at the same time of day, is counted by the wall.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.errors import OptionError, TimeOrderError
from ompb.floor.extras import extra
from ompb.floor.times import Times, as_times, shown
from ompb.tables.stamps import Stamps, stamps_of_text

with extra("report", needed_by="ompb.tables"):
    import polars as pl

UTC = "UTC"
# ISO 8601 with so many digits of a second, the fewest first: those of a file are alike, as most programs expect.
TEXTS = {10**6: "%Y-%m-%dT%H:%M:%S", 10**3: "%Y-%m-%dT%H:%M:%S%.3f", 1: "%Y-%m-%dT%H:%M:%S%.6f"}
DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """A time zone, or the offsets of UTC that a table brings; without either, times are as written."""

    zone: str | None = None
    since: Times = field(default_factory=lambda: np.array([], dtype="datetime64[us]"))  # (k,) in UTC: when each of
    offsets: Times = field(default_factory=lambda: np.array([], dtype="timedelta64[us]"))  # (k,) began, without zone
    by_wall: bool = False  # rows are counted by the wall

    @classmethod
    def of(cls, stamps: Stamps, timezone: str | None) -> Clock:
        """That of a table's column, unless the user names another."""
        if timezone is not None:
            _require_zone(timezone)
        if stamps.wall.dtype.kind != "M":
            if timezone is not None:
                raise OptionError(f"timezone = {timezone!r} speaks of dates, and the table's times are integers.")
            return cls()
        zone = timezone or stamps.zone
        if zone is None and stamps.offset is None:
            return cls()
        if zone is not None:
            clock = cls(zone)
            wall = stamps.wall if stamps.offset is None else clock.local(stamps.utc)
        else:
            order = np.argsort(stamps.utc, kind="stable")
            utc, offsets = stamps.utc[order], stamps.wall[order] - stamps.utc[order]
            change = np.flatnonzero(np.concatenate([[True], offsets[1:] != offsets[:-1]]))
            clock, wall = cls(None, utc[change], offsets[change]), stamps.wall
        changes = zone is not None or len(clock.offsets) > 1
        return replace(clock, by_wall=changes and bool(np.ptp(wall - wall.astype("datetime64[D]")) == 0))

    @property
    def known(self) -> bool:
        """Whether there is any zone or offset."""
        return self.zone is not None or len(self.offsets) > 0

    def __str__(self) -> str:
        return self.zone or " and ".join(dict.fromkeys(_offset_text(offset) for offset in self.offsets))

    def rows(self, stamps: Stamps, series: NDArray[np.int64] | None = None) -> Times:
        """The times by which rows are counted, of stamps written by this clock.

        An hour that comes twice is the first time the earlier one, and the second time the later one: in the order of
        the rows, within each of the ``series``.
        """
        if not self.known or stamps.wall.dtype.kind != "M":
            return stamps.utc
        if stamps.offset is None and self.by_wall:
            return stamps.wall
        utc = stamps.utc if stamps.offset is not None else self._utc(stamps.wall, series)
        return self.local(utc) if self.by_wall else utc

    def row_time(self, text: str) -> np.datetime64 | None:
        """The time a user writes, as rows are counted; None if no column of times would hold it."""
        stamps = stamps_of_text(text)
        if stamps is None:
            return None
        if stamps.offset is None and len(self.offsets) > 1 and not self.by_wall:
            return self._first_at(stamps.wall[0])
        return np.datetime64(self.rows(stamps)[0])

    def next_after_skipped(self, text: str) -> str:
        """The first time that exists after one that a user writes and that clocks skip; empty if that one exists."""
        stamps = stamps_of_text(text)
        if stamps is None or self.zone is None or self.by_wall or stamps.offset is not None:
            return ""
        if not skipped(stamps.wall, self.zone)[0]:
            return ""
        # clocks go forward at a whole minute, and by a day at most
        minute = stamps.wall.astype("datetime64[m]").astype("datetime64[us]")
        later = minute + np.arange(1, 1441) * np.timedelta64(1, "m")
        return shown(later[~skipped(later, self.zone)][0])

    def local(self, utc: Times) -> Times:
        """Times in UTC as the wall shows them."""
        if self.zone is not None:
            wall = pl.Series(utc).dt.replace_time_zone(UTC).dt.convert_time_zone(self.zone).dt.replace_time_zone(None)
            return as_times(wall, "times")
        if not self.known:
            return utc
        return np.asarray(utc + self.offsets[np.maximum(np.searchsorted(self.since, utc, side="right") - 1, 0)])

    def column(self, times: Times) -> pl.Series:
        """Times of rows for a file that has types: with their zone, else in UTC if they have offsets."""
        if times.dtype.kind != "M" or not self.known or self.by_wall:
            return pl.Series(times)
        return pl.Series(times).dt.replace_time_zone(UTC).dt.convert_time_zone(self.zone or UTC)

    def texts(self, times: Times) -> pl.Series:
        """Times of rows as ISO 8601, with the offset where there is one and rows are not counted by the wall.

        All have as many digits of a second as the one that needs most.

        >>> Clock().texts(np.array(["2024-01-01T00:00:01", "2024-01-01T00:00:01.5"], dtype="datetime64[us]")).to_list()
        ['2024-01-01T00:00:01.000', '2024-01-01T00:00:01.500']
        """
        if times.dtype.kind != "M":
            return pl.Series(times)
        ticks = times.astype("datetime64[us]").astype(np.int64)
        text = next(text for part, text in TEXTS.items() if not (ticks % part).any())
        wall = pl.Series(times if self.by_wall else self.local(times)).dt.to_string(text)
        if not self.known or self.by_wall:
            return wall
        offsets = self.local(times) - times
        written = {offset: _offset_text(offset) for offset in np.unique(offsets)}
        return wall + pl.Series([written[offset] for offset in offsets], dtype=pl.String)

    def shown(self, stamp: Any) -> str:
        """The time of a row as messages show it."""
        return shown(stamp) if not self.known else str(self.texts(np.asarray([stamp]))[0])

    def _first_at(self, wall: np.datetime64) -> np.datetime64:
        """The first time, in UTC, at which a clock of several offsets shows this or a later one.

        >>> times = np.array(["2024-10-27T00:00", "2024-10-27T01:00"], dtype="datetime64[us]")
        >>> clock = Clock(None, times, np.array([2, 1], dtype="timedelta64[h]"))  # both are 02:00 by the wall
        >>> clock._first_at(np.datetime64("2024-10-27T02:00"))
        np.datetime64('2024-10-27T00:00:00.000000')
        """
        maybe = np.sort(np.concatenate([wall - self.offsets, self.since]))
        return np.datetime64(maybe[self.local(maybe) >= wall][0])

    def _utc(self, wall: Times, series: NDArray[np.int64] | None) -> Times:
        """Of times by the wall alone."""
        if self.zone is None:
            if len(self.offsets) > 1:
                raise TimeOrderError(
                    f"The time {shown(wall[0])} has no offset of UTC and the table's times have {self}; write the "
                    "offset, or name the zone with --timezone."
                )
            return np.asarray(wall - self.offsets[0])
        return _localised(wall, self.zone, series)


def _localised(wall: Times, zone: str, series: NDArray[np.int64] | None) -> Times:
    """Times by the wall of a zone in UTC."""
    earlier, later = (_in_utc(wall, zone, which) for which in ("earliest", "latest"))
    absent = np.isnat(earlier)
    if absent.any():
        raise TimeOrderError(
            f"The time {shown(wall[absent][0])} does not exist in {zone}, where clocks go forward over it: the times "
            "are of another clock. Name that one with --timezone, or leave it out if the clock never changes."
        )
    order = np.arange(len(wall)) if series is None else np.argsort(series, kind="stable")
    places = np.empty(len(wall), dtype=np.int64)
    places[order] = np.arange(len(wall))
    for row in order[np.flatnonzero((earlier != later)[order])].tolist():
        place = int(places[row])
        before = int(order[place - 1]) if place else None
        same = before is not None and (series is None or series[before] == series[row])
        if same and before is not None and earlier[row] <= earlier[before]:
            earlier[row] = later[row]
    return earlier


def skipped(wall: Times, zone: str) -> NDArray[np.bool_]:
    """Which times by the wall do not exist in a zone, since clocks go forward over them, (n,).

    >>> skipped(np.array(["2024-03-31T01:59", "2024-03-31T02:00"], dtype="datetime64[us]"), "Europe/Berlin")
    array([False,  True])
    """
    return np.isnat(_in_utc(wall, zone, "earliest"))


def _in_utc(wall: Times, zone: str, which: Any) -> Times:
    zoned = pl.Series(wall).dt.replace_time_zone(zone, ambiguous=which, non_existent="null")
    return np.array(zoned.dt.convert_time_zone(UTC).dt.replace_time_zone(None).to_numpy(), dtype="datetime64[us]")


def _offset_text(offset: Any) -> str:
    """As ISO 8601 writes it.

    >>> _offset_text(np.timedelta64(-210, "m"))
    '-03:30'
    """
    minutes = int(offset / np.timedelta64(1, "m"))
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _require_zone(timezone: str) -> None:
    try:
        pl.Series(["2024-01-01"]).str.to_datetime().dt.replace_time_zone(timezone)
    except (pl.exceptions.PolarsError, ValueError) as problem:
        raise OptionError(
            f"timezone = {timezone!r} is no time zone; pass a name such as Europe/Berlin, America/New_York or UTC."
        ) from problem
