"""The newest rows of a stream, as they came and with missing cells filled."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.shapes import Shape
from ompb.types import Floats
from ompb.windows import fill_forward


class Window(NamedTuple):
    """The rows that are remembered; those before the stream began count as missing."""

    known: Annotated[Floats, Shape("kept N", nan=True)]  # as they were believed, NaN = missing: (kept, C)
    filled: Annotated[Floats, Shape("kept N")]  # with missing cells filled: (kept, C)
    before: Annotated[Floats, Shape("N")]  # filled values of the row before them: (C,)
    before_row: Annotated[NDArray[np.int64], Shape("N", dtype="int64")]  # the rows those were known in, or -1: (C,)

    @classmethod
    def empty(cls, rows: int, centre: Floats) -> Window:
        """No row yet: the source mean stands in."""
        known = np.full((rows, len(centre)), np.nan)
        return cls(known, np.tile(centre, (rows, 1)), centre, np.full(len(centre), -1))

    @classmethod
    def of(cls, history: Floats, rows: int, centre: Floats) -> Window:
        """After the rows (T, C) of a history, NaN where missing."""
        unknown = np.full((rows + 1, len(centre)), np.nan)
        known = np.concatenate([unknown, history])
        filled = fill_forward(known, centre)
        return cls(known[-rows:], filled[-rows:], filled[-rows - 1], np.full(len(centre), -1))

    def with_row(self, rows: int, values: Floats) -> Window:
        """Once ``values`` (C,) is the newest row, the one of index ``rows``."""
        oldest = rows - len(self.known)
        return Window(
            np.concatenate([self.known[1:], values[None]]),
            np.concatenate([self.filled[1:], np.where(np.isnan(values), self.filled[-1], values)[None]]),
            self.filled[0],
            np.where(np.isnan(self.known[0]), self.before_row, oldest),
        )

    def revised(self, age: int, row: int, values: Floats) -> Window:
        """Once the known cells of row ``row``, which is ``age`` rows old, are ``values``."""
        place = len(self.known) - 1 - age
        known, before, before_row = self.known, self.before, self.before_row
        if place >= 0:
            known = known.copy()
            known[place] = np.where(np.isnan(values), known[place], values)
        else:  # the newest known cell before the window fills its first ones
            newer = ~np.isnan(values) & (row >= before_row)
            before, before_row = np.where(newer, values, before), np.where(newer, row, before_row)
        return Window(known, fill_forward(known, before), before, before_row)
