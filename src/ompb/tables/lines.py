"""Where a row stands in the user's file, as messages tell it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

Where: TypeAlias = Callable[[int], str]  # a row, counted from 0, in words


def row_of_table(row: int) -> str:
    """A row of a table that has no lines.

    >>> row_of_table(0)
    'row 1 of the table'
    """
    return f"row {row + 1} of the table"


def told(line: int) -> str:
    """A line, counted from 1.

    >>> told(3)
    'line 3 of the file'
    """
    return f"line {line} of the file"


@dataclass(frozen=True, slots=True)
class Lines:
    r"""The lines of a text file. Cells in quotes may break lines, so they are counted only when they are asked for.

    >>> lines = Lines('# load of 2024\n\ndate,note\n1,"two\nlines"\n2,\n', ",", head=1)
    >>> lines(0), lines(1)
    ('line 4 of the file', 'line 6 of the file')
    """

    text: str
    sep: str
    head: int = 0  # lines above the names

    def __call__(self, row: int) -> str:
        """Where a row under the names begins; its number alone if quotes do not match and lines cannot be told."""
        try:
            found = next(islice(self.records(), row + 1, None), None)
        except csv.Error:
            found = None
        return row_of_table(row) if found is None else told(found[0])

    @property
    def body(self) -> str:
        """The text from the names on."""
        return "".join(self.text.split("\n", self.head)[self.head :])

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The line each record begins in, and its cells; the first one holds the names."""
        lines = io.StringIO(self.text, newline="")
        for _ in range(self.head):
            lines.readline()
        reader = csv.reader(lines, delimiter=self.sep)
        start, named = self.head + 1, False
        for cells in reader:
            named = named or bool(cells)  # empty lines above the names are no rows
            if named:
                yield start, cells
            start = self.head + reader.line_num + 1
