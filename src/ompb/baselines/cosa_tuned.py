"""COSA's head, refitted by another, longer descent: stronger than the published method, and not it (see `cosa`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.baselines.cosa_head import Head, Objective, head_inputs, squares
from ompb.baselines.options import with_options
from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.floor import checks
from ompb.types import Floats


@dataclass(frozen=True)
class CosaTunedSettings:
    """Options of the longer descent: ``block`` and the factors of the rate are COSA's, values marked "ours" are not.

    Ours were chosen on the synthetic shifts of `ompb.datasets.synthetic`, never on a stream of the benchmark.
    """

    block: int = 48  # B, rows in a block of the context, and pairs in a burst
    context_blocks: int = 2  # K, ours: what a window of 96 rows holds, so that the context is known from the start
    steps: int = 30  # S, ours
    rate_max: float = 0.02  # eta_max, ours
    rate_min: float = 1e-4  # eta_min, ours
    penalty: float = 1e-3  # lambda, ours
    clip: float = 1.0  # c, ours
    gate: float = 0.3  # g at the start, ours; at 0 nothing would ever move
    slower: float = 0.5  # factor of the rate after the loss has grown
    faster: float = 1.1  # factor of the rate while the loss falls steadily
    steady: int = 2  # falls in a row that are steady, ours
    patience: int = 5  # steps without a better loss that stop a burst early, ours
    tolerance: float = 1e-4  # share of the loss by which a better one is better, ours

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "block", "context_blocks", "steps", "steady", "patience")
        checks.check_fields(self, checks.positive, "rate_min", "rate_max")
        if self.rate_max < self.rate_min:
            raise checks.refuse("rate_max", self.rate_max, f"a number from rate_min = {self.rate_min:g}")


def recent_levels(rows: Floats, blocks: int, block: int) -> Floats:
    """Means (blocks, C) of the newest blocks of ``block`` rows each, oldest block first, of rows (n, C), n >= 1.

    NaN is left out. A block of nothing else counts as 0, the mean of the source, and so adds nothing to a forecast.
    """
    newest = np.full((blocks * block, rows.shape[1]), np.nan)
    newest[-len(rows) :] = rows[-len(newest) :]
    values = newest.reshape(blocks, block, -1)
    known = ~np.isnan(values)
    return np.asarray(np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def clipped(gradient: Head, bound: Floats) -> Head:
    """The gradient, no longer than ``bound`` (C,) in each channel."""
    length = np.sqrt(squares(gradient.weights) + gradient.gate**2)
    scale = np.minimum(1.0, bound / np.maximum(length, np.finfo(float).tiny))
    return Head(gradient.weights * scale[:, None, None], gradient.gate * scale)


@dataclass(eq=False)
class Rates:
    """The rate of each channel (C,) in a burst: a cosine from the largest to the smallest, times what losses taught."""

    settings: CosaTunedSettings
    factor: Floats
    falls: Floats  # in a row

    @classmethod
    def start(cls, settings: CosaTunedSettings, channels: int) -> Rates:
        """Those of a new burst."""
        return cls(settings, np.ones(channels), np.zeros(channels))

    def observe(self, change: Floats) -> None:
        """Take in by how much the last step has changed each loss."""
        self.falls = np.where(change < 0, self.falls + 1, 0)
        self.factor = np.where(change > 0, self.settings.slower * self.factor, self.factor)
        self.factor = np.where(self.falls >= self.settings.steady, self.settings.faster * self.factor, self.factor)

    def at(self, step: int) -> Floats:
        """Rates of a step, counted from 0."""
        low, high = self.settings.rate_min, self.settings.rate_max
        cosine = low + (high - low) / 2 * (1 + math.cos(math.pi * step / self.settings.steps))
        return np.clip(self.factor * cosine, low, high)


def burst(head: Head, objective: Objective, settings: CosaTunedSettings) -> Head:
    """The best head on the way of S gradient steps, channel by channel; a channel that gets no better stops early.

    To return the best one and not the last is ours: a rate that was too large for a channel then costs nothing.
    """
    channels = len(head.gate)
    rates = Rates.start(settings, channels)
    best, lowest = Head(head.weights.copy(), head.gate.copy()), np.full(channels, np.inf)
    waited, before = np.zeros(channels), np.full(channels, np.nan)
    for step in range(settings.steps + 1):
        loss, gradient = objective(head)
        waited = np.where(loss < lowest * (1 - settings.tolerance), 0, waited + 1)
        _keep(best, head, loss < lowest)
        lowest = np.fmin(lowest, loss)
        moving = waited < settings.patience
        if step == settings.steps or not moving.any():
            break
        rates.observe(loss - before)  # NaN at the first: neither grown nor fallen
        before = loss
        direction, rate = clipped(gradient, np.maximum(settings.clip, loss)), rates.at(step) * moving
        head = Head(head.weights - rate[:, None, None] * direction.weights, head.gate - rate * direction.gate)
    return best


def _keep(best: Head, head: Head, better: NDArray[np.bool_]) -> None:
    best.weights[better], best.gate[better] = head.weights[better], head.gate[better]


@dataclass(eq=False)
class CosaTuned:
    """The head in its stream."""

    settings: CosaTunedSettings
    head: Head
    pairs: Pairs
    rows: Floats  # (<= K * B, C), the newest last
    inputs: dict[int, Floats] = field(default_factory=dict)  # of the origins that are not complete
    learned: list[tuple[Floats, Pair]] = field(default_factory=list)  # inputs and pair, since the last burst

    @classmethod
    def start(cls, task: Task, settings: CosaTunedSettings) -> CosaTuned:
        """The method before the first window; there is no offline stage."""
        channels, blocks = task.source.shape[1], settings.context_blocks
        weights = np.zeros((channels, task.horizon, task.horizon + blocks + 1))
        head = Head(weights, np.full(channels, settings.gate))  # W = 0, b = 0: it starts as the base forecast
        return cls(settings, head, Pairs(task.horizon), np.empty((0, channels)))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Refit if B pairs have been completed since the last time, then forecast."""
        for pair in self.pairs.completed(snapshot):
            self.learned.append((self.inputs.pop(pair.origin), pair))
            if len(self.learned) == self.settings.block:
                self._refit()
        inputs = head_inputs(snapshot.base, self._context(snapshot))
        self.inputs[snapshot.origin] = inputs
        return Prediction(self.head.corrected(inputs[:, :, None])[:, :, 0].T)

    def _refit(self) -> None:
        inputs = np.stack([inputs for inputs, _ in self.learned], axis=-1)
        outcome = np.stack([pair.outcome.T for _, pair in self.learned], axis=-1)
        self.head = burst(self.head, Objective(inputs, outcome, self.settings.penalty), self.settings)
        self.learned = []

    def _context(self, snapshot: Snapshot) -> Floats:
        """The context (K, C) of an origin: its newest row ends the newest block."""
        before = self.rows if len(self.rows) else snapshot.window[:-1]  # a stream starts with a whole window
        blocks, block = self.settings.context_blocks, self.settings.block
        self.rows = np.concatenate([before, snapshot.row[None]])[-blocks * block :]
        return recent_levels(self.rows, blocks, block)


@method("cosa-tuned")
def cosa_tuned(task: Task, **options: Any) -> Method:
    """COSA's head with the longer descent."""
    return CosaTuned.start(task, with_options(CosaTunedSettings(), options))
