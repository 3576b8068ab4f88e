"""What methods that train a network online have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ompb.bench.contract import Conditions, Pair, Task
from ompb.errors import OptionError
from ompb.forecasters.torch.base import Backbone
from ompb.forecasters.torch.routine import Routine
from ompb.forecasters.torch.trained import TrainedForecaster
from ompb.rows.windows import sliding
from ompb.types import Floats


def needs_network(conditions: Conditions) -> str | None:
    """Why a method that trains the backbone cannot work under conditions; None if it can."""
    return None if conditions.trainable else "it trains the weights of a network, and this forecaster is none"


def load_network(task: Task) -> Backbone:
    """A copy of the trained backbone that the method may change, in standardised units.

    It stays in evaluation mode: dropout in updates on a single window would only add noise, and every run is the same.
    """
    return load_forecaster(task).model


def load_forecaster(task: Task) -> TrainedForecaster:
    """The network as it was trained, with how it was."""
    if task.network is None:
        raise OptionError("the task brings no network; pass the file of a TrainedForecaster as network.")
    with torch.random.fork_rng(devices=[]):  # building a network draws weights, even if saved ones replace them
        return TrainedForecaster.load(task.network, task.device)


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that were trained offline: for GPT4TS not the frozen blocks of GPT-2."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def tensor(values: Floats | Sequence[Floats], like: Tensor) -> Tensor:
    """Values in the type and on the device of a tensor."""
    # Copied, since rows of a stream are read-only, which torch warns of.
    return torch.as_tensor(np.array(values), dtype=like.dtype, device=like.device)


def batch(pairs: Iterable[Pair], like: Tensor) -> tuple[Tensor, Tensor]:
    """Windows (n, context, C) and outcomes (n, H, C) of pairs."""
    windows, outcomes = zip(*((pair.window, pair.outcome) for pair in pairs), strict=True)
    return tensor(windows, like), tensor(outcomes, like)


def known_mse(forecast: Tensor, outcome: Tensor) -> Tensor:
    """Mean squared error over the cells that are known; 0 where none is."""
    known = ~torch.isnan(outcome)
    squares = torch.where(known, forecast - torch.where(known, outcome, forecast.detach()), 0.0) ** 2
    return squares.sum() / known.sum().clamp(min=1)


@dataclass(eq=False)
class Forecasts:
    """What a model, as it is by then, forecasts."""

    model: nn.Module

    def __post_init__(self) -> None:
        self._forward = Routine(self._forecast)

    def __call__(self, window: Floats) -> Floats:
        """The forecast (H, C) of a window (context, C)."""
        return array(self._forward(tensor(window, next(self.model.parameters()))[None])[0])

    def _forecast(self, windows: Tensor) -> Tensor:
        with torch.no_grad():
            forecasts: Tensor = self.model(windows)
        return forecasts


def array(values: Tensor) -> Floats:
    """A tensor as an array, in float64."""
    return np.asarray(values.cpu().numpy(), dtype=np.float64)


def source_pairs(task: Task) -> tuple[Floats, Floats]:
    """Every window (n, context, C) of the source and its outcome (n, H, C), in time order, as views."""
    return sliding(task.source[: -task.horizon], task.context), sliding(task.source[task.context :], task.horizon)
