"""One training loop for every torch backbone: seeded, resumable, one pass over the windows an epoch."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss
from torch.utils import deterministic

from ompb.errors import ForecasterError, FormatError, ShapeError, TooShortError
from ompb.floor.files import PathLike
from ompb.floor.names import counted
from ompb.forecasters.torch.backbones import blank, build
from ompb.forecasters.torch.base import Backbone, BackboneConfig
from ompb.forecasters.torch.recipes import TrainingConfig, usable_device
from ompb.forecasters.torch.routine import Routine
from ompb.forecasters.torch.trained import Header, TrainedForecaster, describe, read, write
from ompb.rows.inputs import as_rows
from ompb.rows.scaler import Scaler
from ompb.rows.windows import complete_starts
from ompb.types import Floats

HELD_OUT = 0.1  # share of the rows, where training may stop early
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"  # without it cuBLAS may choose another order of addition the next time

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
    rows with a NaN are left out. The seed decides the result on one kind of machine with one release of torch, on a
    GPU as far as torch has kernels that repeat themselves; the caller's random state is untouched.
    ``progress(done, total)`` is called after every batch. With a ``checkpoint`` path the state is written after every
    epoch; a later call with the same arguments goes on from there and ends, on a CPU, in the same bits as if never
    stopped. Raises ``FormatError`` if that file belongs to another training, ``ForecasterError`` if the loss is not
    finite. On a GPU matrix products are rounded to TF32, as convolutions are there.
    """
    rows = _rows_for(config, source)
    return _trained(config, rows, Scaler.fit(rows), training, None, checkpoint, progress)


def train_again(
    forecaster: TrainedForecaster,
    source: Any,
    *,
    warm: bool,
    checkpoint: PathLike | None = None,
    progress: Progress | None = None,
) -> TrainedForecaster:
    """The same backbone, trained on other rows (T, C) by its own recipe, which decides the seed and device, too.

    Its scaler is kept. Training starts from fresh weights or, if ``warm``, from the present ones, with Adam's moments
    at zero. The forecaster itself is not changed. A ``checkpoint`` is that of `train`.
    """
    config, training = forecaster.config, forecaster.training
    weights = forecaster.model.state_dict() if warm else None
    rows = _rows_for(config, source)
    return _trained(config, rows, forecaster.scaler, training, weights, checkpoint, progress)


def _rows_for(config: BackboneConfig, source: Any) -> Floats:
    rows = as_rows(source, "source").values
    if rows.shape[1] != config.channels:
        raise ShapeError(
            f"source has {counted(rows.shape[1], 'channel')}; pass {config.channels}, as the backbone expects."
        )
    return rows


def _trained(
    config: BackboneConfig,
    rows: Floats,
    scaler: Scaler,
    training: TrainingConfig,
    weights: Mapping[str, Tensor] | None,
    checkpoint: PathLike | None,
    progress: Progress | None,
) -> TrainedForecaster:
    """The loop over epochs; ``weights`` are those to start from, None for fresh ones."""
    device = usable_device(training.device)
    span = config.context + config.horizon
    starts = _Starts.of(rows, config, training.patience is not None)
    header = {**describe(config, training, scaler), "windows": len(starts.learned)}
    saved = None if checkpoint is None else _saved_state(checkpoint, header)
    with own_random_state(training.seed, device), _fast_and_repeatable(device):
        run = _Run(build(config) if saved is None and weights is None else blank(config), training, device)
        if saved is not None:
            run.resume(*saved)
        elif weights is not None:
            run.model.load_state_dict(weights)
        scaled = torch.from_numpy(scaler.standardise(rows).astype(np.float32)).to(device)
        stretches = scaled.unfold(0, span, 1)  # (windows, C, context + horizon), a view
        while not run.is_over():
            run.epoch(stretches, starts.learned, progress)
            if len(starts.held_out):
                run.judge(stretches, starts.held_out)
            if checkpoint is not None:
                write(checkpoint, "checkpoint", {**header, **run.history()}, run.tensors())
    return run.forecaster(scaler)


@dataclass(frozen=True)
class _Starts:
    """First rows of the stretches to learn from, and of those held out, all without missing cells."""

    learned: Tensor
    held_out: Tensor  # empty where nothing is

    @classmethod
    def of(cls, rows: Floats, config: BackboneConfig, hold_out: bool) -> _Starts:
        """Windows that are held out forecast the newest rows only, and may begin in those that are learned."""
        span = config.context + config.horizon
        starts = torch.from_numpy(complete_starts(np.isnan(rows.sum(axis=1)), span, "source"))
        if not hold_out:
            return cls(starts, starts[:0])
        cut = len(rows) - max(round(HELD_OUT * len(rows)), config.horizon)
        learned, held_out = starts[starts + span <= cut], starts[starts + config.context >= cut]
        if not (len(learned) and len(held_out)):
            raise TooShortError(
                f"the first {cut} of {len(rows)} rows hold {len(learned)} complete windows to learn from, and the rest "
                f"{len(held_out)} to judge by; both need one: pass a longer source, or leave patience out."
            )
        return cls(learned, held_out)


