"""What a fleet costs, as ratios to single streams within one run.

    OMP_NUM_THREADS=1 python benchmarks/fleet_cost.py
    python benchmarks/fleet_cost.py --device cuda --dtype float32 --horizon 24 --lanes 140000

On the host: rows a second of one stream and of a fleet, without holes and with 1 % of the labels late or never coming;
kilobytes a series in memory and in a file; milliseconds a series to save. Times are those of the processor, so that
other work on the machine counts little. On a device, with base forecasts handed in there: lanes a second, the fixed
cost of a step (that of few lanes), and memory a lane; before that, how far its forecasts are from the host's.
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
FEW = 7


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
    """Of the state, a series."""
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
            f"a series: {kilobytes(fleet):.1f} KB in memory, {path.stat().st_size / lanes / 1024:.1f} KB in a file, "
            f"{spent * 1e3:.2f} ms to save"
        )


def difference(device: str, cal: ompb.Calibrator, forecaster: ompb.Ridge, ticks: int) -> float:
    """The largest between forecasts of a device and of the host, in float64, with holes and late labels."""
    rows = load(ticks, FEW, seed=4)[..., None]
    sparse = np.where(np.random.default_rng(5).random(rows.shape) < HOLES, np.nan, rows)
    ids = [str(number) for number in range(FEW)]
    fleets = [ompb.Fleet(cal, forecaster, ids, device=where) for where in (None, device)]
    largest = 0.0
    for tick in range(ticks):
        host, other = (fleet.step(sparse[tick], at=tick) for fleet in fleets)
        if host is not None and other is not None:
            pairs = (host.mean, other.mean), (host.sd, other.sd)
            largest = max(largest, *(float(np.abs(one - np.asarray(two.cpu())).max()) for one, two in pairs))
        if tick >= LATE_BY:
            for fleet in fleets:
                fleet.observe(tick - LATE_BY, rows[tick - LATE_BY])
    return largest


def on_a_device(device: str, lanes: int, horizon: int, dtype: str, ticks: int) -> None:
    import torch

    cal, forecaster = fitted(horizon)
    print(f"largest difference to the host, float64: {difference(device, cal, forecaster, ticks):.1e}")
    kind = getattr(torch, dtype)
    for count in (FEW, lanes):
        ids = [str(number) for number in range(count)]
        fleet = ompb.Fleet(cal, None, ids, device=device, dtype=dtype)
        rows = torch.asarray(load(64, 64, seed=1)[..., None], dtype=kind, device=device)
        rows = rows.repeat(1, -(-count // 64), 1)[:, :count]
        first = forecaster(np.asarray(load(CONTEXT, 64, seed=1)).T[..., None])
        base = torch.asarray(first, dtype=kind, device=device).repeat(-(-count // 64), 1, 1)[:count]

        def clock() -> float:
            if device != "cpu":
                torch.cuda.synchronize()
            return time.perf_counter()

        def step(tick: int) -> None:
            fleet.step(rows[tick % 64], at=tick, base=base)  # noqa: B023  # of this turn

        spent = seconds(step, range(ticks), CONTEXT + horizon, clock)
        weight = kilobytes(fleet)
        peak = 0.0 if device == "cpu" else torch.cuda.max_memory_allocated() / count / 1e6
        print(
            f"{count} lanes at H = {horizon}, {dtype} on {device}: {spent * 1e3:.2f} ms a step, {count / spent:,.0f} "
            f"lanes/s; {weight / 1e3 * 1.024:.3f} MB a lane, {peak:.3f} MB at most with all that is computed"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=None)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--lanes", type=int, default=300)
    parser.add_argument("--ticks", type=int, default=320)
    options = parser.parse_args()
    if options.device is None:
        on_the_host(options.lanes, options.horizon, options.dtype, options.ticks)
    else:
        on_a_device(options.device, options.lanes, options.horizon, options.dtype, options.ticks)


if __name__ == "__main__":
    main()
