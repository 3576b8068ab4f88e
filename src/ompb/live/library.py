"""Where states live: NumPy on the host, or torch on a device, in float64 or float32, compiled or as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.core.arrays import Array
from ompb.core.fusing import Caller
from ompb.errors import OptionError
from ompb.floor.extras import extra
from ompb.live.compiling import compiled_on, require_compiler
from ompb.live.recording import Recorder

DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Library:
    """An array library, a device and a type of numbers."""

    device: str | None = None  # of torch; None: NumPy
    dtype: str = "float64"
    compiled: bool = False  # fused functions are programs of torch's compiler, and a GPU records them

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise OptionError(f"dtype = {self.dtype!r} is no type of numbers here; accepted: {', '.join(DTYPES)}.")
        if self.device is not None:
            with extra("torch", needed_by="a fleet on a device"):
                import torch
            try:
                torch.empty(0, device=self.device)
            except (RuntimeError, TypeError, AssertionError) as error:
                raise OptionError(
                    f"device = {self.device!r} is not here ({error}); accepted: None for NumPy, 'cpu', or a device "
                    "that torch has, such as 'cuda'."
                ) from error
        if self.compiled:
            if self.device is None:
                raise OptionError(
                    "compiled = True, but NumPy compiles nothing; name a device of torch, device='cuda' or 'cpu'."
                )
            require_compiler(self.device)

    @property
    def caller(self) -> Caller | None:
        """Who calls fused functions; None: nobody, they run as they are."""
        return compiled_on(self.device) if self.compiled and self.device is not None else None

    def recorder(self) -> Recorder | None:
        """Who makes the moves of a group of series; None: they are made as they are."""
        return Recorder(self.device) if self.compiled and self.device is not None else None

    def array(self, values: Any) -> Array:
        """Numbers of any array here; whole numbers and truth values keep their type."""
        if self.device is None:
            found = self.host(values)
            return found.astype(self.dtype) if found.dtype.kind == "f" and found.dtype != self.dtype else found
        import torch

        tensor = torch.as_tensor(np.array(values) if isinstance(values, np.ndarray) else values)
        kind = getattr(torch, self.dtype) if tensor.is_floating_point() else tensor.dtype
        return tensor.to(device=self.device, dtype=kind)

    def is_own(self, values: Any) -> bool:
        """Whether an array is torch's and this is a library of torch."""
        return self.device is not None and hasattr(values, "is_floating_point")

    def is_afar(self, values: Any) -> bool:
        """Whether such an array lies on another device than the processor, where looking at it would mean waiting."""
        return self.is_own(values) and values.device.type != "cpu"

    def host(self, values: Any) -> NDArray[Any]:
        """An array of any library in NumPy."""
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


HOST = Library()
