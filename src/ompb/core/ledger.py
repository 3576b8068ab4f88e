r"""What is known when: issued forecasts wait here until the rows they speak of arrive.

Row r is spoken of by H origins, r-1 .. r-H, at leads 1 .. H; together they are its *page*. Lead h of an origin waits
for h rows, so h + 1 places are enough for it, one of them dead: origin k takes place

.. math:: \textstyle\sum_{j<h} (j + 1) + \bigl(k \bmod (h + 1)\bigr)

and nothing is kept that has been revealed. There are the base forecast, the issued mean and its precision; what the
voices said of a row is kept as the sums that the gate compares (`ompb.core.tally`). Of past rows it all remains for
``patience`` rows where a cell has not come (`ompb.core.holes`). So a cell is learned once: then there is no hole.

States are values: a method that changes one returns the next. Large buffers are shared between a state and the next,
which writes only to *dead places*: those that no call on the earlier state can read. So an earlier state stays good
until the next one is taken in its place.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from ompb.core import tally
from ompb.core.arrays import Array, namespace, zeros
from ompb.core.counts import along
from ompb.core.holes import Holes
from ompb.core.intervals import LEVELS
from ompb.core.rings import SLACK, place_of, push, vectors_from
from ompb.floor.shapes import Shape

# Parts of a page: base, mean and precision.
PARTS, PRECISION = 3, 2
# Terms of a width: shrink, and the half-widths at each level, below and above.
TERMS = 1 + 2 * len(LEVELS)


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


class Page(NamedTuple):
    """All that was said of a row; place h-1 is what origin r-h said of it."""

    parts: Array  # base, mean and precision, and a width where every lead has its own: (N, parts, H)
    sums: Array  # of what was compared, see `ompb.core.tally`: (N, 2 V + 1)
    width: Width

    @property
    def said(self) -> Array:
        """The base forecast and the issued mean, (N, 2, H)."""
        return self.parts[:, :PRECISION]

    @property
    def mean(self) -> Array:
        """The issued one, (N, H)."""
        return self.parts[:, 1]

    @property
    def precision(self) -> Array:
        """1 / issued standard deviation; 0 where nothing was issued: (N, H)."""
        return self.parts[:, PRECISION]


class Ledger(NamedTuple):
    """Issued forecasts by the row they speak of: of rows to come, and of those at most ``patience`` rows old."""

    ahead: Annotated[Array, Shape("N parts T")]  # base, mean and precision, and a width where every lead has its own
    tally: Annotated[Array, Shape("N compared H")]  # see `ompb.core.tally`
    late: Holes  # the same parts of past rows, and their tallies
    width: Annotated[Array, Shape("N W D", least=0)]  # by origin, a ring; W = 0 where leads have their own

    @classmethod
    def empty(cls, like: Array, compared: int, patience: int, by_lead: bool = False) -> Ledger:
        """Nothing issued yet; ``like`` is any (N, H) array, ``compared`` counts the voices and speeds.

        ``by_lead``: every lead has a width of its own.
        """
        lanes, horizon = like.shape
        own = TERMS if by_lead else 0
        blank = tally.empty(like, compared)
        page = (PARTS + own) * horizon + int(blank.shape[1])
        return cls(
            ahead=zeros(like, lanes, PARTS + own, horizon * (horizon + 3) // 2),
            tally=blank,
            late=Holes.none(like, page, patience),
            width=zeros(like, lanes, TERMS - own, horizon + patience + SLACK),
        )

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.tally.shape[2])

    @property
    def by_lead(self) -> bool:
        """Whether every lead has a width of its own."""
        return int(self.width.shape[1]) == 0

    def entry(self, base: Array, mean: Array, precision: Array, width: Width) -> tuple[Array, Array]:
        """What enters the ledger of what was said, each (N, H): the parts (N, parts, H) and its width (N, W)."""
        terms, parts = width.stacked(), [base[:, None], mean[:, None], precision[:, None]]
        return namespace(mean).concat([*parts, terms] if self.by_lead else parts, axis=1), terms[..., 0]

    def issue(self, origin: int, parts: Array, terms: Array, tallied: Array) -> Ledger:
        """Enter what was said, to dead places until it is taken, and the tally of it."""
        self.ahead[:, :, self._places(along(origin, origin))] = parts
        return self._after(origin, terms, tallied)

    def pass_over(self, origin: int) -> Ledger:
        """No forecast was issued at this origin."""
        self.ahead[:, PRECISION, self._places(along(origin, origin))] = 0.0
        return self._after(origin, 0.0, tally.passed_over(self.tally))

    def page_places(self, row: int) -> tuple[Array, int]:
        """Where what was said of the row to come lies: by lead (H,), and the width of its newest origin."""
        # what origin row - h said lies where origin row + 1 will go: the places of lead h are h + 1
        return self._places(along(row + 1, row)), place_of(row - 1, row - 1)

    def page(self, places: Array, place: int) -> Page:
        """All that was said of a row to come, from its places."""
        return self._page(namespace(self.ahead).take(self.ahead, places, axis=2), self.tally[:, :, 0], place)

    def keep(self, row: int, patience: int, parts: Array, known: Array) -> Ledger:
        """Keep what cells (N,) of the newest row need that are not known and may come late."""
        late = self.late.after(row, patience, known, parts, self.tally[:, :, 0])
        return Ledger(self.ahead, self.tally, late, self.width)

    def late_page(self, row: int, newest: int) -> tuple[Array, Page]:
        """Which cells (N,) of a row that is ``newest - row`` rows old have not come, and what was said of them."""
        missing, pages = self.late.of(row)
        sums = int(self.tally.shape[1])
        parts = pages[:, :-sums].reshape((len(missing), -1, self.horizon))
        return missing, self._page(parts, pages[:, -sums:], place_of(row - 1, newest))

    def with_learned(self, row: int, cells: Array) -> Ledger:
        """Once cells (N,) of an older row are learned."""
        return Ledger(self.ahead, self.tally, self.late.without(row, cells), self.width)

    def _after(self, origin: int, terms: Array | float, tallied: Array) -> Ledger:
        """The ledger after an origin of these terms (N, W)."""
        width = self.width if self.by_lead else push(self.width.mT, origin, terms).mT
        return Ledger(self.ahead, tallied, self.late, width)

    def _page(self, parts: Array, sums: Array, place: int) -> Page:
        """Of the parts (N, parts, H) of a row; where all leads share a width, its newest origin has that place."""
        stacked = parts[:, PARTS:] if self.by_lead else vectors_from(self.width.mT, place, self.horizon).mT
        return Page(parts, sums, Width.of(stacked))

    def _places(self, origin: int | Array) -> Array:
        """Where the leads of an origin go: (H,)."""
        where = namespace(self.ahead), self.horizon, self.ahead.device
        if isinstance(origin, int):
            return _places(*where, origin)
        places, first = _leads(*where)
        return first + origin % places


@lru_cache(maxsize=64)
def _places(xp: Any, horizon: int, device: Any, origin: int) -> Array:
    """Of an origin, which is asked for by the page of the row before it and then by itself."""
    places, first = _leads(xp, horizon, device)
    return first + origin % places


@lru_cache(maxsize=64)
def _leads(xp: Any, horizon: int, device: Any) -> tuple[Array, Array]:
    """How many places each lead has, and the first of them."""
    leads = xp.arange(1, horizon + 1, device=device)
    return leads + 1, (leads - 1) * (leads + 2) // 2
