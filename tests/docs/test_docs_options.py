"""The page of options names every one of them, with the default it has."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from ompb import Settings

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
FIELDS = {field.name: field.default for field in dataclasses.fields(Settings)}
# A field, another value of it perhaps, and its default in brackets: code, or a number.
TOLD = re.compile(r'`(\w+)(?:=[^`]*)?`(?:, `"[^`]*"`)? \((?:`([^`]*)`|(\d[\d.,]*|True))')
# Off or on, or the horizon: said in words.
SWITCHES = {"online", "certificate", "uniform", "lower", "upper", "stride"}


def table() -> str:
    return PAGE.read_text(encoding="utf-8").partition("## All of them")[2]


def defaults(text: str) -> dict[str, Any]:
    return {name: ast.literal_eval(code or word.replace(",", "")) for name, code, word in TOLD.findall(text)}


@pytest.mark.parametrize("name", FIELDS)
def test_an_option_is_named(name: str) -> None:
    assert re.search(rf"`{name}[`=]", table())


def test_defaults_are_those_of_the_settings() -> None:
    assert defaults(table()) == {name: default for name, default in FIELDS.items() if name not in SWITCHES}


def test_a_default_is_read_in_every_way_it_is_written() -> None:
    text = '`a` (1,500): rows, `b=0` (4), `c="x"`, `"y"` (`"z"`) and `d` (`(1, 2)`), `e=False`, `f=1` (the horizon)'
    assert defaults(text) == {"a": 1500, "b": 4, "c": "z", "d": (1, 2)}
