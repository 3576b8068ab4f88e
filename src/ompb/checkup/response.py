"""What a forecaster answers to: its windows, and the times if it says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ompb.checkup.probe import Probe
from ompb.errors import CheckError
from ompb.floor.names import in_words, listed
from ompb.seam.query import Query

SHIFT = 10.0  # source standard deviations


def look(probe: Probe) -> None:
    """Raise at the first fault."""
    if probe.forecaster.uses_windows:
        _require_moved_by_windows(probe)
    if probe.forecaster.uses_times:
        _require_moved_by_times(probe)


def require_times(probe: Probe) -> None:
    """Before it is asked anything: without times it could only fail."""
    if probe.forecaster.uses_times and probe.few.times is None:
        raise CheckError(
            "times",
            "the forecaster uses times and the source has none; pass times=, true stamps of the rows, to this check, "
            "to Calibrator.fit and with every row of the stream.",
        )


def _require_moved_by_windows(probe: Probe) -> None:
    moved = np.max([probe.apart_in(probe.answered, probe.ask(query)) for query in _other_windows(probe)], axis=0) > 0
    if moved.any():
        _require_no_dead_channel(probe, moved)
        return
    first = np.broadcast_to(probe.answered[:1], probe.answered.shape)
    if not probe.apart(first, probe.answered):
        raise CheckError(
            "constant",
            f"the forecaster gives one and the same answer to {len(first)} windows, shifted by {SHIFT:g} source "
            "standard deviations or not; a forecaster must answer to its window. Check that the window reaches the "
            "model, and that the model was fitted.",
        )
    raise CheckError(
        "blind",
        f"the forecaster's answers do not depend on its windows: shifting them by {SHIFT:g} source standard deviations "
        "or exchanging them moves nothing. It goes on from its training rows. Use a model that forecasts from a new "
        "context without being fitted again, or bring its forecasts as ompb.Recorded.",
    )


def _require_no_dead_channel(probe: Probe, moved: NDArray[np.bool_]) -> None:
    """Raise if answers do not move in one of the channels (C,), unless nothing moves in it in the source either."""
    rows = probe.source.filled
    dead = np.flatnonzero(~moved & (np.ptp(rows, axis=0) > 0))
    if len(dead):
        names = [in_words(probe.source.rows.names[channel]) for channel in dead]
        raise CheckError(
            "dead channel",
            f"the forecaster answers to its windows, but not in {listed(names)}: shifting them by {SHIFT:g} source "
            "standard deviations or exchanging them moves nothing there. Check that the channel reaches the model and "
            "is not left out or filled in on the way, and that the model was fitted to it.",
        )


def _other_windows(probe: Probe) -> Iterator[Query]:
    """The same questions about other windows: shifted, and exchanged, since a model of steps may not mind a shift."""
    windows = probe.few.windows
    for other in (windows + SHIFT * probe.scale, np.roll(windows, 1, axis=0)):
        yield replace(probe.few, windows=other)


def _require_moved_by_times(probe: Probe) -> None:
    times = probe.few.times
    assert times is not None  # see require_times
    # stamps of other windows are true ones, of other hours, days and months
    rolled = (replace(probe.few, times=np.roll(times, by)) for by in range(1, len(times)))
    if not any(probe.apart(probe.answered, probe.ask(query)) for query in rolled):
        raise CheckError(
            "times",
            "the forecaster says that it uses times, and its answers are the same with the stamps of other windows: "
            "the stamps it works with are not those of its windows. Make its calendar from query.times, the stamp of "
            "each window's last row.",
        )
