"""What one online step costs, as ratios within one run.

    OMP_NUM_THREADS=1 python benchmarks/step_cost.py

1. how the cost grows with H;
2. a backtest of 3,293 windows at H = 96, C = 7, apart from the forecaster's own time;
3. a stream of which 10 % of the cells never come, and one of which they come late, against one without holes;
4. the cost after 30,000 rows against that after 300;
5. one default step, everything included, at H = 96, C = 7, against a literal weight-space implementation of the
   paper's loop (J = 5 Adam steps on K = 5 weight samples, replay 256, ring 64, base forecasts never cached).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ompb
from timed import Timed

Floats = NDArray[np.float64]
CHANNELS, CONTEXT, SEASON = 7, 96, 24


def load(rows: int, seed: int = 0) -> Floats:
    """Seven daily seasons on slow random walks."""
    rng = np.random.default_rng(seed)
    hours = np.arange(rows)[:, None]
    walk = np.cumsum(0.02 * rng.normal(size=(rows, CHANNELS)), axis=0)
    return np.asarray(
        np.sin(2 * np.pi * hours / SEASON + np.arange(CHANNELS)) + walk + 0.2 * rng.normal(size=walk.shape)
    )


def fitted(horizon: int, source: Floats) -> tuple[ompb.Calibrator, ompb.Ridge]:
    forecaster = ompb.Ridge.fit(source, CONTEXT, horizon)
    return ompb.Calibrator.fit(forecaster, source, context=CONTEXT, horizon=horizon, season=SEASON), forecaster


def microseconds(call: Callable[[Floats], Any], rows: Floats, warm_up: int) -> float:
    """Median over blocks of 50 of the mean time of a call."""
    for row in rows[:warm_up]:
        call(row)
    blocks = []
    for first in range(warm_up, len(rows) - 49, 50):
        start = time.perf_counter()
        for row in rows[first : first + 50]:
            call(row)
        blocks.append((time.perf_counter() - start) / 50 * 1e6)
    return statistics.median(blocks)


def literal_microseconds(forecaster: ompb.Ridge, source: Floats, target: Floats) -> float:
    from literal_loop import RING, LiteralLoop  # needs torch, which is kept out of the process until ours is timed

    literal = LiteralLoop(forecaster, source, CONTEXT, 96)
    literal.ring = [target[t : t + CONTEXT] for t in range(RING - 1)]
    steps = range(RING, RING + 4)
    start = time.perf_counter()
    for t in steps:
        literal.step(target[t : t + CONTEXT], target[t + CONTEXT : t + CONTEXT + 96])
    return (time.perf_counter() - start) / len(steps) * 1e6


def one_step(source: Floats, target: Floats) -> None:
    cal, forecaster = fitted(96, source)
    ours = microseconds(cal.stream(forecaster).step, target[:1600], 300)
    bare = microseconds(lambda row: forecaster(np.broadcast_to(row, (1, CONTEXT, CHANNELS))), target[:600], 100)
    theirs = literal_microseconds(forecaster, source, target)
    print("one step, H = 96, C = 7")
    print(f"  default, everything included   {ours:10.0f} us   (of which forecaster {bare:.0f} us)")
    print(f"  literal weight-space loop      {theirs:10.0f} us")
    print(f"  ratio                          {theirs / ours:10.0f} x")


def growth(source: Floats, target: Floats) -> None:
    print("growth with H (ratio to H = 24; linear growth would be H / 24)")
    first = None
    for horizon in (24, 48, 96, 192, 384):
        cal, forecaster = fitted(horizon, source)
        cost = microseconds(cal.stream(forecaster).step, target[:800], 150)
        first = first or cost
        print(f"  H = {horizon:4d}  {cost:8.0f} us  ratio {cost / first:5.2f}  linear {horizon / 24:5.1f}")


def whole_backtest(source: Floats, target: Floats) -> None:
    cal, ridge = fitted(96, source)
    forecaster = Timed(ridge)
    start = time.perf_counter()
    run = ompb.backtest(cal, forecaster, target[: 3293 + CONTEXT - 1])
    spent = forecaster.seconds
    total = time.perf_counter() - start
    print(f"backtest of {len(run.origins)} windows: {total - spent:.2f} s apart from the forecaster's {spent:.2f} s")


def holes(source: Floats, target: Floats) -> None:
    cal, forecaster = fitted(96, source)
    rows = target[:1500]
    gappy = np.where(np.random.default_rng(1).random(rows.shape) < 0.1, np.nan, rows)
    streams = {"whole": cal.stream(forecaster), "never": cal.stream(forecaster), "late": cal.stream(forecaster)}
    costs: dict[str, list[float]] = {name: [] for name in streams}
    for first in range(0, len(rows), 50):  # in turns: a noisy machine is noisy for all
        for name, stream in streams.items():
            start = time.perf_counter()
            for row in range(first, first + 50):
                stream.step((rows if name == "whole" else gappy)[row])
                if name == "late" and row >= 5 and np.isnan(gappy[row - 5]).any():
                    stream.observe(row - 5, rows[row - 5])
            if first >= 300:
                costs[name].append((time.perf_counter() - start) / 50 * 1e6)
    whole, never, late = (statistics.median(costs[name]) for name in ("whole", "never", "late"))
    print(f"10 % of the cells never come:   {never:.0f} us a step, {never / whole:.2f} x a stream without holes")
    print(f"10 % come five rows late:       {late:.0f} us a step with observe(), {late / whole:.2f} x")


def flat(source: Floats) -> None:
    cal, forecaster = fitted(24, source)
    stream = cal.stream(forecaster)
    rows = np.tile(source, (4, 1))
    early = microseconds(stream.step, rows[:1300], 300)
    late = microseconds(stream.step, rows[1300:31_000], 28_700)
    print(f"after 30,000 rows (H = 24): {late / early:.2f} x the cost after 300")


def main() -> None:
    rows = load(14_000)
    source, target = rows[:9000], rows[9000:]
    growth(source, target)
    whole_backtest(source, target)
    holes(source, target)
    flat(source)
    one_step(source, target)


if __name__ == "__main__":
    main()
