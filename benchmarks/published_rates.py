"""What other learning rates than the published ones would do for SOLID, OneNet and PROCEED; writes a table.

    OMP_NUM_THREADS=1 python benchmarks/published_rates.py --data DIR

The cases in which they are far from the paper's numbers: ETTh's shifted split, where the level is standard deviations
off; H = 48, each outcome shown one step after its forecast. SOLID's published rate is a factor, 20 for ETTh2, times
that of the network's own training, here 1e-3. The benchmark keeps the published rates; "+tuned" chooses one by a
rehearsal on the source. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ompb.bench.backbones import RunContext, versions
from ompb.bench.runner import Grid, run
from ompb.bench.store import COMMIT, Cell, Store

DATASET, HORIZON, SPLIT, PROTOCOL = "etth", 48, "ood", "one-step"
SOLID = tuple(f"solid[factor={factor}]" for factor in (0.2, 2, 20, 100))
CONTINUAL = tuple(f"solid-continual[rate={rate}]" for rate in (0.0002, 0.002, 0.02))
PROCEED = tuple(f"proceed[online_rate={rate}]" for rate in (3e-4, 3e-5, 3e-6, 3e-7))
METHODS: dict[str, tuple[str, ...]] = {  # by backbone
    "tcn": ("original", *SOLID, *CONTINUAL, "solid+tuned", *PROCEED, "proceed+tuned", "onenet", "onenet-fsnet-rate"),
    "autoformer": ("original", *SOLID, *CONTINUAL, "solid+tuned"),
}


def cells_of(backbone: str, data: Path | None) -> tuple[Cell, ...]:
    grid = Grid.of([DATASET], [backbone], [HORIZON], [SPLIT], [PROTOCOL], METHODS[backbone], folder=data)
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
    cells = tuple(cell for backbone in METHODS for cell in cells_of(backbone, args.data))
    run_context = RunContext(Store(args.store), args.data)
    report = run(cells, run_context, jobs=args.jobs, log=print)
    if report.failed:
        raise SystemExit(f"{len(report.failed)} of {len(cells)} cells failed, see above; nothing was written")
    args.out.write_text(page(run_context.store, cells), encoding="utf-8")
    print(f"see {args.out}")


if __name__ == "__main__":
    main()
