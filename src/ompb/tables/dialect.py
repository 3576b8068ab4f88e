"""How a text file writes its cells: which sign stands between them, which before the decimals, and where they begin."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ompb.floor import checks

SEPARATORS = {";": "semicolon", "\t": "tab", "|": "bar", ",": "comma"}  # a comma last: it may stand inside numbers
SPELLED = {"\\t": "\t", "tab": "\t", "space": " ", "semicolon": ";", "comma": ",", "bar": "|"}
LINES = 200  # that are looked at
ALIKE = 0.9  # share of them, from the names on, that must have as many cells as the names

# Numbers with decimals, whose thousands may be set apart.
_WITH_COMMA, _WITH_POINT = (
    re.compile(rf"[+-]?\d+([{other} \u00a0\u2009\u202f'’]\d{{3}})*{sign}\d+([eE][+-]?\d+)?")
    for sign, other in ((",", "."), (r"\.", ","))
)
_BEGINS_NUMBER = re.compile(r"\s*[+-]?\d")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_SAID = re.compile(r'"?sep=(.)"?;*,*\s*')  # how Excel is told the separator in the first line


@dataclass(frozen=True, slots=True)
class Dialect:
    r"""The two signs, and how many lines stand above the names.

    >>> Dialect.of("date;load\n2024-01-01;5,5\n")
    Dialect(sep=';', decimal=',', head=0)
    >>> str(Dialect.of("Load of 2024\n\ndate,load\n2024-01-01,5.5\n"))
    'commas between cells'
    """

    sep: str
    decimal: str
    head: int = 0

    @classmethod
    def of(cls, text: str, sep: str | None = None, decimal: str | None = None) -> Dialect:
        """Those of a text, where the user does not say them."""
        lines = text[: LINES * 1000].split("\n")[:LINES]
        said = _SAID.fullmatch(lines[0])
        sep = SPELLED.get(sep, sep) if sep is not None else said[1] if said else _separator(lines)
        if len(sep) != 1:
            raise checks.refuse("sep", sep, "one sign, such as ; or , or tab")
        if decimal not in (None, ".", ","):
            raise checks.refuse("decimal", decimal, "a point (.) or a comma (,)")
        head = _head(lines, sep) or (1 if said else 0)
        return cls(sep, decimal or _decimal(lines[head:], sep), head)

    def __str__(self) -> str:
        between = f"{SEPARATORS.get(self.sep, repr(self.sep))}s between cells"
        return f"{between}, decimal comma" if self.decimal == "," else between


def _separator(lines: Sequence[str]) -> str:
    """The sign that is as frequent in nearly every line as in the names; a comma if there is none."""
    for sep in SEPARATORS:
        cells = [len(row) for row in csv.reader(lines[_head(lines, sep) :], delimiter=sep) if row]
        if cells and cells[0] > 1 and Counter(cells)[cells[0]] >= ALIKE * len(cells):
            return sep
    return ","


def _head(lines: Sequence[str], sep: str) -> int:
    """How many lines stand above the names.

    The names are the first of the fullest lines before the first number. Titles and remarks above them have fewer
    cells, which Excel fills up with empty ones.
    """
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=sep)
    rows = [(reader.line_num, row) for row in reader if row]
    usual = max(Counter(len(row) for _, row in rows).items(), key=lambda found: found[1], default=(0, 0))[0]
    numbers = (n for n, (_, row) in enumerate(rows) if len(row) == usual and any(map(_BEGINS_NUMBER.match, row)))
    before = [n for n in range(next(numbers, 0)) if len(rows[n][1]) == usual]
    names = max(before, key=lambda n: sum(bool(cell.strip()) for cell in rows[n][1]), default=0)
    return rows[names - 1][0] if names else 0


def _decimal(lines: Sequence[str], sep: str) -> str:
    """A comma if more cells are numbers with a comma than with a point.

    Where commas stand between cells, one inside a cell in quotes rather sets thousands apart.
    """
    cells = [cell.strip() for row in csv.reader(lines, delimiter=sep) for cell in row]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell) and not (sep == "," and _THOUSANDS.fullmatch(cell))]
    points = [cell for cell in cells if _WITH_POINT.fullmatch(cell)]
    return "," if len(commas) > len(points) else "."
