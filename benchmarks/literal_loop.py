"""The paper's online loop as written, for comparison in `step_cost.py`."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import ompb

Floats = NDArray[np.float64]
J, K, REPLAY, RING, DELTA = 5, 5, 256, 64, 0.05


class LiteralLoop:
    """The paper's online loop as written: weights are drawn, base forecasts are made again for every use."""

    def __init__(self, forecaster: ompb.Ridge, source: Floats, context: int, horizon: int) -> None:
        torch.set_num_threads(1)
        channels = source.shape[1]
        starts = np.random.default_rng(0).choice(len(source) - context - horizon, REPLAY, replace=False)
        self.forecaster = forecaster
        self.replay = source[starts[:, None] + np.arange(context)]
        self.outcomes = torch.from_numpy(source[starts[:, None] + np.arange(context, context + horizon)])
        self.ring: list[Floats] = []
        shape = (channels, horizon + 1, horizon)  # weights and, in the last row, biases
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
