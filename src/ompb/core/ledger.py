"""What is known when: issued forecasts wait here, by the row they speak of, until that row arrives.

Row r is spoken of by H origins, r-1 .. r-H, at leads 1 .. H. The ledger keeps them on one *page*, so that the arrival
of a row reveals one lead of each of the last H forecasts in one look-up. A cell is learned once; what was said of rows
that have not arrived is never asked for.

States are values: a method that changes one returns the next. Large buffers are shared between a state and the next,
which writes only to *dead places*: pages and origins that no call on the earlier state can read. So an earlier state
stays good until the next one is taken in its place.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, namespace, zeros
from ompb.core.intervals import LEVELS
from ompb.shapes import Shape


class Entry(NamedTuple):
    """What was issued, lead by lead. On a page, place h-1 is what origin r-h said of row r."""

    forecasts: Array  # the voices', what each speed of the gate makes of them, and the issued mean: (N, K + Z + 1, H)
    precision: Array  # 1 / issued standard deviation; 0 where nothing was issued: (N, H)

    @classmethod
    def of(cls, stacked: Array) -> Entry:
        """The record in an array (N, K + Z + 2, H)."""
        return cls(stacked[:, :-1], stacked[:, -1])

    @property
    def mean(self) -> Array:
        """The issued mean: (N, H)."""
        return self.forecasts[:, -1]


class Width(NamedTuple):
    """What intervals were issued with, by lead; the last axis is 1 where all leads of an origin share it."""

    shrink: Array  # what makes a squared error one of the residual variance, 1 / (1 + leverage): (N, H)
    half_widths: Array  # in sd, at each level below and then above: (N, 2 levels, H)

    @classmethod
    def of(cls, stacked: Array) -> Width:
        """The record in an array (N, 1 + 2 levels, H)."""
        return cls(stacked[:, 0], stacked[:, 1:])

    def stacked(self) -> Array:
        """The record as one array (N, 1 + 2 levels, H)."""
        return namespace(self.shrink).concat([self.shrink[:, None], self.half_widths], axis=1)


class Ledger(NamedTuple):
    """Issued forecasts by the row they speak of, for rows at most ``patience`` rows old."""

    pages: Annotated[Array, Shape("N K+Z+2 P")]  # entries on R pages of H leads, in one axis: (N, K + Z + 2, R * H)
    # what intervals were issued with, see `Width`: in a ring by origin, or on the pages where every lead has its own
    width: Annotated[Array, Shape("N W RR", least=0)]  # (N, 1 + 2 levels, 2 R), or (N, 0, 2 R)
    own_width: Annotated[Array, Shape("N V P", least=0)]  # (N, 0, R * H), or (N, 1 + 2 levels, R * H)
    learned: Annotated[Array, Shape("N R", dtype="bool")]  # cells of the row of a page that have been learned

    @classmethod
    def empty(cls, like: Array, forecasts: int, patience: int, by_lead: bool = False) -> Ledger:
        """Nothing issued yet; ``like`` is any (N, H) array, ``forecasts`` how many an entry has.

        ``by_lead``: every lead has a width of its own.
        """
        lanes, horizon = like.shape
        pages = patience + horizon + 2  # the row to come, those it is late by, those ahead, and a dead page
        terms = 1 + 2 * len(LEVELS)
        return cls(
            pages=zeros(like, lanes, forecasts + 2, pages * horizon),
            width=zeros(like, lanes, 0 if by_lead else terms, 2 * pages),
            own_width=zeros(like, lanes, terms if by_lead else 0, pages * horizon),
            learned=zeros(like, lanes, pages) > 0,
        )

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.pages.shape[2]) // int(self.learned.shape[1])

    @property
    def by_lead(self) -> bool:
        """Whether every lead has a width of its own."""
        return int(self.width.shape[1]) == 0

    def issue(self, origin: int, entry: Entry, width: Width) -> None:
        """Enter a forecast: lead h goes to the page of row ``origin + h``, a dead place until it is taken."""
        terms, by_lead = width.stacked(), self.by_lead
        if not by_lead:
            push(self._width_ring(), origin, terms[..., 0])
        for here, leads in self._places(origin):
            self.pages[:, :-1, here] = entry.forecasts[..., leads]
            self.pages[:, -1, here] = entry.precision[:, leads]
            if by_lead:
                self.own_width[..., here] = terms[..., leads]

    def pass_over(self, origin: int) -> None:
        """No forecast was issued at this origin."""
        for here, _ in self._places(origin):
            self.pages[:, -1, here] = 0.0  # the precision

    def width_at(self, row: int) -> Width:
        """What the intervals of the forecasts that spoke of a row were issued with: views (N, ..., H)."""
        horizon = self.horizon
        if self.by_lead:
            start = row % int(self.learned.shape[1]) * horizon
            return Width.of(self.own_width[..., start : start + horizon])
        return Width.of(namespace(self.width).matrix_transpose(before(self._width_ring(), row, horizon)))

    def page(self, row: int) -> Entry:
        """All that was said of a row: views (N, ..., H)."""
        horizon = self.horizon
        start = row % int(self.learned.shape[1]) * horizon
        return Entry.of(self.pages[..., start : start + horizon])

    def is_learned(self, row: int) -> Array:
        """Which cells (N,) of a row that has arrived have been learned."""
        return self.learned[:, row % int(self.learned.shape[1])]

    def with_learned(self, row: int, cells: Array) -> Ledger:
        """The cells (N,) of a row that are learned from now on."""
        learned = namespace(cells).asarray(self.learned, copy=True)
        learned[:, row % int(self.learned.shape[1])] = cells
        return self._replace(learned=learned)

    def _width_ring(self) -> Array:
        """The ring by origin, (N, 2 R, W); it is kept the other way round, since it is read along the leads."""
        return namespace(self.width).matrix_transpose(self.width)

    def _places(self, origin: int) -> list[tuple[slice, slice]]:
        """Where the leads of an origin go, and which leads.

        From lead to lead the page moves by H and the place on it by 1: one strided slice, or two where the ring of
        pages wraps.
        """
        horizon, pages = self.horizon, int(self.learned.shape[1])
        page = (origin + 1) % pages
        before_wrap = min(horizon, pages - page)
        step, start = horizon + 1, page * horizon
        first = (slice(start, start + before_wrap * step, step), slice(before_wrap))
        if before_wrap == horizon:
            return [first]
        left = horizon - before_wrap
        return [first, (slice(before_wrap, before_wrap + left * step, step), slice(before_wrap, None))]


# A ring of vectors by origin, (..., 2 D, F): origin k sits at place -k mod D and again D further on, newest first, so
# that "lead h of row r" is a contiguous view.


def push(ring: Array, origin: int, vectors: Array | float) -> None:
    """Enter the vectors (..., F) of an origin in place of those of the oldest, which must be dead."""
    depth = int(ring.shape[-2]) // 2
    place = -origin % depth
    ring[..., place, :] = vectors
    ring[..., place + depth, :] = vectors


def before(ring: Array, row: int, leads: int) -> Array:
    """Vectors of origins row-1 .. row-leads: (..., leads, F), a view."""
    place = (1 - row) % (int(ring.shape[-2]) // 2)
    return ring[..., place : place + leads, :]
