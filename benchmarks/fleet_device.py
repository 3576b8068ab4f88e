"""What a fleet costs on an accelerator, as it is and compiled, and how far its forecasts are from the host's.

    python benchmarks/fleet_device.py --device cuda --out results/fleet-device.md

Base forecasts are handed in there. Of few lanes the time of a step is its fixed cost; of as many as fill the given
memory with their state it is what a lane costs. Beside it, the memory of a lane: of its state, and at most, with all
that is computed in a step. To compile takes up to a minute for each form of a fleet, so only those in float32 are. A
fleet is compiled as if it were the first: programs made for another size are forgotten. Steps of few lanes are recorded
as well, those of many are not.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ompb
from fleet_cost import CONTEXT, HOLES, LATE_BY, fitted, kilobytes, load, seconds

FEW = 7
HORIZONS, DTYPES = (24, 96), ("float32", "float64")
SHOWN = 64  # series that differ; the others are copies of them
COLUMNS = (
    *("horizon", "numbers", "compiled", "difference", "s at first", "kernels", f"ms of {FEW} lanes"),
    *("lanes", "ms a step", "lanes/s", "MB a lane", "MB at most"),
)
PROFILED = 32  # steps whose kernels are counted


@dataclass(frozen=True)
class Measured:
    """Of a fleet on the device."""

    lanes: int
    first: float  # seconds until it runs as it will, compilation among them
    step: float  # seconds
    kernels: float  # a step; 0 where the device does not say
    state: float  # megabytes a lane
    most: float  # the same with all that is computed; 0 where the device does not say


@dataclass(frozen=True)
class Bench:
    """A calibrator and its forecaster at a horizon, and where its fleets run."""

    cal: ompb.Calibrator
    forecaster: ompb.Ridge
    device: str
    ticks: int

    @classmethod
    def of(cls, horizon: int, device: str, ticks: int) -> Bench:
        return cls(*fitted(horizon), device, ticks)

    @property
    def warm_up(self) -> int:
        """Ticks after which every kind of step has been made."""
        return self.cal.remembers + 2 * self.cal.horizon + self.cal.settings.patience

    def difference(self, one: dict[str, Any], other: dict[str, Any]) -> float:
        """The largest between forecasts of fleets with these options, with holes and late labels."""
        ticks = self.warm_up + self.ticks
        rows = load(ticks, FEW, seed=4)[..., None]
        sparse = np.where(np.random.default_rng(5).random(rows.shape) < HOLES, np.nan, rows)
        ids = [str(number) for number in range(FEW)]
        fleets = [ompb.Fleet(self.cal, self.forecaster, ids, **options) for options in (one, other)]
        largest = 0.0
        for tick in range(ticks):
            outs = [fleet.step(sparse[tick], at=tick) for fleet in fleets]
            for name in ("mean", "sd"):
                first, second = (out.library.host(getattr(out, name)) for out in outs if out is not None)
                largest = max(largest, float(np.nan_to_num(np.abs(first - second)).max()))
            if tick >= LATE_BY:
                for fleet in fleets:
                    fleet.observe(tick - LATE_BY, rows[tick - LATE_BY])
        return largest

    def measure(self, lanes: int, dtype: str, compiled: bool) -> Measured:
        """A fleet of so many lanes."""
        torch.compiler.reset()
        ids = [str(number) for number in range(lanes)]
        fleet = ompb.Fleet(self.cal, None, ids, device=self.device, dtype=dtype, compiled=compiled)
        kind, copies = getattr(torch, dtype), -(-lanes // SHOWN)
        rows = torch.asarray(load(SHOWN, SHOWN, seed=1)[..., None], dtype=kind, device=self.device)
        rows = rows.repeat(1, copies, 1)[:, :lanes]
        said = self.forecaster(load(CONTEXT, SHOWN, seed=1).T[..., None])
        base = torch.asarray(said, dtype=kind, device=self.device).repeat(copies, 1, 1)[:lanes]
        on_cuda = self.device.startswith("cuda")

        def clock() -> float:
            if on_cuda:
                torch.cuda.synchronize()
            return time.perf_counter()

        def step(tick: int) -> None:
            fleet.step(rows[tick % SHOWN], at=tick, base=base)

        start, last = clock(), self.warm_up + self.ticks
        for tick in range(self.warm_up):
            step(tick)
        first = clock() - start
        if on_cuda:
            torch.cuda.reset_peak_memory_stats()
        spent = seconds(step, range(self.warm_up, last), 0, clock)
        most = torch.cuda.max_memory_allocated() / lanes / 1e6 if on_cuda else 0.0
        kernels = launched(step, range(last, last + PROFILED)) if on_cuda and lanes == FEW else 0.0
        return Measured(lanes, first, spent, kernels, kilobytes(fleet) * 1024 / 1e6, most)


def launched(step: Callable[[int], None], ticks: range) -> float:
    """Kernels, and copies, of a step."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for tick in ticks:
            step(tick)
    found = [event for event in profiler.events() if event.device_type.name == "CUDA"]
    return len(found) / len(ticks)


def lines_of(horizon: int, device: str, gigabytes: float, ticks: int) -> Iterator[str]:
    """Of the table, at a horizon, as they are measured."""
    bench = Bench.of(horizon, device, ticks)
    plain = {"device": device}
    from_host = bench.difference({}, plain)
    for dtype, compiled in itertools.product(DTYPES, (False, True)):
        if compiled and dtype != "float32":
            continue
        few, narrow = bench.measure(FEW, dtype, compiled), {**plain, "dtype": dtype}
        away = bench.difference(narrow, {**narrow, "compiled": True}) if compiled else from_host  # with its programs
        many = bench.measure(max(FEW, int(gigabytes * 1e3 / few.state)), dtype, compiled)
        form = f"{horizon} | {dtype} | {'yes' if compiled else 'no'}"
        yield (
            f"| {form} | {away:.1e} | {few.first:.0f} | {few.kernels:.0f} | {few.step * 1e3:.2f} | "
            f"{many.lanes:,} | {many.step * 1e3:.2f} | {many.lanes / many.step:,.0f} | "
            f"{many.state:.3f} | {many.most:.3f} |"
        )


def commit() -> str:
    """Of this working copy."""
    found = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def page(lines: list[str], device: str, gigabytes: float) -> str:
    name = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor() or device
    return f"""# What a fleet costs on an accelerator

{name}, torch {torch.__version__}; one channel, context {CONTEXT}, default settings; lanes whose state fills
{gigabytes:g} GB. The difference is the largest to the host's forecasts, in float64, with holes and late labels; of a
compiled fleet, that to the forecasts of one that is not, in its own numbers. The seconds are those of the first rows of
{FEW} lanes, in which programs are compiled.

{os.cpu_count()} processors with {os.getloadavg()[0]:.1f} processes at work on them. Made of commit {commit()} by
`python benchmarks/fleet_device.py --device {device} --out results/fleet-device.md`.

| {" | ".join(COLUMNS)} |
{"|---" * len(COLUMNS)}|
{chr(10).join(lines)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--gigabytes", type=float, default=28.0)
    parser.add_argument("--ticks", type=int, default=96)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines: list[str] = []
    for horizon in HORIZONS:
        for line in lines_of(horizon, options.device, options.gigabytes, options.ticks):
            print(line, flush=True)
            lines.append(line)
            if options.out is not None:  # each time: what was measured before an end too soon is kept
                options.out.write_text(page(lines, options.device, options.gigabytes), encoding="utf-8")


if __name__ == "__main__":
    main()
