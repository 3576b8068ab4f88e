"""The offline stage of an FSNet, and what it shares with other training on windows."""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ompb.baselines.fsnet import FSNet, FSNetSettings
from ompb.baselines.network import known_mse
from ompb.errors import ForecasterError, TooShortError
from ompb.forecasters.torch.routine import Routine, adamw

EVALUATION_BATCH = 256  # windows forecast at once where nothing is trained


def parts(places: Tensor, size: int) -> tuple[Tensor, ...]:
    """Places among windows, so many at a time; the last part may be smaller."""
    return places.tensor_split(list(range(size, len(places), size)))


def in_bulk(model: nn.Module, windows: Tensor) -> Tensor:
    """Forecasts (n, H, C) of windows (n, context, C), nothing being trained."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(windows[places]) for places in parts(torch.arange(len(windows)), EVALUATION_BATCH)])


def pretrain(model: FSNet, windows: Tensor, outcomes: Tensor, settings: FSNetSettings) -> torch.optim.AdamW:
    """Train on source windows (n, context, C) and outcomes (n, H, C) in time order; it ends as it was at its best.

    Returns the optimiser with what it knew then and the rate it ended with, for training that goes on. The newest
    windows are held out, and no outcome that is trained on reaches into theirs. Draws from torch's own random state.
    """
    held = len(windows) - math.ceil(settings.held_out * len(windows))
    seen = held - outcomes.shape[1] + 1
    if seen < 1:
        raise TooShortError(
            f"{len(windows)} source windows are too few to hold out {settings.held_out:.0%} at a horizon of "
            f"{outcomes.shape[1]}; pass a longer source."
        )
    optimiser = adamw(model.parameters(), settings.rate)
    descend = Routine(partial(_descend, model, optimiser))
    best, kept, waited = math.inf, _state(model, optimiser), 0
    for epoch in range(settings.epochs):
        if settings.rate_of(epoch) != optimiser.param_groups[0]["lr"]:
            set_rate(optimiser, settings.rate_of(epoch))
            descend.forget()
        model.train()
        for places in parts(torch.randperm(seen), settings.batch):  # every window once, in random order
            descend(windows[places], outcomes[places])
        loss = known_mse(in_bulk(model, windows[held:]), outcomes[held:]).item()
        waited = 0 if loss < best else waited + 1
        if loss < best:
            best, kept = loss, _state(model, optimiser)
        if waited == settings.patience:
            break
    if best == math.inf:
        raise ForecasterError(f"the training of FSNet diverged; pass a rate below {settings.rate}.")
    model.load_state_dict(kept[0])
    optimiser.load_state_dict(kept[1])
    set_rate(optimiser, settings.rate_of(epoch))
    return optimiser


def _state(model: FSNet, optimiser: torch.optim.Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Copies of what a model has learned and of what its optimiser remembers."""
    return copy.deepcopy(model.state_dict()), copy.deepcopy(optimiser.state_dict())


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Step at this rate from now on."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def _descend(model: FSNet, optimiser: torch.optim.Optimizer, windows: Tensor, outcomes: Tensor) -> None:
    """One step, of which the model's controllers are told."""
    loss = known_mse(model(windows), outcomes)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    model.refresh(online=False)
