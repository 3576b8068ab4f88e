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

from ompb.baselines.proceed import Proceed, ProceedSettings
from ompb.baselines.solid import Solid, SolidSettings
from ompb.bench.backbones import Workshop, versions
from ompb.bench.contract import Method, Task
from ompb.bench.methods import method
from ompb.bench.runner import Grid, run
from ompb.bench.store import Cell, Store

DATASET, BACKBONE, HORIZON, SPLIT, PROTOCOL = "etth", "tcn", 48, "ood", "one-step"
FACTORS = (1, 5, 10, 100)


def name(base: str, factor: int) -> str:
    return f"{base} at {factor} x its rate"


def solid_at(factor: int) -> Callable[[Task], Method]:
    published = SolidSettings()
    settings = dataclasses.replace(published, learning_rate=factor * published.learning_rate)
    return lambda task: Solid.start(task, settings)


def proceed_at(factor: int) -> Callable[[Task], Method]:
    published = ProceedSettings.published(HORIZON)
    settings = dataclasses.replace(published, online_rate=factor * published.online_rate)
    return lambda task: Proceed.start(task, settings)


# Entered wherever this file runs: the benchmark's processes run it, too.
for each in FACTORS:
    method(name("solid", each))(solid_at(each))
    method(name("proceed", each))(proceed_at(each))


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
    names = ["original", *(name(base, factor) for base in ("solid", "proceed") for factor in FACTORS)]
    cells = Grid.of([DATASET], [BACKBONE], [HORIZON], [SPLIT], [PROTOCOL], names, folder=args.data).cells
    workshop = Workshop(Store(args.store), args.data, added=(Path(__file__),))
    report = run(cells, workshop, jobs=args.jobs, log=print)
    if report.failed:
        raise SystemExit(f"{len(report.failed)} of {len(cells)} cells failed, see above; nothing was written")
    args.out.write_text(page(workshop.store, cells), encoding="utf-8")
    print(f"see {args.out}")


if __name__ == "__main__":
    main()
