"""What one online step costs, as ratios within one run.

    OMP_NUM_THREADS=1 python benchmarks/step_cost.py

1. one default step, everything included, at H = 96, C = 7, against a literal weight-space implementation of the
   paper's loop (J = 5 Adam steps on K = 5 weight samples, replay 256, ring 64, base forecasts never cached);
2. how the cost grows with H;
3. a backtest of 3,293 windows at H = 96, C = 7, apart from the forecaster's own time;
4. a stream with holes in every channel, where each lead carries a covariance of its own;
5. the cost after 30,000 rows against that after 300.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import ompb

Floats = NDArray[np.float64]
CHANNELS, CONTEXT, SEASON = 7, 96, 24
J, K, REPLAY, RING, DELTA = 5, 5, 256, 64, 0.05


def load(rows: int, seed: int = 0) -> Floats:
    """Seven daily seasons on slow random walks."""
    rng = np.random.default_rng(seed)
    hours = np.arange(rows)[:, None]
    walk = np.cumsum(0.02 * rng.normal(size=(rows, CHANNELS)), axis=0)
    return np.asarray(
        np.sin(2 * np.pi * hours / SEASON + np.arange(CHANNELS)) + walk + 0.2 * rng.normal(size=walk.shape)
    )


def fitted(horizon: int, source: Floats) -> tuple[ompb.Calibrator, ompb.Ridge]:
    forecaster = ompb.Ridge.fit(source, CONTEXT, horizon)
    return ompb.Calibrator.fit(forecaster, source, context=CONTEXT, horizon=horizon, season=SEASON), forecaster


def microseconds(call: Callable[[Floats], Any], rows: Floats, warm_up: int) -> float:
    """Median over blocks of 50 of the mean time of a call."""
    for row in rows[:warm_up]:
        call(row)
    blocks = []
    for first in range(warm_up, len(rows) - 49, 50):
        start = time.perf_counter()
        for row in rows[first : first + 50]:
            call(row)
        blocks.append((time.perf_counter() - start) / 50 * 1e6)
    return statistics.median(blocks)


class LiteralLoop:
    """The paper's online loop as written: weights are drawn, base forecasts are made again for every use."""

    def __init__(self, forecaster: ompb.Ridge, source: Floats, horizon: int) -> None:
        starts = np.random.default_rng(0).choice(len(source) - CONTEXT - horizon, REPLAY, replace=False)
        self.forecaster, self.horizon = forecaster, horizon
        self.replay = source[starts[:, None] + np.arange(CONTEXT)]
        self.outcomes = torch.from_numpy(source[starts[:, None] + np.arange(CONTEXT, CONTEXT + horizon)])
        self.ring: list[Floats] = []
        shape = (CHANNELS, horizon + 1, horizon)  # weights and, in the last row, biases
        self.mean = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        self.log_sd = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        self.gate = torch.zeros((), dtype=torch.float64, requires_grad=True)
        self.adam = torch.optim.Adam([self.mean, self.log_sd, self.gate], lr=5e-3)

    def base(self, windows: Floats) -> torch.Tensor:
        return torch.from_numpy(self.forecaster(windows))

    def head(self, z: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        correction = torch.einsum("nhc,cho->noc", z, weights[:, :-1]) + weights[:, -1].T
        return z + torch.sigmoid(self.gate) * correction

    def spread(self, windows: Floats) -> torch.Tensor:
        z = self.base(windows)
        draws = [self.head(z, self.mean + self.log_sd.exp() * torch.randn_like(self.mean)) for _ in range(K)]
        pairs = [(draws[a] - draws[b]).square().mean((1, 2)).clamp(max=1) for a in range(K) for b in range(a)]
        return torch.stack(pairs).mean()

    def step(self, window: Floats, outcome: Floats) -> Floats:
        self.ring = [*self.ring[1 - RING :], window]
        with torch.no_grad():
            forecast = self.head(self.base(window[None]), self.mean)[0].numpy()
        for _ in range(J):
            self.adam.zero_grad()
            z = self.base(self.replay)
            draws = [self.head(z, self.mean + self.log_sd.exp() * torch.randn_like(self.mean)) for _ in range(K)]
            risk = torch.stack([(d - self.outcomes).square().mean() for d in draws]).mean()
            kl = 0.5 * ((self.log_sd.exp() ** 2 + self.mean**2) / 100 - 1 - 2 * self.log_sd + np.log(100.0)).sum()
            kappa = kl + np.log(2 * REPLAY**0.5 / DELTA)
            gamma = (2 * kappa / REPLAY).sqrt() + kappa / (3 * REPLAY)
            mismatch = (self.spread(self.replay) - self.spread(np.stack(self.ring))).abs()
            supervised = (self.head(self.base(window[None]), self.mean)[0] - torch.from_numpy(outcome)).square().mean()
            (risk + gamma + 0.5 * mismatch + supervised).backward()
            self.adam.step()
        return np.asarray(forecast)


def one_step(source: Floats, target: Floats) -> None:
    cal, forecaster = fitted(96, source)
    ours = microseconds(cal.stream(forecaster).step, target[:1600], 300)
    bare = microseconds(lambda row: forecaster(np.broadcast_to(row, (1, CONTEXT, CHANNELS))), target[:600], 100)
    literal = LiteralLoop(forecaster, source, 96)
    steps = range(RING, RING + 4)
    for t in range(RING - 1):
        literal.ring.append(target[t : t + CONTEXT])
    start = time.perf_counter()
    for t in steps:
        literal.step(target[t : t + CONTEXT], target[t + CONTEXT : t + CONTEXT + 96])
    theirs = (time.perf_counter() - start) / len(steps) * 1e6
    print("one step, H = 96, C = 7")
    print(f"  default, everything included   {ours:10.0f} us   (of which forecaster {bare:.0f} us)")
    print(f"  literal weight-space loop      {theirs:10.0f} us")
    print(f"  ratio                          {theirs / ours:10.0f} x")


def growth(source: Floats, target: Floats) -> None:
    print("growth with H (ratio to H = 24; linear growth would be H / 24)")
    first = None
    for horizon in (24, 48, 96, 192, 384):
        cal, forecaster = fitted(horizon, source)
        cost = microseconds(cal.stream(forecaster).step, target[:800], 150)
        first = first or cost
        print(f"  H = {horizon:4d}  {cost:8.0f} us  ratio {cost / first:5.2f}  linear {horizon / 24:5.1f}")


def whole_backtest(source: Floats, target: Floats) -> None:
    cal, forecaster = fitted(96, source)
    spent = 0.0

    def timed(windows: Floats) -> Floats:
        nonlocal spent
        start = time.perf_counter()
        base = forecaster(windows)
        spent += time.perf_counter() - start
        return base

    start = time.perf_counter()
    run = ompb.backtest(cal, timed, target[: 3293 + CONTEXT - 1])
    total = time.perf_counter() - start
    print(f"backtest of {len(run.origins)} windows: {total - spent:.2f} s apart from the forecaster's {spent:.2f} s")


def holes(source: Floats, target: Floats) -> None:
    cal, forecaster = fitted(96, source)
    whole = microseconds(cal.stream(forecaster).step, target[:600], 200)
    gappy = target[:600].copy()
    gappy[120] = np.nan
    broken = microseconds(cal.stream(forecaster).step, gappy, 200)
    print(f"a hole in every channel: {broken:.0f} us a step, {broken / whole:.1f} x a stream without")


def flat(source: Floats) -> None:
    cal, forecaster = fitted(24, source)
    stream = cal.stream(forecaster)
    rows = np.tile(source, (4, 1))
    early = microseconds(stream.step, rows[:1300], 300)
    late = microseconds(stream.step, rows[1300:31_000], 28_700)
    print(f"after 30,000 rows (H = 24): {late / early:.2f} x the cost after 300")


def main() -> None:
    torch.set_num_threads(1)
    rows = load(14_000)
    source, target = rows[:9000], rows[9000:]
    one_step(source, target)
    growth(source, target)
    whole_backtest(source, target)
    holes(source, target)
    flat(source)


if __name__ == "__main__":
    main()
