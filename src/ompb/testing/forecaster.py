"""A forecaster from the first check to a resumed stream."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ompb.backtest import Run, backtest
from ompb.calibrator import Calibrator
from ompb.checkup import WINDOWS, check
from ompb.rows.inputs import as_rows_of
from ompb.seam.query import AnyForecaster
from ompb.stream import Stream
from ompb.types import Floats

TOLERANCE = 1e-3  # source standard deviations: what the rounding of single precision grows to along a stream


def check_forecaster(
    forecaster: AnyForecaster,
    source: Any,
    stream: Any,
    *,
    context: int,
    horizon: int,
    times: Any = None,
    stream_times: Any = None,
    windows: int = WINDOWS,
    **options: Any,
) -> Run:
    """`ompb.check`, then a fit on the source, the backtest of the stream, and the same row by row, saved half way.

    ``source`` and ``stream`` are tables (T, C) or frames, with ``times`` and ``stream_times`` unless frames bring them.
    ``options`` are those of `Calibrator.fit`. Returns the backtest. Raises `CheckError` or another `ForecasterError`
    for a fault of the forecaster, `AssertionError` where the stream and its backtest differ.

    >>> import ompb
    >>> from ompb.datasets.synthetic import shifted_stream
    >>> source, stream = shifted_stream("level", seed=0, source_rows=400, target_rows=80)
    >>> forecaster = ompb.Ridge.fit(source, context=24, horizon=4)
    >>> check_forecaster(forecaster, source, stream, context=24, horizon=4, season=24).mean.shape
    (57, 4, 3)
    """
    sizes: dict[str, Any] = {"context": context, "horizon": horizon}
    check(forecaster, source, times=times, windows=windows, **sizes)
    calibrator = Calibrator.fit(forecaster, source, times=times, **sizes, **options)
    run: Run = backtest(calibrator, forecaster, stream, times=stream_times)
    stepped = _stepped(calibrator, forecaster, stream, stream_times)
    if len(stepped) != len(run.mean):
        raise AssertionError(f"the stream issued {len(stepped)} forecasts, its backtest {len(run.mean)}.")
    apart = np.abs((stepped - run.mean) / calibrator.scale).max(axis=(1, 2))
    if apart.max() > TOLERANCE:
        place = int(np.argmax(apart > TOLERANCE))
        raise AssertionError(
            f"row by row, saved and loaded half way, the stream is {apart[place]:.3g} source standard deviations off "
            f"its backtest at origin {run.origins[place]}: the forecaster's answer depends on what it was asked before."
        )
    return run


def _stepped(calibrator: Calibrator, forecaster: AnyForecaster, rows: Any, times: Any) -> Floats:
    """Forecasts (n, H, C) of a live stream that is interrupted once; both files are written and read."""
    table = as_rows_of(rows, "stream", calibrator.names, times, calibrator.grid)
    issued = []
    with TemporaryDirectory() as folder:
        calibrator.save(Path(folder) / "calibrator.ompb")
        loaded = Calibrator.load(Path(folder) / "calibrator.ompb")
        stream = loaded.stream(forecaster)
        for place, row in enumerate(table.values):
            if place == (len(table.values) + calibrator.context) // 2:
                stream.save(Path(folder) / "stream.ompb")
                stream = Stream.load(Path(folder) / "stream.ompb", loaded, forecaster)
            forecast = stream.step(row, at=None if table.times is None else table.times[place])
            if forecast is not None:
                issued.append(forecast.mean)
    return np.stack(issued)
