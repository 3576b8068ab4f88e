"""Networks of PyTorch: any module that maps windows to forecasts, asked in evaluation mode and without gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from ompb.adapters.base import Adapter, as_series, levels, of_series
from ompb.errors import ForecasterError, OptionError
from ompb.floor.checks import choice, count
from ompb.floor.extras import extra
from ompb.floor.names import unended
from ompb.seam.query import Query
from ompb.types import Floats

if TYPE_CHECKING:
    import torch

Layout: TypeAlias = Literal["n l c", "n c l", "n l"]
BATCH = 256


def wrap(
    module: Any,
    *,
    context: int,
    horizon: int,
    layout: Layout = "n l c",
    quantiles: Sequence[float] = (),
    batch: int = BATCH,
    device: Any = None,
    dtype: Any = None,
) -> Network:
    """A trained ``torch.nn.Module`` as a forecaster, in the user's units: scaling is up to the module.

    Args:
        module: maps windows to forecasts, in one of the layouts. Its weights and its mode are as before after each
            call, though it is asked in evaluation mode.
        context: rows in a window.
        horizon: rows in a forecast.
        layout: "n l c": windows (n, context, C) to forecasts (n, horizon, C); "n c l": the same with channels first;
            "n l": one channel at a time, (n, context) to (n, horizon).
        quantiles: that it gives, along one more axis at the end; see `ompb.Forecaster.quantiles`.
        batch: windows in one call.
        device: where windows go; by default where the module's parameters are.
        dtype: of the windows; by default that of the module's parameters.
    """
    with extra("torch", needed_by="ompb.adapters.torch"):
        import torch
    if not isinstance(module, torch.nn.Module):
        raise ForecasterError(f"the module is a {type(module).__name__}; pass a torch.nn.Module.")
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise OptionError(f"option dtype = {dtype!r} is no type of torch; pass one, such as torch.float32.")
    first = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    return Network(
        module=module,
        context=context,
        horizon=horizon,
        layout=choice("layout", layout, get_args(Layout)),
        quantiles=levels(quantiles),
        batch=count("batch", batch),
        device=_device(first.device if device is None else device),
        dtype=first.dtype if dtype is None else dtype,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Network(Adapter):
    """What `wrap` returns."""

    module: torch.nn.Module
    layout: str
    quantiles: tuple[float, ...]
    batch: int
    device: torch.device
    dtype: torch.dtype

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, horizon, C), or (n, horizon, C, Q)."""
        windows = self.windows_of(query)
        inputs = as_series(windows) if self.layout == "n l" else windows
        inputs = inputs.transpose(0, 2, 1) if self.layout == "n c l" else inputs
        with _evaluating(self.module):
            parts = [self._said(inputs[first : first + self.batch]) for first in range(0, len(inputs), self.batch)]
        said = np.concatenate(parts)
        if self.layout == "n l":
            return of_series(said, len(windows))
        return np.swapaxes(said, 1, 2) if self.layout == "n c l" else said

    def _said(self, windows: Floats) -> Floats:
        import torch

        tensor = torch.tensor(np.ascontiguousarray(windows), dtype=self.dtype, device=self.device)
        said: Any = self._answer(tensor)
        if not isinstance(said, torch.Tensor):
            raise ForecasterError(
                f"the module returned a {type(said).__name__}; wrap one whose forward returns the forecasts alone."
            )
        axes = 2 + (self.layout != "n l") + bool(self.quantiles)
        if said.ndim != axes:
            raise ForecasterError(
                f"the module returned shape {tuple(said.shape)} for windows {tuple(tensor.shape)}; with the layout "
                f"{self.layout!r} it must have {axes} axes: choose another layout, or reshape in the module."
            )
        return said.to("cpu", torch.float64).numpy()

    def _answer(self, tensor: torch.Tensor) -> Any:
        try:
            return self.module(tensor)
        except Exception as error:
            raise ForecasterError(
                f"the module failed on windows {tuple(tensor.shape)} in the layout {self.layout!r}: "
                f"{type(error).__name__}: {unended(error)}. Wrap it with the layout that it takes, one of "
                f"{', '.join(get_args(Layout))}, and with the context that it was trained for."
            ) from error


def _device(device: Any) -> torch.device:
    import torch

    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise OptionError(f'option device = {device!r} is none of torch; pass one, such as "cpu" or "cuda".') from error


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Every part of the module in evaluation mode, without gradients; afterwards in the mode it was in."""
    import torch

    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True
