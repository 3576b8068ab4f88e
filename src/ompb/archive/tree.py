"""Value classes as trees that JSON can hold, and back, by the type hints of the class that is asked for.

A dataclass or named tuple becomes an object of its fields, and one with a tag (`ompb.floor.shapes.Tagged`) names it as
``is``. A tuple becomes a list, an array ``{"array": n}``, where n counts the arrays in reading order. None, bool, int,
float and str stay what they are.

A tree is believed only where it says what the hints say: exactly the fields of the class, the types, the words of a
``Literal``, arrays of the declared dtype and shape with values in range, floats that are finite. Every int counts
something, so it is at least 0; none is larger than an int64.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import reprlib
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union
from weakref import WeakKeyDictionary

import numpy as np

from ompb.errors import FormatError, OmpbError
from ompb.floor.shapes import ANY_SHAPE, DTYPES, Apart, Dim, Shape, Tagged

Array: TypeAlias = np.ndarray[Any, Any]
_Value = TypeVar("_Value")

LARGEST_INT = 2**63 - 1
FLOAT32 = 2.0**-24  # by how much of itself a number is rounded at most
PLAIN_SCALARS = "biufU"  # kinds of NumPy scalars that are Python ones by another name
_HINTS: WeakKeyDictionary[type[Any], dict[str, Any]] = WeakKeyDictionary()  # resolving them takes a while


def encode(value: Any) -> tuple[Any, list[Array]]:
    """The tree of a value class, and the arrays that left it. Raises ``TypeError`` for what cannot be saved."""
    arrays: list[Array] = []
    return _node(value, arrays, ""), arrays


def decode(cls: type[_Value], tree: Any, arrays: Sequence[Array]) -> _Value:
    """The value class behind a tree. Raises `FormatError`, naming the field that is wrong."""
    reading = _Reading(arrays)
    value = reading.value(cls, tree, "")
    if reading.taken != len(arrays):
        raise FormatError(f"it has {len(arrays)} arrays; expected: {reading.taken}")
    return typing.cast(_Value, value)


def check_alike(value: Any, like: Any, place: str = "", grows: bool = False) -> None:
    """Raise `FormatError` unless both have the same classes, lengths, shapes and dtypes throughout.

    An array that ``grows`` may have a shorter second axis.
    """
    if grows and value.shape[1] < like.shape[1]:
        like = like[:, : value.shape[1]]
    if _form(value) != _form(like):
        raise FormatError(f"{place or 'it'} is {_form(value)}; expected: {_form(like)}")
    for (there, part, hint), (_, model, _) in zip(_parts(value, place), _parts(like, place), strict=True):
        notes = getattr(hint, "__metadata__", ())
        check_alike(part, model, there, any(isinstance(note, Shape) and note.grows for note in notes))


def _form(value: Any) -> str:
    """What a value is apart from its numbers and words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype.name} {value.shape}"
    if _is_record(type(value)):
        return f"a {type(value).__qualname__}"
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else "a single value"


def _parts(value: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """What a value is made of, each part with its place and its hint, which items of a tuple have not."""
    if _is_record(type(value)):
        yield from ((_below(place, name), getattr(value, name), hint) for name, hint in _hints(type(value)).items())
    elif isinstance(value, tuple):
        yield from ((f"{place}[{number}]", item, None) for number, item in enumerate(value))


def _node(value: Any, arrays: list[Array], place: str) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in PLAIN_SCALARS:
        value = value.item()
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.ndarray) and value.dtype.name in DTYPES:
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if _is_record(type(value)):
        fields = {name: _node(getattr(value, name), arrays, _below(place, name)) for name in _hints(type(value))}
        return {"is": _tag(type(value)), **fields} if isinstance(value, Tagged) else fields
    if isinstance(value, tuple):
        return [_node(item, arrays, there) for there, item, _ in _parts(value, place)]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(
        f"{place or 'the value'} is {reprlib.repr(value)}, a {type(value).__qualname__}, which cannot be saved; use "
        f"dataclasses, named tuples, tuples, arrays of {', '.join(DTYPES)}, None, bool, int, float and str."
    )


def _is_record(cls: type[Any]) -> bool:
    return dataclasses.is_dataclass(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))


def _tag(cls: type[Tagged]) -> str:
    if "tag" not in cls.__dict__:
        raise TypeError(f"{cls.__qualname__} has no tag, which a file needs to name it; declare it with tag=.")
    return cls.tag


