"""What a fleet costs on an accelerator, and how far its forecasts are from the host's.

    python benchmarks/fleet_device.py --device cuda --out results/fleet-device.md

Base forecasts are handed in there. Of few lanes the time of a step is its fixed cost; of as many as fill the given
memory with their state it is what a lane costs. Beside it, the memory of a lane: of its state, and at most, with all
that is computed in a step.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import ompb
from fleet_cost import CONTEXT, HOLES, LATE_BY, fitted, kilobytes, load, seconds

FEW = 7
HORIZONS, DTYPES = (24, 96), ("float32", "float64")
SHOWN = 64  # series that differ; the others are copies of them


@dataclass(frozen=True)
class Measured:
    """Of a fleet on the device."""

    lanes: int
    step: float  # seconds
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

    def difference(self) -> float:
        """The largest between forecasts of the device and of the host, in float64, with holes and late labels."""
        rows = load(self.ticks, FEW, seed=4)[..., None]
        sparse = np.where(np.random.default_rng(5).random(rows.shape) < HOLES, np.nan, rows)
        ids = [str(number) for number in range(FEW)]
        fleets = [ompb.Fleet(self.cal, self.forecaster, ids, device=where) for where in (None, self.device)]
        largest = 0.0
        for tick in range(self.ticks):
            host, other = (fleet.step(sparse[tick], at=tick) for fleet in fleets)
            if host is not None and other is not None:
                pairs = (host.mean, other.mean), (host.sd, other.sd)
                largest = max(largest, *(float(np.abs(one - np.asarray(two.cpu())).max()) for one, two in pairs))
            if tick >= LATE_BY:
                for fleet in fleets:
                    fleet.observe(tick - LATE_BY, rows[tick - LATE_BY])
        return largest

    def measure(self, lanes: int, dtype: str) -> Measured:
        """A fleet of so many lanes."""
        fleet = ompb.Fleet(self.cal, None, [str(number) for number in range(lanes)], device=self.device, dtype=dtype)
        kind, copies = getattr(torch, dtype), -(-lanes // SHOWN)
        rows = torch.asarray(load(SHOWN, SHOWN, seed=1)[..., None], dtype=kind, device=self.device)
        rows = rows.repeat(1, copies, 1)[:, :lanes]
        said = self.forecaster(load(CONTEXT, SHOWN, seed=1).T[..., None])
        base = torch.asarray(said, dtype=kind, device=self.device).repeat(copies, 1, 1)[:lanes]
        on_cuda = self.device.startswith("cuda")
        if on_cuda:
            torch.cuda.reset_peak_memory_stats()

        def clock() -> float:
            if on_cuda:
                torch.cuda.synchronize()
            return time.perf_counter()

        warm_up = CONTEXT + self.cal.horizon
        spent = seconds(
            lambda tick: fleet.step(rows[tick % SHOWN], at=tick, base=base), range(self.ticks), warm_up, clock
        )
        most = torch.cuda.max_memory_allocated() / lanes / 1e6 if on_cuda else 0.0
        return Measured(lanes, spent, kilobytes(fleet) * 1024 / 1e6, most)


def lines_of(horizon: int, device: str, gigabytes: float, ticks: int) -> list[str]:
    """Of the table, at a horizon."""
    bench = Bench.of(horizon, device, ticks)
    away, lines = bench.difference(), []
    for dtype in DTYPES:
        few = bench.measure(FEW, dtype)
        many = bench.measure(max(FEW, int(gigabytes * 1e3 / few.state)), dtype)
        lines.append(
            f"| {horizon} | {dtype} | {away:.1e} | {few.step * 1e3:.2f} | {many.lanes:,} | {many.step * 1e3:.2f} | "
            f"{many.lanes / many.step:,.0f} | {many.state:.3f} | {many.most:.3f} |"
        )
        print(lines[-1])
    return lines


def page(lines: list[str], device: str, gigabytes: float) -> str:
    name = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor() or device
    return f"""# What a fleet costs on an accelerator

{name}, torch {torch.__version__}; one channel, context {CONTEXT}, default settings; lanes whose state fills
{gigabytes:g} GB. The difference is the largest to the host's forecasts, in float64, with holes and late labels.

Made by `python benchmarks/fleet_device.py --device {device} --out results/fleet-device.md`.

| horizon | numbers | difference | ms of {FEW} lanes | lanes | ms a step | lanes/s | MB a lane | MB at most |
|---|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--gigabytes", type=float, default=14.0)
    parser.add_argument("--ticks", type=int, default=240)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = (lines_of(horizon, options.device, options.gigabytes, options.ticks) for horizon in HORIZONS)
    text = page(list(itertools.chain.from_iterable(found)), options.device, options.gigabytes)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
