"""What Ray costs and gives: rows per second of a fleet in shards, in this process, on one worker and on two.

    OMP_NUM_THREADS=1 python benchmarks/ray_cost.py [--out results/ray-cost.md]

Each way follows the same log, snapshots and results included, several times in turn, and the best of each counts. On a
machine that has other work, look at the processor time of a row, which tells what Ray adds whoever else is there. Ray
opens ports on the addresses of this machine; where that is not wanted:
unshare --net sh -c 'ip link set lo up && python benchmarks/ray_cost.py'.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import ray

import ompb
from ompb.ray.log import Reader
from ompb.ray.part import Part, summary
from ompb.ray.sharded import ROWS_A_CALL, Shards, shards
from ompb.ray.worker import Worker
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, SIZE, EVERY = 48, 24, 24, 300, 500
WARM_UP = CONTEXT + HORIZON  # ticks before all that is learned is learned at each tick


class Cost(NamedTuple):
    """Of a row, once warm."""

    rate: float  # rows per second
    worker: float  # microseconds of its processor
    driver: float  # microseconds of its processor, if it is another process


class Timed(NamedTuple):
    """What goes to the sink, and the processor time of the worker when it was made."""

    part: Part
    seconds: float


def timed(forecast: ompb.FleetForecast) -> Timed:
    return Timed(summary(forecast), time.process_time())


class Clock:
    """A sink that keeps nothing but the times at which ticks came: by the wall, and of driver and workers."""

    def __init__(self) -> None:
        self.times: list[tuple[float, float, float]] = []

    @property
    def last(self) -> int | None:
        return len(self.times) - 1 if self.times else None

    def write(self, at: int, parts: Sequence[Timed]) -> None:
        del at
        self.times.append((time.perf_counter(), max(part.seconds for part in parts), time.process_time()))

    def cost(self, series: int, workers: int) -> Cost:
        wall, worker, driver = np.subtract(self.times[-1], self.times[WARM_UP])
        rows = series * (len(self.times) - 1 - WARM_UP)
        return Cost(rows / wall, 1e6 * worker * max(workers, 1) / rows, 1e6 * driver / rows if workers else 0.0)


class Load:
    """Made-up series, and the ways to follow them."""

    def __init__(self, series: int, ticks: int) -> None:
        source = made_up(1000, 1)[:, 0]
        self.forecaster = ompb.Ridge.fit(source, CONTEXT, HORIZON)
        self.cal = ompb.Calibrator.fit(self.forecaster, source, context=CONTEXT, horizon=HORIZON, season=SEASON)
        self.rows = made_up(ticks, series)
        self.ids = tuple(f"series-{number}" for number in range(series))

    def log(self, after: int | None) -> Iterator[tuple[int, Floats]]:
        first = 0 if after is None else after + 1
        yield from enumerate(self.rows[first:], start=first)

    def shards(self, folder: str, workers: int | None = None) -> Shards:
        return shards(
            self.cal, self.forecaster, self.ids, size=SIZE, folder=folder, every=EVERY, workers=workers, pick=timed
        )

    def follow(self, workers: int) -> Cost:
        """On so many workers; on none: what one does, in this process."""
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder:
            if workers:
                for _ in self.shards(folder, workers).run(self.log, clock):
                    pass
            else:
                self._follow_here(self.shards(folder), clock)
        return clock.cost(len(self.ids), workers)

    def _follow_here(self, made: Shards, clock: Clock) -> None:
        worker = Worker(made.shards, made.every, made.pick)
        worker.restore(None)
        for block in Reader(self.log, self.ids, ("load",), max(1, ROWS_A_CALL // len(self.ids))).blocks(None):
            assert block is not None
            for at, *parts in zip(block.ticks, *worker.follow(block, None, clock.last), strict=True):
                clock.write(int(at), parts)


def made_up(rows: int, series: int) -> Floats:
    """(T, S, 1): daily cycles and noise."""
    hours = np.arange(rows)[:, None]
    cycle = np.sin(2 * np.pi * hours / SEASON + np.arange(series))
    return np.asarray(cycle + np.random.default_rng(0).normal(0, 0.3, (rows, series)))[:, :, None]


def page(best: dict[str, Cost], series: int, ticks: int) -> str:
    first = next(iter(best.values()))
    lines = [
        f"| {way} | {cost.rate / 1000:.1f}k | {cost.rate / first.rate:.2f} | {cost.worker:.1f} | {cost.driver:.1f} |"
        for way, cost in best.items()
    ]
    return f"""# What Ray costs

{series} series in shards of {SIZE}, {ticks} ticks, context {CONTEXT}, horizon {HORIZON}, one channel. Mean, interval,
certificate and warnings of each tick go to the sink; a snapshot every {EVERY} ticks. {os.cpu_count()} processors with
{os.getloadavg()[0]:.1f} processes at work on them, Python {platform.python_version()}, Ray {ray.__version__}.

Made by `python benchmarks/ray_cost.py --out results/ray-cost.md`.

| where | rows/s | of the first | worker's processor, us a row | driver's processor, us a row |
|---|---|---|---|---|
{chr(10).join(lines)}
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--series", type=int, default=1200)
    options.add_argument("--ticks", type=int, default=600)
    options.add_argument("--tries", type=int, default=3)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    ray.init(num_cpus=2, log_to_driver=False)
    load = Load(chosen.series, chosen.ticks)
    ways = {"this process": 0, "one worker": 1, "two workers": 2}
    tries = [{way: load.follow(workers) for way, workers in ways.items()} for _ in range(chosen.tries)]
    text = page({way: max(costs[way] for costs in tries) for way in ways}, chosen.series, chosen.ticks)
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
