"""What the benchmark's methods cost, as ratios within one run.

    OMP_NUM_THREADS=1 python benchmarks/preset_cost.py

1. One online step of the paper's preset, cached against literal. The literal loop calls the forecaster (a TCN with
   random weights: only its cost matters) on all 256 replay and 64 ring windows in each of the J = 5 inner steps, and
   draws weights: K = 5 heads each for the risk and the two disagreements.
   `ompb.gradient` keeps base forecasts, has the risk in closed form and draws in output space. Both include the one
   forecast that is issued. Steps of the two alternate, so that a busy machine slows both alike.
2. A backtest of the default method: the share of it that is the backbone's own time. On a CPU a trained backbone takes
   windows one by one, so that live and backtest agree to the bit; the bare model in batches is shown beside it.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

import ompb
from ompb.forecasters.torch import Backbone, TrainedForecaster, TrainingConfig, backbone
from ompb.gradient import GradientHead, PaperPreset
from ompb.rows.scaler import Scaler
from timed import Timed

CONTEXT, CHANNELS = 96, 7
PRESET = PaperPreset(epochs=1)
PRIOR_SD, TAU = 10.0, 1.0
LEAST_RATIO, LEAST_SHARE = 10.0, 0.5


class LiteralLoop:
    """The paper's online loop as written."""

    def __init__(self, model: Backbone, replay: Tensor, outcomes: Tensor) -> None:
        self.model, self.replay, self.outcomes = model, replay, outcomes
        self.ring: list[Tensor] = []
        horizon = outcomes.shape[1]
        shape = (CHANNELS, horizon + 1, horizon)  # weights and, in the last row, biases
        self.mean = torch.zeros(shape, requires_grad=True)
        self.log_sd = torch.zeros(shape, requires_grad=True)
        self.logit = torch.zeros((), requires_grad=True)
        self.adam = torch.optim.Adam([self.mean, self.log_sd, self.logit], lr=PRESET.online_rate)

    def base(self, windows: Tensor) -> Tensor:
        with torch.no_grad():
            forecasts: Tensor = self.model(windows)
        return forecasts

    def head(self, z: Tensor, weights: Tensor) -> Tensor:
        correction = torch.einsum("nic,cio->noc", z, weights[:, :-1]) + weights[:, -1].T
        return z + torch.sigmoid(self.logit) * correction

    def draws(self, z: Tensor) -> list[Tensor]:
        sd = self.log_sd.exp()
        return [self.head(z, self.mean + sd * torch.randn_like(sd)) for _ in range(PRESET.draws)]

    def spread(self, z: Tensor) -> Tensor:
        pairs = itertools.combinations(self.draws(z), 2)
        return torch.stack([((a - b).square().mean(dim=(1, 2)) / TAU**2).clamp(max=1) for a, b in pairs]).mean()

    def gamma(self) -> Tensor:
        ratio = (self.log_sd.exp() / PRIOR_SD) ** 2
        kl = 0.5 * (ratio + (self.mean / PRIOR_SD) ** 2 - 1 - ratio.log()).sum() + self.logit**2 / (2 * PRIOR_SD**2)
        m = len(self.replay)
        kappa = kl + math.log(2 * math.sqrt(m) / PRESET.delta)
        return (2 * kappa / m).sqrt() + kappa / (3 * m)

    def step(self, window: Tensor, outcome: Tensor) -> Tensor:
        self.ring = [*self.ring[1 - PRESET.ring :], window]
        z = self.base(window[None])
        forecast = self.head(z, self.mean)[0].detach()
        for _ in range(PRESET.steps):
            source, target = self.base(self.replay), self.base(torch.stack(self.ring))
            risk = torch.stack([(draw - self.outcomes).square().mean() for draw in self.draws(source)]).mean()
            mismatch = (self.spread(source) - self.spread(target)).abs()
            supervised = (self.head(z, self.mean)[0] - outcome).square().mean()
            self.adam.zero_grad()
            (risk + self.gamma() + 0.5 * mismatch + supervised).backward()  # type: ignore[no-untyped-call]
            self.adam.step()
        return forecast


