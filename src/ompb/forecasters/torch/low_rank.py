"""Low-rank adapters (LoRA): a frozen linear layer plus the product of two thin matrices, which alone are trained."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone


class LowRank(nn.Module):
    r"""y = W x + b + B A x, with A of shape (rank, inputs) and B (outputs, rank): rank (inputs + outputs) numbers.

    A is drawn uniformly from :math:`\pm 1/\sqrt{\text{inputs}}`, B is zero: the layer starts as it was.
    """

    def __init__(self, layer: nn.Linear, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        self.layer = layer
        drawn = 2 * torch.rand((rank, layer.in_features), generator=generator) - 1
        self.down = nn.Parameter((drawn / math.sqrt(layer.in_features)).to(layer.weight))  # A
        self.up = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))  # B

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        y: Tensor = self.layer(x)
        return y + functional.linear(functional.linear(x, self.down), self.up)


def add_low_rank(model: Backbone, rank: int, seed: int = 0) -> list[nn.Parameter]:
    """Put an adapter on each of `Backbone.low_rank_layers`, in place; returns the parameters this adds.

    The seed decides them; torch's own random state is neither used nor changed.
    """
    checks.count("rank", rank)
    generator = torch.Generator().manual_seed(checks.seed("seed", seed))
    added: list[nn.Parameter] = []
    for name in model.low_rank_layers():
        place, _, attribute = name.rpartition(".")
        layer = model.get_submodule(name)
        assert isinstance(layer, nn.Linear)  # every backbone names such layers only
        adapter = LowRank(layer, rank, generator)
        setattr(model.get_submodule(place), attribute, adapter)
        added += [adapter.down, adapter.up]
    return added
