"""A cohort: series that share a clock. What one row does to all of them at once; a stream is a cohort of one.

A row is taken in by two moves, between which the forecaster is asked: `enter` says which cells are believed and moves
the window on, `leave` learns the row and issues from the window. Each takes a state and returns the next; an earlier
state stays good until the next one takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator, online_rules
from ompb.core.arrays import Array, has_all, has_none, namespace, row_major
from ompb.core.counts import Form
from ompb.core.fusing import fused, prepared
from ompb.core.guard import Guard, GuardState
from ompb.core.online import UNTOLD, Issued, Online, OnlineState
from ompb.errors import TooShortError
from ompb.floor.shapes import Shape
from ompb.floor.times import Stamp, Times
from ompb.live.lanes import joined, mapped, put_back, spread, taken
from ompb.live.library import HOST, Library
from ompb.live.window import NEVER, Window
from ompb.rows.scaler import Scaler
from ompb.seam.query import Answer
from ompb.types import Floats


class CohortState(NamedTuple):
    """All that changes as rows arrive, for S series of C channels."""

    rows: int  # seen so far; the newest has index rows - 1
    known: int  # rows that members may look back on: those seen, and those known before the first
    timed: bool  # whether rows have times
    newest: Annotated[NDArray[np.int64], Shape("1", dtype="int64")]  # time of the newest row, if they have
    hidden: Annotated[Array, Shape("S C", dtype="int64", least=0)]  # cells not believed so far
    replaced: int | None  # origin of a new model's first forecast, until all rows that it speaks of have come
    window: Window
    online: OnlineState


class Learned(NamedTuple):
    """What rows have taught; all that changes, beside the clock and the window."""

    online: OnlineState
    hidden: Array  # as in `CohortState`


class Entered(NamedTuple):
    """A row that has come, before the forecaster is asked."""

    values: Array  # NaN where missing or not believed: (S, 1, C)
    lanes: Array  # the same, standardised: (N,)
    hidden: Array | None  # cells that are not believed, (S, 1, C); None for none
    guard: GuardState
    window: Window  # with the row


@dataclass(frozen=True, eq=False)
class Cohort:
    """The rules for S series; nothing here changes as rows arrive."""

    calibrators: tuple[Calibrator, ...]  # of each series, or one for all of them
    series: int
    library: Library = HOST

    def __getstate__(self) -> dict[str, Any]:
        # a copy makes anew what follows from these: its arrays share memory, which would be written out lane by lane
        return {name: getattr(self, name) for name in ("calibrators", "series", "library")}

    @property
    def cal(self) -> Calibrator:
        """Of the first series: what is no array is the same for all."""
        return self.calibrators[0]

    @property
    def is_shared(self) -> bool:
        """Whether one calibrator serves all."""
        return len(self.calibrators) == 1

    @cached_property
    def online(self) -> Online:
        """The rules of the core, for N lanes."""
        cal = self.cal
        if self.series == 1 and self.library == HOST:
            return cal.online
        sources = [mapped(self.library.array, one.source, every=True) for one in self.calibrators]
        source = spread(sources[0], self.series) if self.is_shared else joined(sources)
        rules = online_rules(source, cal.settings, cal.channels, cal.season, cal.quantiles)
        if self.library.compiled:
            prepared(rules)
        return rules

    @cached_property
    def on_host(self) -> Scaler:
        """The scaler of each series, (S, 1, C), or of all of them, in NumPy."""
        if self.is_shared:
            return self.cal.scaler
        centres, scales = (np.stack([getattr(cal, name) for cal in self.calibrators]) for name in ("centre", "scale"))
        return Scaler(centres[:, None], scales[:, None])

    @cached_property
    def scaler(self) -> Scaler:
        """The same in the library of the states."""
        return self.on_host if self.library == HOST else mapped(self.library.array, self.on_host, every=True)

    @cached_property
    def _columns(self) -> tuple[Array, Array]:
        """Its numbers as columns, (S, C, 1), or (1, C, 1) of all series."""
        columns = (-1, self.cal.channels, 1)
        return self.scaler.centre.reshape(columns), self.scaler.scale.reshape(columns)

    @cached_property
    def bounds(self) -> Any:
        """What no value can lie below or above, (2, C), or (S, 2, 1, C); None if nobody gave any."""
        bounds = self.cal.bounds  # an option, hence the same for all
        return None if bounds is None else self.library.array(bounds)

    def part(self, places: Sequence[int]) -> Cohort:
        """The rules for some of the series."""
        if not self.is_shared:
            return Cohort(tuple(self.calibrators[place] for place in places), len(places), self.library)
        if len(places) == self.series:
            return self
        part = self._sized.get(len(places))
        if part is None:
            part = self._sized[len(places)] = Cohort(self.calibrators, len(places), self.library)
            while sum(sizes := list(self._sized)) > self.series:
                self._sized.pop(sizes[0], None)
        return part

    @cached_property
    def _sized(self) -> dict[int, Cohort]:
        """The rules for so many series of a shared calibrator, those that were made last.

        Late rows come of few numbers again and again, or of any: rules are kept for as many series as the cohort has.
        """
        return {}

    def start(self) -> CohortState:
        """No row yet."""
        cal = self.cal
        centre = np.broadcast_to(self.on_host.centre, (self.series, 1, cal.channels))[:, 0]
        window = mapped(self.library.array, Window.empty(cal.remembers, centre))
        hidden = self.library.array(np.zeros((self.series, cal.channels), dtype=np.int64))
        return CohortState(0, 0, False, np.zeros(1, dtype=np.int64), hidden, None, window, self.online.start())

    def enter(self, state: CohortState, values: Array) -> Entered:
        """A row (S, 1, C) has come, NaN where missing."""
        return self.believe(state.rows, state.online.guard, state.window, values)

    def believe(self, row: int, guard: GuardState, window: Window, values: Array) -> Entered:
        """The same, of the parts of a state that it takes."""
        rules, newest = self.online.guard, None
        if not rules.is_off:
            newest = rules.newest(guard, row) or rules.in_place_of(self._stood_at(window, 0))
        values, lanes, hidden, run, calm, window = _entered(
            self.scaler, rules, newest, guard.off, guard.calm, window, row, values
        )
        return Entered(values, lanes, hidden, guard.with_run(run, calm), window)

    def form(self, state: CohortState) -> Form | None:
        """What, beside arrays, decides how the next row is taken in if it is forecast from; None if that is its own."""
        return self.online.form(state.online, state.rows) if state.known >= self.cal.remembers else None

    def is_ready(self, state: CohortState) -> bool:
        """Whether the next row completes a window."""
        return state.known + 1 >= self.cal.context

    def leave(
        self, state: CohortState, entered: Entered, stamp: Stamp | None, answer: Answer | None
    ) -> tuple[Issued | None, CohortState]:
        """What is issued with the row, in answer to a base forecast (S, H, C), and the state after it."""
        before = Learned(state.online, state.hidden)
        issued, learned = self.learn(state.rows, state.known + 1, before, entered, answer)
        return issued, self.after(state, stamp, answer is not None, entered.window, learned)

    def learn(
        self, row: int, known: int, before: Learned, entered: Entered, answer: Answer | None
    ) -> tuple[Issued | None, Learned]:
        """What is issued with the row, of ``known`` ones, and what is learned after it."""
        rules, issued, hidden = self.online, None, before.hidden
        online = rules.reveal(before.online, row, entered.lanes, entered.guard)
        if answer is None:
            online = rules.pass_over(online, row)
        else:
            seen, said = self._lanes(entered.window.filled), self._lanes(answer.base)
            issued, online = rules.issue(online, row, seen, said, known, self._spreads(answer))
        if entered.hidden is not None:
            hidden = hidden + entered.hidden[:, 0]
        return issued, Learned(online, hidden)

    def after(
        self, state: CohortState, stamp: Stamp | None, spoke: bool, window: Window, learned: Learned
    ) -> CohortState:
        """The state a row later, by the host's clock."""
        row = state.rows
        return CohortState(
            rows=row + 1,
            known=state.known + 1,
            timed=stamp is not None,
            newest=state.newest if stamp is None else np.asarray([stamp]).astype(np.int64),
            hidden=learned.hidden,
            replaced=self._still_new(state, row, spoke),
            window=window,
            online=learned.online,
        )

    def _still_new(self, state: CohortState, row: int, spoke: bool) -> int | None:
        """The origin of a new model's first forecast, which is put off by a row at which there was none."""
        first = state.replaced
        if first is None or row >= first + self.cal.horizon:
            return None
        return first if spoke or row > first else row + 1

    def observe(self, state: CohortState, late: int, values: Array) -> CohortState:
        """Once cells (S, C) of an older row have come, NaN elsewhere."""
        xp = namespace(values)
        told = np.flatnonzero(self.library.host(xp.any(~xp.isnan(values), axis=1)))
        if not len(told):
            return state
        if len(told) == self.series:
            return self._observed(state, late, values)
        part = taken(state, self.series, told, but=UNTOLD)
        after = self.part(told.tolist())._observed(part, late, values[told])
        return put_back(state, self.series, told, part, after)

    def _observed(self, state: CohortState, late: int, values: Array) -> CohortState:
        xp, newest = namespace(values), state.rows - 1
        row, age = values[:, None], newest - late
        hidden = ~(self.scaler.near(row) | xp.isnan(row))[:, 0]
        lanes = self.scaler.standardise(xp.where(hidden, xp.nan, values)[:, None]).reshape((-1,))
        stood = self._stood_at(state.window, age)
        off, online = self.online.reveal_late(state.online, late, newest, stood, lanes)
        hidden = hidden | off.reshape(hidden.shape)
        window = state.window.revised(age, late, xp.where(hidden, xp.nan, values))
        return state._replace(window=window, online=online, hidden=state.hidden + hidden)

    def remembering(self, state: CohortState, rows: Floats, stamps: Times | None) -> CohortState:
        """The state of series that know rows (S, T, C) and have learned nothing from them."""
        cal = self.cal
        known = self._believed(rows)
        centre = np.broadcast_to(self.on_host.centre, (self.series, 1, cal.channels))[:, 0]
        return state._replace(
            known=rows.shape[1],
            timed=stamps is not None,
            newest=state.newest if stamps is None else stamps[-1:].astype(np.int64),
            hidden=state.hidden + self.library.array((np.isnan(known) & ~np.isnan(rows)).sum(axis=1)),
            window=mapped(self.library.array, Window.of(known, cal.remembers, centre)),
        )

    def _believed(self, rows: Floats) -> Floats:
        """Rows (S, T, C) of a history, NaN also where they cannot be true."""
        known = np.where(self.on_host.near(rows), rows, np.nan)
        lanes = np.moveaxis(self.on_host.standardise(known), 1, 2)  # (S, C, T)
        hidden = self.online.guard.judge_each(lanes.reshape((-1, rows.shape[1]))).reshape(lanes.shape)
        return np.where(np.moveaxis(hidden, 2, 1), np.nan, known)

    def taking_over(self, state: CohortState) -> CohortState:
        """The state of series that another model has followed so far: see `Stream.replace`."""
        cal, kept = self.cal, state.window.rows
        if cal.context > kept and state.known > kept:
            raise TooShortError(
                f"the new calibrator has context {cal.context}, and of {state.known} rows the newest {kept} are kept; "
                "accepted: a context up to that. Fit it so, or start a new stream with history= for the rows before it."
            )
        window = state.window
        known, before, before_row = map(self.library.host, (window.known, window.before, window.before_row))
        near, near_before = self.on_host.near(known), self.on_host.near(before[:, None])[:, 0]
        never = (before_row == NEVER) | ~near_before
        centre = np.broadcast_to(self.on_host.centre, (self.series, 1, cal.channels))[:, 0]
        before, before_row = np.where(never, centre, before), np.where(never, NEVER, before_row)
        window = Window.newest(cal.remembers, np.where(near, known, np.nan), state.rows - 1, before, before_row)
        return state._replace(
            known=min(state.known, kept),
            hidden=state.hidden + self.library.array((~near & ~np.isnan(known)).sum(axis=1)),
            replaced=state.rows or None,  # before the first row nothing was said
            window=mapped(self.library.array, window),
            online=self.online.start(),
        )

    def _stood_at(self, window: Window, age: int) -> Array:
        """What a row that is so many rows old is held against where nobody has forecast it: (N,)."""
        return self.scaler.standardise(window.stood_at(age)[:, None]).reshape((-1,))

    def _lanes(self, rows: Array) -> Array:
        """Rows (S, T, C) standardised, as lanes (N, T): turned first, as loops over few channels are short ones."""
        centre, scale = self._columns
        return ((row_major(rows.mT) - centre) / scale).reshape((-1, rows.shape[1]))

    def _spreads(self, answer: Answer) -> Array | None:
        """How far the quantiles of answers lie off their median, standardised: (N, Q - 1, H); None without any."""
        if answer.quantiles is None:
            return None
        xp = namespace(answer.base)
        quantiles, middle = answer.quantiles, self.cal.quantiles.index(0.5)
        others = xp.concat([quantiles[..., :middle], quantiles[..., middle + 1 :]], axis=-1)  # (S, H, C, Q - 1)
        off = (others - answer.base[..., None]) / self.scaler.scale[..., None]
        by_lane = row_major(xp.permute_dims(off, (0, 2, 3, 1)))
        return by_lane.reshape((-1, *by_lane.shape[2:]))


@fused
def _entered(
    scaler: Scaler,
    guard: Guard,
    newest: tuple[Array, Array] | None,
    run: Array,
    calm: bool,
    window: Window,
    row: int,
    values: Array,
) -> tuple[Array, Array, Array | None, Array, bool, Window]:
    """What `Entered` says of a row (S, 1, C), with the guard's count (N,) and calm after it."""
    xp = namespace(values)
    near = scaler.near(values)
    hidden = None if has_all(near) else ~(near | xp.isnan(values))
    if hidden is not None and has_none(hidden):
        hidden = None
    lanes = scaler.standardise(values if hidden is None else xp.where(hidden, xp.nan, values))
    if newest is not None:
        off, run, calm = guard.judge(newest, run, calm, lanes.reshape((-1,)))
        if off is not None:
            off = off.reshape(values.shape)
            hidden = off if hidden is None else hidden | off
    if hidden is not None:
        values, lanes = xp.where(hidden, xp.nan, values), xp.where(hidden, xp.nan, lanes)
    return values, lanes.reshape((-1,)), hidden, run, calm, window.with_row(row, values)
