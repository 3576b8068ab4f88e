"""What is kept of past rows for cells that have not come: a page for each *hole*, until it is filled or given up.

Most cells come in time, so most rows leave nothing behind. A hole takes a place of its lane, one that is free or whose
row can no longer come. All lanes have as many places as the one with the most holes needs: they grow when one needs
more, and are closed up now and then. Other libraries than NumPy, where to look would mean to wait, have a place for
every row that may come late.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from ompb.core.arrays import Array, has_all, namespace, zeros
from ompb.floor.shapes import Shape


@dataclass(frozen=True, slots=True)
class Holes:
    """Pages of X numbers, one for each row that lacks the cell of a lane."""

    rows: Annotated[Array, Shape("N ?", dtype="int64", least=0, grows=True)]  # 1 + the row of each; 0: a free place
    pages: Annotated[Array, Shape("N ? ?", grows=True)]

    def __post_init__(self) -> None:
        if self.rows.shape[1] != self.pages.shape[1]:
            raise ValueError(f"{self.rows.shape[1]} rows have {self.pages.shape[1]} pages")

    @classmethod
    def none(cls, like: Array, size: int, patience: int) -> Holes:
        """No hole yet, and a place for all there can be: the newest row, those it is late by, and a dead one.

        ``like`` is any (N, H) array, ``size`` is X.
        """
        xp, lanes, most = namespace(like), int(like.shape[0]), patience + 2
        return cls(xp.zeros((lanes, most), dtype=xp.int64, device=like.device), zeros(like, lanes, most, size))

    @property
    def places(self) -> int:
        """Of each lane."""
        return int(self.rows.shape[1])

    def of(self, row: int) -> tuple[Array, Array]:
        """Which cells (N,) of a row are holes, and their pages (N, X); 0 for others."""
        xp = namespace(self.pages)
        marked = self.rows == row + 1
        return xp.any(marked, axis=1), xp.sum(xp.where(marked[..., None], self.pages, 0.0), axis=1)

    def without(self, row: int, cells: Array) -> Holes:
        """Once cells (N,) of a row have come."""
        filled = (self.rows == row + 1) & cells[:, None]
        return Holes(namespace(cells).where(filled, 0, self.rows), self.pages)

    def after(self, row: int, patience: int, known: Array, *parts: Array) -> Holes:
        """Once the newest row has come: with pages, in parts (N, ...), for the cells (N,) that are not known.

        They go to places that no call on this state reads, of rows that were late by ``patience`` before this one.
        """
        holes = self._with_room(row, patience, known)
        if has_all(known):
            return holes
        xp, rows, lanes = namespace(known), holes.rows, _lanes(known)
        if type(known) is np.ndarray:  # only those that have a hole
            rows, known, parts = rows[lanes], known[lanes], tuple(part[lanes] for part in parts)
        place, page = xp.argmin(rows, axis=1), [part.reshape((part.shape[0], -1)) for part in parts]
        rows = xp.asarray(holes.rows, copy=True)
        rows[lanes, place] = ~known * (row + 1)
        holes.pages[lanes, place] = xp.concat(page, axis=1) if len(page) > 1 else page[0]
        return Holes(rows, holes.pages)

    def _with_room(self, row: int, patience: int, known: Array) -> Holes:
        """With places for the cells (N,) of the newest row that are not known, and not for many more."""
        most, live = patience + 2, max(row - patience, 1)  # what is below can no longer come
        if type(known) is not np.ndarray:
            return self._of_places(most)
        holes = self if row % most else self._of_places(int((self.rows >= live).sum(axis=1).max()))
        if has_all(known) or holes.rows[~known].min(axis=1, initial=live).max() < live:
            return holes
        return holes._of_places(min(holes.places + holes.places // 2 + 1, most))

    def _of_places(self, places: int) -> Holes:
        """With so many places, those of the newest rows among them."""
        xp, lacking = namespace(self.pages), places - self.places
        if lacking == 0:
            return self
        if lacking > 0:
            lanes, _, size = self.pages.shape
            free = xp.zeros((lanes, lacking), dtype=self.rows.dtype, device=self.rows.device)
            blank = zeros(self.pages, lanes, lacking, size)
            return Holes(xp.concat([self.rows, free], axis=1), xp.concat([self.pages, blank], axis=1))
        newest = np.argsort(-self.rows, axis=1)[:, :places]
        return Holes(
            np.take_along_axis(self.rows, newest, axis=1), np.take_along_axis(self.pages, newest[..., None], axis=1)
        )


def _lanes(known: Array) -> Array:
    """The lanes of cells (N,) that are not known; all lanes where to look would mean to wait."""
    if type(known) is np.ndarray:
        return np.flatnonzero(~known)
    return _all(namespace(known), int(known.shape[0]), known.device)


@lru_cache(maxsize=64)
def _all(xp: Any, lanes: int, device: Any) -> Array:
    return xp.arange(lanes, device=device)
