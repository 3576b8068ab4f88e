"""Files of the data set "etth" with few rows, and a run of it that is killed again and again (when run as a script)."""

import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import polars as pl
import scipy.special  # noqa: F401  what a run imports on its way is there before children are started

import ompb.offline.fitting  # noqa: F401
from ompb.bench.backbones import RunContext
from ompb.bench.runner import Grid, run
from ompb.bench.store import Cell, Store
from ompb.datasets.etth import CHANNELS
from ompb.datasets.synthetic import shifted_stream

ROWS, HORIZON = 900, 6  # 720 source, 180 "id"
METHODS = ("original", "profile", "last", "bias", "copy")
KILLS = 20


def write_small_etth(folder: Path) -> Path:
    """ETTh1.csv and ETTh2.csv, the second with a level shift."""
    start = np.datetime64("2024-01-01T00:00", "us") + np.arange(ROWS) * np.timedelta64(1, "h")
    for number, shift in ((1, 0.0), (2, 3.0)):
        values, _ = shifted_stream("none", seed=number, source_rows=ROWS, target_rows=1, channels=len(CHANNELS))
        columns = {"date": start, **dict(zip(CHANNELS, values.T + shift, strict=True))}
        pl.DataFrame(columns).write_csv(folder / f"ETTh{number}.csv", datetime_format="%Y-%m-%d %H:%M:%S")
    return folder


def small_cells(folder: Path) -> tuple[Cell, ...]:
    """Every method but the paper's under two protocols."""
    honest = Grid.of(["etth"], ["ridge"], [HORIZON], methods=(*METHODS, "ompb"), folder=folder)
    leaky = Grid.of(["etth"], ["ridge"], [HORIZON], protocols=["one-step"], methods=METHODS, folder=folder)
    return (*honest.cells, *leaky.cells)


def kill_often(folder: Path, store: Path, longest: float) -> int:
    """Start the run and kill it, 20 times, each after at most that many seconds; returns how many were cut off.

    Seconds of the processor, so that it does not matter what else runs; the signal of their timer kills. Only children
    read data: polars would wait for ever for the threads that its parent had.
    """
    chance, cut_off = random.Random(0), 0
    for _ in range(KILLS):
        seconds = chance.uniform(1e-3, longest)
        child = os.fork()
        if not child:
            cells = small_cells(folder)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            run(cells, RunContext(Store(store), folder))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        cut_off += os.WIFSIGNALED(status)
    return cut_off


if __name__ == "__main__":
    print(kill_often(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))
