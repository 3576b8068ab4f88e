"""One training loop for every torch backbone: seeded, resumable, one pass over the windows an epoch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from ompb.errors import ForecasterError, FormatError, ShapeError
from ompb.files import PathLike
from ompb.forecasters.torch.backbones import blank, build
from ompb.forecasters.torch.base import Backbone, BackboneConfig
from ompb.forecasters.torch.recipes import TrainingConfig, usable_device
from ompb.forecasters.torch.trained import Header, TrainedForecaster, describe, read, write
from ompb.inputs import as_rows
from ompb.scaler import Scaler
from ompb.windows import complete_starts

Progress: TypeAlias = Callable[[int, int], object]


def train(
    config: BackboneConfig,
    source: Any,
    training: TrainingConfig,
    checkpoint: PathLike | None = None,
    progress: Progress | None = None,
) -> TrainedForecaster:
    """Train a backbone on source rows (T, C), an array or frame, in the user's units.

    Rows are standardised with the source mean and population standard deviation; stretches of context + horizon
    rows with a NaN are left out. On a CPU the seed decides the result, and the caller's random state is untouched.
    ``progress(done, total)`` is called after every batch. With a ``checkpoint`` path the state is written after every
    epoch; a later call with the same arguments goes on from there and ends, on a CPU, in the same bits as if never
    stopped. Raises ``FormatError`` if that file belongs to another training, ``ForecasterError`` if the loss is not
    finite. On a GPU matrix products are rounded to TF32, as convolutions are there.
    """
    device = usable_device(training.device)
    rows = as_rows(source, "source").values
    if rows.shape[1] != config.channels:
        raise ShapeError(f"source has {rows.shape[1]} channels; pass {config.channels}, as the backbone expects.")
    span = config.context + config.horizon
    starts = torch.from_numpy(complete_starts(np.isnan(rows.sum(axis=1)), span, "source"))
    scaler = Scaler.fit(rows)
    header = {**describe(config, training, scaler), "windows": len(starts)}
    saved = None if checkpoint is None else _saved_state(checkpoint, header)
    with own_random_state(training.seed, device), _tf32(device):
        run = _Run(build(config) if saved is None else blank(config), training, device)
        losses = [] if saved is None else run.resume(*saved)
        scaled = torch.from_numpy(scaler.standardise(rows).astype(np.float32)).to(device)
        stretches = scaled.unfold(0, span, 1)  # (windows, C, context + horizon), a view
        while len(losses) < training.epochs:
            losses.append(run.epoch(stretches, starts, len(losses), progress))
            if checkpoint is not None:
                write(checkpoint, "checkpoint", {**header, "losses": losses}, run.tensors())
    return TrainedForecaster(run.model.eval(), scaler, training, tuple(losses))


class _Run:
    """What changes while training: the model, its optimiser and the random states."""

    def __init__(self, model: Backbone, training: TrainingConfig, device: torch.device) -> None:
        self.model, self.training, self.device = model.to(device), training, device
        trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.Adam(
            trainable, lr=training.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=device.type == "cuda"
        )

    def epoch(self, stretches: Tensor, starts: Tensor, number: int, progress: Progress | None) -> float:
        """Visit every window once, in random order; returns the mean loss. Epochs count from 0."""
        self.model.train()
        cuts = list(range(self.training.batch, len(starts), self.training.batch))  # the last batch may be smaller
        batches = starts[torch.randperm(len(starts))].tensor_split(cuts)
        total = torch.zeros((), device=self.device)
        for done, batch in enumerate(batches, start=number * len(batches) + 1):
            total += self._step(stretches[batch.to(self.device)]) * len(batch)
            if progress is not None:
                progress(done, self.training.epochs * len(batches))
        loss = float(total) / len(starts)
        if not math.isfinite(loss):
            raise ForecasterError(
                f"training diverged: the loss of epoch {number + 1} is {loss}; "
                f"pass a learning rate below {self.training.learning_rate}."
            )
        return loss

    def _step(self, stretches: Tensor) -> Tensor:
        """One step on standardised stretches (B, C, context + horizon); returns the loss before it."""
        context = self.model.config.context
        windows, outcomes = stretches.transpose(1, 2).tensor_split([context], dim=1)  # (B, context or horizon, C)
        loss = mse_loss(self.model(windows), outcomes)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return loss.detach()

    def tensors(self) -> dict[str, Tensor]:
        """Everything a resumed run needs: "model.*", "adam.<parameter>.<moment>" and "random.<device>"."""
        adam = self.optimiser.state_dict()["state"]
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        found |= {f"adam.{n}.{key}": tensor for n, moments in adam.items() for key, tensor in moments.items()}
        found["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            found["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return found

    def resume(self, losses: list[float], tensors: dict[str, Tensor]) -> list[float]:
        """Take up the state that `tensors` gave; hands the losses so far through."""
        adam: dict[int, dict[str, Tensor]] = {}
        for name in (name for name in tensors if name.startswith("adam.")):
            _, parameter, moment = name.split(".")
            adam.setdefault(int(parameter), {})[moment] = tensors[name]
        self.model.load_state_dict({name: tensors[f"model.{name}"] for name in self.model.state_dict()})
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": adam})
        torch.set_rng_state(tensors["random.cpu"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)
        return losses


@contextmanager
def own_random_state(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators of the CPU and the device, and give them back as they were."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.default_generator.manual_seed(seed)
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def _tf32(device: torch.device) -> Iterator[None]:
    """Fast matrix products on a GPU; a CPU is left alone."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _saved_state(path: PathLike, header: Header) -> tuple[list[float], dict[str, Tensor]] | None:
    """Losses and tensors of a checkpoint, if there is one; it must have been written under the same header."""
    if not Path(path).exists():
        return None
    saved, tensors = read(path, "checkpoint")
    expected = json.loads(json.dumps(header))  # as it would have been read
    others = sorted(key for key in expected if saved.get(key) != expected[key])
    if others:
        raise FormatError(
            f"checkpoint {path} belongs to a training with other {', '.join(others)}; "
            f"delete it, pass another path, or repeat the arguments it was written with."
        )
    return list(saved["losses"]), tensors
