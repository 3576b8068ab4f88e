"""TCN: dilated causal convolutions, read at the newest step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone, BackboneConfig

Init: TypeAlias = Literal["reference", "paper"]
SMALL_SD = 0.01  # of the paper's initial convolution weights


@dataclass(frozen=True)
class TCNConfig(BackboneConfig):
    """Sizes of a TCN; the defaults are the paper's.

    ``init`` says how branch convolutions start: "reference" uniform(±1/sqrt(fan_in)), which is what the published
    numbers were trained from; "paper" N(0, 0.01²), which is what the paper intends.
    """

    backbone: ClassVar[str] = "tcn"

    width: int = 32
    blocks: int = 3
    kernel: int = 3
    dropout: float = 0.1
    init: Init = "reference"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("init", self.init, get_args(Init))

    @property
    def dilations(self) -> tuple[int, ...]:
        """Dilation of each block: 1, 2, 4, ..."""
        return tuple(2**block for block in range(self.blocks))

    @property
    def receptive_field(self) -> int:
        """Newest rows the forecast depends on: 1 + 2 (kernel - 1) sum of dilations = 29 by default."""
        return 1 + 2 * (self.kernel - 1) * sum(self.dilations)


class CausalConv(nn.Module):
    r"""Dilated convolution of the past only, weight-normalised per output channel.

    .. math:: y_{o,t} = b_o + \sum_{a,j} w_{o,a,j}\, x_{a,\,t-(k-1-j)d}, \qquad w_o = g_o\, v_o / \lVert v_o \rVert

    with zeros before the first row.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int, init: Init) -> None:
        super().__init__()
        self.dilation = dilation
        self.direction = nn.Parameter(torch.empty(outputs, inputs, kernel))  # v
        if init == "paper":
            nn.init.normal_(self.direction, std=SMALL_SD)
        else:
            bound = 1 / math.sqrt(inputs * kernel)
            nn.init.uniform_(self.direction, -bound, bound)
        self.gain = nn.Parameter(self.norm().detach())  # g: the convolution starts as v itself
        self.bias = nn.Parameter(torch.zeros(outputs))

    def norm(self) -> Tensor:
        """Norm of v over input channels and taps."""
        return self.direction.square().sum(dim=(1, 2), keepdim=True).sqrt()  # (outputs, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, inputs, L) to (B, outputs, L)."""
        weight = self.gain * self.direction / self.norm()  # (outputs, inputs, kernel)
        past = (weight.shape[2] - 1) * self.dilation
        return functional.conv1d(functional.pad(x, (past, 0)), weight, self.bias, dilation=self.dilation)


class ResidualBlock(nn.Module):
    """ReLU(branch(x) + shortcut(x)), the branch being two rounds of convolution, ReLU and dropout."""

    def __init__(self, inputs: int, dilation: int, config: TCNConfig) -> None:
        super().__init__()
        width = config.width
        self.branch = nn.Sequential(
            CausalConv(inputs, width, config.kernel, dilation, config.init),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            CausalConv(width, width, config.kernel, dilation, config.init),
            nn.ReLU(),
            nn.Dropout(config.dropout),
        )
        self.shortcut = nn.Identity() if inputs == width else self._shortcut(inputs, width)

    @staticmethod
    def _shortcut(inputs: int, width: int) -> nn.Conv1d:
        shortcut = nn.Conv1d(inputs, width, kernel_size=1)
        nn.init.normal_(shortcut.weight, std=SMALL_SD)
        nn.init.zeros_(shortcut.bias)  # type: ignore[arg-type]  # there is one
        return shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, inputs, L) to (B, width, L)."""
        return functional.relu(self.branch(x) + self.shortcut(x))


class TCN(Backbone):
    """Residual blocks of growing dilation; one linear layer reads all leads off the newest step."""

    last_layer = ("head",)
    config: TCNConfig

    def __init__(self, config: TCNConfig) -> None:
        super().__init__()
        self.config = config
        inputs = [config.channels, *[config.width] * (config.blocks - 1)]
        self.blocks = nn.Sequential(
            *(ResidualBlock(a, dilation, config) for a, dilation in zip(inputs, config.dilations, strict=True))
        )
        self.head = nn.Linear(config.width, config.horizon * config.channels)

    def forward(self, windows: Tensor) -> Tensor:
        """Forecast standardised windows."""
        # Older rows cannot reach the newest step; leaving them out saves two thirds of the work at 96 rows.
        newest = windows[:, -self.config.receptive_field :].transpose(1, 2)  # (B, C, <= 29)
        state = self.blocks(newest)[:, :, -1]  # (B, width)
        forecast: Tensor = self.head(state)  # (B, horizon * C), leads slow, channels fast
        return forecast.reshape(-1, self.config.horizon, self.config.channels)
