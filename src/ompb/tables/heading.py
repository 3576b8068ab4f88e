"""What stands over the numbers of a text file: names of columns, and sometimes a line of units beneath them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ompb.extras import extra
from ompb.tables.cells import is_missing, looks_numeric
from ompb.tables.stamps import holds_dates

with extra("report", needed_by="ompb.tables"):
    import polars as pl


def distinct_names(header: Sequence[str]) -> list[str]:
    """The names without spaces around them; one that comes again is numbered.

    >>> distinct_names(["date", " load", "load", "", ""])
    ['date', 'load', 'load (2)', '', ' (2)']
    """
    names: list[str] = []
    for cell in header:
        name = cell.strip()
        number = 2
        while name in names:
            name = f"{cell.strip()} ({number})"
            number += 1
        names.append(name)
    return names


def has_units(frame: pl.DataFrame, missing: Sequence[str], decimal: str) -> bool:
    """Whether the first row is a second line of names, or of units: it holds words alone, and the next one numbers.

    >>> has_units(pl.DataFrame({"date": [None, "2024-01-01"], "load": ["kW", "5"]}), (), ".")
    True
    """
    if frame.height < 2 or any(kind != pl.String for kind in frame.dtypes):
        return False
    first, second = ([cell for cell in frame.slice(row, 1) if not is_missing(cell, missing)] for row in range(2))
    values = partial(_values, missing=missing, decimal=decimal)
    return bool(first) and not values(first) and bool(values(second))


def _values(cells: Sequence[pl.Series], missing: Sequence[str], decimal: str) -> list[pl.Series]:
    """Those that hold a number or a date."""
    return [cell for cell in cells if looks_numeric(cell, missing, decimal) or holds_dates(cell)]
