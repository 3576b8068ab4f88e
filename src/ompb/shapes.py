"""What a saved value may look like, said where it is declared: shapes of arrays, sizes, and families of classes by tag.

Nothing is read or written here; see `ompb.archive`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ompb.errors import OptionError


@dataclass(frozen=True, slots=True)
class Shape:
    """Of an array: names of its dimensions, which mean the same size wherever they stand in one file."""

    dims: str
    nan: bool = False  # NaN is a value it may hold
    positive: bool = False
    dtype: str = "float64"


@dataclass(frozen=True, slots=True)
class Dim:
    """A number, or the length of a tuple, that gives a dimension its size."""

    name: str


class Tagged:
    """Base of a family of classes of which each member has a name, its tag."""

    tag: ClassVar[str] = ""
    family: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls, tag: str = "", **words: Any) -> None:
        super().__init_subclass__(**words)
        if Tagged in cls.__bases__:
            cls.family = {}
        if tag:
            cls.tag = tag
            cls.family[tag] = cls

    @classmethod
    def named(cls, tag: str) -> type[Any]:
        """The class of that tag in this family."""
        if tag not in cls.family:
            raise OptionError(f"there is no {cls.__name__.lower()} {tag!r}; accepted: {', '.join(cls.family)}.")
        return cls.family[tag]
