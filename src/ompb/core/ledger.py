"""What is known when: issued forecasts wait here, by the row they speak of, until that row arrives.

Row r is spoken of by H origins, r-1 .. r-H, at leads 1 .. H. The ledger keeps them on one *page*, so that the arrival
of a row reveals one lead of each of the last H forecasts in one look-up. Learning a cell tears it out, so that it is
learned once; what was said of rows that have not arrived is never asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace


@dataclass
class Ledger:
    """Issued values by the row they speak of, for rows at most ``patience`` rows old.

    ``pages`` is (N, Q, R * H): R = patience + 1 + H pages of H leads, Q quantities per forecast, the first of which is
    NaN where nothing was said, or where it has been learned.
    """

    horizon: int
    pages: Array

    @classmethod
    def empty(cls, like: Array, lanes: int, quantities: int, horizon: int, patience: int) -> Ledger:
        """A ledger that nothing was issued to."""
        xp = namespace(like)
        size = (patience + 1 + horizon) * horizon
        return cls(horizon, xp.full((lanes, quantities, size), xp.nan, dtype=like.dtype))

    @property
    def rows(self) -> int:
        """R, the number of pages."""
        return int(self.pages.shape[2]) // self.horizon

    def issue(self, origin: int, quantities: Array) -> None:
        """Enter a forecast (N, Q, H): lead h goes to the page of row ``origin + h``.

        In the flat layout the page moves by H and the place on it by 1 from lead to lead: one strided slice, or
        two where the ring of pages wraps. As every row has an origin, each page is written whole before its row comes.
        """
        page = (origin + 1) % self.rows
        before_wrap = min(self.horizon, self.rows - page)
        step = self.horizon + 1
        start = page * self.horizon
        self.pages[..., start : start + before_wrap * step : step] = quantities[..., :before_wrap]
        if before_wrap < self.horizon:
            left = self.horizon - before_wrap
            self.pages[..., before_wrap : before_wrap + left * step : step] = quantities[..., before_wrap:]

    def tear_out(self, row: int, known: Array) -> tuple[Array, Array]:
        """What was said of the known cells (N,) of a row and not learned yet; it counts as learned from now on.

        Returns it (N, Q, H), at place h-1 what origin ``row - h`` said, and where there is any (N, H); 0 elsewhere.
        """
        xp = namespace(self.pages)
        start = (row % self.rows) * self.horizon
        page = self.pages[..., start : start + self.horizon]
        marks = page[:, 0]
        heard = known[:, None] & xp.isfinite(marks)
        said = xp.where(heard[:, None], page, 0.0)
        page[:, 0] = xp.where(known[:, None], xp.nan, marks)  # the first quantity marks what is there
        return said, heard


@dataclass
class OriginRing:
    """Vectors by origin, newest first, so that "lead h of row r" is a contiguous view.

    ``store`` is (..., 2 D, F): origin k sits at place -k mod D and again D further on.
    """

    store: Array

    @property
    def depth(self) -> int:
        """D, how many origins are kept."""
        return int(self.store.shape[-2]) // 2

    def push(self, origin: int, vectors: Array) -> None:
        """Enter the vectors (..., F) of one origin; the oldest is dropped."""
        place = -origin % self.depth
        self.store[..., place, :] = vectors
        self.store[..., place + self.depth, :] = vectors

    def before(self, row: int, leads: int) -> Array:
        """Vectors of origins row-1 .. row-leads: (..., leads, F), a view."""
        place = (1 - row) % self.depth
        return self.store[..., place : place + leads, :]
