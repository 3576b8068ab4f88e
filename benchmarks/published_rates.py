"""What other learning rates than the published ones would do for SOLID and PROCEED; writes a table.

    OMP_NUM_THREADS=1 python benchmarks/published_rates.py --data DIR

The cases in which they are far from the paper's numbers: ETTh's shifted split, where the level is standard deviations
off; H = 48, each outcome shown one step after its forecast. SOLID's published rate is 20 times that of its authors'
trainings, 1e-4; the TCN and the Autoformer here were trained at 1e-3, so 10 x is 20 times theirs. The benchmark keeps
the published rates. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path

from ompb.baselines.proceed import Proceed, ProceedSettings
from ompb.baselines.solid import Solid, SolidSettings
from ompb.bench.backbones import RunContext, versions
from ompb.bench.contract import Method, Task
from ompb.bench.methods import method
from ompb.bench.runner import Grid, run
from ompb.bench.store import COMMIT, Cell, Store

DATASET, HORIZON, SPLIT, PROTOCOL = "etth", 48, "ood", "one-step"
FACTORS: dict[str, dict[str, tuple[float, ...]]] = {  # by backbone and method
    "tcn": {"solid": (1, 5, 10, 100), "proceed": (1, 5, 10, 100)},
    "autoformer": {"solid": (0.1, 1, 10)},
}


def name(base: str, factor: float) -> str:
    return f"{base} at {factor:g} x its rate"


def solid_at(factor: float) -> Callable[[Task], Method]:
    published = SolidSettings()
    settings = dataclasses.replace(published, learning_rate=factor * published.learning_rate)
    return lambda task: Solid.start(task, settings)


def proceed_at(factor: float) -> Callable[[Task], Method]:
    published = ProceedSettings.published(HORIZON)
    settings = dataclasses.replace(published, online_rate=factor * published.online_rate)
    return lambda task: Proceed.start(task, settings)


# Entered wherever this file runs: the benchmark's processes run it, too.
for base, at in {"solid": solid_at, "proceed": proceed_at}.items():
    for factor in sorted({factor for methods in FACTORS.values() for factor in methods.get(base, ())}):
        method(name(base, factor))(at(factor))


def cells_of(backbone: str, data: Path | None) -> tuple[Cell, ...]:
    names = [name(base, factor) for base, factors in FACTORS[backbone].items() for factor in factors]
    grid = Grid.of([DATASET], [backbone], [HORIZON], [SPLIT], [PROTOCOL], ["original", *names], folder=data)
    return grid.cells


def page(store: Store, cells: tuple[Cell, ...]) -> str:
    """MAE and MSE of every cell."""
    results = [result for result in map(store.read, cells) if result is not None]
    assert len(results) == len(cells)  # else some run has failed
    made = ", ".join(f"{package} {number}" for package, number in versions("ompb", "numpy", "torch").items())
    commits = ", ".join(sorted({(result.commit or "none")[:COMMIT] for result in results}))
    lines = ["# Other learning rates", "", *(__doc__ or "").strip().splitlines()[4:], ""]
    lines += [f"{made}; commit {commits}.", "", "| backbone | method | MAE | MSE |", "| --- | --- | ---: | ---: |"]
    lines += [
        f"| {result.cell.backbone} | {result.cell.method} | {result.metrics['mae']:.4f} | {result.metrics['mse']:.4f} |"
        for result in results
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data files; by default the one OMPB_DATA names")
    parser.add_argument("--store", type=Path, default=Path("results/store/rates"), help="where finished cells are kept")
    parser.add_argument("--out", type=Path, default=Path("results/published-rates.md"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    cells = tuple(cell for backbone in FACTORS for cell in cells_of(backbone, args.data))
    run_context = RunContext(Store(args.store), args.data, added=(Path(__file__),))
    report = run(cells, run_context, jobs=args.jobs, log=print)
    if report.failed:
        raise SystemExit(f"{len(report.failed)} of {len(cells)} cells failed, see above; nothing was written")
    args.out.write_text(page(run_context.store, cells), encoding="utf-8")
    print(f"see {args.out}")


if __name__ == "__main__":
    main()
