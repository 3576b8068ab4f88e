"""Streams whose model is replaced, and ways to hold them against fresh ones that know the rows so far."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
from small_streams import CHANNELS, HORIZON, SEASON, fit, last_season

import ompb
from ompb.datasets.synthetic import shifted_stream
from ompb.types import Floats

START = np.datetime64("2024-01-01T00:00")
HOUR = np.timedelta64(1, "h")
AFTER = 60  # rows for which streams are held against each other


@lru_cache
def world() -> tuple[Floats, Floats]:
    """A source and a stream with a period too long for a window, so that there is something to remember."""
    source, rows = shifted_stream("level", 2, 600, 300, CHANNELS, SEASON)
    slow = [2 * np.sin(2 * np.pi * np.arange(len(part))[:, None] / 30) * source.std(axis=0) for part in (source, rows)]
    return np.asarray(source + slow[0]), np.asarray(rows + slow[1])


def rows() -> Floats:
    return world()[1]


def drifting(horizon: int) -> Any:
    """Another forecaster: half of the way back to the window's mean."""
    return lambda windows: np.repeat(0.5 * windows[:, -1:] + 0.5 * windows.mean(axis=1, keepdims=True), horizon, axis=1)


NEW: dict[str, tuple[Any, dict[str, Any]]] = {
    "the same": (last_season, {}),
    "trained again": (drifting(HORIZON), {"patience": 5}),
    "longer": (drifting(7), {"context": 9, "horizon": 7}),
    "shorter": (drifting(3), {"context": 4, "horizon": 3, "season": None}),
    "without memory": (drifting(HORIZON), {"members": ("backbone", "profile", "head")}),
}


@lru_cache
def old(timed: bool = False) -> ompb.Calibrator:
    return fit(rows=world()[0], times=START + HOUR * np.arange(600) if timed else None)


@lru_cache
def new(name: str = "trained again", timed: bool = False) -> ompb.Calibrator:
    """Fitted on another part of the world, in part: its scale is its own."""
    if name == "the same":
        return old(timed)
    forecaster, options = NEW[name]
    source = np.concatenate([world()[0][300:], rows()[:150] + 2.0])
    times = {"times": START + HOUR * np.arange(len(source))} if timed else {}
    return fit(forecaster, source, **times, **options)


def followed(before: Floats, cal: ompb.Calibrator | None = None, **known: Any) -> ompb.Stream:
    stream = (cal or old()).stream(last_season, **known)
    for row in before:
        stream.step(row)
    return stream


def fresh(before: Floats, name: str = "trained again") -> ompb.Stream:
    return new(name).stream(NEW[name][0], history=before)


def with_holes(table: Floats, share: float = 0.2) -> Floats:
    return np.where(np.random.default_rng(len(table)).random(table.shape) < share, np.nan, table)


def assert_alike(mine: ompb.Forecast | None, theirs: ompb.Forecast | None, shift: int) -> None:
    """All fields to the last bit, but those that count rows, which are so many apart, and `replaced`."""
    if mine is None or theirs is None:
        assert mine is theirs
        return
    assert mine.origin == theirs.origin + shift
    for name in (field.name for field in fields(ompb.Forecast)):
        here, there = getattr(mine, name), getattr(theirs, name)
        if isinstance(there, np.ndarray):
            assert here.tobytes() == there.tobytes(), name
        elif name == "warnings":
            assert [(one.signal, one.since, one.newest, one.channels, one.rows_between) for one in here] == [
                (one.signal, one.since + shift, one.newest + shift, one.channels, one.rows_between) for one in there
            ]
        elif name not in ("origin", "replaced"):
            assert here == there, name


def assert_go_on_alike(stream: ompb.Stream, other: ompb.Stream, after: Floats) -> int:
    """Both step through the same rows; returns how many forecasts there were."""
    shift, issued = stream.rows - other.rows, 0
    for row in after:
        mine, theirs = stream.step(row), other.step(row)
        assert_alike(mine, theirs, shift)
        issued += mine is not None
    mine_risk, their_risk = stream.realised_risk(), other.realised_risk()
    assert mine_risk.outcomes == their_risk.outcomes
    # sums of whole blocks of rows, which begin elsewhere
    np.testing.assert_allclose((mine_risk.upper, mine_risk.mean), (their_risk.upper, their_risk.mean), rtol=1e-12)
    return issued
