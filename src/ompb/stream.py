"""Stream: the online stage for one live series. Rows go in, forecasts come out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb import archive
from ompb.calibrator import Calibrator
from ompb.core.arrays import Array
from ompb.core.intervals import LEVELS
from ompb.core.lanes import Issued, Lanes
from ompb.errors import FormatError, StaleRowError
from ompb.inputs import as_row
from ompb.query import Query, as_forecaster, ask
from ompb.scaler import Scaler
from ompb.types import Certificate, Floats, Forecast, Forecaster, RealisedRisk
from ompb.windows import fill_forward

Integers: TypeAlias = NDArray[np.int64]
_LEVELS = np.asarray(LEVELS)
_LEVELS.flags.writeable = False


@dataclass(frozen=True)
class _Window:
    """The newest rows, at most ``context`` of them."""

    known: Floats  # as they came, NaN = missing: (n, C)
    filled: Floats  # with missing cells filled: (n, C)
    before: Floats  # filled values of the row before them: (C,)
    before_row: Integers  # the rows those were known in, -1 where none was: (C,)


@dataclass
class _State:
    """All that changes as rows arrive."""

    rows: int  # seen so far; the newest has index rows - 1
    window: _Window
    lanes: Lanes


@dataclass
class _Saved:
    """A state, and the fingerprint of the calibrator without which it means nothing."""

    calibrator: str
    state: _State


class Stream:
    """Knows rows and nothing else, so a leak cannot be written.

    A row's index is its place in the stream, from 0. The forecast issued with row t has ``origin`` t and speaks of rows
    t + 1 .. t + horizon; when one of them arrives, its lead is learned.
    """

    def __init__(self, calibrator: Calibrator, forecaster: Forecaster) -> None:
        self._calibrator = calibrator
        self._forecaster = forecaster
        nothing = np.zeros((0, calibrator.channels))
        window = _Window(nothing, nothing, calibrator.centre, np.full(calibrator.channels, -1))
        self._state = _State(0, window, Lanes.start(calibrator.law))

    @property
    def rows(self) -> int:
        """How many rows have been seen."""
        return self._state.rows

    def step(self, row: Any) -> Forecast | None:
        """Take in the next row (C,), NaN = missing, and forecast from it; None until ``context`` rows are known.

        Raises `InputError` for a row that cannot be used and `ForecasterError` for a forecaster that breaks its
        contract. Either leaves the stream as it was.
        """
        values = as_row(row, self._calibrator.names)
        window = self._window_with(values)
        base = None
        cal = self._calibrator
        if len(window.filled) == cal.context:
            query, scaler = Query(window.filled[None], np.asarray([self.rows])), Scaler(cal.centre, cal.scale)
            base = ask(as_forecaster(self._forecaster), query, cal.horizon, scaler, cal.names)[0]
        return self._advance(values, window, base)

    def advance(self, values: Floats, base: Floats | None) -> Forecast | None:
        """`step` with the base forecast (H, C) already at hand: for a backtest, which asks for many at once."""
        return self._advance(values, self._window_with(values), base)

    def _advance(self, values: Floats, window: _Window, base: Floats | None) -> Forecast | None:
        cal, state = self._calibrator, self._state
        row = state.rows
        state.lanes.reveal(cal.law, row, (values - cal.centre) / cal.scale)
        state.rows, state.window = row + 1, window
        if base is None:
            return None
        lane_window, lane_base = (((x - cal.centre) / cal.scale).T for x in (window.filled, base))
        return self._forecast(row, base, state.lanes.issue(cal.law, row, lane_window, lane_base))

    def observe(self, at: int, row: Any) -> None:
        """Take in a row (C,), or some of its cells (NaN elsewhere), that came late, or a revision.

        A late cell is learned as if it had come on time if it is at most ``patience`` rows old. A cell that was learned
        before is not learned again; the revised value is used in the windows of later forecasts.

        Raises `StaleRowError` for a row not yet due, or too old to be of use. The stream is then as it was.
        """
        cal, state = self._calibrator, self._state
        values = as_row(row, cal.names)
        newest = state.rows - 1
        window = state.window
        oldest = max(0, newest - max(cal.settings.patience, len(window.known) - 1))
        if isinstance(at, bool) or not isinstance(at, int | np.integer) or not oldest <= at <= newest:
            span = f"{oldest} to {newest}" if newest >= 0 else "none yet"
            raise StaleRowError(
                f"row {at!r} cannot be observed now; accepted: rows already stepped and still in use ({span}). "
                "The next row belongs to step()."
            )
        state.window = self._revised(int(at), values)
        if newest - at <= cal.settings.patience:
            state.lanes.reveal_late(cal.law, int(at), newest, (values - cal.centre) / cal.scale)

    def realised_risk(self) -> RealisedRisk:
        """What matured outcomes prove about the forecasts issued so far, at all times at once.

        An outcome is judged when its last row is due, by the cells that are known then: what `observe` brings later
        is learned, but does not count here.
        """
        lanes, delta = self._state.lanes, self._calibrator.settings.delta
        mean, upper = lanes.realised.bound(delta)
        newest = lanes.realised.newest
        age = self.rows - 1 - newest if newest >= 0 else self.rows
        return RealisedRisk(float(upper[0]), float(mean[0]), int(lanes.realised.outcomes[0]), age, delta)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one file; the calibrator is saved on its own."""
        archive.write(path, "stream", _Saved(archive.fingerprint(self._calibrator), self._state))

    @classmethod
    def load(cls, path: str | os.PathLike[str], calibrator: Calibrator, forecaster: Forecaster) -> Stream:
        """Continue a saved stream as if it had never stopped."""
        saved = archive.read(path, "stream", _Saved)
        if saved.calibrator != archive.fingerprint(calibrator):
            raise FormatError(f"{path} belongs to another calibrator; load it with the one it was started from.")
        stream = cls(calibrator, forecaster)
        stream._state = saved.state
        return stream

    def _window_with(self, values: Floats) -> _Window:
        """The window once ``values`` is the newest row."""
        window = self._state.window
        last = window.filled[-1] if len(window.filled) else window.before
        fresh = np.where(np.isnan(values), last, values)
        if len(window.filled) < self._calibrator.context:
            before, before_row, drop = window.before, window.before_row, 0
        else:
            oldest = self._state.rows - len(window.filled)
            before, drop = window.filled[0], 1
            before_row = np.where(np.isnan(window.known[0]), window.before_row, oldest)
        return _Window(
            np.concatenate([window.known[drop:], values[None]]),
            np.concatenate([window.filled[drop:], fresh[None]]),
            before,
            before_row,
        )

    def _revised(self, row: int, values: Floats) -> _Window:
        """The window once the known cells of an older row are ``values``."""
        window = self._state.window
        place = row - (self._state.rows - len(window.known))
        known, before, before_row = window.known, window.before, window.before_row
        if place >= 0:
            known = known.copy()
            known[place] = np.where(np.isnan(values), known[place], values)
        else:
            newer = ~np.isnan(values) & (row >= before_row)
            before, before_row = np.where(newer, values, before), np.where(newer, row, before_row)
        return _Window(known, fill_forward(known, before), before, before_row)

    def _forecast(self, origin: int, base: Floats, issued: Issued) -> Forecast:
        cal = self._calibrator
        moved = base + cal.scale * issued.correction.T
        # adding a zero would turn -0.0 into 0.0: a closed gate returns the base bit for bit
        mean = np.where(issued.gate > 0, moved, base)
        sd = cal.scale * issued.sd.T
        widths = np.ascontiguousarray(issued.half_widths.T)
        for array in (mean, base, issued.gate, sd, widths):
            array.flags.writeable = False
        certifier = self._state.lanes.certifier
        certificate = None
        if issued.terms is not None and certifier is not None:
            certificate = self._certificate(issued.terms, certifier.delta(cal.settings))
        return Forecast(origin, mean, base, issued.gate, sd, _LEVELS, widths, certificate)

    def _certificate(self, arrays: dict[str, Array], delta: float) -> Certificate:
        cal = self._calibrator
        terms = {name: float(value[0]) for name, value in arrays.items()}
        return Certificate(
            **terms,
            disagreement_null=cal.law.reader.scales.null_ratio * terms["source_disagreement"],
            kl=0.0,
            windows=int(cal.law.probe.phi.shape[1]),
            delta=delta,
            tau_y=cal.law.reader.scales.tau_y,
            tau_d=cal.law.reader.scales.tau_d,
            draws=cal.settings.draws,
            kind=cal.settings.kind,
            stride=cal.stride,
            in_sample=cal.in_sample,
        )
