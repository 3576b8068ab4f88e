"""A shifted stream, and what every wrapped model has to do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import ompb
from ompb.adapters import Adapter
from ompb.types import Floats

SEASON, CONTEXT, HORIZON = 24, 60, 6
SOURCE_ROWS, STREAM_ROWS = 360, CONTEXT + 8
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON}
SHIFT = 3.0
START = np.datetime64("2024-01-01T00", "us")


def truth(first: int, count: int = HORIZON) -> Floats:
    """Rows of the first channel of the source without noise."""
    return np.asarray(20 + 5 * np.sin(2 * np.pi * np.arange(first, first + count) / SEASON))


def world(channels: int = 1) -> tuple[Floats, Floats]:
    """A source of daily sines of amplitude 5, and a stream that goes on some higher, 15 whole days after its start."""
    noise = 0.2 * np.random.default_rng(0).normal(size=(SOURCE_ROWS + STREAM_ROWS, channels))
    rows = np.stack([truth(4 * channel, len(noise)) for channel in range(channels)], axis=1) + noise
    return rows[:SOURCE_ROWS], rows[SOURCE_ROWS:] + SHIFT


def stamps(first: int, count: int) -> Any:
    """Hours of rows that are counted from the first of the source."""
    return START + np.arange(first, first + count) * np.timedelta64(1, "h")


def windows_from(starts: list[int], timed: bool = False, level: float = 0.0) -> ompb.Query:
    """Windows without noise of one channel that start at these rows."""
    last = np.asarray(starts) + CONTEXT - 1
    windows = np.stack([truth(start, CONTEXT) + level for start in starts])[..., None]
    return ompb.Query(windows, last, START + last * np.timedelta64(1, "h") if timed else None)


def ahead_of(query: ompb.Query) -> Floats:
    """What comes after these windows, (n, H, 1)."""
    return np.stack([truth(int(origin) + 1) for origin in query.origins])[..., None]


def error(forecasts: Any, query: ompb.Query) -> float:
    """Mean absolute error of forecasts (n, H, 1)."""
    return float(np.abs(np.asarray(forecasts) - ahead_of(query)).mean())


def long_frame(rows: Floats, times: Any) -> Any:
    """Rows (T, C) as the libraries of Nixtla take them."""
    import pandas as pd

    columns = [pd.DataFrame({"unique_id": str(c), "ds": times, "y": rows[:, c]}) for c in range(rows.shape[1])]
    return pd.concat(columns, ignore_index=True)


def follows_a_stream(
    forecaster: Adapter, channels: int, folder: Path, *, timed: bool = False, every: int = 6, windows: int = 24
) -> None:
    """It passes the check, a fit works, and a stream, with a save in the middle, is its backtest."""
    source, target = world(channels)
    source_times, times = (stamps(0, SOURCE_ROWS), stamps(SOURCE_ROWS, STREAM_ROWS)) if timed else (None, None)
    forecaster.checked(source, times=source_times, windows=windows)
    sizes: Any = {"context": CONTEXT, "horizon": HORIZON}
    cal = ompb.Calibrator.fit(forecaster, source, season=SEASON, times=source_times, every=every, **sizes)
    run = ompb.backtest(cal, forecaster, target, times=times)
    stream, means = cal.stream(forecaster), []
    for place, row in enumerate(target):
        if place == CONTEXT + 3:
            stream.save(folder / "stream.ompb")
            stream = ompb.Stream.load(folder / "stream.ompb", cal, forecaster)
        forecast = stream.step(row, at=None if times is None else times[place])
        if forecast is not None:
            means.append(forecast.mean)
    assert len(means) == STREAM_ROWS - CONTEXT + 1
    # networks in float32 round one window otherwise than many
    np.testing.assert_allclose(np.stack(means), run.mean, rtol=0, atol=1e-3)
