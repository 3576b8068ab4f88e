"""The array type of the core, its namespace, and the one reduction that knows which lanes form a series."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace

# The array-API standard has no static type yet; shapes are given in docstrings, annotations and trailing comments.
Array: TypeAlias = Any

# NumPy 2 is its own array-API namespace; the wrappers others need would cost a microsecond a call.
_NAMESPACES: dict[type, Any] = {np.ndarray: np}


def namespace(array: Array) -> Any:
    """The array-API namespace of an array. Looked up once per array type: it is asked for dozens of times a row."""
    kind = type(array)
    found = _NAMESPACES.get(kind)
    if found is None:
        found = _NAMESPACES[kind] = array_namespace(array)
    return found


def zeros(like: Array, *shape: int) -> Array:
    """Zeros of that shape, of the type and on the device of another array."""
    return namespace(like).zeros(shape, dtype=like.dtype, device=like.device)


def reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    """The same in another shape, by the array's own method: a microsecond cheaper than the namespace's function."""
    return array.reshape(shape)


def quantile(values: Array, share: float) -> Array:
    """The quantile along the last axis, interpolated linearly between order statistics."""
    xp = namespace(values)
    ordered = xp.sort(values, axis=-1)
    place = share * (int(ordered.shape[-1]) - 1)
    lower = math.floor(place)
    upper = min(lower + 1, int(ordered.shape[-1]) - 1)
    return ordered[..., lower] + (place - lower) * (ordered[..., upper] - ordered[..., lower])


def contiguous(array: Array) -> Array:
    """A copy in row-major order. Products round by layout, and a state must be the same before and after a file."""
    copy = zeros(array, *array.shape)
    copy[...] = array
    return copy


def over_series(per_lane: Array, channels: int) -> Array:
    """Mean over the ``channels`` lanes of each series: (N, ...) to (N / channels, ...)."""
    xp = namespace(per_lane)
    series, rest = per_lane.shape[0] // channels, tuple(per_lane.shape[1:])
    shares = _shares(channels, xp, per_lane.dtype, per_lane.device)
    mean = xp.matmul(shares, reshaped(per_lane, (series, channels, -1)))
    return mean if len(rest) == 1 else reshaped(mean, (series, *rest))


@lru_cache(maxsize=64)
def _shares(channels: int, xp: Any, dtype: Any, device: Any) -> Array:
    """What each channel counts in a mean, (channels,)."""
    return xp.full((channels,), 1 / channels, dtype=dtype, device=device)
