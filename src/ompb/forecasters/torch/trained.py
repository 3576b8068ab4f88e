"""A trained backbone as a forecaster, and its file format: one .safetensors file with a JSON header. No pickle."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import Parameter

from ompb.errors import FormatError, OptionError, ShapeError, VersionError
from ompb.floor.files import PathLike, replacing
from ompb.forecasters.torch.backbones import blank, configure
from ompb.forecasters.torch.base import Backbone, BackboneConfig
from ompb.forecasters.torch.recipes import TrainingConfig, usable_device
from ompb.forecasters.torch.routine import Routine
from ompb.rows.scaler import Scaler
from ompb.types import Floats

VERSION = 1
ACCELERATOR_BLOCK = 256  # windows forecast at once away from the CPU: the paper's training batch

Header: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class TrainedForecaster:
    """A trained backbone with the scaler of its source: windows in the user's units in, forecasts in them out.

    It never trains or draws. On a CPU windows go through one by one, since a matrix product rounds differently in
    another batch: so a forecast made in bulk equals, bit for bit, the same one made alone. A missing (NaN) value makes
    those forecasts missing that depend on it.
    """

    model: Backbone
    scaler: Scaler  # of the source
    training: TrainingConfig
    losses: tuple[float, ...]  # mean training loss of each epoch, in standardised units
    held_out_losses: tuple[float, ...] = ()  # those on the rows held out, where training could stop early

    @property
    def stopped_at(self) -> int:
        """The epoch, from 1, whose weights these are: the best one on what was held out, else the last."""
        held_out = self.held_out_losses
        return held_out.index(min(held_out)) + 1 if held_out else len(self.losses)

    @property
    def config(self) -> BackboneConfig:
        """Sizes and options of the backbone."""
        return self.model.config

    @property
    def label(self) -> str:
        """How tables name it; it says where GPT-2 weights are not the real ones."""
        return self.config.label

    @property
    def last_layer(self) -> dict[str, Parameter]:
        """Parameters, by name, that "last layer" means when only that is adapted."""
        return self.model.last_layer_parameters()

    def __call__(self, windows: ArrayLike) -> Floats:
        """Forecast windows (n, context, C) as (n, horizon, C)."""
        rows = np.asarray(windows, dtype=np.float64)
        size = self.config
        if rows.shape[1:] != (size.context, size.channels):
            raise ShapeError(
                f"windows have shape {rows.shape}; this forecaster was trained on windows "
                f"(n, {size.context}, {size.channels}): pass those."
            )
        # One memory layout whatever the caller's strides are: kernels round by layout, too.
        scaled = torch.from_numpy(np.ascontiguousarray(self.scaler.standardise(rows), dtype=np.float32))
        device = next(self.model.parameters()).device
        block = 1 if device.type == "cpu" else ACCELERATOR_BLOCK
        forecasts = np.empty((len(rows), size.horizon, size.channels))
        self.model.eval()
        for first in range(0, len(rows), block):
            part = self._forward(scaled[first : first + block].to(device))  # (block, horizon, C)
            forecasts[first : first + block] = part.cpu().numpy()
        return self.scaler.restore(forecasts)

    @cached_property
    def _forward(self) -> Routine[Tensor]:
        return Routine(self._forecast)

    def _forecast(self, windows: Tensor) -> Tensor:
        with torch.inference_mode():
            forecasts: Tensor = self.model(windows)
        return forecasts

    def save(self, path: PathLike) -> None:
        """Write one .safetensors file, whole or not at all."""
        header = describe(self.config, self.training, self.scaler)
        header |= {"losses": self.losses, "held_out_losses": self.held_out_losses}
        write(path, "forecaster", header, self.model.state_dict())

    @classmethod
    def load(cls, path: PathLike, device: str = "cpu") -> TrainedForecaster:
        """Read it back, bit for bit. Raises ``FormatError`` if the file is not a saved forecaster."""
        place = usable_device(device)
        header, tensors = read(path, "forecaster")
        try:
            model = blank(configure(header["backbone"], **header["config"]))
            model.load_state_dict(tensors)
            training = TrainingConfig(**header["training"])
            scaler = Scaler(np.array(header["mean"]), np.array(header["sd"]))
            losses, held_out = header["losses"], header.get("held_out_losses", ())
            return cls(model.to(place).eval(), scaler, training, tuple(losses), tuple(held_out))
        except (KeyError, TypeError, RuntimeError, OptionError) as error:
            raise FormatError(f"{path} is damaged ({error}); write it again with save().") from error


def describe(config: BackboneConfig, training: TrainingConfig, scaler: Scaler) -> Header:
    """What a file says of the forecaster inside."""
    return {
        "backbone": config.backbone,
        "config": asdict(config),
        "training": asdict(training),
        "mean": scaler.centre.tolist(),
        "sd": scaler.scale.tolist(),
    }


def write(path: PathLike, kind: str, header: Header, tensors: dict[str, Tensor]) -> None:
    """Write a file, whole or not at all: an existing one is replaced in one move."""
    text = json.dumps({"version": VERSION, "kind": kind, **header})
    with replacing(path) as part:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, part, metadata={"ompb": text})


def read(path: PathLike, kind: str) -> tuple[Header, dict[str, Tensor]]:
    """Header and tensors, on the CPU, of a file of that kind. Raises ``FormatError``; the file is never changed."""
    if not os.path.isfile(path):  # a folder, or a pipe that would be waited for
        raise FormatError(f"there is no file {path}; check the path, or save one first.")
    try:
        with safe_open(path, framework="pt") as opened:
            header = json.loads((opened.metadata() or {}).get("ompb", "{}"))
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a dict
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not a readable .safetensors file ({error}); write it again.") from error
    held = header.get("kind", "foreign tensors") if isinstance(header, dict) else "foreign tensors"
    if held != kind:
        raise FormatError(f"{path} holds {held}, not a {kind}; pass the right file.")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"{path} has format version {version!r}, which never was; write it again.")
    if version > VERSION:
        raise VersionError(
            f"{path} has format version {version}; this installation reads up to {VERSION}. Upgrade ompb."
        )
    return header, tensors
