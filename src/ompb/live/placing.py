"""Where a row belongs: the time of the next one, rows left out before it, and the index of one that comes late."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ompb.errors import StaleRowError, TimeOrderError
from ompb.floor.times import Grid, Stamp, as_stamp, shown

# Rows that may be missing between two rows with times: a stamp that lies further ahead is a mistake.
LONGEST_GAP = 100_000


def require_grid(times: Any, grid: Grid | None) -> None:
    """Raise `TimeOrderError` for times of rows whose calibrator has none."""
    if times is not None and grid is None:
        raise TimeOrderError("times= means nothing here, as the calibrator was fitted without times.")


class Place(NamedTuple):
    """How far a stream has come."""

    grid: Grid | None  # that the calibrator was fitted with
    rows: int  # seen so far
    timed: bool  # whether they have times
    ticks: int  # time of the newest, if they have

    @property
    def newest(self) -> Stamp:
        """Time of the newest row, if rows have times."""
        assert self.grid is not None  # else there are none
        return self.ticks if self.grid.unit == "row" else np.datetime64(self.ticks, "us")

    def of_next(self, at: Any) -> tuple[Stamp | None, int]:
        """The time of the next row, if rows have times, and how many rows are missing before it."""
        if at is None:
            return (self.grid.after(self.newest, 1)[0], 0) if self.grid is not None and self.timed else (None, 0)
        stamp = as_stamp(at, "at")
        if self.grid is None:
            raise TimeOrderError(
                f"at = {shown(stamp)} means nothing here, as the calibrator was fitted without times; pass times= to "
                "fit, or leave at= out."
            )
        if self.rows == 0 and not self.timed:
            self.grid.after(stamp, 1)  # of the right kind
            return stamp, 0
        if not self.timed:
            raise TimeOrderError(f"at = {shown(stamp)} comes too late: the stream began without times; begin with at=.")
        gap = self.grid.rows_between(self.newest, stamp) - 1
        if gap > LONGEST_GAP:
            raise TimeOrderError(
                f"at = {shown(stamp)} lies {gap + 1} rows after the newest one; up to {LONGEST_GAP} may be missing. "
                "Check the time, or start a new stream."
            )
        return stamp, gap

    def of_late(self, at: Any, kept: int) -> int:
        """The index of a row that may still be observed: one of the newest, or up to ``kept`` rows older."""
        last = self.rows - 1
        oldest = max(0, last - kept)
        row, named, span = at, repr(at), f"{oldest} to {last}"
        if self.timed and self.grid is not None and not isinstance(at, int | np.integer):
            stamp = as_stamp(at, "at")
            row = last if stamp == self.newest else last - self.grid.rows_between(stamp, self.newest)
            named, span = shown(stamp), f"the newest {last - oldest + 1}, up to {shown(self.newest)}"
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not oldest <= row <= last:
            raise StaleRowError(
                f"row {named} cannot be observed now; accepted: rows already stepped and still in use "
                f"({span if last >= 0 else 'none yet'}). The next row belongs to step()."
            )
        return int(row)
