"""A few series with calibrators of one shape, and ways to hold a fleet against plain streams."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ompb
from ompb.datasets.synthetic import shifted_stream
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, CHANNELS = 6, 4, 6, 2
PATIENCE = 3
SILENT, TICKS = (60, 61), 150  # of those that are `followed`
IDS = ("a", "b", "c", "d", "e")
SETTINGS: dict[str, Any] = {"basis": 2, "patience": PATIENCE, "ring": 4, "reread": 4, "spans": (1, 2)}


def last_season(windows: NDArray[np.floating]) -> Floats:
    """The season once more, pulled towards the newest row: plain sums, the same for one window as for many."""
    return np.asarray(0.7 * windows[:, -SEASON : -SEASON + HORIZON] + 0.3 * windows[:, -1:])


@lru_cache
def calibrator(number: int = 0, channels: int = CHANNELS) -> ompb.Calibrator:
    return fitted(number, channels)


def fitted(number: int = 0, channels: int = CHANNELS, **options: Any) -> ompb.Calibrator:
    """A calibrator with other options."""
    source, form = shifted_stream("level", 10 + number, 300, 40, channels, SEASON)[0], {**SETTINGS, **options}
    return ompb.Calibrator.fit(last_season, source, context=CONTEXT, horizon=HORIZON, season=SEASON, **form)


def calibrators() -> dict[str, ompb.Calibrator]:
    """One for each id."""
    return {one: calibrator(number) for number, one in enumerate(IDS)}


@lru_cache
def table(ticks: int = 90, holes: float = 0.05, channels: int = CHANNELS) -> Floats:
    """The rows of all series, (ticks, S, C), each on its own level, with holes and an absurd cell."""
    series = [shifted_stream("level", number, 300, ticks, channels, SEASON)[1] for number in range(len(IDS))]
    rows = np.stack(series, axis=1)
    rows[np.random.default_rng(0).random(rows.shape) < holes] = np.nan
    rows[70, 1, 0] = 1e9
    rows[80, 2, -1] += 500.0
    rows.flags.writeable = False
    return rows


def assert_equal(out: ompb.FleetForecast, place: int, forecast: ompb.Forecast | None, tolerance: float = 0.0) -> None:
    """What a fleet says of one series is what a stream of its own says, bit for bit or nearly so."""
    assert bool(out.issued[place]) == (forecast is not None)
    if forecast is None:
        assert np.isnan(out.library.host(out.mean[place])).all()
        return
    host = out.library.host
    assert int(out.origin[place]) == forecast.origin
    assert out.certificate is not None
    assert forecast.certificate is not None
    pairs: list[tuple[Any, Any]] = [
        (getattr(out, name)[place], getattr(forecast, name))
        for name in ("mean", "base", "gate", "novelty", "sd", "multipliers", "expected_error")
    ]
    pairs += zip((end[place] for end in out.interval(0.8)), forecast.interval(0.8), strict=True)
    for name in ("value", "source_risk", "gamma", "disagreement", "posterior_shift", "delta", "kl", "log_term"):
        pairs.append((getattr(out.certificate, name)[place], np.asarray(getattr(forecast.certificate, name))))
    for mine, theirs in pairs:
        if tolerance:
            np.testing.assert_allclose(host(mine), theirs, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(mine, theirs)
    flagged = np.flatnonzero(host(out.hidden[place]))
    assert tuple(out.names[channel] for channel in flagged) == forecast.hidden
    signals = {out.signals[g]: g for g in np.flatnonzero(host(out.warning.in_force[place]))}
    assert set(signals) == {alert.signal for alert in forecast.warnings}
    for alert in forecast.warnings:
        assert int(out.warning.since[place, signals[alert.signal]]) == alert.since
        between = float(out.warning.rows_between[place, signals[alert.signal]])
        np.testing.assert_allclose(between, alert.rows_between, rtol=max(tolerance, 1e-12))


def arrays_in(value: Any) -> list[Floats]:
    """All arrays of a value, such as the parts of a forecast, as they stand in it."""
    if isinstance(value, tuple):
        return [array for part in value for array in arrays_in(part)]
    return [] if value is None else [np.asarray(value, dtype=np.float64)]


def followed(fleet: ompb.Fleet, ticks: int = TICKS) -> Iterator[list[Floats]]:
    """All arrays of a fleet's forecasts, on rows with holes, without base forecasts for a while, and with late rows."""
    whole = table(TICKS, holes=0.0)
    for tick, rows in enumerate(table(TICKS)[:ticks]):
        out = fleet.step(rows, at=tick, base=None) if tick in SILENT else fleet.step(rows, at=tick)
        assert out is not None
        yield arrays_in(out.parts)
        if tick % 12 == 11:
            fleet.observe(tick - 2, {one: whole[tick - 2, place] for place, one in enumerate(IDS) if place != 3})
