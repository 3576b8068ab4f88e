"""The array type of the core, its namespace, and the reductions that know which lanes form a series."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    try:
        return _NAMESPACES[type(array)]
    except KeyError:
        found = _NAMESPACES[type(array)] = array_namespace(array)
        return found


def zeros(like: Array, *shape: int) -> Array:
    """Zeros of that shape, of the type and on the device of another array."""
    return namespace(like).zeros(shape, dtype=like.dtype, device=like.device)


def quantile(values: Array, share: float, known: Array | None = None) -> Array:
    """The quantile along the last axis, interpolated linearly between order statistics; of those ``known``, if given.

    >>> quantile(np.asarray([[1.0, 9.0, 2.0], [1.0, 9.0, 2.0]]), 0.5, np.asarray([[True] * 3, [True, False, True]]))
    array([2. , 1.5])
    """
    return quantiles(values, (share,), known)[..., 0]


def quantiles(values: Array, shares: Sequence[float], known: Array | None = None) -> Array:
    """Several of them, along a last axis of their own."""
    xp = namespace(values)
    if known is None or bool(xp.all(known)):
        return _at_shares(xp.sort(values, axis=-1), shares)
    ordered = xp.sort(xp.where(known, values, xp.inf), axis=-1)
    counts = [int(one) for one in xp.sum(xp.astype(known, xp.int64), axis=-1)]
    return xp.stack([_at_shares(row[:some], shares) for row, some in zip(ordered, counts, strict=True)])


def _at_shares(ordered: Array, shares: Sequence[float]) -> Array:
    """What lies at these shares of the last axis, (..., shares)."""
    last = int(ordered.shape[-1]) - 1
    return namespace(ordered).stack([_between(ordered, share * last) for share in shares], axis=-1)


def _between(ordered: Array, place: float) -> Array:
    """What lies at a place that need not be whole, along the last axis."""
    lower = math.floor(place)
    upper = min(lower + 1, int(ordered.shape[-1]) - 1)
    return ordered[..., lower] + (place - lower) * (ordered[..., upper] - ordered[..., lower])


def contiguous(array: Array) -> Array:
    """A copy in row-major order. Products round by layout, and a state must be the same before and after a file."""
    copy = zeros(array, *array.shape)
    copy[...] = array
    return copy


def dot(left: Array, right: Array) -> Array:
    """The sums of products over the last axis, (...), each by itself: no lane's digits depend on how many there are.

    Other libraries than NumPy make of `vecdot` a product of matrices for each number, of which there may be millions.
    """
    return np.vecdot(left, right) if type(left) is np.ndarray else namespace(left).sum(left * right, axis=-1)


def product(left: Array, right: Array) -> Array:
    """The products of matrices, lane by lane; in other libraries than NumPy a single one where all lanes share it.

    NumPy's goes lane by lane in any case, which keeps each lane's digits.
    """
    if type(left) is np.ndarray:
        return np.matmul(left, right)
    while right.ndim > 2 and (right.shape[0] == 1 or right.stride()[0] == 0):
        right = right[0]
    if right.ndim > 2:
        return small_product(left, right)
    # as one matrix: of lanes that do not lie side by side torch would make a product for each
    lanes = left.reshape((-1, left.shape[-1]))
    return namespace(left).matmul(lanes, right).reshape((*left.shape[:-1], right.shape[-1]))


def small_product(left: Array, right: Array) -> Array:
    """The products of small matrices, (..., n, k) and (..., k, m), lane by lane: in compiled code a sum of products.

    That becomes part of what stands around it, while a product of matrices is a program of its own, and a slow one
    where these are small.
    """
    if type(left) is np.ndarray:
        return np.matmul(left, right)
    if is_compiling(left):
        return namespace(left).sum(left[..., None] * right[..., None, :, :], axis=-2)
    return namespace(left).matmul(left, right)


def is_compiling(array: Array) -> bool:
    """Whether a compiler is making a program of what is done with this array."""
    return type(array) is not np.ndarray and bool(namespace(array).compiler.is_compiling())


def gram(rows: Array) -> Array:
    """The products of all rows of small matrices (..., k, m) with each other, lane by lane: (..., k, k).

    Of a matrix and itself NumPy makes a symmetric product, which may take four times as long as that with a copy.
    """
    return np.matmul(rows, rows.copy().mT) if type(rows) is np.ndarray else small_product(rows, rows.mT)


def scaled(vectors: Array, factors: Array) -> Array:
    """Vectors (..., F), each times its factor (...), in an array of its own.

    NumPy goes vector by vector where it has to repeat a factor itself, which takes longer than two passes over all.

    >>> scaled(np.asarray([[1.0, 2.0], [3.0, 4.0]]), np.asarray([10.0, 1.0]))
    array([[10., 20.],
           [ 3.,  4.]])
    """
    if type(vectors) is not np.ndarray:
        return vectors * factors[..., None]
    products = factors.repeat(vectors.shape[-1]).reshape(vectors.shape)
    products *= vectors
    return products


def at_least(values: Array, least: float) -> Array:
    """No value below ``least``; other libraries than NumPy would send their device a number for it each time."""
    return np.maximum(values, least) if type(values) is np.ndarray else values.clip(min=least)


def at_most(values: Array, most: float) -> Array:
    """No value above ``most``, likewise."""
    return np.minimum(values, most) if type(values) is np.ndarray else values.clip(max=most)


def lowest(values: Array) -> Array:
    """The least along the last axis; NumPy's reduction by itself costs half of what its function does."""
    return np.minimum.reduce(values, axis=-1) if type(values) is np.ndarray else namespace(values).min(values, axis=-1)


