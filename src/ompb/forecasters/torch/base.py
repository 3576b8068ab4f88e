"""What every torch backbone is: a frozen configuration and a forward pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from torch import Tensor, nn

from ompb.floor import checks


@dataclass(frozen=True)
class BackboneConfig:
    """Sizes of a backbone: rows of a window, leads of a forecast, channels of a row. Subclasses add their own."""

    backbone: ClassVar[str]  # the name to ask for it by

    context: int
    horizon: int
    channels: int

    def __post_init__(self) -> None:
        names = {field.name: field.type for field in fields(self)}
        checks.check_fields(self, checks.count, *(name for name, kind in names.items() if kind == "int"))
        if "dropout" in names:
            checks.check_fields(self, probability, "dropout")

    @property
    def label(self) -> str:
        """How tables and files name the model."""
        return self.backbone


def probability(name: str, value: Any) -> float:
    """A chance of dropping a unit: a number from 0 and below 1."""
    return checks.number(name, value, "a number from 0 and below 1", 0.0, 1.0, ends=(True, False))


class Backbone(nn.Module, ABC):
    """A map from standardised windows (B, context, C) to standardised forecasts (B, horizon, C)."""

    last_layer: ClassVar[tuple[str, ...]]  # the modules "last layer" means when only that is adapted

    config: BackboneConfig

    @abstractmethod
    def forward(self, windows: Tensor) -> Tensor:
        """Forecast standardised windows."""

    def last_layer_parameters(self) -> dict[str, nn.Parameter]:
        """Parameters of the last layer, by name."""
        inside = tuple(f"{module}." for module in self.last_layer)
        return {name: parameter for name, parameter in self.named_parameters() if name.startswith(inside)}

    def low_rank_layers(self) -> tuple[str, ...]:
        """Names of the linear layers that low-rank adapters go to: the last layer, where a backbone says no other."""
        return self.last_layer
