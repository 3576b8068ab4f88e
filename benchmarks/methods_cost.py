"""What one online step of every method of the benchmark costs, as ratios to the default `ompb` within one run.

    OMP_NUM_THREADS=1 python benchmarks/methods_cost.py --horizon 24 --out methods_cost.md

All methods follow the same synthetic stream with the same trained backbone. Its base forecasts are made beforehand and
belong to no method's cost, as the benchmark keeps and shares them; calls that a method makes of its own copy of the
network do count. After a warm-up blocks of steps alternate between the methods, and CPU time is taken, so that a busy
machine slows all alike and its pauses are not counted.

Both the median and the mean matter: block learners have rare, expensive steps. Their mean is fair over whole blocks
only. The longest block is ELF's, 200 steps: publish tables of --steps 200, 400, ...
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import process_time

import torch

from ompb import Ridge
from ompb.bench.backbones import GPT4TS, NETWORKS, is_network, versions
from ompb.bench.contract import Method, Snapshot, Task, snapshots
from ompb.bench.methods import make, method_names, unfit
from ompb.bench.protocols import HONEST, Clock
from ompb.datasets.synthetic import shifted_stream
from ompb.forecasters.torch import TrainedForecaster, TrainingConfig, configure, train
from ompb.rows.scaler import Scaler
from ompb.rows.windows import sliding
from ompb.types import Floats

REFERENCE = "ompb"
SEASON = 24
MEMORY = 1000  # whole outcomes that SOLID searches: the largest store that starts empty
LONGEST_BLOCK = 200  # steps from one update of ELF to the next
BLOCK = 10  # steps before it is the next method's turn
HEADINGS = ("method", "median ms", "mean ms", "ratio of means", "offline s")


@dataclass(frozen=True, eq=False)
class Size:
    """What is measured, from the command line."""

    horizon: int
    context: int
    channels: int
    backbone: str
    protocol: str
    steps: int
    warm_up: int
    source_rows: int


@dataclass(frozen=True, eq=False)
class World:
    """A trained forecaster, its source and a stream, all standardised with the source."""

    size: Size
    source: Floats  # (T, C)
    source_base: Floats  # (n, H, C)
    stream: Floats  # (T, C)
    base: Floats  # (n, H, C)
    network: Path | None

    @classmethod
    def make(cls, size: Size, folder: Path) -> World:
        rows = size.context - 1 + size.warm_up + size.steps + size.horizon
        source, stream = shifted_stream("level", 0, size.source_rows, rows, size.channels, SEASON)
        network = folder / "network.safetensors" if is_network(size.backbone) else None
        forecaster = fitted(size, source, network)
        scaler = Scaler.fit(source)
        bases = (
            scaler.standardise(forecaster(sliding(part[: -size.horizon], size.context))) for part in (source, stream)
        )
        return cls(size, scaler.standardise(source), next(bases), scaler.standardise(stream), next(bases), network)

    def task(self, protocol: str) -> Task:
        return Task(
            context=self.size.context,
            horizon=self.size.horizon,
            season=SEASON,
            protocol=protocol,
            trainable=self.network is not None,
            source=self.source,
            source_base=self.source_base,
            seed=0,
            network=self.network,
        )

    def snapshots(self, protocol: str) -> list[Snapshot]:
        clock = Clock(protocol, self.size.horizon, self.size.context - 1)
        return list(snapshots(self.stream, self.stream, self.base, clock, self.size.context))


def fitted(size: Size, source: Floats, network: Path | None) -> Ridge | TrainedForecaster:
    """The backbone after one epoch, kept in a file; without a file, a ridge regression."""
    if network is None:
        return Ridge.fit(source, size.context, size.horizon)
    sizes = {"context": size.context, "horizon": size.horizon, "channels": size.channels}
    weights = {"weights": "random"} if size.backbone == GPT4TS else {}
    trained = train(configure(size.backbone, **sizes, **weights), source, TrainingConfig(1, 32, 1e-3))
    trained.save(network)
    return trained


@dataclass(eq=False)
class Entrant:
    """A method, what it is shown, and what it has cost, in seconds."""

    name: str
    method: Method
    snapshots: Sequence[Snapshot]
    offline: float
    online: list[float] = field(default_factory=list)  # per step

    @classmethod
    def make(cls, name: str, task: Task, shown: Sequence[Snapshot]) -> Entrant:
        start = process_time()
        method = make(name, task)
        return cls(name, method, shown, process_time() - start)

    def follow(self, steps: range) -> None:
        for step in steps:
            start = process_time()
            self.method.step(self.snapshots[step])
            self.online.append(process_time() - start)

    @property
    def median_ms(self) -> float:
        return statistics.median(self.online) * 1e3

    @property
    def mean_ms(self) -> float:
        return statistics.fmean(self.online) * 1e3


def entrants(world: World) -> tuple[list[Entrant], dict[str, str]]:
    """Every method that fits, past its offline stage; and why the others do not."""
    shown = {protocol: world.snapshots(protocol) for protocol in {HONEST, world.size.protocol}}
    fit, left_out = [], {}
    for name in method_names():
        # What the rest is compared with learns from rows only, and costs the same beside every protocol.
        protocol = HONEST if name == REFERENCE else world.size.protocol
        task = world.task(protocol)
        reason = unfit(name, task)
        if reason is None:
            fit.append(Entrant.make(name, task, shown[protocol]))
        else:
            left_out[name] = reason
    return fit, left_out


def measure(methods: Sequence[Entrant], size: Size) -> None:
    """Leave in each method the times of its steps after the warm-up, taken in turns."""
    for entrant in methods:
        entrant.follow(range(size.warm_up))
        entrant.online.clear()
    last = size.warm_up + size.steps
    for first in range(size.warm_up, last, BLOCK):
        for entrant in methods:
            entrant.follow(range(first, min(first + BLOCK, last)))


def table(methods: Sequence[Entrant]) -> list[tuple[str, ...]]:
    """Headings and a line per method, the cheapest first."""
    (unit,) = (entrant.mean_ms for entrant in methods if entrant.name == REFERENCE)
    lines = (
        (e.name, f"{e.median_ms:.3f}", f"{e.mean_ms:.3f}", f"{e.mean_ms / unit:.3f}", f"{e.offline:.2f}")
        for e in sorted(methods, key=lambda entrant: entrant.mean_ms)
    )
    return [HEADINGS, *lines]


def notes(size: Size, left_out: dict[str, str]) -> list[str]:
    """What was measured, and with what."""
    sizes = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in asdict(size).items())
    releases = {"python": platform.python_version(), **versions("ompb", "numpy", "torch")}
    return [
        f"Made by `python benchmarks/methods_cost.py {sizes} --out results/methods-cost.md`.",
        f"CPU time of one online step: H = {size.horizon}, context {size.context}, C = {size.channels}, backbone "
        f"{size.backbone}, protocol {size.protocol}; {size.steps} steps after {size.warm_up} of warm-up, methods in "
        f"turns of {BLOCK} steps. Ratios are to the mean of {REFERENCE}, which is always run under {HONEST}.",
        "The backbone's own base forecast is not included: it is made once and shared by all methods.",
        f"Offline: CPU time of making the method from a source of {size.source_rows} rows, without the backbone's "
        "training.",
        "The mean of a method that learns in blocks is fair over whole blocks only; the longest is ELF's, "
        f"{LONGEST_BLOCK} steps{', so its mean is not fair here' if size.steps % LONGEST_BLOCK else ''}.",
        f"Versions: {', '.join(f'{name} {release}' for name, release in releases.items())}. CPU threads: "
        f"{torch.get_num_threads()} in torch, OMP_NUM_THREADS {os.environ.get('OMP_NUM_THREADS', 'not set')}.",
        *(f"Left out: {name}, since {reason}." for name, reason in left_out.items()),
    ]


def plain(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    names = (line[0].ljust(widths[0]) for line in lines)
    numbers = (
        "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True)) for line in lines
    )
    return "\n".join(map("".join, zip(names, numbers, strict=True)))


def markdown(lines: Sequence[Sequence[str]]) -> str:
    rule = ("---", *["---:"] * (len(HEADINGS) - 1))
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU time of one online step of every method of the benchmark.")
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--context", type=int, default=96)
    parser.add_argument("--channels", type=int, default=7)
    parser.add_argument("--backbone", choices=(*NETWORKS, "ridge"), default="tcn")
    parser.add_argument("--protocol", default=HONEST)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--warm-up", type=int, help=f"steps before those; by default the horizon and {MEMORY}")
    parser.add_argument("--source-rows", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="a Markdown file to write")
    found = parser.parse_args(arguments)
    if found.warm_up is None:
        found.warm_up = found.horizon + MEMORY
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = vars(options(arguments))
    out: Path | None = chosen.pop("out")
    size = Size(**chosen)
    with tempfile.TemporaryDirectory() as folder:
        methods, left_out = entrants(World.make(size, Path(folder)))
        measure(methods, size)
    lines, remarks = table(methods), notes(size, left_out)
    print("\n".join(remarks), plain(lines), sep="\n\n")
    if out is not None:
        listed = "\n".join(f"- {note}" for note in remarks)
        out.write_text(f"# Cost of one online step, by method\n\n{listed}\n\n{markdown(lines)}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
