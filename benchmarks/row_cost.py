"""What a row of a stream costs: by draws, where a part of the backbone learns, and where all of it is trained anew.

    OMP_NUM_THREADS=1 python benchmarks/row_cost.py --out results/row-cost.csv

CPU time of one processor, methods in turns, around networks of the paper's sizes that have seen an epoch of made-up
rows: what they say does not matter here. The base forecast is in it only where the network that makes it changes.
Memory is the most that a step holds at once beside what the method keeps from step to step. Training anew costs its
batches, of which a few are timed, spread over the rows from one training to the next. The sizes are those of the data
sets, which must be at hand.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from methods_cost import Entrant, Size, World, measure
from ompb.baselines.retrain import EVERY
from ompb.bench.backbones import GPT4TS, NetworkLabel, versions
from ompb.bench.protocols import HONEST
from ompb.bench.store import COMMIT
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.forecasters.torch import TrainedForecaster, train
from ompb.paper.costs import Cost, Costs, Key
from ompb.paper.grid import ANEW, OMPB, PRESET, RETRAIN, SINGLE, Spot
from ompb.paper.partial import MODES
from ompb.paper.sensitivity import DRAWS, SWEPT

SOURCE_ROWS = 700
STEPS = {
    "tcn": 60,
    "autoformer": 2,
    GPT4TS: 2,
}  # that are timed; where all of a large network learns, one takes a minute
BATCHES = 3  # of a training that are timed, after one that is not
MEGABYTE = 1e6


def wanted() -> dict[Spot, list[str]]:
    """The methods whose steps are measured at each spot."""
    found: dict[Spot, list[str]] = {spot: [OMPB, *MODES] for spot in SINGLE}
    found |= {spot: [OMPB, PRESET] for spot in ANEW if spot not in found}
    found[SWEPT] += [name for method in (OMPB, PRESET) for name in DRAWS.names(method).values()]
    return {spot: list(dict.fromkeys(names)) for spot, names in found.items()}


def most_held(work: Callable[[], object]) -> float:
    """Megabytes that tensors and arrays take at most while something runs, beyond those that were there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        tracemalloc.start()  # inside: what the profiler itself takes does not count
        try:
            work()
            arrays = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    events = recorded.profiler.kineto_results.events()
    moves = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    tensors = max(itertools.accumulate(size for _, size in moves), default=0)
    return (arrays + max(tensors, 0)) / MEGABYTE


def of_steps(size: Size, methods: Sequence[str], folder: Path) -> Iterator[tuple[str, Cost]]:
    """Of methods, in turns; one step more than is timed tells the memory."""
    world = World.make(replace(size, steps=size.steps + 1), folder)
    shown = world.snapshots(HONEST)
    entrants = [Entrant.make(name, world.task(HONEST), shown) for name in methods]
    measure(entrants, size)
    end = size.warm_up + size.steps
    for entrant in entrants:
        milliseconds = entrant.mean_ms
        yield entrant.name, Cost(milliseconds, most_held(partial(entrant.follow, range(end, end + 1))))


def of_training(spot: Spot, size: Size, data: BenchmarkData) -> Cost:
    """Of training anew every so many rows, and of asking the network at each."""
    label = NetworkLabel(spot.backbone, weights="random" if spot.backbone == GPT4TS else None)
    config, recipe = label.config((size.context, size.horizon, size.channels)), label.training(spot.dataset, 0, "cpu")
    span = size.context + size.horizon

    def trained(batches: int, tell: Callable[[int, int], object] | None = None) -> TrainedForecaster:
        rows = np.random.default_rng(0).normal(size=(span - 1 + batches * recipe.batch, size.channels))
        return train(config, rows, replace(recipe, epochs=1), progress=tell)

    ends: list[float] = []
    forecaster = trained(1 + BATCHES, lambda done, total: ends.append(process_time()))  # noqa: ARG005
    batches = math.ceil((len(data.source) + EVERY - span + 1) / recipe.batch) * recipe.epochs
    training = batches * (ends[-1] - ends[0]) / BATCHES
    window = np.zeros((1, size.context, size.channels))
    forecaster(window)
    began = process_time()
    forecaster(window)
    asking = process_time() - began
    return Cost(1e3 * (training / EVERY + asking), most_held(partial(trained, 1)))


def measured(folder: Path) -> Iterator[tuple[Key, Cost]]:
    """Every cost, a line as it is known."""
    for spot, methods in wanted().items():
        data = load(spot.dataset)
        warm_up = spot.horizon + 1  # steps before those that are timed: until an outcome is complete and was learned
        sizes = spot.horizon, data.context, len(data.channels)
        size = Size(*sizes, spot.backbone, HONEST, STEPS[spot.backbone], warm_up, SOURCE_ROWS)
        yield from (((spot.sizes, name), cost) for name, cost in of_steps(size, methods, folder))
        if spot in ANEW:
            yield (spot.sizes, RETRAIN), of_training(spot, size, data)


def commit() -> str:
    """That of this working copy."""
    here = Path(__file__).parent
    found = subprocess.run(["git", "-C", str(here), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return found.stdout.strip()[:COMMIT]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a table to write")
    out: Path | None = parser.parse_args(arguments).out
    found: dict[Key, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        for key, cost in measured(Path(folder)):
            found[key] = cost
            print(*key[0], key[1], f"{cost.milliseconds:.4g} ms  {cost.megabytes:.4g} MB", flush=True)
    if out is not None:
        releases = " ".join(f"{name}={release}" for name, release in versions("numpy", "torch").items())
        Costs(found, commit(), releases).write(out)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
