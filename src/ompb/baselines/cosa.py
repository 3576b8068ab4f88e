"""COSA: a gated linear correction of the forecast that also sees the levels of recent blocks, a few steps a block."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ompb.baselines.cosa_head import Head, Objective, head_inputs, squares
from ompb.baselines.options import with_options
from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.floor import checks
from ompb.types import Floats

FIRST, SECOND, GUARD = 0.9, 0.999, 1e-8  # Adam's own


@dataclass(frozen=True)
class CosaSettings:
    """COSA-F (ICLR 2026) as published, save where a comment says otherwise."""

    block: int = 48  # B, pairs that are learned together
    context_blocks: int = 10  # K, levels of earlier blocks that the head sees
    steps: int = 3  # S, of Adam on each block
    rate: float = 1e-3  # at the first step of a block; a cosine leads down from it
    rate_min: float = 1e-4
    rate_max: float = 5e-3
    slower: float = 0.5  # factor of the rate after the loss has grown
    faster: float = 1.1  # factor of the rate while the loss falls steadily
    steady: int = 2  # falls in a row that are steady, ours
    weight_decay: float = 1e-4  # of Adam
    penalty: float = 1e-4  # lambda
    clip_least: float = 0.05
    clip_most: float = 0.5
    gain: float = 0.1  # of the random weights it starts with

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "block", "context_blocks", "steps", "steady")
        positive = ("rate", "rate_min", "rate_max", "slower", "faster", "clip_least", "clip_most", "gain")
        checks.check_fields(self, checks.positive, *positive)
        checks.check_fields(self, checks.not_negative, "weight_decay", "penalty")
        if not self.rate_min <= self.rate <= self.rate_max:
            accepted = f"a number from rate_min = {self.rate_min:g} to rate_max = {self.rate_max:g}"
            raise checks.refuse("rate", self.rate, accepted)

    def rate_at(self, step: int, losses: list[float]) -> float:
        r"""The rate of a step of a block, counted from 0, after the losses before it and at it.

        .. math:: \eta_s = f_s \Bigl(\eta_{\min} + (\eta - \eta_{\min}) \frac{1 + \cos(\pi s / S)}{2}\Bigr)

        within its bounds, with a factor f of 1 at first, half of it once the loss has grown, 1.1 times it while the
        loss falls steadily.
        """
        factor, falls = 1.0, 0
        for before, after in pairwise(losses):
            falls = falls + 1 if after < before else 0
            factor *= self.slower if after > before else self.faster if falls >= self.steady else 1.0
        cosine = (1 + math.cos(math.pi * step / self.steps)) / 2
        return min(max(factor * (self.rate_min + (self.rate - self.rate_min) * cosine), self.rate_min), self.rate_max)


@dataclass(eq=False)
class Adam:
    """Adam on a head; its moments are kept from block to block."""

    first: Head
    second: Head
    steps: int = 0

    @classmethod
    def start(cls, head: Head) -> Adam:
        """Before the first step of a head."""
        first, second = (Head(np.zeros_like(head.weights), np.zeros_like(head.gate)) for _ in range(2))
        return cls(first, second)

    def step(self, head: Head, gradient: Head, rate: float) -> Head:
        """The next head."""
        self.steps += 1
        moved = [
            self._moved(*parts, rate)
            for parts in (
                (head.weights, gradient.weights, self.first.weights, self.second.weights),
                (head.gate, gradient.gate, self.first.gate, self.second.gate),
            )
        ]
        return Head(*moved)

    def _moved(self, values: Floats, gradient: Floats, first: Floats, second: Floats, rate: float) -> Floats:
        first += (1 - FIRST) * (gradient - first)
        second += (1 - SECOND) * (gradient**2 - second)
        scale = np.sqrt(second / (1 - SECOND**self.steps)) + GUARD
        return values - rate / (1 - FIRST**self.steps) * first / scale


def descended(head: Head, objective: Objective, adam: Adam, settings: CosaSettings) -> Head:
    r"""The head after S steps of Adam on a block, all channels together.

    .. math:: J = \overline{(\hat Y - Y)^2} + \lambda (\lVert W \rVert^2 + \lVert b \rVert^2 + \lVert g \rVert^2)

    Its gradient is cut to the length max(0.05, min(0.5, J)); then Adam's weight decay is added.
    """
    channels, losses = len(head.gate), list[float]()
    for step in range(settings.steps):
        by_channel, gradient = objective(head)  # whose mean is J and its gradient: see `Cosa`
        losses.append(float(by_channel.mean()))
        length = math.sqrt(float(squares(gradient.weights).sum() + gradient.gate @ gradient.gate)) / channels
        bound = max(settings.clip_least, min(settings.clip_most, losses[-1]))
        scale = min(1.0, bound / max(length, np.finfo(float).tiny)) / channels
        decayed = Head(
            scale * gradient.weights + settings.weight_decay * head.weights,
            scale * gradient.gate + settings.weight_decay * head.gate,
        )
        head = adam.step(head, decayed, settings.rate_at(step, losses))
    return head


@dataclass(eq=False)
class Cosa:
    """The head in its stream.

    Its context is one number for each of the last K blocks, newest first, and the same for all channels: the mean of
    the block's outcomes over windows, leads and channels; 0, the mean of the source, where there was none yet.
    """

    settings: CosaSettings
    head: Head
    adam: Adam
    pairs: Pairs
    levels: deque[float]  # of the last K blocks, newest first
    inputs: dict[int, Floats] = field(default_factory=dict)  # of the origins that are not complete
    learned: list[tuple[Floats, Pair]] = field(default_factory=list)  # inputs and pair, since the last block

    @classmethod
    def start(cls, task: Task, settings: CosaSettings) -> Cosa:
        """The method before the first window: a closed gate, b = 0 and random W; there is no offline stage."""
        channels, horizon, blocks = task.source.shape[1], task.horizon, settings.context_blocks
        weights = np.zeros((channels, horizon, horizon + blocks + 1))
        bound = settings.gain * math.sqrt(6 / (2 * horizon + blocks))  # Xavier's
        weights[..., :-1] = np.random.default_rng(task.seed).uniform(-bound, bound, weights[..., :-1].shape)
        head = Head(weights, np.zeros(channels))
        return cls(settings, head, Adam.start(head), Pairs(horizon), deque([0.0] * blocks, maxlen=blocks))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn a block if its last pair is complete, then forecast."""
        for pair in self.pairs.completed(snapshot):
            self.learned.append((self.inputs.pop(pair.origin), pair))
            if len(self.learned) == self.settings.block:
                self._learn()
        context = np.tile(np.array(self.levels)[:, None], snapshot.base.shape[1])  # (K, C)
        inputs = head_inputs(snapshot.base, context)
        self.inputs[snapshot.origin] = inputs
        return Prediction(self.head.corrected(inputs[:, :, None])[:, :, 0].T)

    def _learn(self) -> None:
        inputs = np.stack([inputs for inputs, _ in self.learned], axis=-1)
        outcome = np.stack([pair.outcome.T for _, pair in self.learned], axis=-1)
        self.learned = []
        if np.isnan(outcome).all():
            return
        # The mean over C channels of objectives with the penalty C lambda has the penalty lambda on all parameters.
        objective = Objective(inputs, outcome, len(outcome) * self.settings.penalty)
        self.head = descended(self.head, objective, self.adam, self.settings)
        self.levels.appendleft(float(np.nanmean(outcome)))


@method("cosa")
def cosa(task: Task, **options: Any) -> Method:
    """COSA-F with the published settings."""
    return Cosa.start(task, with_options(CosaSettings(), options))
