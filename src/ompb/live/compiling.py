"""Compiles the fused functions of the core with torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from ompb.core.arrays import Array
from ompb.core.counts import Count
from ompb.errors import OptionError


@cache
def require_compiler(device: str) -> None:
    """Raise `OptionError` where torch cannot compile for a device."""
    import torch

    try:
        torch.compile(torch.neg)(torch.ones(2, device=device))
    except Exception as error:  # whatever the compiler's tools raise
        raise OptionError(
            f"compiled = True, but torch cannot compile for {device!r} here ({error}); it needs triton for a GPU and a "
            "C++ compiler for 'cpu'. Install what is missing, or leave compiled= out."
        ) from error


@cache
def compiled_on(device: str) -> Callable[[Callable[..., Any], tuple[Any, ...]], Any]:
    """What calls a fused function as a program of torch, made when it is first called with arrays of some form."""

    def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return _program(function)(*[_array(one, device) for one in arguments])

    return call


def _array(argument: Any, device: str) -> Any:
    """Numbers as arrays () on the device; anything else as it is."""
    if isinstance(argument, Count):
        return argument.there
    return _number(argument, device) if type(argument) is int else argument


@cache
def _program(function: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    return torch.compile(function)


def _number(number: int, device: str) -> Array:
    """A whole number as an array () on the device; one that is made while a GPU records is the recording's own."""
    import torch

    is_recording = device.startswith("cuda") and torch.cuda.is_current_stream_capturing()
    return new_number(number, device) if is_recording else _known_number(number, device)


def new_number(number: int, device: str) -> Array:
    """A whole number in an array () of its own."""
    import torch

    return torch.full((), number, device=device)


_known_number = lru_cache(maxsize=64)(new_number)
