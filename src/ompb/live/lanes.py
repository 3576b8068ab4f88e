"""Series side by side: value classes whose arrays have a first axis of S series, or of N = S C lanes.

What the offline stage left of one series can be *spread* over many, or *joined* with that of others; a state of many
can be *taken* apart and *joined* again. Which arrays have such an axis is said by their `Shape`: its first size is S or
N.
Everything else, the whole numbers that are a cohort's clock among it, must be the same for all.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from ompb.core.arrays import Array, namespace, zeros
from ompb.floor.shapes import Shape

_Value = TypeVar("_Value")
Change = Callable[..., Array]  # of arrays at the same place of several values
Keeps = Callable[..., bool]  # of parts at the same place of several values


class UnlikeError(Exception):
    """Values that cannot stand side by side; its text names the place where they differ, as in ``.rows[1]``."""


def spread(value: _Value, series: int) -> _Value:
    """One series' value for so many, all alike. With a single channel nothing is copied."""

    def change(array: Array) -> Array:
        shape = (series, *array.shape)
        return namespace(array).broadcast_to(array[None], shape).reshape((series * shape[1], *array.shape[1:]))

    return mapped(change, value)


def joined(values: Sequence[_Value]) -> _Value:
    """Several values as one, series after series. Raises `UnlikeError`."""
    return mapped(lambda *arrays: namespace(arrays[0]).concat(arrays, axis=0), *values)


def taken(value: _Value, series: int, places: Any, but: tuple[type, ...] = ()) -> _Value:
    """Some of a value's S series, copied; ``places`` is an index along them.

    Parts of the kinds ``but``, which nobody will ask of these series, are left as they are.
    """

    def change(array: Array) -> Array:
        chosen = _by_series(array, series)[places]
        if chosen.ndim == array.ndim:
            return chosen
        return chosen.reshape((chosen.shape[0] * chosen.shape[1], *array.shape[1:]))

    return mapped(change, value, keeps=(lambda part: isinstance(part, but)) if but else None)


def put_back(value: _Value, series: int, places: Any, before: _Value, after: _Value) -> _Value:
    """A value of S series once those at ``places`` have changed; what did not change is left as it is."""

    def change(array: Array, _: Array, now: Array) -> Array:
        copy = namespace(array).asarray(array, copy=True)
        _by_series(copy, series)[places] = _by_series(now, len(places))
        return copy

    return mapped(change, value, before, after, keeps=lambda _, was, now: was is now)


def mapped(change: Change, *values: _Value, every: bool = False, keeps: Keeps | None = None) -> _Value:
    """The value whose arrays by series, or ``every`` array, are what ``change`` makes of those of all ``values``.

    Parts that it ``keeps`` are those of the first value. Raises `UnlikeError` where something else differs; of truth
    values, which only say that some work can be spared, the weakest one is kept.
    """
    return typing.cast(_Value, _mapped(change, values, "", None, every, keeps))


def leaves(value: Any) -> list[Any]:
    """Arrays, numbers and whatever else is no value class or tuple, in their order."""
    found: list[Any] = []
    _gather(value, found)
    return found


def with_leaves(value: _Value, given: Iterable[Any]) -> _Value:
    """The value with other leaves, in the same order.

    >>> with_leaves((1, (2.0, None)), leaves((3, (4.0, 5))))
    (3, (4.0, 5))
    """
    return typing.cast(_Value, _filled(value, iter(given)))


def _gather(value: Any, found: list[Any]) -> None:
    kind: Any = type(value)
    fields = _fields(kind)
    if fields is not None:
        for name in fields:
            _gather(getattr(value, name), found)
    elif kind is tuple:
        for item in value:
            _gather(item, found)
    else:
        found.append(value)


def _filled(value: Any, given: Iterator[Any]) -> Any:
    kind: Any = type(value)
    fields = _fields(kind)
    if fields is not None:
        return kind(*[_filled(getattr(value, name), given) for name in fields])
    if kind is tuple:
        return tuple(_filled(item, given) for item in value)
    return next(given)


def _mapped(
    change: Change, values: Sequence[Any], place: str, shape: Shape | None, every: bool, keeps: Keeps | None
) -> Any:
    """``shape`` is that of arrays, or of a tuple's."""
    first = values[0]
    if keeps is not None and keeps(*values):
        return first
    kind: Any = type(first)
    if len(values) > 1 and len(set(map(type, values))) > 1:
        raise UnlikeError(place)
    fields = _fields(kind)
    if fields is not None:
        parts = {
            name: _mapped(change, [getattr(value, name) for value in values], f"{place}.{name}", below, every, keeps)
            for name, below in fields.items()
        }
        return kind(**parts)
    if kind is tuple:
        if any(len(value) != len(first) for value in values):
            raise UnlikeError(place)
        return tuple(
            _mapped(change, items, f"{place}[{number}]", shape, every, keeps)
            for number, items in enumerate(zip(*values, strict=True))
        )
    if hasattr(first, "shape"):
        return _array(change, values, place, shape, every)
    if kind is bool:
        return all(values)
    if any(value != first for value in values):
        raise UnlikeError(place)
    return first


def _array(change: Change, values: Sequence[Array], place: str, shape: Shape | None, every: bool) -> Array:
    if shape is not None and shape.grows:
        values = _grown(values)
    if len(values) > 1 and len({value.shape[1:] for value in values}) > 1:
        raise UnlikeError(place)
    if every or (shape is not None and shape.dims[0] in "NS"):
        return change(*values)
    if any(value is not values[0] and bool((value != values[0]).any()) for value in values):
        raise UnlikeError(place)
    return values[0]


@cache
def _fields(kind: Any) -> dict[str, Shape | None] | None:
    """The shapes of the arrays in a value class's fields; None for anything else."""
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind) if field.init]
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        names = list(kind._fields)
    else:
        return None
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: _shape(hints[name]) for name in names}


def _by_series(array: Array, series: int) -> Array:
    """(S, lanes of a series, ...), or as it is, (S, ...), where each series has one."""
    if array.shape[0] == series:
        return array
    return array.reshape((series, array.shape[0] // series, *array.shape[1:]))


def _grown(arrays: Sequence[Array]) -> list[Array]:
    """Arrays whose second axes are all as long as the longest."""
    most = max(int(array.shape[1]) for array in arrays)
    return [
        array if array.shape[1] == most else namespace(array).concat([array, _blank(array, most)], axis=1)
        for array in arrays
    ]


def _blank(array: Array, most: int) -> Array:
    """The zeros that an array lacks."""
    return zeros(array, array.shape[0], most - array.shape[1], *array.shape[2:])


def _shape(hint: Any) -> Shape | None:
    """What a hint says of an array, or of a tuple's items."""
    found = (note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Shape))
    arguments = typing.get_args(hint)
    return next(found, _shape(arguments[0]) if arguments else None)
