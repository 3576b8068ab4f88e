"""Do two versions of this package forecast alike? Runs both over ETTh and prints the largest differences.

    git worktree add ../before COMMIT
    OMPB_DATA=folder OMP_NUM_THREADS=1 python benchmarks/same_forecasts.py ../before

With the built-in ridge and, where torch is installed, a TCN trained once (by this version) and handed to both as
recorded forecasts, at H = 24 and 96, on both splits. Differences are in source standard deviations.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ompb
from ompb.datasets.benchmark import BenchmarkData, load

HORIZONS = (24, 96)
ROWS = 1400  # of each stream
FOLLOW = "--follow"  # what the version under test is called with


def recorded(data: BenchmarkData, rows: NDArray[np.float64], forecasts: NDArray[np.float64]) -> ompb.Recorded:
    """Forecasts by row; those before the first window are never asked for."""
    blank = np.zeros((data.context - 1, *forecasts.shape[1:]))
    return ompb.Recorded(np.concatenate([blank, forecasts])[: len(rows)])


def follow(folder: Path) -> None:
    """Forecast with whatever version is imported; its results go to a file."""
    data = load("etth")
    found: dict[str, NDArray[np.float64]] = {}
    for horizon in HORIZONS:
        kept = folder / f"tcn-{horizon}.npz"
        base = dict(np.load(kept)) if kept.exists() else None
        for name in ("ridge", *(("tcn",) if base else ())):
            ridge = ompb.Ridge.fit(data.source, data.context, horizon)
            on_source = recorded(data, data.source, base["source"]) if base and name == "tcn" else ridge
            sizes = {"context": data.context, "horizon": horizon, "season": data.season}
            cal = ompb.Calibrator.fit(on_source, data.source, **sizes)  # type: ignore[arg-type]
            for split in data.streams:
                rows = data.stream(split, horizon)[:ROWS]
                forecaster = recorded(data, rows, base[split]) if base and name == "tcn" else ridge
                run = ompb.backtest(cal, forecaster, rows)
                cell = f"{name} H = {horizon} {split}"
                found |= {f"{cell}: mean": run.mean / cal.scale, f"{cell}: sd": run.sd / cal.scale}
                found |= {f"{cell}: gate": run.gate, f"{cell}: certificate": run.certificate["value"]}
    np.savez(folder / "found.npz", **found)  # type: ignore[arg-type]  # names, of which "allow_pickle" is none


def train(folder: Path) -> None:
    """A TCN's forecasts of source and streams, kept for both versions."""
    from ompb.forecasters.torch import configure, recipe
    from ompb.forecasters.torch import train as trained
    from ompb.rows.windows import sliding

    data = load("etth")
    for horizon in HORIZONS:
        sizes = {"context": data.context, "horizon": horizon, "channels": len(data.channels)}
        model = trained(configure("tcn", **sizes), data.source, recipe("etth", "tcn"))
        parts = {"source": data.source, **{split: data.stream(split, horizon)[:ROWS] for split in data.streams}}
        said = {part: model(sliding(rows, data.context)) for part, rows in parts.items()}
        np.savez(folder / f"tcn-{horizon}.npz", **said)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree", type=Path, help="the other version's repository")
    parser.add_argument(FOLLOW, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow:
        follow(arguments.tree)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder)
        found = []
        for tree in (arguments.tree, Path(__file__).parents[1]):
            environment = {**os.environ, "PYTHONPATH": str((tree / "src").resolve())}
            subprocess.run([sys.executable, __file__, FOLLOW, str(folder)], env=environment, check=True)
            found.append(dict(np.load(folder / "found.npz")))
    before, now = found
    for cell, values in before.items():
        print(f"{cell:32s} largest difference {np.abs(values - now[cell]).max():.1e}")


if __name__ == "__main__":
    main()
