"""Stream: the online stage for one live series. Rows go in, forecasts come out."""

from __future__ import annotations

import copy
import os
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb import archive
from ompb.calibrator import Calibrator
from ompb.core.guard import GuardState
from ompb.core.online import OnlineState
from ompb.errors import BusyError, ForecasterError, StaleRowError, TimeOrderError
from ompb.inputs import as_future, as_row, as_rows_of
from ompb.outgoing import alerts_of, forecast_of
from ompb.placing import Place
from ompb.query import Answer, AnyForecaster, Forecaster, Query, as_forecaster, ask, quantiles_of, speaking
from ompb.shapes import Shape
from ompb.times import Stamp, Times
from ompb.types import Alert, Floats, Forecast, RealisedRisk
from ompb.window import Window


class _Ask:
    """Stands for "ask the forecaster"."""

    def __repr__(self) -> str:
        return "ASK"


ASK: Final = _Ask()


class StreamState(NamedTuple):
    """All that changes as rows arrive."""

    rows: int  # seen so far; the newest has index rows - 1
    history: int  # rows known before the first
    timed: bool  # whether rows have times
    newest: Annotated[NDArray[np.int64], Shape("1", dtype="int64")]  # time of the newest row, if they have
    hidden: Annotated[NDArray[np.int64], Shape("N", dtype="int64")]  # cells not believed so far: (C,)
    window: Window
    online: OnlineState


@dataclass(frozen=True, eq=False)
class _Given(Forecaster):
    """Says what it was given."""

    base: Any
    quantiles: tuple[float, ...]

    def forecast(self, query: Query) -> Any:
        del query
        return [self.base]


class _Mark:
    """Lives as long as a call is at work."""


