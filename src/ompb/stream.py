"""Stream: the online stage for one live series. Rows go in, forecasts come out."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np

from ompb import archive
from ompb.calibrator import Calibrator
from ompb.errors import StaleRowError
from ompb.floor.cards import card, facts
from ompb.floor.names import listed
from ompb.floor.times import Stamp, Times
from ompb.floor.turns import Turns, copied, in_turn
from ompb.live.asking import ASK, Asker, as_base, require_fit
from ompb.live.cohort import Cohort, CohortState, Entered
from ompb.live.likeness import require_same_rows
from ompb.live.outgoing import alerts_of, forecast_of
from ompb.live.placing import Place, require_grid
from ompb.rows.inputs import as_future, as_row, as_rows_of, as_timed_row
from ompb.seam.query import Answer, AnyForecaster, Forecaster, Query, as_forecaster
from ompb.types import Alert, Floats, Forecast, RealisedRisk


class Stream:
    """Knows rows and nothing else, so a leak cannot be written.

    A row's index is its place in the stream, from 0. The forecast issued with row t has ``origin`` t and speaks of rows
    t + 1 .. t + horizon; when one of them arrives, its lead is learned.

    A call computes the next state and then takes it in one assignment: whatever interrupts it, the stream is as it was
    or as it should be. One call at a time: a second one, from another thread or from the forecaster itself, raises
    `BusyError`.
    """

    def __init__(self, calibrator: Calibrator, forecaster: AnyForecaster | None = None) -> None:
        self._forecaster = None if forecaster is None else as_forecaster(forecaster)
        require_fit(self._forecaster, calibrator)
        self._cohort = Cohort((calibrator,), 1)
        self._state = self._cohort.start()
        self._turns = Turns("stream")

    def __repr__(self) -> str:
        hidden = int(self._state.hidden.sum())
        return f"Stream({self.rows} rows{f', {hidden} cells not believed' if hidden else ''}, of {self._cohort.cal!r})"

    def _repr_html_(self) -> str:
        risk, alerts = self.realised_risk(), self.warnings()
        proved = f"at most {risk.upper:.3f}, by {risk.outcomes} outcomes" if risk.outcomes else "no outcome is due yet"
        hidden = listed([f"{name}: {count} cells" for name, count in self.hidden.items() if count])
        told = {"risk so far": proved, "warning": alerts[0] if alerts else "", "not believed": hidden}
        return card(repr(self), facts(told))

    def __getstate__(self) -> tuple[Cohort, Forecaster | None, CohortState]:
        # a copy by `copy.copy`, too, writes to buffers of its own
        return copied(
            lambda: self._state, lambda state: (self._cohort, self._forecaster, copy.deepcopy(state)), "stream"
        )

    def __setstate__(self, saved: tuple[Cohort, Forecaster | None, CohortState]) -> None:
        self._cohort, self._forecaster, self._state = saved
        self._turns = Turns("stream")

    @property
    def rows(self) -> int:
        """How many rows have been seen."""
        return self._state.rows

    @property
    def newest(self) -> Stamp | None:
        """The time of the newest row, be it of a history; None if no row has a time."""
        place = self._place(self._state)
        return place.newest if place.timed else None

    @property
    def hidden(self) -> dict[str, int]:
        """How many cells of each channel were not believed, being absurd, and count as missing."""
        return dict(zip(self._cohort.cal.names, self._state.hidden[0].tolist(), strict=True))

    @in_turn
    def step(self, row: Any, *, at: Any = None, future: Any = None, base: Any = ASK) -> Forecast | None:
        """Take in the next row and forecast from it; None until ``context`` rows are known, or without base forecast.

        Args:
            row: (C,) values, NaN = missing; a mapping or labelled row is matched by name. A cell that cannot be true
                (see ``guard`` in `ompb.Settings`) counts as missing and is named in ``forecast.hidden``.
            at: its time. Rows left out since the last one count as missing; without it the row's own time is meant (a
                frame's, or the date that a pandas series is named by), else the next one.
            future: covariates known ahead, (horizon, K), handed to the forecaster as they are.
            base: the base forecast (horizon, C), if the forecaster is not to be asked, or (horizon, C, Q) where the
                calibrator was fitted with Q quantiles; None: there is none at this row.

        Raises:
            InputError: the row, its time or the covariates cannot be used.
            ForecasterError: the forecaster failed, or broke its contract.
            BusyError: another call is at work.

        Any of them leaves the stream as it was.
        """
        cal, state = self._cohort.cal, self._state
        values, own = as_timed_row(row, cal.names)
        ahead = None if future is None else as_future(future, cal.horizon, "future")
        stamp, gap = self._place(state).of_next(own if at is None and cal.grid is not None else at)
        if gap:
            # what is handed in with a row is not known of those before it: no forecast is issued there
            state = self._after_gap(state, gap, ASK if base is ASK and future is None else None)
        forecast, state = self._stepped(state, values, stamp, ahead, base)
        self._state = state
        return forecast

    @in_turn
    def remember(self, history: Any, *, times: Any = None, replay: bool = False) -> None:
        """Take in rows known before the first one: see `Calibrator.stream`.

        Raises `InputError` for rows or times that cannot be used, `StaleRowError` once there is a row, and whatever
        `step` raises of one that is replayed. The stream is then as it was.
        """
        cal, state = self._cohort.cal, self._state
        if state.known:
            taken = f"{state.rows} rows have been stepped" if state.rows else "the stream has a history"
            raise StaleRowError(f"{taken}; history comes once, before the first row: start a new stream.")
        require_grid(times, cal.grid)
        table = as_rows_of(history, "history", cal.names, times, cal.grid)
        stamps = None if cal.grid is None else table.times
        if replay:
            self._state = self._replayed(table.values, stamps)
        else:
            self._state = self._cohort.remembering(state, table.values[None], stamps)

    @in_turn
    def observe(self, at: Any, row: Any) -> None:
        """Take in a row (C,), or some of its cells (NaN elsewhere), that came late, or a revision.

        ``at`` is the row's index, or its time if rows have times that are dates. A late cell is learned as if it had
        come on time if it is at most ``patience`` rows old. A cell that was learned before is not learned again; the
        revised value is used in the windows of later forecasts.

        Raises `StaleRowError` for a row not yet due, or too old to be of use. The stream is then as it was.
        """
        cal, state = self._cohort.cal, self._state
        values = as_row(row, cal.names)
        late = self._place(state).of_late(at, max(cal.settings.patience, cal.remembers - 1))
        self._state = self._cohort.observe(state, late, values[None])

    @in_turn
    def replace(self, forecaster: AnyForecaster | None, calibrator: Calibrator) -> None:
        """Go on with another model, trained again perhaps, and a calibrator fitted for it, from the next row on.

        What rows are is kept: the window and the memory, in the user's units; how many there were, and so the index of
        the next one; times; the count of cells that were not believed. What the old model said, or its calibrator
        measured in its own scale and against its own source, begins anew as in a fresh stream with the rows so far as
        its history: members, gate, evidence, intervals, the guard's newest forecast, forecasts that wait for their
        outcomes, certificate, realised risk, expected error, and the warnings with what they hold for usual.

        So no outcome of the old model's forecasts is learned; a cell that `observe` brings of an older row is used in
        windows. ``forecast.replaced`` says so until the new model's first forecast has matured. `save` writes a file of
        the new calibrator.

        Raises `OptionError` for a calibrator of other channels or steps of time, `TooShortError` for one whose context
        is longer than the rows that are kept, and `ForecasterError` for a forecaster that it was not fitted for. The
        stream is then as it was.
        """
        new = None if forecaster is None else as_forecaster(forecaster)
        require_fit(new, calibrator)
        require_same_rows(calibrator, self._cohort.cal)
        cohort = Cohort((calibrator,), 1)
        after = {"_forecaster": new, "_cohort": cohort, "_state": cohort.taking_over(self._state)}
        self.__dict__ = {**self.__dict__, **after}  # one assignment, as for a row

    def realised_risk(self) -> RealisedRisk:
        """What matured outcomes prove about the forecasts this model has issued so far, at all times at once.

        Every forecast counts, ``patience`` rows after the last row it speaks of is due, by the cells known then: those
        that `observe` brought, too.
        """
        cal = self._cohort.cal
        judged = cal.online.realised.bound(self._state.online.realised, cal.settings.delta)
        mean, upper, outcomes, newest = (float(values[0]) for values in judged)
        age = self.rows - 1 - int(newest) if outcomes else self.rows
        return RealisedRisk(upper, mean, int(outcomes), age, cal.settings.delta)

    def warnings(self) -> tuple[Alert, ...]:
        """The warnings in force, strongest first: signals that do what a calm stream hardly ever does."""
        place = self._place(self._state)
        return alerts_of(self._cohort.cal, self._state.online, place.rows - 1, place.newest if place.timed else None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one file, at any time; the calibrator is saved on its own."""
        cohort, _, state = self.__getstate__()
        archive.write(path, "stream", state, of=cohort.cal.fingerprint)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], calibrator: Calibrator, forecaster: AnyForecaster | None = None
    ) -> Stream:
        """Continue a saved stream as if it had never stopped."""
        stream = cls(calibrator, forecaster)
        stream._state = archive.read(path, "stream", CohortState, of=calibrator.fingerprint, like=stream._state)
        return stream

    def _replayed(self, rows: Floats, stamps: Times | None) -> CohortState:
        """The state after stepping through rows (T, C)."""
        stream = copy.copy(self)  # with buffers of its own
        for place, row in enumerate(rows):
            stream.step(row, at=None if stamps is None else stamps[place])
        return stream._state

    def _after_gap(self, state: CohortState, rows: int, base: Any) -> CohortState:
        """The state after that many missing rows."""
        cal = self._cohort.cal
        assert cal.grid is not None  # else there is no gap
        # several rows at once: the buffers that states share must not be written to before all is known
        state = copy.deepcopy(state)
        for stamp in cal.grid.after(self._place(state).newest, rows):
            _, state = self._stepped(state, np.full(cal.channels, np.nan), stamp, None, base)
        return state

    def _stepped(
        self, state: CohortState, values: Floats, stamp: Stamp | None, future: Floats | None, base: Any
    ) -> tuple[Forecast | None, CohortState]:
        """The forecast and the state after a row (C,)."""
        cohort, row = self._cohort, state.rows
        entered = cohort.enter(state, values[None, None])
        answer = self._base(row, entered, stamp, future, base) if cohort.is_ready(state) else None
        issued, after = cohort.leave(state, entered, stamp, answer)
        if issued is None or answer is None:
            return None, after
        alerts = alerts_of(cohort.cal, after.online, row, stamp)
        hidden = None if entered.hidden is None else entered.hidden[0, 0]
        return forecast_of(cohort, row, stamp, answer.base, issued, hidden, alerts, after.replaced), after

    def _place(self, state: CohortState) -> Place:
        return Place(self._cohort.cal.grid, state.rows, state.timed, int(state.newest[0]))

    def _base(self, row: int, entered: Entered, stamp: Stamp | None, future: Floats | None, base: Any) -> Answer | None:
        """What the forecaster says of the newest window, checked; None where it is silent."""
        cal = self._cohort.cal
        query = Query(
            windows=entered.window.filled[:, -cal.context :],
            origins=np.asarray([row]),
            times=None if stamp is None else np.asarray([stamp]),
            future=None if future is None else future[None],
        )
        asker = Asker(cal, self._forecaster)
        given = base if base is ASK or base is None else as_base(base, cal)
        return asker.answer(query, given, cal.scaler) if asker.spoken(query, given)[0] else None
