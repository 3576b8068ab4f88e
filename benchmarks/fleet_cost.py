"""What a fleet costs, as ratios to single streams within one run.

    OMP_NUM_THREADS=1 python benchmarks/fleet_cost.py

Rows a second of one stream and of a fleet, without holes and with 1 % of the labels late or never coming; kilobytes a
series in memory and in a file; milliseconds a series to save. Times are those of the processor, so that other work on
the machine counts little. What an accelerator does: `fleet_device.py`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ompb
from ompb.live.lanes import mapped

Floats = NDArray[np.float64]
CONTEXT, SEASON, SOURCE = 48, 24, 2000
HOLES, LATE_BY = 0.01, 5


def load(rows: int, series: int, seed: int) -> Floats:
    """Daily seasons on slow random walks, (rows, series)."""
    rng = np.random.default_rng(seed)
    hours = np.arange(rows)[:, None]
    walk = np.cumsum(0.02 * rng.normal(size=(rows, series)), axis=0)
    return np.asarray(np.sin(2 * np.pi * hours / SEASON + np.arange(series)) + walk + 0.2 * rng.normal(size=walk.shape))


def fitted(horizon: int, **options: Any) -> tuple[ompb.Calibrator, ompb.Ridge]:
    source = load(SOURCE, 1, seed=0)
    forecaster = ompb.Ridge.fit(source, CONTEXT, horizon)
    cal = ompb.Calibrator.fit(forecaster, source, context=CONTEXT, horizon=horizon, season=SEASON, **options)
    return cal, forecaster


def seconds(step: Callable[[int], Any], ticks: range, warm_up: int, clock: Callable[[], float]) -> float:
    """A step's, as the median over blocks of 32, in which each certificate is read again once."""
    blocks = []
    for tick in ticks[:warm_up]:
        step(tick)
    for first in range(warm_up, len(ticks) - 31, 32):
        start = clock()
        for tick in ticks[first : first + 32]:
            step(tick)
        blocks.append((clock() - start) / 32)
    return statistics.median(blocks)


def kilobytes(fleet: ompb.Fleet) -> float:
    """Of the state, a series; what is kept for cells that have not come included."""
    total = 0

    def weigh(array: Any) -> Any:
        nonlocal total
        total += array.nbytes
        return array

    for group in fleet._now.groups:
        mapped(weigh, group.state, every=True)
    return total / len(fleet.ids) / 1024


def on_the_host(lanes: int, horizon: int, dtype: str, ticks: int) -> None:
    cal, forecaster = fitted(horizon)
    rows = load(ticks, lanes, seed=1)[..., None]
    warm_up, count, clock = CONTEXT + 2 * horizon, range(ticks), time.process_time
    stream = cal.stream(forecaster)
    alone = seconds(lambda tick: stream.step(rows[tick, 0]), count, warm_up, clock)
    print(f"one stream: {1 / alone:,.0f} rows/s ({alone * 1e6:.0f} us a row)")
    ids = [str(number) for number in range(lanes)]
    fleet = ompb.Fleet(cal, forecaster, ids, dtype=dtype)
    whole = seconds(lambda tick: fleet.step(rows[tick], at=tick), count, warm_up, clock) / lanes
    print(f"{lanes} series without holes: {1 / whole:,.0f} rows/s, {alone / whole:.1f} times one stream")
    slim = kilobytes(fleet)
    missing = np.random.default_rng(2).random(rows.shape) < HOLES
    never = missing & (np.random.default_rng(3).random(rows.shape) < 0.5)
    sparse, late = np.where(missing, np.nan, rows), np.where(missing & ~never, rows, np.nan)
    fleet = ompb.Fleet(cal, forecaster, ids, dtype=dtype)

    def with_late(tick: int) -> None:
        fleet.step(sparse[tick], at=tick)
        if tick >= LATE_BY:
            fleet.observe(tick - LATE_BY, late[tick - LATE_BY])

    holes = seconds(with_late, count, warm_up, clock) / lanes
    print(f"{lanes} series, 1 % of labels late or never: {1 / holes:,.0f} rows/s, {alone / holes:.1f} times one stream")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shard"
        fleet.save(path)
        start = clock()
        fleet.save(path)
        spent = (clock() - start) / lanes
        print(
            f"a series: {slim:.1f} KB in memory without holes; with them {kilobytes(fleet):.1f} KB, "
            f"{path.stat().st_size / lanes / 1024:.1f} KB in a file and {spent * 1e3:.2f} ms to save"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--lanes", type=int, default=300)
    parser.add_argument("--ticks", type=int, default=320)
    options = parser.parse_args()
    on_the_host(options.lanes, options.horizon, options.dtype, options.ticks)


if __name__ == "__main__":
    main()