class Stream:
    """Knows rows and nothing else, so a leak cannot be written.

    A row's index is its place in the stream, from 0. The forecast issued with row t has ``origin`` t and speaks of rows
    t + 1 .. t + horizon; when one of them arrives, its lead is learned.

    A call computes the next state and then takes it in one assignment: whatever interrupts it, the stream is as it was
    or as it should be. One call at a time: a second one, from another thread or from the forecaster itself, raises
    `BusyError`.
    """

    def __init__(self, calibrator: Calibrator, forecaster: AnyForecaster | None = None) -> None:
        self._calibrator = calibrator
        self._forecaster = None if forecaster is None else as_forecaster(forecaster)
        if self._forecaster is not None and calibrator.record and self._forecaster.record == calibrator.record:
            raise ForecasterError(
                "these recorded forecasts are those of the source, whose rows are not the stream's; record those of "
                "the stream, counted from its first row, or find forecasts by time: Recorded(forecasts, times=...)."
            )
        if self._forecaster is not None and quantiles_of(self._forecaster) != calibrator.quantiles:
            raise ForecasterError(
                f"the forecaster gives the quantiles {quantiles_of(self._forecaster)}, and the calibrator was fitted "
                f"with {calibrator.quantiles}; fit it with this forecaster, or bring one of those quantiles."
            )
        self._state = StreamState(
            rows=0,
            history=0,
            timed=False,
            newest=np.zeros(1, dtype=np.int64),
            hidden=np.zeros(calibrator.channels, dtype=np.int64),
            window=Window.empty(calibrator.remembers, calibrator.centre),
            online=calibrator.online.start(),
        )
        self._calls: list[weakref.ref[_Mark]] = []

    def __repr__(self) -> str:
        hidden = int(self._state.hidden.sum())
        return f"Stream({self.rows} rows{f', {hidden} cells not believed' if hidden else ''}, of {self._calibrator!r})"

    def __getstate__(self) -> dict[str, Any]:
        state = copy.deepcopy(self._state)  # a copy by `copy.copy`, too, writes to buffers of its own
        return {"calibrator": self._calibrator, "forecaster": self._forecaster, "state": state}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self._calibrator, self._forecaster = saved["calibrator"], saved["forecaster"]
        self._state = saved["state"]
        self._calls = []

    @property
    def rows(self) -> int:
        """How many rows have been seen."""
        return self._state.rows

    @property
    def hidden(self) -> dict[str, int]:
        """How many cells of each channel were not believed, being absurd, and count as missing."""
        return dict(zip(self._calibrator.names, self._state.hidden.tolist(), strict=True))

    def step(self, row: Any, *, at: Any = None, future: Any = None, base: Any = ASK) -> Forecast | None:
        """Take in the next row and forecast from it; None until ``context`` rows are known, or without base forecast.

        Args:
            row: (C,) values, NaN = missing; a mapping or labelled row is matched by name. A cell that cannot be true
                (see ``guard`` in `ompb.Settings`) counts as missing and is named in ``forecast.hidden``.
            at: its time. Rows left out since the last one count as missing; without it the next time is meant.
            future: covariates known ahead, (horizon, K), handed to the forecaster as they are.
            base: the base forecast (horizon, C), if the forecaster is not to be asked, or (horizon, C, Q) where the
                calibrator was fitted with Q quantiles; None: there is none at this row.

        Raises:
            InputError: the row, its time or the covariates cannot be used.
            ForecasterError: the forecaster failed, or broke its contract.
            BusyError: another call is at work.

        Any of them leaves the stream as it was.
        """
        mark = _Mark()
        try:
            self._enter(weakref.ref(mark))
            cal, state = self._calibrator, self._state
            values = as_row(row, cal.names)
            ahead = None if future is None else as_future(future, cal.horizon, "future")
            stamp, gap = self._place(state).of_next(at)
            if gap:
                # what is handed in with a row is not known of those before it: no forecast is issued there
                state = self._after_gap(state, gap, ASK if base is ASK and future is None else None)
            forecast, state = self._stepped(state, values, stamp, ahead, base)
            self._state = state
            return forecast
        finally:
            del mark  # a traceback may keep this frame alive

    def remember(self, history: Any, *, times: Any = None, replay: bool = False) -> None:
        """Take in rows known before the first one: see `Calibrator.stream`.

        Raises `InputError` for rows or times that cannot be used, `StaleRowError` once there is a row, and whatever
        `step` raises of one that is replayed. The stream is then as it was.
        """
        mark = _Mark()
        try:
            self._enter(weakref.ref(mark))
            cal, state = self._calibrator, self._state
            if state.rows or state.history:
                taken = f"{state.rows} rows have been stepped" if state.rows else "the stream has a history"
                raise StaleRowError(f"{taken}; history comes once, before the first row: start a new stream.")
            if times is not None and cal.grid is None:
                raise TimeOrderError("times= means nothing here, as the calibrator was fitted without times.")
            table = as_rows_of(history, "history", cal.names, times, cal.grid)
            stamps = None if cal.grid is None else table.times
            self._state = self._replayed(table.values, stamps) if replay else self._remembering(table.values, stamps)
        finally:
            del mark  # a traceback may keep this frame alive

    def observe(self, at: Any, row: Any) -> None:
        """Take in a row (C,), or some of its cells (NaN elsewhere), that came late, or a revision.

        ``at`` is the row's index, or its time if rows have times that are dates. A late cell is learned as if it had
        come on time if it is at most ``patience`` rows old. A cell that was learned before is not learned again; the
        revised value is used in the windows of later forecasts.

        Raises `StaleRowError` for a row not yet due, or too old to be of use. The stream is then as it was.
        """
        mark = _Mark()
        try:
            self._enter(weakref.ref(mark))
            cal, state = self._calibrator, self._state
            values = as_row(row, cal.names)
            newest = state.rows - 1
            late = self._place(state).of_late(at, max(cal.settings.patience, cal.remembers - 1))
            hidden, online = ~(cal.scaler.near(values) | np.isnan(values)), state.online
            values = np.where(hidden, np.nan, values)
            if newest - late <= cal.settings.patience:
                off, online = cal.online.reveal_late(online, late, newest, cal.scaler.standardise(values))
                hidden |= off
            window = state.window.revised(newest - late, late, np.where(hidden, np.nan, values))
            self._state = state._replace(window=window, online=online, hidden=state.hidden + hidden)
        finally:
            del mark  # a traceback may keep this frame alive

    def realised_risk(self) -> RealisedRisk:
        """What matured outcomes prove about the forecasts issued so far, at all times at once.

        Every forecast counts, ``patience`` rows after the last row it speaks of is due, by the cells known then: those
        that `observe` brought, too.
        """
        cal = self._calibrator
        judged = cal.online.realised.bound(self._state.online.realised, cal.settings.delta)
        mean, upper, outcomes, newest = (float(values[0]) for values in judged)
        age = self.rows - 1 - int(newest) if outcomes else self.rows
        return RealisedRisk(upper, mean, int(outcomes), age, cal.settings.delta)

    def warnings(self) -> tuple[Alert, ...]:
        """The warnings in force, strongest first: signals that do what a calm stream hardly ever does."""
        place = self._place(self._state)
        return alerts_of(self._calibrator, self._state.online, place.rows - 1, place.newest if place.timed else None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one file; the calibrator is saved on its own."""
        archive.write(path, "stream", self._state, of=archive.fingerprint(self._calibrator))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], calibrator: Calibrator, forecaster: AnyForecaster | None = None
    ) -> Stream:
        """Continue a saved stream as if it had never stopped."""
        stream = cls(calibrator, forecaster)
        owner = archive.fingerprint(calibrator)
        stream._state = archive.read(path, "stream", StreamState, of=owner, like=stream._state)
        return stream

    def _enter(self, call: weakref.ref[_Mark]) -> None:
        """Only one call at a time: the earliest whose mark, which dies with the call however that ends, is alive.

        A list's own operations are indivisible, so it needs no lock, which an interrupt could leave locked for good.
        """
        self._calls.append(call)
        for earlier in self._calls.copy():
            if earlier is call:
                return
            if earlier() is not None:
                self._calls.remove(call)
                raise BusyError(
                    "this stream is at work on another row; make one call after the other, from one thread, and not "
                    "from its own forecaster. For several threads, give each series a stream of its own."
                )
            with suppress(ValueError):  # another call has just done so
                self._calls.remove(earlier)

    def _remembering(self, rows: Floats, stamps: Times | None) -> StreamState:
        """The state of a stream that knows rows (T, C) and has learned nothing from them."""
        cal, state = self._calibrator, self._state
        near = cal.scaler.near(rows)
        known = np.where(near, rows, np.nan)
        return state._replace(
            history=len(rows),
            timed=stamps is not None,
            newest=state.newest if stamps is None else stamps[-1:].astype(np.int64),
            hidden=state.hidden + (~near & ~np.isnan(rows)).sum(axis=0),
            window=Window.of(known, cal.remembers, cal.centre),
        )

    def _replayed(self, rows: Floats, stamps: Times | None) -> StreamState:
        """The state after stepping through rows (T, C)."""
        stream = copy.copy(self)  # with buffers of its own
        for place, row in enumerate(rows):
            stream.step(row, at=None if stamps is None else stamps[place])
        return stream._state

    def _after_gap(self, state: StreamState, rows: int, base: Any) -> StreamState:
        """The state after that many missing rows."""
        cal = self._calibrator
        assert cal.grid is not None  # else there is no gap
        # several rows at once: the buffers that states share must not be written to before all is known
        state = copy.deepcopy(state)
        for stamp in cal.grid.after(self._place(state).newest, rows):
            _, state = self._stepped(state, np.full(cal.channels, np.nan), stamp, None, base)
        return state

    def _stepped(
        self, state: StreamState, values: Floats, stamp: Stamp | None, future: Floats | None, base: Any
    ) -> tuple[Forecast | None, StreamState]:
        """The forecast and the state after a row (C,)."""
        cal, rules, row = self._calibrator, self._calibrator.online, state.rows
        values, lanes, hidden, guard = self._believed(state, values)
        window = state.window.with_row(row, values)
        known = state.history + row + 1
        answer = self._base(row, window, stamp, future, base) if known >= cal.context else None
        online, forecast = rules.reveal(state.online, row, lanes, guard), None
        if answer is None:
            online = rules.pass_over(online, row)
        else:
            base = answer.base[0]
            seen, said = (np.ascontiguousarray(cal.scaler.standardise(x).T) for x in (window.filled, base))
            issued, online = rules.issue(online, row, seen, said, known, cal.spreads(answer))
            forecast = forecast_of(cal, row, stamp, base, issued, hidden, alerts_of(cal, online, row, stamp))
        newest = state.newest if stamp is None else np.asarray([stamp]).astype(np.int64)
        hidden_so_far = state.hidden if hidden is None else state.hidden + hidden
        after = StreamState(row + 1, state.history, stamp is not None, newest, hidden_so_far, window, online)
        return forecast, after

    def _place(self, state: StreamState) -> Place:
        return Place(self._calibrator.grid, state.rows, state.timed, int(state.newest[0]))

    def _believed(
        self, state: StreamState, values: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_] | None, GuardState]:
        """A row (C,) and its lanes, NaN where a cell is not believed; which are not, None for none; the guard after."""
        cal = self._calibrator
        near = cal.scaler.near(values)
        hidden = None if near.all() else ~(near | np.isnan(values))
        lanes = cal.scaler.standardise(values if hidden is None else np.where(hidden, np.nan, values))
        off, guard = cal.online.judge(state.online, state.rows, lanes)
        if off is not None:
            hidden = off if hidden is None else hidden | off
        if hidden is None:
            return values, lanes, None, guard
        return np.where(hidden, np.nan, values), np.where(hidden, np.nan, lanes), hidden, guard

    def _base(self, row: int, window: Window, stamp: Stamp | None, future: Floats | None, base: Any) -> Answer | None:
        """What the forecaster says of the newest window, checked; None where it is silent."""
        if base is None:
            return None
        cal, origins = self._calibrator, np.asarray([row])
        times = None if stamp is None else np.asarray([stamp])
        forecaster: Forecaster | None = self._forecaster if base is ASK else _Given(base, cal.quantiles)
        if forecaster is None:
            raise ForecasterError("this stream has no forecaster; pass base= with each row, or make it with one.")
        if not speaking(forecaster, origins, times)[0]:
            return None
        ahead = None if future is None else future[None]
        query = Query(window.filled[None, -cal.context :], origins, times, ahead)
        return ask(forecaster, query, cal.horizon, cal.scaler, cal.names)
