r"""A signal's record: what it does in a calm stream, by the largest values of its last blocks of rows.

With s the largest value of a block of `BLOCK` rows, and the mean m and standard deviation d of the last `BLOCKS` of
them, Gumbel's law by moments is

.. math:: P(s > x) = 1 - \exp(-e^{-z}),\qquad z = \frac{x - \mu}{\beta},\quad \beta = \frac{\sqrt 6}{\pi} d,\quad
   \mu = m - \gamma \beta

so a calm stream goes above x once in BLOCK / P(s > x) rows. Values that follow each other are alike, so a law of single
values would promise too much; the largest ones of whole blocks hardly know of each other.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, contiguous, namespace, put, zeros
from ompb.core.counts import Form, along
from ompb.floor.shapes import Shape

BLOCK = 24  # rows
BLOCKS = 20  # the record goes back so many of them: 480 rows
# Blocks without which there is no law to speak of.
LEAST_BLOCKS = 5
# Rarer than once in so many rows is not told apart: a law learned from 480 rows does not reach further.
RAREST = 1e6
# No signal comes near it, and float32 has it, too.
OUT_OF_REACH = 1e30
EULER = 0.5772156649015329
BETA = math.sqrt(6) / math.pi


class Record(NamedTuple):
    """The largest values of the last blocks, and their law, of some signals of S series."""

    maxima: Annotated[Array, Shape("S signals blocks")]  # a ring; the first so many until it is full
    high: Annotated[Array, Shape("S signals")]  # the largest value of the block that is not full yet
    location: Annotated[Array, Shape("S signals")]  # mu
    scale: Annotated[Array, Shape("S signals", least=0)]  # beta
    rows: int  # so far

    @classmethod
    def empty(cls, like: Array, series: int, signals: int) -> Record:
        """No row yet; ``like`` is any array."""
        blank = zeros(like, series, signals)
        return cls(zeros(like, series, signals, BLOCKS), blank, blank, blank, 0)

    def line(self, excess: float) -> Array:
        """The values (S, signals) whose z is ``excess``; out of reach where the record does not go back far enough."""
        if self.rows < LEAST_BLOCKS * BLOCK:
            return namespace(self.location).full_like(self.location, OUT_OF_REACH)
        return self.location + excess * self.scale

    def excess(self, signals: Array) -> Array:
        """How far signals (S, signals) lie above the law's location, in its scale: z."""
        return (signals - self.location) / self.scale

    def with_row(self, row: int, signals: Array, least: Array) -> Record:
        """Once a row's signals (S, signals) are known; their law's scale is at least ``least`` (signals,)."""
        xp = namespace(signals)
        high, rows = _higher(self.high, signals, along(self.rows, row) % BLOCK), self.rows + 1
        if rows % BLOCK:
            return Record(self.maxima, high, self.location, self.scale, rows)
        maxima = contiguous(self.maxima)  # sums round by layout
        put(maxima.mT, (along(rows, row) // BLOCK - 1) % BLOCKS, high)
        known = maxima[..., : rows // BLOCK]
        scale = xp.maximum(BETA * xp.std(known, axis=-1), least)
        return Record(maxima, high, xp.mean(known, axis=-1) - EULER * scale, scale, rows)

    def form(self, row: int) -> Form:
        """Of the next row: where this record began, and, if it ends a block, how many there are then."""
        rows = self.rows + 1
        return row - rows, 0 if rows % BLOCK else min(rows // BLOCK, BLOCKS)

    @property
    def is_news(self) -> bool:
        """Whether the last row ended a block, which changes the law."""
        return self.rows % BLOCK == 0

    def whole_blocks(self) -> Record:
        """Without the block that is not full yet."""
        return self._replace(rows=self.rows // BLOCK * BLOCK)


def _higher(high: Array, signals: Array, place: int | Array) -> Array:
    """The largest values (S, signals) of a block, of which a row has that place."""
    xp = namespace(signals)
    if isinstance(place, int):
        return xp.maximum(high, signals) if place else signals
    return xp.where(place == 0, signals, xp.maximum(high, signals))


def line_of(rows: float) -> float:
    """The z that a calm stream exceeds once in so many rows.

    >>> round(rows_between(line_of(2000.0)))
    2000
    """
    return -math.log(-math.log1p(-BLOCK / rows))


def often_between(excess: Array) -> Array:
    """The same for an array of z."""
    xp = namespace(excess)
    return BLOCK / -xp.expm1(-xp.exp(-xp.clip(excess, None, line_of(RAREST))))


def rows_between(excess: float) -> float:
    """How many rows lie between two times that a calm stream exceeds z; at most `RAREST`."""
    often = -math.expm1(-math.exp(-min(excess, line_of(RAREST))))
    return BLOCK / often
