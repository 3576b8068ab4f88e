"""What other learning rates than the published ones would do for SOLID and PROCEED; writes a table.

    OMP_NUM_THREADS=1 python benchmarks/published_rates.py --data DIR

The case in which both are far from the paper's numbers: a TCN, which does not normalise its input, on ETTh's shifted
split, where the level is standard deviations off; H = 48, each outcome shown one step after its forecast. The
benchmark keeps the published rates. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path

from ompb.baselines.network import load_forecaster
from ompb.baselines.proceed import Proceed, ProceedSettings
from ompb.baselines.solid import Solid, SolidSettings
from ompb.bench.backbones import Workshop, versions
from ompb.bench.contract import Method, Task
from ompb.bench.methods import method
from ompb.bench.runner import Grid, run
from ompb.bench.store import Cell, Store

DATASET, BACKBONE, HORIZON, SPLIT, PROTOCOL = "etth", "tcn", 48, "ood", "one-step"
FACTORS = {"solid": (0.1, 1, 5, 10), "proceed": (1, 5, 10, 100)}


def name(base: str, factor: float) -> str:
    return f"{base} at {factor:g} x its rate"


def solid_at(factor: float) -> Callable[[Task], Method]:
    def start(task: Task) -> Method:
        training_rate = load_forecaster(task).training.learning_rate
        return Solid.start(task, SolidSettings.published(task.season, factor * training_rate))

    return start


def proceed_at(factor: float) -> Callable[[Task], Method]:
    published = ProceedSettings.published(HORIZON)
    settings = dataclasses.replace(published, online_rate=factor * published.online_rate)
    return lambda task: Proceed.start(task, settings)


# Entered wherever this file runs: the benchmark's processes run it, too.
for base, at in {"solid": solid_at, "proceed": proceed_at}.items():
    for each in FACTORS[base]:
        method(name(base, each))(at(each))


def page(store: Store, cells: tuple[Cell, ...]) -> str:
    """MAE and MSE of every cell."""
    made = ", ".join(f"{package} {number}" for package, number in versions("ompb", "numpy", "torch").items())
    lines = ["# Other learning rates", "", *(__doc__ or "").strip().splitlines()[4:], "", f"{made}.", ""]
    lines += ["| method | MAE | MSE |", "| --- | ---: | ---: |"]
    for cell, result in zip(cells, map(store.read, cells), strict=True):
        assert result is not None  # else its run has failed
        lines.append(f"| {cell.method} | {result.metrics['mae']:.4f} | {result.metrics['mse']:.4f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data files; by default the one OMPB_DATA names")
    parser.add_argument("--store", type=Path, default=Path("results/store/rates"), help="where finished cells are kept")
    parser.add_argument("--out", type=Path, default=Path("results/published-rates.md"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    names = ["original", *(name(base, factor) for base, factors in FACTORS.items() for factor in factors)]
    cells = Grid.of([DATASET], [BACKBONE], [HORIZON], [SPLIT], [PROTOCOL], names, folder=args.data).cells
    workshop = Workshop(Store(args.store), args.data, added=(Path(__file__),))
    report = run(cells, workshop, jobs=args.jobs, log=print)
    if report.failed:
        raise SystemExit(f"{len(report.failed)} of {len(cells)} cells failed, see above; nothing was written")
    args.out.write_text(page(workshop.store, cells), encoding="utf-8")
    print(f"see {args.out}")


if __name__ == "__main__":
    main()
