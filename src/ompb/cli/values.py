"""What the user typed, as Python values; `OptionError` says what is accepted instead."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any, Literal

from ompb.errors import OptionError
from ompb.settings import Settings


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
    if not word.isdecimal():
        raise OptionError(f"--season {text} is not known; accepted: a number of rows, auto or none.")
    return int(word)


def unseen_rows(text: str, source_rows: int) -> int:
    """Rows at the source's end, from a number of rows or a share of the source.

    >>> unseen_rows("500", 2000), unseen_rows("0.25", 2000)
    (500, 500)
    """
    try:
        number = float(text)
    except ValueError as error:
        raise OptionError(f"--unseen {text} is not a number; pass rows (500) or a share (0.25).") from error
    rows = round(number * source_rows) if 0 < number < 1 else number
    if not 0 < rows < source_rows or rows != int(rows):
        raise OptionError(
            f"--unseen {text} does not leave a part of the {source_rows} source rows on either side; "
            "pass rows (500) or a share (0.25)."
        )
    return int(rows)


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
        options[name.strip()] = _value(value)
    Settings.of(**options)
    return options


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text
