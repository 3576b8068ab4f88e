"""What fitting and following many series at once costs, as ratios within one run.

    OMP_NUM_THREADS=1 python benchmarks/fit_cost.py [series]

One channel, C = 1, L = 48, H = 24, sources of 2,000 rows, default settings, a forecaster that costs next to nothing:

1. `ompb.calibrate` against `Calibrator.fit` of one series after the other;
2. `ompb.backtest` of 500 rows of all of them against one after the other.

The first few series stand for all where they are taken one by one. Times are those of the processor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ompb

Floats = NDArray[np.float64]
CONTEXT, HORIZON, SEASON = 48, 24, 24
SOURCE, TARGET = 2000, 500
ONE_BY_ONE = 8  # series


def load(seed: int) -> Floats:
    """A daily season, a slower one and a random walk."""
    rng = np.random.default_rng(seed)
    hours = np.arange(SOURCE + TARGET)
    slow = np.sin(2 * np.pi * hours / 100) * rng.uniform(0, 0.5) + 0.03 * rng.normal(size=len(hours)).cumsum()
    return np.asarray(np.sin(2 * np.pi * hours / SEASON) + slow + 0.2 * rng.normal(size=len(hours)))[:, None]


def last_day(windows: Floats) -> Floats:
    return windows[:, -SEASON:]


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def ratio(name: str, together: float, count: int, alone: float) -> None:
    print(f"{name}, a series")
    print(f"  one after the other {alone / ONE_BY_ONE * 1e3:10.1f} ms")
    print(f"  all at once         {together / count * 1e3:10.1f} ms")
    print(f"  ratio               {alone / ONE_BY_ONE / (together / count):10.1f} x")


def enough(text: str) -> int:
    """So many series, of which the first few are also taken one by one."""
    if not text.isdecimal() or int(text) < ONE_BY_ONE:
        raise argparse.ArgumentTypeError(f"{text} is no number of series from {ONE_BY_ONE} on; leave it out for 200")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="?", type=enough, default=200, help="how many; 200 by default")
    count: int = parser.parse_args().series
    tables = {f"series {seed}": load(seed) for seed in range(count)}
    sources = {one: rows[:SOURCE] for one, rows in tables.items()}
    targets = {one: rows[SOURCE:] for one, rows in tables.items()}
    some = list(tables)[:ONE_BY_ONE]
    sizes: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON}
    ompb.Calibrator.fit(last_day, sources[some[0]], **sizes)  # imports are none of its cost
    alone, _ = seconds(lambda: [ompb.Calibrator.fit(last_day, sources[one], **sizes) for one in some])
    together, cals = seconds(lambda: ompb.calibrate(last_day, sources, **sizes))
    ratio(f"fit of {count} series of {SOURCE} rows", together, count, alone)
    alone, _ = seconds(lambda: [ompb.backtest(cals[one], last_day, targets[one]) for one in some])
    together, _ = seconds(lambda: ompb.backtest(cals, last_day, targets))
    ratio(f"backtest of {count} series of {TARGET} rows", together, count, alone)


if __name__ == "__main__":
    main()
