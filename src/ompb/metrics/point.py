"""Errors of point forecasts; a pair with an unknown (NaN) side does not count."""

from __future__ import annotations

from typing import TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from ompb.errors import DtypeError, NotFiniteError, ShapeError
from ompb.types import Floats

Axis: TypeAlias = int | tuple[int, ...]


def aligned(**arrays: ArrayLike) -> tuple[Floats, ...]:
    """The named arrays as float64, in the order given, once it is sure that their shapes are equal."""
    floats = {name: _as_floats(name, values) for name, values in arrays.items()}
    shapes = {name: values.shape for name, values in floats.items()}
    if len(set(shapes.values())) > 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ShapeError(f"Shapes differ: {found}; a metric needs equal shapes, so slice or repeat one of them.")
    return tuple(floats.values())


def _as_floats(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"{name} has dtype {array.dtype}; pass real numbers, with NaN where a value is unknown.")
    return array.astype(np.float64, copy=False)


def require_no_infinity(name: str, values: Floats) -> None:
    """Raise NotFiniteError on an infinite entry; NaN, which means unknown, is fine."""
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise NotFiniteError(f"{name} holds {infinite} infinite values; use NaN for a value that is unknown.")


@overload
def known_mean(values: Floats, axis: None = None) -> float: ...
@overload
def known_mean(values: Floats, axis: Axis) -> Floats: ...
def known_mean(values: Floats, axis: Axis | None = None) -> float | Floats:
    """Mean of the entries that are not NaN; NaN where there are none.

    >>> known_mean(np.array([1.0, np.nan, 3.0]))
    2.0
    """
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = values.sum(axis=axis, where=known)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return float(mean) if axis is None else mean


@overload
def mae(forecast: ArrayLike, outcome: ArrayLike, axis: None = None) -> float: ...
@overload
def mae(forecast: ArrayLike, outcome: ArrayLike, axis: Axis) -> Floats: ...
def mae(forecast: ArrayLike, outcome: ArrayLike, axis: Axis | None = None) -> float | Floats:
    r"""Mean absolute error over the known pairs, all of them or along ``axis``.

    .. math:: \mathrm{MAE} = \frac1n \sum_i |f_i - y_i|

    ``forecast`` and ``outcome`` have the same shape, whatever it is. NaN where no pair is known.

    >>> mae([1.0, 2.0, 3.0], [1.0, np.nan, 7.0])
    2.0
    >>> mae([[1.0, 2.0], [3.0, 4.0]], [[0.0, 2.0], [0.0, 2.0]], axis=0)
    array([2., 1.])
    """
    return known_mean(np.abs(_errors(forecast, outcome)), axis)


@overload
def mse(forecast: ArrayLike, outcome: ArrayLike, axis: None = None) -> float: ...
@overload
def mse(forecast: ArrayLike, outcome: ArrayLike, axis: Axis) -> Floats: ...
def mse(forecast: ArrayLike, outcome: ArrayLike, axis: Axis | None = None) -> float | Floats:
    r"""Mean squared error over the known pairs, all of them or along ``axis``.

    .. math:: \mathrm{MSE} = \frac1n \sum_i (f_i - y_i)^2

    ``forecast`` and ``outcome`` have the same shape, whatever it is. NaN where no pair is known.

    >>> mse([1.0, 2.0, 3.0], [1.0, np.nan, 7.0])
    8.0
    """
    return known_mean(np.square(_errors(forecast, outcome)), axis)


def _errors(forecast: ArrayLike, outcome: ArrayLike) -> Floats:
    forecast, outcome = aligned(forecast=forecast, outcome=outcome)
    require_no_infinity("forecast", forecast)
    require_no_infinity("outcome", outcome)
    return forecast - outcome
