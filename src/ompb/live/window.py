"""The newest rows of S series, as they came and with missing cells filled."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.core.arrays import Array, has_all, has_none, namespace
from ompb.floor.shapes import Shape
from ompb.rows.windows import fill_forward
from ompb.types import Floats

# The row in which a value was known that was never known: before all rows, those of a history among them.
NEVER = -(2**62)


class Window(NamedTuple):
    """The rows that are remembered; those before the stream began count as missing."""

    filled: Annotated[Array, Shape("S kept C")]  # as they were believed, missing cells filled: (S, kept, C)
    missing: Annotated[Array, Shape("S kept C", dtype="bool")]  # which cells are: (S, kept, C)
    before: Annotated[Array, Shape("S C")]  # filled values of the row before them: (S, C)
    before_row: Annotated[Array, Shape("S C", dtype="int64")]  # rows those were known in, or NEVER: (S, C)

    @classmethod
    def empty(cls, rows: int, centre: Floats) -> Window:
        """No row yet: the source mean (S, C) stands in."""
        filled = np.repeat(centre[:, None], rows, axis=1)
        return cls(filled, np.ones(filled.shape, dtype=bool), np.array(centre), _never(centre))

    @classmethod
    def of(cls, history: Floats, rows: int, centre: Floats) -> Window:
        """After the rows (S, T, C) of a history, NaN where missing."""
        return cls.newest(rows, history, -1, centre, _never(centre))

    @classmethod
    def newest(cls, rows: int, known: Floats, last: int, before: Floats, before_row: NDArray[np.int64]) -> Window:
        """The newest ``rows`` of known ones (S, T, C), of which the last has index ``last``; those lacking are missing.

        ``before`` (S, C) was known in the rows ``before_row`` (S, C), before all of them.
        """
        series, length, channels = known.shape
        known = np.concatenate([np.full((series, max(rows - length, 0), channels), np.nan), known], axis=1)
        filled, gone = fill_forward(known, before), max(length - rows, 0)
        if gone:
            indices = np.arange(last + 1 - length, last + 1 - rows)[:, None]
            known_in = np.where(np.isnan(known[:, :gone]), NEVER, indices).max(axis=1)
            before, before_row = filled[:, gone - 1], np.maximum(before_row, known_in)
        return cls(filled[:, gone:], np.isnan(known[:, gone:]), before, before_row)

    @property
    def known(self) -> Array:
        """The rows as they were believed, NaN = missing: (S, kept, C)."""
        xp = namespace(self.filled)
        return xp.where(self.missing, xp.nan, self.filled)

    @property
    def rows(self) -> int:
        """How many are remembered."""
        return int(self.filled.shape[1])

    def stood_at(self, age: int) -> Array:
        """What stands for a row that is so many rows old, (S, C): known there, or before it, else the source mean."""
        place = self.rows - 1 - age
        return self.filled[:, place] if place >= 0 else self.before

    def with_row(self, row: int, values: Array) -> Window:
        """Once ``values`` (S, 1, C) is the newest row, the one of that index."""
        xp = namespace(values)
        absent, missing = self.missing[:, 0], xp.isnan(values)
        newest = values if has_none(missing) else xp.where(missing, self.filled[:, -1:], values)
        return Window(
            xp.concat([self.filled[:, 1:], newest], axis=1),
            xp.concat([self.missing[:, 1:], missing], axis=1),
            xp.asarray(self.filled[:, 0], copy=True),  # no view: a row later that memory may be written anew
            self.before_row if has_all(absent) else xp.where(absent, self.before_row, row - self.rows),
        )

    def revised(self, age: int, row: int, values: Array) -> Window:
        """Once the known cells of row ``row``, which is ``age`` rows old, are ``values`` (S, C)."""
        xp = namespace(values)
        place = self.rows - 1 - age
        known, before, before_row = self.known, self.before, self.before_row
        if place >= 0:
            known[:, place] = xp.where(xp.isnan(values), known[:, place], values)
        else:  # the newest known cell before the window fills its first ones
            newer = ~xp.isnan(values) & (row >= before_row)
            before, before_row = xp.where(newer, values, before), xp.where(newer, row, before_row)
        filled = fill_forward(_on_host(known), _on_host(before))
        filled = xp.asarray(filled, dtype=known.dtype, device=known.device)
        return Window(filled, xp.isnan(known), before, before_row)


def _never(like: Floats) -> NDArray[np.int64]:
    return np.full(like.shape, NEVER)


def _on_host(array: Any) -> Floats:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()
