"""Checks of options, one for each sort of value: each returns the plain Python value, or raises `OptionError`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np

from ompb.errors import OptionError

# No option is a larger count: rows, windows and draws beyond it exhaust any memory.
MOST = 10_000_000


def refuse(name: str, value: object, accepted: str) -> OptionError:
    """The error that says what was given and what is accepted."""
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return OptionError(f"option {name} = {shown} is out of range; accepted: {accepted}.")


def count(name: str, value: Any, least: int = 1, most: int = MOST, or_else: str = "") -> int:
    """A whole number from ``least`` to ``most``; NumPy's integers are as good as Python's.

    >>> count("patience", np.int64(5), least=0)
    5
    """
    accepted = f"{or_else}a whole number from {least}" + (f" to {most}" if most < MOST else "")
    if isinstance(value, bool | np.bool_):
        raise refuse(name, value, accepted)
    try:
        number = operator.index(value)
    except TypeError as error:
        raise refuse(name, value, accepted) from error
    if not least <= number <= most:
        raise refuse(name, value, accepted)
    return number


def number(name: str, value: Any, accepted: str, low: float, high: float, *, ends: tuple[bool, bool]) -> float:
    """A real number between ``low`` and ``high``; ``ends`` says whether each of them belongs to the range.

    >>> number("delta", 0.05, "a number inside (0, 1)", 0, 1, ends=(False, False))
    0.05
    """
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        raise refuse(name, value, accepted)
    try:
        found = float(value)
    except (OverflowError, ValueError) as error:  # an integer or fraction that no float can hold
        raise refuse(name, value, accepted) from error
    above = found >= low if ends[0] else found > low
    below = found <= high if ends[1] else found < high
    if not (math.isfinite(found) and above and below):
        raise refuse(name, value, accepted)
    return found


def share(name: str, value: Any, *, whole: bool = False) -> float:
    """A number inside (0, 1), or in (0, 1] where ``whole`` is allowed."""
    accepted = "a number in (0, 1]" if whole else "a number inside (0, 1)"
    return number(name, value, accepted, 0.0, 1.0, ends=(False, whole))


def positive(name: str, value: Any, most: float = 1e9, or_else: str = "") -> float:
    """A positive number up to ``most``; ``or_else`` is what else the error says is accepted."""
    return number(name, value, f"{or_else}a positive number up to {most:g}", 0.0, most, ends=(False, True))


def not_negative(name: str, value: Any, most: float = 1e9) -> float:
    """Zero, or a positive number up to ``most``."""
    return number(name, value, f"a number from 0 to {most:g}", 0.0, most, ends=(True, True))


def choice(name: str, value: Any, accepted: Iterable[str]) -> str:
    """One of some words."""
    words = tuple(accepted)
    if not isinstance(value, str) or value not in words:
        raise refuse(name, value, f"one of {', '.join(words)}")
    return str(value)


def flag(name: str, value: Any) -> bool:
    """True or False; NumPy's are as good as Python's."""
    if not isinstance(value, bool | np.bool_):
        raise refuse(name, value, "True or False")
    return bool(value)


def seed(name: str, value: Any) -> int:
    """A whole number that every random generator accepts."""
    return count(name, value, least=0, most=2**63 - 1)


def check_fields(options: object, check: Callable[[str, Any], object], *names: str) -> None:
    """Check fields of a frozen dataclass, and keep the plain values that the check returns."""
    for name in names:
        object.__setattr__(options, name, check(name, getattr(options, name)))
