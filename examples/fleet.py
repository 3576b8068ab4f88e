"""Two thousand made-up meters on two workers, one of which is killed half-way: the results are the same.

    pip install 'ompb[ray]'
    python examples/fleet.py

Hourly rows come from a log, which is a file here and could be a topic or a table. Results go to a table whose key is
the tick: a result that came twice would be refused. Ray starts on this machine and opens ports on its addresses.
"""

from __future__ import annotations

import argparse
import os
import signal
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import ray

import ompb
from ompb.types import Floats

CONTEXT, HORIZON, DAY = 48, 24, 24


def load(meters: int, hours: int, seed: int) -> Floats:
    """Made-up rows (hours, meters, 1): a daily cycle of each, noise, and a level that moves for some of them."""
    chance = np.random.default_rng(seed)
    hour = np.arange(hours)[:, None]
    cycle = np.sin(2 * np.pi * (hour / DAY + chance.random(meters)))
    moved = np.where(chance.random(meters) < 0.3, 2.0, 0.0) * (hour > hours // 3)
    rows: Floats = 5 + cycle + moved + chance.normal(0, 0.3, (hours, meters))
    return rows[:, :, None]


class Log:
    """A file of rows, read from any tick on."""

    def __init__(self, file: Path) -> None:
        self.rows = np.load(file, mmap_mode="r")

    def __call__(self, after: int | None) -> Iterator[tuple[int, Floats]]:
        """Ticks behind one, with their rows."""
        first = 0 if after is None else after + 1
        yield from enumerate(self.rows[first:], start=first)


class Table:
    """A sink: a line for each tick."""

    def __init__(self, file: Path) -> None:
        self.lines = sqlite3.connect(file)
        self.lines.execute("create table if not exists results (tick integer primary key, numbers blob)")

    @property
    def last(self) -> int | None:
        """The newest tick."""
        found: tuple[int | None] = self.lines.execute("select max(tick) from results").fetchone()
        return found[0]

    def write(self, at: int, parts: Sequence[Said]) -> None:
        """Keep a tick for good."""
        with self.lines:
            self.lines.execute("insert into results values (?, ?)", (at, b"".join(part.numbers for part in parts)))

    def all(self) -> list[tuple[int, bytes]]:
        """Everything."""
        return self.lines.execute("select * from results order by tick").fetchall()


class Said(NamedTuple):
    """What is kept of the forecasts of a shard, and which process made them."""

    numbers: bytes
    worker: int


def next_hour(forecast: ompb.FleetForecast) -> Said:
    """Of each meter the next hour: what is expected, and the ends of its 80 % interval."""
    numbers = [values[:, 0, 0] for values in (forecast.mean, *forecast.interval(0.8))]
    return Said(np.stack(numbers, axis=1).tobytes(), os.getpid())


def follow(folder: Path, log: Log, kill_at: int | None = None) -> list[tuple[int, bytes]]:
    """All results of the log, with snapshots in a folder; one worker is killed after a tick."""
    began = time.perf_counter()
    folder.mkdir()
    table = Table(folder / "results.sqlite")
    source = load(1, 1000, seed=1)[:, 0]
    forecaster = ompb.Ridge.fit(source, CONTEXT, HORIZON)
    cal = ompb.Calibrator.fit(forecaster, source, context=CONTEXT, horizon=HORIZON, season=DAY)
    ids = [f"meter-{number}" for number in range(log.rows.shape[1])]
    shards = ompb.ray.shards(
        cal, forecaster, ids, size=250, folder=folder / "snapshots", every=50, workers=2, pick=next_hour
    )
    for at, parts in shards.run(log, table):
        if at == kill_at:
            os.kill(parts[0].worker, signal.SIGKILL)
            print(f"tick {at}: process {parts[0].worker} was killed")
    results = table.all()
    print(
        f"{len(results)} ticks of {len(ids)} meters in {time.perf_counter() - began:.1f} s; the last meter's next hour:"
    )
    print("  expected {:.4f}, between {:.4f} and {:.4f}".format(*np.frombuffer(results[-1][1]).reshape(-1, 3)[-1]))
    return results


def main() -> None:
    """Both runs, and whether they agree."""
    options = argparse.ArgumentParser(description="Meters on two workers, one of which is killed.")
    options.add_argument("--meters", type=int, default=2000)
    options.add_argument("--ticks", type=int, default=400)
    chosen = options.parse_args()
    ray.init(num_cpus=2, log_to_driver=False)
    with tempfile.TemporaryDirectory() as place:
        np.save(Path(place, "log.npy"), load(chosen.meters, chosen.ticks, seed=2))
        log = Log(Path(place, "log.npy"))
        whole = follow(Path(place, "undisturbed"), log)
        killed = follow(Path(place, "killed"), log, kill_at=chosen.ticks // 2)
    if killed != whole:
        raise SystemExit("the two runs differ")
    print("the two runs agree in every bit")


if __name__ == "__main__":
    main()
