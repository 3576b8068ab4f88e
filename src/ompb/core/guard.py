r"""The guard: one absurd number must not poison a stream.

A cell y is taken as missing where

.. math:: |y - \hat y_1| > \text{threshold} \cdot \max(s_1, 1)

with the newest forecast of it and the sd that was issued (source sd 1, standardised). Where nobody has forecast a row,
as in the first window, what stood there before is held against it, with s = 0: for the newest row the last known value,
before any the source mean. After `rows` such cells in a row one is believed: the level has moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, at_least, at_most, has_none, namespace, zeros
from ompb.core.ledger import Page
from ompb.floor.shapes import Shape


@dataclass(frozen=True)
class GuardOptions:
    """Of the guard."""

    threshold: float | None = 20.0  # in standard deviations; None: every cell is believed
    rows: int = 6  # cells in a row that are not believed


class GuardState(NamedTuple):
    """The newest forecast, and how many cells in a row lay off theirs."""

    mean: Annotated[Array, Shape("N H")]
    sd: Annotated[Array, Shape("N H", least=0)]
    origin: int | None  # of the newest forecast
    off: Annotated[Array, Shape("N", least=0)]
    calm: bool  # none was

    def with_run(self, off: Array, calm: bool) -> GuardState:
        """The same once a row was judged."""
        return self if off is self.off else GuardState(self.mean, self.sd, self.origin, off, calm)


@dataclass(frozen=True)
class Guard:
    """Which cells are not believed."""

    options: GuardOptions

    def start(self, like: Array) -> GuardState:
        """Nothing was forecast yet; ``like`` is any (N, H) array."""
        return GuardState(zeros(like, *like.shape), zeros(like, *like.shape), None, zeros(like, like.shape[0]), True)

    @property
    def is_off(self) -> bool:
        """Whether every cell is believed."""
        return self.options.threshold is None

    def newest(self, state: GuardState, row: int) -> tuple[Array, Array] | None:
        """The newest forecast of a row to come and its sd, (N,) each; None if there is none."""
        lead = self.form(state, row)
        return None if lead is None else (state.mean[:, lead], state.sd[:, lead])

    def form(self, state: GuardState, row: int) -> int | None:
        """At which lead, less 1, the newest forecast speaks of a row to come; None if it does not."""
        lead = state.mean.shape[1] if state.origin is None else row - state.origin - 1
        return None if lead >= state.mean.shape[1] else int(lead)

    def in_place_of(self, stood: Array) -> tuple[Array, Array]:
        """What stood in a row (N,), as a forecast of it and its sd."""
        return stood, namespace(stood).zeros_like(stood)

    def judge(
        self, newest: tuple[Array, Array], run: Array, calm: bool, values: Array
    ) -> tuple[Array | None, Array, bool]:
        """Which cells (N,) of the newest row to hide, by its newest forecast or what stands for it; None for none.

        Beside it, how many in a row lay off theirs (N,), and whether none did, from those of the state.
        """
        off = self._off(values, *newest)
        if has_none(off) and calm:
            return None, run, calm
        xp = namespace(values)
        run = xp.where(off | xp.isnan(values), run + off, 0.0)  # a missing cell says nothing
        return off & (run <= self.options.rows), run, has_none(run > 0)

    def judge_each(self, values: Array) -> Array:
        """Which cells (N, T) of rows that nobody forecasts to hide, row after row, from the source mean on."""
        xp = namespace(values)
        hidden, stood = xp.zeros_like(values) > 0, xp.zeros_like(values[:, 0])
        if self.is_off or has_none(
            self._off(_width(values), *self.in_place_of(stood))
        ):  # no two are far enough from each other
            return hidden
        run, calm = stood, True
        for row in range(values.shape[1]):
            cells = values[:, row]
            off, run, calm = self.judge(self.in_place_of(stood), run, calm, cells)
            if off is not None:
                hidden[:, row], cells = off, xp.where(off, xp.nan, cells)
            stood = xp.where(xp.isnan(cells), stood, cells)
        return hidden

    def judge_late(self, page: Page | None, stood: Array, values: Array) -> Array:
        """Which cells (N,) of an older row to hide, by the newest forecast on its page, else by what stood there (N,).

        So it is for a cell that is known and comes again: no page of it is kept. Late cells are few, so none is
        believed for its company.
        """
        xp = namespace(values)
        if self.is_off:
            return xp.zeros_like(values) > 0
        if page is None:
            return self._off(values, *self.in_place_of(stood))
        spoken = page.precision > 0  # (N, H), newest origin first
        newest = (xp.arange(spoken.shape[0], device=values.device), xp.argmax(xp.astype(spoken, xp.int8), axis=1))
        was_forecast = spoken[newest]
        sd = xp.where(was_forecast, 1 / xp.where(was_forecast, page.precision[newest], 1.0), 0.0)
        return self._off(values, xp.where(was_forecast, page.mean[newest], stood), sd)

    def issue(self, state: GuardState, origin: int, mean: Array, sd: Array) -> GuardState:
        """A forecast (N, H) was issued."""
        return GuardState(mean, sd, int(origin), state.off, state.calm)

    def _off(self, values: Array, mean: Array, sd: Array) -> Array:
        """Cells (N,) far from their forecast; a missing one is not."""
        return abs(values - mean) > self.options.threshold * at_least(sd, 1.0)


def _width(values: Array) -> Array:
    """How far the known ones of (N, T) values and 0 lie apart, (N,)."""
    xp = namespace(values)
    known = xp.where(xp.isnan(values), 0.0, values)
    return at_least(xp.max(known, axis=1), 0.0) - at_most(xp.min(known, axis=1), 0.0)
