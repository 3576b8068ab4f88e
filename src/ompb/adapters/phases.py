"""Windows that start at a known phase of the season that the training rows have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.errors import ForecasterError, TimeOrderError
from ompb.floor.names import unended
from ompb.floor.times import Grid, Stamp, as_times, shown
from ompb.seam.query import Query


@dataclass(frozen=True, slots=True)
class Phase:
    """Where in the season of the training rows a window has to start.

    Let a be the row of the training table that a window starts at, counted on beyond its end, S the season, and b the
    row at whose phase it has to start. It does without its first (b - a) mod S rows.

    The row is known by time if the times of the training rows were given. Else it is the row of the query's own table:
    right for the table the model was fitted to, and for a stream that starts whole seasons after it.

    >>> Phase.of(24).rows_to_drop(Query(np.zeros((3, 48, 1)), np.array([47, 48, 70])))
    array([ 0, 23,  1])
    """

    season: int
    start: int = 0  # b
    first: Stamp | None = None  # time of the first training row
    grid: Grid | None = None

    @classmethod
    def of(cls, season: int, times: Any = None, start: int = 0) -> Phase:
        """Of a season in rows, and the times of the training rows if they are known."""
        if times is None:
            return cls(season, start)
        stamps = as_times(times, "the times of the training rows")
        grid = Grid.of(stamps, "the times of the training rows")
        return cls(season, start, int(stamps[0]) if grid.unit == "row" else np.datetime64(stamps[0]), grid)

    def rows_to_drop(self, query: Query) -> NDArray[np.int64]:
        """At the beginning of each window, (n,), fewer than a season."""
        first_rows = self._last_rows(query) - query.windows.shape[1] + 1
        return np.asarray((self.start - first_rows) % self.season)

    def _last_rows(self, query: Query) -> NDArray[np.int64]:
        if self.grid is None:
            return np.asarray(query.origins)
        if query.times is None:
            raise ForecasterError(
                "the phase of a window is known by its time, and this one has none; pass times= to Calibrator.fit and "
                "at= with every row, or wrap the model without times=."
            )
        first = np.asarray([self.first])
        if first.dtype.kind != query.times.dtype.kind:
            raise ForecasterError(
                f"the training rows begin at {shown(first[0])} and a window ends at {shown(query.times[0])}: one is a "
                "date and one a number. Pass times of one kind to wrap, to Calibrator.fit and with every row."
            )
        try:
            return self.grid.places(np.concatenate([first.astype(query.times.dtype), query.times]))[1:]
        except TimeOrderError as error:
            raise ForecasterError(
                f"the times of the windows are not on the steps of {self.grid} of the training rows: {unended(error)}. "
                "Pass the true times of the training rows to wrap."
            ) from error
