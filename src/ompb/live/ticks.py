"""The clock of a fleet: ticks that follow each other, each learned once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ompb.errors import DtypeError, GapError, StaleRowError
from ompb.floor.times import Grid, Stamp, as_stamp, shown

# Ticks of fleets whose rows have no times.
COUNTED = Grid(1, "row")


class Ticks(NamedTuple):
    """How far a fleet has come."""

    closed: int = 0  # ticks closed so far
    newest: Stamp | None = None  # the newest one
    timed: bool = False  # whether it is a time of the calibrators' grid, else a whole number

    @classmethod
    def behind(cls, newest: Any) -> Ticks:
        """None closed yet; the first one follows this time."""
        return cls(0, _one(newest), True)

    def after(self, at: Any, grid: Grid | None) -> Ticks | None:
        """With the next tick, which is meant by None; None for one that has been closed.

        The first one says whether ticks are times of the ``grid``. Raises `GapError` for one beyond the next, and
        `DtypeError` for one that is a time where ticks are whole numbers, or the other way round.
        """
        if self.newest is None:
            return _first(at, grid)
        grid = self.grid(grid)
        following = _one(grid.after(self.newest, 1)[0])
        stamp = following if at is None else self._stamp(at)
        if stamp != following:
            if not self._is_older(grid, stamp) and grid.rows_between(self.newest, stamp) > 1:
                raise GapError(
                    f"at = {shown(stamp)} leaves ticks out; expected: {shown(following)}. Step through the ticks in "
                    "between, with no row for series that have none.",
                    following,
                )
            return None
        return Ticks(self.closed + 1, stamp, self.timed)

    def age(self, at: Any, grid: Grid | None) -> int:
        """How many ticks before the newest one a tick is. Raises `StaleRowError` for one that has not been closed.

        Raises `DtypeError` for one of another kind.
        """
        stamp = self._stamp(at)
        if self.newest is not None and stamp == self.newest:
            return 0
        if self.newest is None or not self._is_older(self.grid(grid), stamp):
            newest = "none yet" if self.newest is None else f"the newest is {shown(self.newest)}"
            raise StaleRowError(
                f"tick {shown(stamp)} cannot be observed now; accepted: ticks already stepped ({newest}). The next one "
                "belongs to step()."
            )
        return self.grid(grid).rows_between(stamp, self.newest)

    def grid(self, grid: Grid | None) -> Grid:
        """The steps of the ticks, given the calibrators'."""
        return grid if self.timed and grid is not None else COUNTED

    def _is_older(self, grid: Grid, stamp: Stamp) -> bool:
        """Whether a stamp lies before the newest one, or is it. Raises `TimeOrderError` if it is off the grid."""
        assert self.newest is not None
        if stamp < self.newest:
            grid.rows_between(stamp, self.newest)
        return bool(stamp <= self.newest)

    def _stamp(self, at: Any) -> Stamp:
        """A tick, of the kind of those so far."""
        stamp = as_stamp(at, "at")
        if self.newest is not None and isinstance(stamp, int) != isinstance(self.newest, int):
            found, wanted = ("whole number", "time") if isinstance(stamp, int) else ("time", "whole number")
            raise DtypeError(
                f"at = {shown(stamp)} is a {found}, and the ticks so far are {wanted}s, the newest "
                f"{shown(self.newest)}; accepted: {wanted}s. Pass one, or begin a new fleet with {found}s."
            )
        return stamp


def _first(at: Any, grid: Grid | None) -> Ticks:
    """With the first tick."""
    stamp = 0 if at is None else as_stamp(at, "at")
    has_dates = grid is not None and grid.unit != "row"
    if not isinstance(stamp, int) and not has_dates:
        raise DtypeError(
            f"at = {shown(stamp)} is a time, and the calibrators have no dates; accepted: whole numbers. Count the "
            "ticks, or fit the calibrators with times=."
        )
    timed = at is not None and grid is not None and isinstance(stamp, int) != has_dates
    (grid if timed and grid is not None else COUNTED).after(stamp, 1)  # there is a next one
    return Ticks(1, stamp, timed)


def _one(stamp: Any) -> Stamp:
    return int(stamp) if isinstance(stamp, np.integer) else np.datetime64(stamp)
