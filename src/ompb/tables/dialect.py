"""How a text file writes its cells: which sign stands between them, and which before the decimals."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ompb import checks

SEPARATORS = {";": "semicolon", "\t": "tab", "|": "bar", ",": "comma"}  # a comma last: it may stand inside numbers
SPELLED = {"\\t": "\t", "tab": "\t", "semicolon": ";", "comma": ",", "bar": "|"}
LINES = 200  # that are looked at
ALIKE = 0.9  # share of them that must have as many separators as the header

_WITH_COMMA, _WITH_POINT = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?"), re.compile(r"[+-]?\d+\.\d+([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Dialect:
    r"""The two signs.

    >>> Dialect.of("date;load\n2024-01-01;5,5\n")
    Dialect(sep=';', decimal=',')
    >>> str(Dialect.of("date,load\n2024-01-01,5.5\n"))
    'commas between cells'
    """

    sep: str
    decimal: str

    @classmethod
    def of(cls, text: str, sep: str | None = None, decimal: str | None = None) -> Dialect:
        """Those of a text, where the user does not say them."""
        lines = [line for line in text[: LINES * 1000].splitlines()[:LINES] if line.strip()]
        sep = _separator(lines) if sep is None else SPELLED.get(sep, sep)
        if len(sep) != 1:
            raise checks.refuse("sep", sep, "one sign, such as ; or , or tab")
        if decimal not in (None, ".", ","):
            raise checks.refuse("decimal", decimal, "a point (.) or a comma (,)")
        if decimal == sep:
            raise checks.refuse("decimal", decimal, f"another sign than the one between cells ({sep})")
        return cls(sep, decimal or _decimal(lines, sep))

    def __str__(self) -> str:
        between = f"{SEPARATORS.get(self.sep, repr(self.sep))}s between cells"
        return f"{between}, decimal comma" if self.decimal == "," else between


def _separator(lines: Sequence[str]) -> str:
    """The sign that is as frequent in nearly every line as in the header; a comma if there is none."""
    for sep in SEPARATORS:
        cells = [len(row) for row in csv.reader(lines, delimiter=sep)]
        if cells and cells[0] > 1 and Counter(cells)[cells[0]] >= ALIKE * len(cells):
            return sep
    return ","


def _decimal(lines: Sequence[str], sep: str) -> str:
    """A comma if more cells are numbers with a comma than with a point, and commas do not stand between cells."""
    if sep == ",":
        return "."
    cells = [cell.strip() for row in csv.reader(lines, delimiter=sep) for cell in row]
    commas, points = (sum(bool(form.fullmatch(cell)) for cell in cells) for form in (_WITH_COMMA, _WITH_POINT))
    return "," if commas > points else "."
