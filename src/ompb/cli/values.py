"""What the user typed, as Python values; `OptionError` says what is accepted instead."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any, Literal

from ompb.errors import OptionError
from ompb.floor.checks import refuse
from ompb.settings import Settings

OWN = ("context", "horizon", "season", "unseen")  # parameters of a fit that the command has options for


def season_of(text: str) -> int | Literal["auto"] | None:
    """Rows in a season, "auto" or None.

    >>> season_of("24"), season_of("auto"), season_of("none")
    (24, 'auto', None)
    """
    word = text.strip().lower()
    if word == "auto":
        return "auto"
    if word == "none":
        return None
    try:
        return int(word)
    except ValueError as error:
        raise refuse("--season", text, "a number of rows, auto or none") from error


def unseen_of(text: str | None) -> int | float | None:
    """Rows (int) or a share (float) at the source's end; None where nothing was typed.

    >>> unseen_of("500"), unseen_of("0.25"), unseen_of(None)
    (500, 0.25, None)
    """
    if text is None:
        return None
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise refuse("--unseen", text, "a number of rows (500) or a share of the source (0.25)")


def options_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Options of the calibrator from ``name=value`` texts, checked.

    A value is JSON where it can be, else as in Python, else a text.

    >>> options_of(["gate=shared", "discounts=(0.99, 0.999)", "profile=false"])
    {'gate': 'shared', 'discounts': (0.99, 0.999), 'profile': False}
    """
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise OptionError(f"--option {pair} has no value; write it as name=value, for example gate=shared.")
        if name.strip() in OWN:
            raise OptionError(f"--option {pair} is an option of its own; write --{name.strip()} {value.strip()}.")
        options[name.strip()] = _value(name, value)
    Settings.of(**options)
    return options


def _value(name: str, text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
        except (RecursionError, MemoryError) as error:
            raise refuse(name, text, "values that are not nested so deep") from error
    return text