def milliseconds(calls: list[Callable[[int], object]], steps: range) -> list[float]:
    """Median time of each call over the steps, taken in turns."""
    spent: list[list[float]] = [[] for _ in calls]
    for step in steps:
        for call, times in zip(calls, spent, strict=True):
            start = time.perf_counter()
            call(step)
            times.append((time.perf_counter() - start) * 1e3)
    return [statistics.median(times) for times in spent]


def compare(horizon: int, steps: int) -> float:
    """Times of both at this horizon; returns how many times faster the cached step is."""
    torch.manual_seed(0)
    model = backbone("tcn", CONTEXT, horizon, CHANNELS).eval()
    windows, outcomes = torch.randn(512, CONTEXT, CHANNELS), torch.randn(512, horizon, CHANNELS)
    literal = LiteralLoop(model, windows[: PRESET.replay], outcomes[: PRESET.replay])
    literal.ring = list(windows[-PRESET.ring :])
    online = GradientHead.fit(literal.base(windows).numpy(), outcomes.numpy(), PRESET).start()

    def cached(step: int) -> None:
        base = literal.base(windows[step][None])[0].numpy()
        online.forecast(base)
        online.learn(base, outcomes[step].numpy())

    for step in range(PRESET.ring):
        online.forecast(np.zeros((horizon, CHANNELS)) + step / PRESET.ring)
    calls: list[Callable[[int], object]] = [cached, lambda step: literal.step(windows[step], outcomes[step])]
    milliseconds(calls, range(3))  # warm up
    ours, theirs = milliseconds(calls, range(3, 3 + steps))
    print(f"H = {horizon:3d}  cached {ours:7.1f} ms  literal {theirs:7.1f} ms  ratio {theirs / ours:5.1f} x")
    return theirs / ours


def backbone_share(name: str, horizon: int, rows: int) -> float:
    """Share of a backtest of the default method that is spent in the backbone."""
    torch.manual_seed(0)
    model = backbone(name, CONTEXT, horizon, CHANNELS).eval()
    recipe = TrainingConfig(epochs=1, batch=1, learning_rate=1e-3)  # of a training that never was
    forecaster = Timed(TrainedForecaster(model, Scaler(np.zeros(CHANNELS), np.ones(CHANNELS)), recipe, ()))
    series = np.random.default_rng(0).normal(size=(3 * rows, CHANNELS))
    calibrator = ompb.Calibrator.fit(forecaster, series[:rows], context=CONTEXT, horizon=horizon, season=24)
    start, forecaster.seconds = time.perf_counter(), 0.0
    windows = len(ompb.backtest(calibrator, forecaster, series[rows:]).origins)
    spent = forecaster.seconds
    head = time.perf_counter() - start - spent
    batch = torch.randn(windows, CONTEXT, CHANNELS)
    start = time.perf_counter()
    with torch.inference_mode():
        model(batch)
    batched = time.perf_counter() - start
    share = spent / (spent + head)
    print(
        f"H = {horizon:3d}  backtest with {name}: backbone {spent:.2f} s, head {head:.2f} s,"
        f" share of the backbone {share:.0%} (in batches: {batched / (batched + head):.0%})"
    )
    return share


def main() -> None:
    torch.set_num_threads(1)
    compare(24, 15)
    ratio = compare(96, 15)
    share = min(backbone_share(name, horizon, 800) for name in ("tcn", "autoformer") for horizon in (24, 96))
    if ratio < LEAST_RATIO:
        raise SystemExit(f"the cached step at H = 96 must be at least {LEAST_RATIO:g} times faster")
    if share < LEAST_SHARE:
        raise SystemExit(f"the backbone must take at least {LEAST_SHARE:.0%} of a backtest's time")


if __name__ == "__main__":
    main()
