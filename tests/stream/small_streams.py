"""A small calibrator, a forecaster that rounds one window as it rounds many, and ways to compare streams."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ompb
from ompb import archive
from ompb.datasets.synthetic import shifted_stream
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, CHANNELS = 6, 4, 6, 2
PATIENCE = 2
SETTINGS: dict[str, Any] = {"basis": 2, "patience": PATIENCE, "ring": 4, "reread": 4}
ISSUED = ("mean", "base", "gate", "sd", "multipliers")


def last_season(windows: NDArray[np.floating]) -> Floats:
    """The season once more, pulled towards the newest row: plain sums, the same for one window as for many."""
    return np.asarray(0.7 * windows[:, -SEASON : -SEASON + HORIZON] + 0.3 * windows[:, -1:])


@lru_cache
def series() -> tuple[Floats, Floats]:
    """A source and a stream whose level has moved."""
    return shifted_stream("level", 1, 300, 400, CHANNELS, SEASON)


def source() -> Floats:
    return series()[0]


def target() -> Floats:
    return series()[1]


def fit(forecaster: Any = last_season, rows: Any = None, **options: Any) -> ompb.Calibrator:
    """A calibrator: of the usual forecaster and rows, the one that was fitted with these options before."""
    if forecaster is last_season and rows is None and all(isinstance(value, Hashable) for value in options.values()):
        return _fitted_once(**options)
    return _fitted(forecaster, source() if rows is None else rows, **options)


def _fitted(forecaster: Any, rows: Any, **options: Any) -> ompb.Calibrator:
    arguments = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, **SETTINGS} | options
    return ompb.Calibrator.fit(forecaster, rows, **arguments)


@lru_cache(typed=True)
def _fitted_once(**options: Any) -> ompb.Calibrator:
    return _fitted(last_season, source(), **options)


def calibrator() -> ompb.Calibrator:
    return fit()


def walked(rows: Floats, cal: ompb.Calibrator | None = None, forecaster: Any = last_season) -> ompb.Stream:
    """A stream after these rows."""
    stream = (cal or calibrator()).stream(forecaster)
    for row in rows:
        stream.step(row)
    return stream


def saved(stream: ompb.Stream) -> str:
    """The checksum of the stream's file: equal for equal states, and for no others."""
    return archive.fingerprint(stream._state)


def same(a: ompb.Forecast | None, b: ompb.Forecast | None) -> bool:
    """Equal to the last bit, arrays, times and certificate alike."""
    if a is None or b is None:
        return a is b
    return (
        a.origin == b.origin
        and all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in ISSUED)
        and a.certificate == b.certificate
        and (a.times is None) == (b.times is None)
        and (a.times is None or b.times is None or a.times.tobytes() == b.times.tobytes())
    )


def finite(forecast: ompb.Forecast) -> bool:
    """No NaN and no infinity, in the certificate neither."""
    terms = [] if forecast.certificate is None else [forecast.certificate.value, *forecast.certificate.terms().values()]
    numbers = [term for term in terms if isinstance(term, float)]
    ends = [*forecast.interval(0.5), *forecast.interval(0.99)]
    return all(np.isfinite(getattr(forecast, name)).all() for name in ISSUED) and bool(
        np.isfinite(numbers).all() and np.isfinite(ends).all()
    )
