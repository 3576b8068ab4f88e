"""Writes the golden files of the saved format. Run it only when its version goes up; a released one keeps its files.

python tests/golden/write.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ompb
from ompb.archive import VERSION

FOLDER = Path(__file__).parent
ROWS = 40


def series() -> NDArray[np.float64]:
    """A day of twelve rows, two channels, and some cells missing at the end."""
    rows = np.arange(160)[:, None]
    values = 10 + np.sin(2 * np.pi * rows / 12 + [0, 1]) + 0.1 * np.cos(rows * [1.7, 2.3])
    values[150, 0] = np.nan
    return np.asarray(values)


def forecaster(windows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The last season once more, pulled towards its mean."""
    return np.asarray(0.8 * windows[:, -12:-9] + 0.2 * windows.mean(axis=1, keepdims=True))


def next_forecasts(stream: ompb.Stream) -> list[dict[str, object]]:
    """What a stream says of the rows after the saved ones."""
    said = []
    for row in series()[ROWS : ROWS + 3] + 2:
        forecast = stream.step(row)
        assert forecast is not None
        assert forecast.certificate is not None
        said.append({"mean": forecast.mean.tolist(), "certificate": forecast.certificate.value})
    return said


def main() -> None:
    cal = ompb.Calibrator.fit(forecaster, series(), context=24, horizon=3, season=12, basis=2, patience=4, ring=8)
    stream = cal.stream(forecaster)
    for row in series()[:ROWS] + 2:
        stream.step(row)
    cal.save(FOLDER / f"calibrator-{VERSION}.ompb")
    stream.save(FOLDER / f"stream-{VERSION}.ompb")
    (FOLDER / f"forecasts-{VERSION}.json").write_text(json.dumps(next_forecasts(stream), indent=1) + "\n")


if __name__ == "__main__":
    main()
