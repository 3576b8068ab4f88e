"""The method as its paper has it: gradient steps on a diagonal posterior; see `ompb.gradient`.

A name may bring every field of `PaperPreset`: ``ompb-paper[gated=False]``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ompb.baselines.network import source_pairs
from ompb.bench.contract import Method, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.errors import OptionError
from ompb.gradient import GradientHead, OnlineGradientHead, PaperPreset

# What the head knew of itself before it learned its newest outcome; NaN before the first.
SIGNALS = ("value", "source_risk", "gamma", "disagreement")


@dataclass
class Paper:
    """The paper's head, which learns complete outcomes only."""

    head: OnlineGradientHead
    pairs: Pairs
    settings: PaperPreset
    signals: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(SIGNALS, math.nan))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn what has become complete, then forecast."""
        for pair in self.pairs.completed(snapshot):
            terms = self.head.learn(pair.base, pair.outcome)
            values = torch.stack((terms.bound, terms.risk, terms.gamma, terms.mismatch)).tolist()
            self.signals = dict(zip(SIGNALS, values, strict=True))
        return Prediction(*self.head.forecast(snapshot.base), signals=self.signals)


@method("ompb-paper")
def ompb_paper(task: Task, **options: Any) -> Method:
    """The paper's preset around the cached base forecasts."""
    accepted = {option.name for option in dataclasses.fields(PaperPreset)} - {"seed", "device"}
    for name in options.keys() - accepted:
        raise OptionError(f"unknown option {name!r} of ompb-paper; accepted: {', '.join(sorted(accepted))}.")
    preset = PaperPreset(**options, seed=task.seed, device=task.device)
    _, outcomes = source_pairs(task)
    head = GradientHead.fit(task.source_base, outcomes, preset)
    return Paper(head.start(), Pairs(task.horizon), preset)