@dataclass(eq=False)
class _Run:
    """What changes while training: the model, its optimiser, the losses so far and the random states."""

    model: Backbone
    training: TrainingConfig
    device: torch.device
    losses: list[float] = field(default_factory=list)
    held_out_losses: list[float] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)  # the model of the best epoch, where some rows are held out

    def __post_init__(self) -> None:
        self.model.to(self.device)
        trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        on_gpu = self.device.type == "cuda"
        self.optimiser = torch.optim.Adam(
            trainable, lr=self.training.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=on_gpu, capturable=on_gpu
        )
        self.step = Routine(self._step)

    def is_over(self) -> bool:
        """Whether all epochs are done, or patience is at its end."""
        if len(self.losses) == self.training.epochs:
            return True
        if self.training.patience is None or not self.held_out_losses:
            return False
        best = self.held_out_losses.index(min(self.held_out_losses))
        return len(self.held_out_losses) - 1 - best >= self.training.patience

    def epoch(self, stretches: Tensor, starts: Tensor, progress: Progress | None) -> None:
        """Visit every window once, in random order."""
        self.model.train()
        shuffled = self._batches(starts[torch.randperm(len(starts))])
        total = torch.zeros((), device=self.device)
        for done, batch in enumerate(shuffled, start=len(self.losses) * len(shuffled) + 1):
            total += self.step(stretches[batch]) * len(batch)
            if progress is not None:
                progress(done, self.training.epochs * len(shuffled))
        loss = float(total) / len(starts)
        if not math.isfinite(loss):
            raise ForecasterError(
                f"training diverged: the loss of epoch {len(self.losses) + 1} is {loss}; "
                f"pass a learning rate below {self.training.learning_rate}."
            )
        self.losses.append(loss)

    def judge(self, stretches: Tensor, starts: Tensor) -> None:
        """The mean loss on what was held out; the model is kept if it is the best so far. Nothing is drawn."""
        self.model.eval()
        total = torch.zeros((), device=self.device)
        with torch.inference_mode():
            for batch in self._batches(starts):
                total += self._loss(stretches[batch]) * len(batch)
        self.held_out_losses.append(float(total) / len(starts))
        if self.held_out_losses.index(min(self.held_out_losses)) == len(self.held_out_losses) - 1:
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def forecaster(self, scaler: Scaler) -> TrainedForecaster:
        """What training has led to."""
        if self.best:
            self.model.load_state_dict(self.best)
        return TrainedForecaster(
            self.model.eval(), scaler, self.training, tuple(self.losses), tuple(self.held_out_losses)
        )

    def _batches(self, starts: Tensor) -> tuple[Tensor, ...]:
        """Starts in batches, on the device; the last may be smaller."""
        cuts = list(range(self.training.batch, len(starts), self.training.batch))
        return starts.to(self.device).tensor_split(cuts)

    def _loss(self, stretches: Tensor) -> Tensor:
        """Mean squared error on standardised stretches (B, C, context + horizon)."""
        context = self.model.config.context
        windows, outcomes = stretches.transpose(1, 2).tensor_split([context], dim=1)  # (B, context or horizon, C)
        return mse_loss(self.model(windows), outcomes)

    def _step(self, stretches: Tensor) -> Tensor:
        """One step of Adam; returns the loss before it."""
        loss = self._loss(stretches)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return loss.detach()

    def history(self) -> Header:
        """The losses so far, as a file states them."""
        return {"losses": self.losses, "held_out_losses": self.held_out_losses}

    def tensors(self) -> dict[str, Tensor]:
        """All else a resumed run needs: "model.*", "best.*", "adam.<parameter>.<moment>" and "random.<device>"."""
        adam = self.optimiser.state_dict()["state"]
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        found |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        found |= {f"adam.{n}.{key}": tensor for n, moments in adam.items() for key, tensor in moments.items()}
        found["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            found["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return found

    def resume(self, history: Header, tensors: dict[str, Tensor]) -> None:
        """Take up the state that `history` and `tensors` gave."""
        self.losses, self.held_out_losses = list(history["losses"]), list(history["held_out_losses"])
        adam: dict[int, dict[str, Tensor]] = {}
        for name in (name for name in tensors if name.startswith("adam.")):
            _, parameter, moment = name.split(".")
            adam.setdefault(int(parameter), {})[moment] = tensors[name]
        self.model.load_state_dict({name: tensors[f"model.{name}"] for name in self.model.state_dict()})
        if self.held_out_losses:
            self.best = {name: tensors[f"best.{name}"] for name in self.model.state_dict()}
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": adam})
        torch.set_rng_state(tensors["random.cpu"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)


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
def _fast_and_repeatable(device: torch.device) -> Iterator[None]:
    """Fast matrix products on a GPU, and kernels that add up in the same order every time; a CPU is left alone.

    Asked for such kernels, torch also fills new memory before anything is written to it, a kernel each time, on which
    no result depends: they are left out.
    """
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault(WORKSPACE, ":4096:8")  # cuBLAS reads it once, at its first product: it stays set
    precision, mode = torch.get_float32_matmul_precision(), torch.get_deterministic_debug_mode()
    fills = deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.set_float32_matmul_precision("high")
    torch.set_deterministic_debug_mode("warn")
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.set_deterministic_debug_mode(mode)
        deterministic.fill_uninitialized_memory = fills  # type: ignore[attr-defined]


def _saved_state(path: PathLike, header: Header) -> tuple[Header, dict[str, Tensor]] | None:
    """Header and tensors of a checkpoint, if there is one; it must have been written under the same header."""
    try:
        saved, tensors = read(path, "checkpoint")
    except FormatError:
        if Path(path).exists():
            raise
        return None  # or no longer: whoever trained the same elsewhere has finished
    expected = json.loads(json.dumps(header))  # as it would have been read
    others = sorted(key for key in expected if saved.get(key) != expected[key])
    if others:
        raise FormatError(
            f"checkpoint {path} belongs to a training with other {', '.join(others)}; "
            f"delete it, pass another path, or repeat the arguments it was written with."
        )
    return saved, tensors
