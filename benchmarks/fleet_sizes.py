"""How large a machine so many series need: a page of what a series and a row cost here, and what follows on paper.

    OMP_NUM_THREADS=1 python benchmarks/fleet_sizes.py [--out results/fleet-cost.md]

Measured: rows a second of a processor, by the size of a shard, and bytes of a series in memory and in a snapshot, by
horizon, type of numbers and how late a row may be. The rest is arithmetic: memory = series x bytes, processors =
series x rows a second of each / rows a second of a processor.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import ompb
from fleet_cost import CONTEXT, fitted, kilobytes, load, seconds

SHARDS = (100, 300, 1000)
SERIES = (10**3, 10**4, 10**5, 10**6)
PATIENCE, DTYPES, HORIZONS = (8, 32, 96), ("float64", "float32"), (24, 96)
PACES = {"hour": 3600, "15 minutes": 900, "minute": 60, "second": 1}  # seconds between the rows of a series


class Measured(NamedTuple):
    """Of a fleet in one process."""

    size: int
    rate: float  # rows a second of its processor
    memory: float  # kilobytes a series
    file: float  # kilobytes a series
    save: float  # milliseconds a series
    load: float  # milliseconds a series


def measure(size: int, horizon: int, ticks: int) -> Measured:
    cal, forecaster = fitted(horizon)
    rows = load(ticks, size, seed=1)[..., None]
    fleet = ompb.Fleet(cal, forecaster, [str(number) for number in range(size)])
    clock = time.process_time
    spent = seconds(lambda tick: fleet.step(rows[tick], at=tick), range(ticks), CONTEXT + 2 * horizon, clock)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shard"
        times = [clock()]
        fleet.save(path)
        times.append(clock())
        ompb.Fleet.load(path, cal, forecaster)
        times.append(clock())
        file = path.stat().st_size / size / 1024
    save, restore = (1e3 * (after - before) / size for before, after in itertools.pairwise(times))
    return Measured(size, size / spent, kilobytes(fleet), file, save, restore)


def weights() -> list[str]:
    """Kilobytes of a series by horizon and type of numbers, one column for each patience."""
    lines = []
    for horizon, dtype in itertools.product(HORIZONS, DTYPES):
        cells = [span(horizon, dtype, rows) for rows in PATIENCE]
        lines.append(f"| {horizon} | {dtype} | {' | '.join(cells)} |")
    return lines


def span(horizon: int, dtype: str, patience: int) -> str:
    """Kilobytes of a series of which all rows come in time, and the most there can be."""
    cal, forecaster = fitted(horizon, patience=patience)
    fleet = ompb.Fleet(cal, forecaster, ["one"], dtype=dtype)
    most = kilobytes(fleet)  # a fresh fleet has places for all that may be missing
    for tick, row in enumerate(load(CONTEXT + 2 * (patience + 2), 1, seed=1)):
        fleet.step(row[None], at=tick)
    return f"{kilobytes(fleet):.0f} to {most:.0f}"


def page(found: list[Measured], horizon: int, weighed: list[str]) -> str:
    best = max(found, key=lambda one: one.rate)
    here = [
        f"| {one.size:,} | {one.rate:,.0f} | {one.memory:.1f} | {one.file:.1f} | {one.save:.2f} | {one.load:.2f} |"
        for one in found
    ]
    needed = [
        f"| {series:,} | {series * best.memory / 1024**2:,.1f} | {series * best.file / 1024**2:,.1f} | "
        + " | ".join(_processors(series / pace / best.rate) for pace in PACES.values())
        + " |"
        for series in SERIES
    ]
    columns = " | ".join(f"a row every {pace}" for pace in PACES)
    return f"""# What a fleet costs

One channel, context {CONTEXT}, horizon {horizon}, default settings, one thread; {os.cpu_count()} processors with
{os.getloadavg()[0]:.1f} processes at work on them, Python {platform.python_version()}. Times are of the processor.

Made by `python benchmarks/fleet_sizes.py --out results/fleet-cost.md`.

## Measured

| series in a fleet | rows/s a processor | KB a series in memory | KB in a file | ms a series to save | ms to load |
|---|---|---|---|---|---|
{chr(10).join(here)}

What a series weighs is how many leads wait for their outcomes, the features of origins whose outcomes may be late, and
a page for each row that has not come. KB in memory, from all rows in time to every row missing that may still come; all
series of a shard have as many pages as the one that lacks the most rows:

| horizon | numbers | {" | ".join(f"patience {rows}" for rows in PATIENCE)} |
|---|---|{"---|" * len(PATIENCE)}
{chr(10).join(weighed)}

## On paper

With shards of {best.size:,}; the forecaster's own needs come on top.

| series | GB in memory | GB of snapshots | {columns} |
|---|---|---|{"---|" * len(PACES)}
{chr(10).join(needed)}

The last {len(PACES)} columns are processors.
"""


def _processors(share: float) -> str:
    return "< 1" if share < 1 else f"{share:.2g}" if share < 10 else f"{share:,.0f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--horizon", type=int, default=24)
    options.add_argument("--ticks", type=int, default=256)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    text = page([measure(size, chosen.horizon, chosen.ticks) for size in SHARDS], chosen.horizon, weights())
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