def ones_where(marked: Array, like: Array) -> Array:
    """1 where a place is marked, else 0, in the numbers of another array; NumPy's method is cheaper, too."""
    if type(marked) is np.ndarray:
        return marked.astype(like.dtype)
    return namespace(marked).astype(marked, like.dtype)


def with_number(values: Array, marked: Array, number: float) -> Array:
    """The values, but a number where a place is marked; in compiled code this is an array () of any type.

    >>> with_number(np.asarray([1.0, 2.0]), np.asarray([True, False]), 7)
    array([7., 2.])
    """
    if type(values) is np.ndarray:
        return np.where(marked, number, values)
    return values.where(~marked, number)


def put(values: Array, place: int | Array, one: Array) -> None:
    """Write one of the second axis, (N, ...), to a place that may be an array (), of which no host waits to know.

    >>> values = np.zeros((1, 3))
    >>> put(values, 2, np.ones(1))
    >>> values
    array([[0., 0., 1.]])
    """
    if isinstance(place, int):
        values[:, place] = one
    else:
        values[:, place[None]] = one[:, None]


def has_none(marked: Array) -> bool:
    """Whether no place is marked, where that can be asked in no time: on an accelerator nobody waits for the answer.

    What follows from True may spare work, and must change no result.
    """
    return type(marked) is np.ndarray and not np.count_nonzero(marked)


def has_all(marked: Array) -> bool:
    """Whether every place is marked, or no number is 0, in the same sense."""
    return type(marked) is np.ndarray and np.count_nonzero(marked) == marked.size


def is_rising(values: Array) -> bool:
    """Whether no value is below the one before it along the last axis, in the same sense."""
    return type(values) is np.ndarray and not np.count_nonzero(values[..., 1:] < values[..., :-1])


def tiny(like: Array) -> float:
    """What keeps a logarithm or a ratio of zeros finite: far below any squared error of standardised data.

    >>> tiny(np.zeros(1)), tiny(np.zeros(1, dtype="float32")) > 0
    (1e-300, True)
    """
    return 1e-300 if like.dtype.itemsize == 8 else 1e-36


def row_major(array: Array) -> Array:
    """The same in row-major order, without a copy where it is already: products round by layout."""
    return np.ascontiguousarray(array) if type(array) is np.ndarray else array.contiguous()


def over_series(per_lane: Array, channels: int) -> Array:
    """Mean over the ``channels`` lanes of each series: (N, ...) to (N / channels, ...); the array itself for one."""
    if channels == 1:
        return per_lane
    series, rest = per_lane.shape[0] // channels, tuple(per_lane.shape[1:])
    if type(per_lane) is not np.ndarray:
        return namespace(per_lane).mean(per_lane.reshape((series, channels, *rest)), axis=1)
    mean = np.matmul(_shares(channels, per_lane.dtype), per_lane.reshape((series, channels, -1)))
    return mean if len(rest) == 1 else mean.reshape((series, *rest))


@lru_cache(maxsize=64)
def _shares(channels: int, dtype: Any) -> Array:
    """What each channel counts in a mean, (channels,): a product with it is cheaper than a mean."""
    return np.full((channels,), 1 / channels, dtype=dtype)