def _hints(cls: type[Any]) -> dict[str, Any]:
    """The hints of the fields that the constructor takes; others follow from them."""
    if cls not in _HINTS:
        hints = typing.get_type_hints(cls, include_extras=True)
        made = dataclasses.is_dataclass(cls)
        names = [field.name for field in dataclasses.fields(cls) if field.init] if made else cls._fields
        _HINTS[cls] = {name: hints[name] for name in names}
    return _HINTS[cls]


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _wrong(place: str, found: object, expected: str) -> FormatError:
    return FormatError(f"{place or 'it'} is {reprlib.repr(found)}; expected: {expected}")


@dataclass
class _Reading:
    """One pass over a tree: which arrays have been taken, and which sizes the names have."""

    arrays: Sequence[Array]
    taken: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    narrow: bool = False  # float32 will do for float64

    def value(self, hint: Any, node: Any, place: str) -> Any:
        """What a node is under a hint."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            return self.annotated(arguments[0], arguments[1:], node, place)
        if origin in (Union, types.UnionType):
            return self.optional(arguments, node, place)
        if origin is Literal:
            return _word(arguments, node, place)
        if origin is tuple:
            return self.items(arguments, node, place)
        if origin is np.ndarray or hint is np.ndarray:
            return self.array(_any_shape(arguments), node, place)
        if isinstance(hint, type) and issubclass(hint, Tagged):
            return self.member(hint, node, place)
        if isinstance(hint, type) and _is_record(hint):
            return self.record(hint, node, place)
        return _scalar(hint, node, place)

    def annotated(self, hint: Any, notes: tuple[Any, ...], node: Any, place: str) -> Any:
        """What a node is that must be an array of some shape, or is or has a size."""
        for note in notes:
            if isinstance(note, Shape):
                return self.array(note, node, place)
            if isinstance(note, Apart):
                return self.apart(hint, node, place)
        value = self.value(hint, node, place)
        for note in notes:
            if isinstance(note, Dim) and value is not None:
                self.bind(note, len(value) if isinstance(value, tuple) else value, place)
        return value

    def apart(self, hint: Any, node: Any, place: str) -> Any:
        """What a node is whose sizes are its own."""
        outer = self.sizes, self.narrow
        self.sizes, self.narrow = {}, True
        value = self.value(hint, node, place)
        self.sizes, self.narrow = outer
        return value

    def optional(self, options: tuple[Any, ...], node: Any, place: str) -> Any:
        """None, or the one other thing that it may be."""
        others = [option for option in options if option is not type(None)]
        if len(others) != 1 or len(options) != 2:
            raise TypeError(f"{place}: a file cannot tell {options} apart; use X | None, or a Tagged family.")
        return None if node is None else self.value(others[0], node, place)

    def items(self, hints: tuple[Any, ...], node: Any, place: str) -> tuple[Any, ...]:
        """A tuple: of any length where the hint says ``tuple[X, ...]``."""
        if not isinstance(node, list):
            raise _wrong(place, node, "a list")
        if len(hints) == 2 and hints[1] is Ellipsis:
            hints = (hints[0],) * len(node)
        if len(node) != len(hints):
            raise _wrong(place, node, f"{len(hints)} items")
        return tuple(self.value(*pair, f"{place}[{n}]") for n, pair in enumerate(zip(hints, node, strict=True)))

    def member(self, hint: type[Tagged], node: Any, place: str) -> Any:
        """The class of a family that the node names."""
        tag = node.get("is") if isinstance(node, dict) else None
        cls = hint.tags.get(tag) if isinstance(tag, str) else None
        if cls is None or not issubclass(cls, hint):
            known = ", ".join(hint.tags) or "none"
            raise _wrong(place, tag, f"a {hint.__qualname__}, known: {known}; import the module that defines it first")
        return self.record(cls, {name: part for name, part in node.items() if name != "is"}, place)

    def record(self, cls: type[Any], node: Any, place: str) -> Any:
        """A dataclass or named tuple."""
        hints = _hints(cls)
        if not isinstance(node, dict) or node.keys() != hints.keys():
            found = list(node) if isinstance(node, dict) else node
            raise _wrong(place, found, f"the fields {', '.join(hints) or '(none)'} of {cls.__qualname__}")
        values = {name: self.value(hint, node[name], _below(place, name)) for name, hint in hints.items()}
        try:
            return cls(**values)
        except (OmpbError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise FormatError(f"{place or 'it'} is no {cls.__qualname__}: {error}") from error

    def array(self, shape: Shape, node: Any, place: str) -> Array:
        """The next array."""
        if node != {"array": self.taken} or self.taken >= len(self.arrays):
            raise _wrong(place, node, f"the array {self.taken} of {len(self.arrays)}")
        array = self.arrays[self.taken]
        self.taken += 1
        narrower = self.narrow and (shape.dtype, array.dtype.name) == ("float64", "float32")
        if array.dtype.name != shape.dtype and not narrower:
            raise FormatError(f"{place} is {_form(array)}; expected: {shape.dtype}")
        if shape.sizes is not None:
            if len(shape.sizes) != array.ndim:
                raise FormatError(f"{place} is {_form(array)}; expected: ({', '.join(shape.dims.split())})")
            for axis, (size, dim) in enumerate(zip(array.shape, shape.sizes, strict=True)):
                self.bind(dim, size, f"axis {axis} of {place}")
        _check_values(array, shape, place)
        return array

    def bind(self, dim: Dim, size: Any, place: str) -> None:
        """Hold a size against its declaration. The first time a name is met it takes what is left of the size."""
        if type(size) is not int:
            raise TypeError(f"{place}: only an int and a tuple have a size, not {size!r}.")
        names = [term for term in dim.terms if not term.isdigit() and term not in self.sizes]
        if len(names) > 1:
            raise TypeError(f"{place}: of the sizes {dim.text}, {' and '.join(names)} have not been met before.")
        rest = size - sum(int(term) if term.isdigit() else self.sizes[term] for term in dim.terms if term not in names)
        if names and rest >= 0:
            self.sizes[names[0]] = rest
        elif dim.terms and rest:
            known = ", ".join(f"{term} = {self.sizes[term]}" for term in dim.terms if term in self.sizes)
            raise FormatError(f"{place} has size {size}; expected: {dim.text}" + (f" with {known}" if known else ""))


def _any_shape(arguments: tuple[Any, ...]) -> Shape:
    """What a hint like ``NDArray[np.float64]`` says."""
    scalar = typing.get_args(arguments[1])[0] if len(arguments) == 2 else np.float64
    return Shape(ANY_SHAPE, dtype=np.dtype(scalar).name)


def _check_values(array: Array, shape: Shape, place: str) -> None:
    fit = (array >= _beyond(shape.least, -1)) & (array <= _beyond(shape.most, 1))  # neither holds for NaN
    if shape.nan:
        fit |= np.isnan(array)
    if shape.positive:
        fit &= ~(array <= 0)
    if not fit.all():
        where = tuple(int(index) for index in np.argwhere(~fit)[0])
        expected = f"{'positive' if shape.positive else 'finite'} numbers{' or NaN' if shape.nan else ''}"
        span = f"{shape.least:g} to {shape.most:g}"
        raise FormatError(f"{place} holds {array[where]} at {where}; expected: {expected}, {span}")


def _beyond(limit: float, side: int) -> np.float64:
    """A limit as far as it may be rounded to in float32: what was stopped there in such a fleet lies there, too."""
    return np.float64(limit + side * abs(limit) * FLOAT32)


def _word(words: tuple[Any, ...], node: Any, place: str) -> Any:
    for word in words:
        if type(node) is type(word) and node == word:
            return node
    raise _wrong(place, node, f"one of {', '.join(map(repr, words))}")


def _scalar(hint: Any, node: Any, place: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, str) and issubclass(hint, enum.Enum):
        return hint(_word(tuple(str(word.value) for word in hint), node, place))
    if hint not in SCALARS:
        raise TypeError(
            f"{place}: a file cannot be checked against {hint}; annotate an array with its Shape, and use dataclasses, "
            "named tuples, tuples, Literal, X | None, bool, int, float and str for the rest."
        )
    expected, fits = SCALARS[hint]
    if not fits(node):
        raise _wrong(place, node, expected)
    return node


def _is_count(node: Any) -> bool:
    return type(node) is int and 0 <= node <= LARGEST_INT


def _is_finite(node: Any) -> bool:
    return (type(node) is int and abs(node) <= LARGEST_INT) or (type(node) is float and math.isfinite(node))


SCALARS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    bool: ("True or False", lambda node: type(node) is bool),
    int: (f"a whole number from 0 to {LARGEST_INT}", _is_count),
    float: ("a finite number", _is_finite),
    str: ("text", lambda node: type(node) is str),
}
