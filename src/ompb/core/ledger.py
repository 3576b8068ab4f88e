r"""What is known when: issued forecasts wait here until the rows they speak of arrive.

Row r is spoken of by H origins, r-1 .. r-H, at leads 1 .. H; together they are its *page*. Lead h of an origin waits
for h rows, so h + 1 places are enough for it, one of them dead: origin k takes place

.. math:: \textstyle\sum_{j<h} (j + 1) + \bigl(k \bmod (h + 1)\bigr)

and nothing is kept that has been revealed. Of the pages of the last ``patience`` rows remains what a late cell needs:
the base forecast, the issued mean and its precision, and two weighted sums of each forecast that the gate compares (see
`Gate.late_losses`). A cell is learned once.

States are values: a method that changes one returns the next. Large buffers are shared between a state and the next,
which writes only to *dead places*: those that no call on the earlier state can read. So an earlier state stays good
until the next one is taken in its place.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from ompb.core.arrays import Array, namespace, row_major, zeros
from ompb.core.intervals import LEVELS
from ompb.core.rings import SLACK, before, push
from ompb.shapes import Shape

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

    forecasts: Array  # the voices', what each speed of the gate makes of them, and the issued mean: (N, K + Z + 1, H)
    precision: Array  # 1 / issued standard deviation; 0 where nothing was issued: (N, H)
    width: Width

    @property
    def mean(self) -> Array:
        """The issued mean: (N, H)."""
        return self.forecasts[:, -1]


class LatePage(NamedTuple):
    """What a late cell needs of a row's page."""

    base: Array  # (N, H)
    mean: Array  # (N, H)
    precision: Array  # (N, H)
    sums: Array  # of what voices and speeds said: (N, 2, K + Z)
    width: Width


class Ledger(NamedTuple):
    """Issued forecasts by the row they speak of: of rows to come, and of those at most ``patience`` rows old."""

    ahead: Annotated[Array, Shape("N T said")]  # K + Z + 2 numbers, and a width where every lead has its own
    late: Annotated[Array, Shape("N late parts H")]  # base, mean and precision, and such a width; by row, a ring
    sums: Annotated[Array, Shape("N late 2 compared")]  # by row, a ring
    width: Annotated[Array, Shape("N W D", least=0)]  # by origin, a ring; W = 0 where leads have their own
    learned: Annotated[Array, Shape("N late", dtype="bool")]  # cells that have been learned; by row, a ring

    @classmethod
    def empty(cls, like: Array, compared: int, patience: int, by_lead: bool = False) -> Ledger:
        """Nothing issued yet; ``like`` is any (N, H) array, ``compared`` counts the voices and speeds.

        ``by_lead``: every lead has a width of its own.
        """
        lanes, horizon = like.shape
        rows = patience + 2  # the row to come, those it is late by, and a dead one
        own = TERMS if by_lead else 0
        return cls(
            ahead=zeros(like, lanes, horizon * (horizon + 3) // 2, compared + 2 + own),
            late=zeros(like, lanes, rows, 3 + own, horizon),
            sums=zeros(like, lanes, rows, 2, compared),
            width=zeros(like, lanes, TERMS - own, horizon + patience + 1 + SLACK),
            learned=zeros(like, lanes, rows) > 0,
        )

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.late.shape[3])

    @property
    def by_lead(self) -> bool:
        """Whether every lead has a width of its own."""
        return int(self.width.shape[1]) == 0

    def issue(self, origin: int, said: Array, precision: Array, width: Width) -> Ledger:
        """Enter what was said (N, K + Z + 1, H), to dead places until it is taken."""
        xp, terms = namespace(said), width.stacked()
        parts = [said, precision[:, None], terms] if self.by_lead else [said, precision[:, None]]
        self.ahead[:, self._places(origin, ahead=True)] = xp.matrix_transpose(xp.concat(parts, axis=1))
        if self.by_lead:
            return self
        transposed = xp.matrix_transpose
        return self._replace(width=transposed(push(transposed(self.width), origin, terms[..., 0])))

    def pass_over(self, origin: int) -> Ledger:
        """No forecast was issued at this origin."""
        precision = int(self.ahead.shape[2]) - 1 - (TERMS if self.by_lead else 0)
        self.ahead[:, self._places(origin, ahead=True), precision] = 0.0
        if self.by_lead:
            return self
        transposed = namespace(self.width).matrix_transpose
        return self._replace(width=transposed(push(transposed(self.width), origin, 0.0)))

    def page(self, row: int) -> Page:
        """All that was said of the row to come."""
        by_lead = namespace(self.ahead).take(self.ahead, self._places(row, ahead=False), axis=1)
        page = row_major(by_lead.mT)
        precision = int(page.shape[1]) - 1 - (TERMS if self.by_lead else 0)
        width = Width.of(page[:, precision + 1 :]) if self.by_lead else self._width(row, row - 1)
        return Page(page[:, :precision], page[:, precision], width)

    def keep(self, row: int, base: Array, page: Page, sums: Array | None) -> None:
        """Keep of the page of the newest row what late cells need; without sums no cell of it is missing."""
        kept = self.late[:, row % int(self.late.shape[1])]  # a view of a dead place
        kept[:, 0], kept[:, 1], kept[:, 2] = base, page.mean, page.precision
        if self.by_lead:
            kept[:, 3:] = page.width.stacked()
        if sums is not None:
            self.sums[:, row % int(self.late.shape[1])] = sums

    def late_page(self, row: int, newest: int) -> LatePage:
        """What is left of the page of a row that is ``newest - row`` rows old: views."""
        place = row % int(self.late.shape[1])
        kept = self.late[:, place]
        width = Width.of(kept[:, 3:]) if self.by_lead else self._width(row, newest)
        return LatePage(kept[:, 0], kept[:, 1], kept[:, 2], self.sums[:, place], width)

    def is_learned(self, row: int) -> Array:
        """Which cells (N,) of a row that has arrived have been learned."""
        return self.learned[:, row % int(self.learned.shape[1])]

    def with_learned(self, row: int, cells: Array) -> Ledger:
        """The cells (N,) of a row that are learned from now on."""
        learned = namespace(cells).asarray(self.learned, copy=True)
        learned[:, row % int(self.learned.shape[1])] = cells
        return self._replace(learned=learned)

    def _width(self, row: int, newest: int) -> Width:
        """What the origins that spoke of a row issued with, where all leads share it: views."""
        transposed = namespace(self.width).matrix_transpose
        return Width.of(transposed(before(transposed(self.width), row, self.horizon, newest)))

    def _places(self, row: int, ahead: bool) -> Array:
        """Where the leads of an origin go, or those that spoke of a row lie: (H,)."""
        leads, first = _leads(namespace(self.ahead), self.horizon, self.ahead.device)
        return first + (row if ahead else row - leads) % (leads + 1)


@lru_cache(maxsize=64)
def _leads(xp: Any, horizon: int, device: Any) -> tuple[Array, Array]:
    """The leads, and the first place of each."""
    leads = xp.arange(1, horizon + 1, device=device)
    return leads, (leads - 1) * (leads + 2) // 2
