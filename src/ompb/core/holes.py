"""What is kept of past rows for cells that have not come: a page for each *hole*, until it is filled or given up.

Most cells come in time, so most rows leave nothing behind. A hole takes a place of its lane, one that is free or whose
row can no longer come. All lanes have as many places as the one with the most holes needs: they grow when one needs
more, and are closed up now and then. Other libraries than NumPy, where to look would mean to wait, have a place for
every row that may come late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ompb.core.arrays import Array, has_all, namespace, zeros
from ompb.core.counts import along
from ompb.core.fusing import fused
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
        if type(known) is not np.ndarray:
            return Holes(_with_pages(holes.rows, holes.pages, along(row + 1, row), known, parts), holes.pages)
        lanes, rows = np.flatnonzero(~known), holes.rows.copy()  # only those that have a hole
        place = rows[lanes].argmin(axis=1)
        rows[lanes, place] = row + 1
        holes.pages[lanes, place] = _joined(tuple(part[lanes] for part in parts))
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


@fused
def _with_pages(rows: Array, pages: Array, number: int | Array, known: Array, parts: tuple[Array, ...]) -> Array:
    """The rows (N, places) once one of that number has come, with a page, written in place, whether it is known or not.

    To look would mean to wait, so a lane without a hole gets a page of no row.
    """
    xp = namespace(known)
    lanes, place = xp.arange(known.shape[0], device=known.device), xp.argmin(rows, axis=1)
    pages[lanes, place] = _joined(parts)
    is_taken = xp.arange(rows.shape[1], device=known.device) == place[:, None]
    return xp.where(is_taken, (~known * number)[:, None], rows)


def _joined(parts: tuple[Array, ...]) -> Array:
    """Parts (N, ...) as one page (N, X)."""
    return namespace(parts[0]).concat([part.reshape((part.shape[0], -1)) for part in parts], axis=1)
