"""The method as its paper has it: gradient steps on a diagonal posterior; see `ompb.gradient`."""

from __future__ import annotations

from dataclasses import dataclass

from ompb.baselines.network import source_pairs
from ompb.bench.contract import Method, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.gradient import GradientHead, OnlineGradientHead, PaperPreset


@dataclass
class Paper:
    """The paper's head, which learns complete outcomes only."""

    head: OnlineGradientHead
    pairs: Pairs
    settings: PaperPreset

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn what has become complete, then forecast."""
        for pair in self.pairs.completed(snapshot):
            self.head.learn(pair.base, pair.outcome)
        return Prediction(*self.head.forecast(snapshot.base))


@method("ompb-paper")
def ompb_paper(task: Task) -> Method:
    """The paper's preset around the cached base forecasts."""
    preset = PaperPreset(seed=task.seed, device=task.device)
    _, outcomes = source_pairs(task)
    head = GradientHead.fit(task.source_base, outcomes, preset)
    return Paper(head.start(), Pairs(task.horizon), preset)
