"""What every torch backbone is: a frozen configuration and a forward pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

from torch import Tensor, nn

from ompb.errors import OptionError


@dataclass(frozen=True)
class BackboneConfig:
    """Sizes of a backbone: rows of a window, leads of a forecast, channels of a row. Subclasses add their own."""

    backbone: ClassVar[str]  # the name to ask for it by

    context: int
    horizon: int
    channels: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and (type(value) is not int or value < 1):
                raise OptionError(f"{field.name} = {value!r} is not a positive whole number; pass 1 or more.")
            if field.name == "dropout" and not 0 <= value < 1:
                raise OptionError(f"dropout = {value!r} is not a probability below 1; pass something like 0.1.")

    @property
    def label(self) -> str:
        """How tables and files name the model."""
        return self.backbone


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
