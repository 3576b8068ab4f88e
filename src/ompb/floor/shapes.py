"""What a class says of its fields beyond their types, so that a file of it can be checked.

::

    horizon: Annotated[int, Dim("H")]                          # an int that is the size H
    names: Annotated[tuple[str, ...], Dim("C")]                # a tuple of C items
    weights: Annotated[Any, Shape("C H F")]                    # a finite float64 array (C, H, F)
    scale: Annotated[Any, Shape("C", positive=True)]
    rows: Annotated[Any, Shape("L+H C", nan=True)]             # NaN = missing

A size that is named is the same wherever it is named within one file. Nothing here reads or writes.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

DTYPES = ("float64", "float32", "int64", "bool")
ANY_SHAPE = "..."
# No number that is saved is larger: those in the user's units end here, all others far below, and squares are finite.
LARGEST = 1e110
_SIZE = re.compile(r"\?|\w+(\+\w+)*")


@dataclass(frozen=True, slots=True)
class Dim:
    """A size: a number (``3``), a name (``H``), a sum of such (``F+H``), or any size at all (``?``).

    >>> Dim("F+H").terms
    ('F', 'H')
    """

    text: str

    def __post_init__(self) -> None:
        if not _SIZE.fullmatch(self.text):
            raise TypeError(f"{self.text!r} is no size; write a number, a name, a sum like F+H, or ?.")

    @property
    def terms(self) -> tuple[str, ...]:
        """What is added up, each a number or a name; nothing for any size."""
        return () if self.text == "?" else tuple(self.text.split("+"))


@dataclass(frozen=True, slots=True)
class Shape:
    """An array: its sizes separated by spaces (``...`` for any shape), its dtype, and what its values may be.

    Values lie from ``least`` to ``most``. ``nan`` lets NaN, which means missing, stand among them; ``positive`` asks
    for values above zero. ``grows``: its second axis is as long as it has to be, and what it lacks is 0.
    """

    dims: str
    _: KW_ONLY
    nan: bool = False
    positive: bool = False
    least: float = -LARGEST
    most: float = LARGEST
    dtype: str = "float64"
    grows: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise TypeError(f"dtype {self.dtype!r} cannot be saved; accepted: {', '.join(DTYPES)}.")
        self.sizes  # noqa: B018  # each must be one

    @property
    def sizes(self) -> tuple[Dim, ...] | None:
        """One for each axis; None where any shape will do.

        >>> Shape("N F+H").sizes
        (Dim(text='N'), Dim(text='F+H'))
        """
        return None if self.dims == ANY_SHAPE else tuple(Dim(text) for text in self.dims.split())


@dataclass(frozen=True, slots=True)
class Apart:
    """A part of a file whose named sizes are its own, and whose arrays may all be float32 where float64 is declared."""


class Tagged:
    """Base of classes that a file names by a word, since a field may hold any of them.

    A direct subclass is a *family*; the classes below it carry a tag that is unique among them. ``tags`` are those of
    the family, so a class that another package adds can be loaded once its module is imported.

    >>> class Shade(Tagged): ...
    >>> class Grey(Shade, tag="grey"): ...
    >>> Shade.tags["grey"].__name__, Grey.tag
    ('Grey', 'grey')
    """

    __slots__ = ()
    tags: ClassVar[dict[str, type[Any]]]
    tag: ClassVar[str]

    def __init_subclass__(cls, *, tag: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if Tagged in cls.__bases__:
            if tag is not None:
                raise TypeError(f"{cls.__qualname__} is a family and takes no tag; give one to its subclasses.")
            cls.tags = cls.__dict__.get("tags", {})
            return
        tag = cls.__dict__.get("tag") if tag is None else tag  # see `_is_the_same`
        if tag is not None:
            _enter(cls, tag)


def _enter(cls: type[Tagged], tag: str) -> None:
    held = cls.tags.get(tag, cls)
    if not _is_the_same(cls, held):
        raise TypeError(
            f"the tag {tag!r} of {cls.__module__}.{cls.__qualname__} belongs to {held.__module__}.{held.__qualname__}; "
            "choose another."
        )
    cls.tags[tag] = cls
    cls.tag = tag


def _is_the_same(cls: type[Any], held: type[Any]) -> bool:
    """Whether a class is another one made again: by a module that is reloaded, or by ``dataclass(slots=True)``.

    The latter makes it without keywords and, at first, without its qualified name.
    """
    return cls.__module__ == held.__module__ and cls.__qualname__ in (held.__qualname__, held.__name__)
