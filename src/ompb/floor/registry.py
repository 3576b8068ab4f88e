"""Things by name: those entered in this process, and those that packages bring by an entry point."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from ompb.errors import OptionError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """What can be chosen by name. A package adds to it by an entry point of that name in ``group``.

    >>> tastes: Registry[str] = Registry("taste", "example.tastes")
    >>> tastes.enter("sweet", "sugar")
    >>> tastes.find("sweet")
    'sugar'
    >>> tastes.find("sour")
    Traceback (most recent call last):
    ompb.errors.OptionError: there is no taste 'sour'; accepted: sweet.
    """

    kind: str  # what one of them is called
    group: str
    entered: dict[str, T] = field(default_factory=dict)

    def enter(self, name: str, item: T) -> None:
        """Add one, for this process only."""
        if name in self.entered:
            raise OptionError(f"there is a {self.kind} {name!r} already; choose another name.")
        self.entered[name] = item

    def names(self) -> tuple[str, ...]:
        """All of them: the ones entered first, then what entry points add, without importing it."""
        return (*self.entered, *sorted(entry_points(group=self.group).names - self.entered.keys()))

    def find(self, name: str) -> T | Any:
        """The one of that name, or what its entry point leads to. Raises ``OptionError`` if there is none."""
        if name not in self.entered:
            found = entry_points(group=self.group, name=name)
            if not found:
                raise OptionError(f"there is no {self.kind} {name!r}; accepted: {', '.join(self.names())}.")
            loaded = found[name].load()  # its module may enter the name
            return self.entered.get(name, loaded)
        return self.entered[name]
