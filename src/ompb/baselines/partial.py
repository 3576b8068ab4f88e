"""The paper's head with a part of the backbone learning beside it: its last layer, or low-rank adapters.

The paper has these as a diagnostic of what a frozen backbone is good for, without a word on rates: here the head's
Adam moves both. `ompb-paper` is the frozen one to compare with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from ompb.baselines.network import load_network, needs_network, source_pairs
from ompb.baselines.paper import ompb_paper
from ompb.bench.contract import Method, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone
from ompb.forecasters.torch.low_rank import add_low_rank
from ompb.gradient import GradientHead, OnlineAdaptedHead, PaperPreset

RANK = 4  # of the adapters: the paper's counts of parameters


@dataclass
class PartlyFrozen:
    """The head and the part of the backbone, which learn complete outcomes only."""

    head: OnlineAdaptedHead
    pairs: Pairs
    settings: Mapping[str, Any]

    @classmethod
    def start(cls, task: Task, backbone: Backbone, adapted: Sequence[nn.Parameter], **said: Any) -> PartlyFrozen:
        """Before the stream; ``said`` goes to the settings."""
        preset = PaperPreset(seed=task.seed, device=task.device)
        windows, outcomes = source_pairs(task)
        source = GradientHead.fit(task.source_base, outcomes, preset)
        head = OnlineAdaptedHead(source, backbone, adapted, windows[source.places.cpu().numpy()])
        settings = {**dataclasses.asdict(preset), **said, **adapted_size(adapted)}
        return cls(head, Pairs(task.horizon), settings)

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn what has become complete, then forecast."""
        for pair in self.pairs.completed(snapshot):
            self.head.learn(pair.window, pair.outcome)
        return Prediction(*self.head.forecast(snapshot.window))


def adapted_size(adapted: Sequence[nn.Parameter]) -> dict[str, int]:
    """How many numbers learn beside the head, and the bytes of them and of Adam's two moments."""
    return {
        "trainable": sum(parameter.numel() for parameter in adapted),
        "adapted_bytes": 3 * sum(parameter.nbytes for parameter in adapted),
    }


@method("ompb-paper-last-layer", unfit=needs_network)
def ompb_paper_last_layer(task: Task) -> Method:
    """The head and the last layer of the backbone."""
    backbone = load_network(task)
    return PartlyFrozen.start(task, backbone, [*backbone.last_layer_parameters().values()], part="last layer")


@method("ompb-paper-lora", unfit=needs_network)
def ompb_paper_lora(task: Task, rank: int = RANK) -> Method:
    """The head and low-rank adapters; with rank 0 there are none, which is the frozen backbone."""
    if checks.count("rank", rank, least=0) == 0:
        return ompb_paper(task)
    backbone = load_network(task)
    return PartlyFrozen.start(task, backbone, add_low_rank(backbone, rank, task.seed), part="adapters", rank=rank)
