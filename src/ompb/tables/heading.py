"""What stands over the numbers of a text file: names of columns, and sometimes a line of units beneath them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ompb.floor.extras import extra
from ompb.tables.cells import is_missing, looks_numeric
from ompb.tables.stamps import holding_dates

with extra("report", needed_by="ompb.tables"):
    import polars as pl


def named(frame: pl.DataFrame, header: Sequence[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A frame under the names of its file, and notes. Columns that have neither name nor cells are left out.

    Those are what a separator at the end of each line leaves. A name that comes again is numbered.

    >>> frame, notes = named(pl.DataFrame([["1"], ["5"], ["6"], [None]]), ["day", "load", " load", ""])
    >>> frame.columns, notes
    (['day', 'load', 'load (2)'], ("'load' names 2 columns; they are called load, load (2).",))
    """
    said = [name.strip() for name in header]
    kept = [place for place, (name, column) in enumerate(zip(said, frame, strict=True)) if name or not _empty(column)]
    frame, said = frame[:, kept], [said[place] for place in kept]
    numbers = [said[: place + 1].count(name) for place, name in enumerate(said)]
    names = [f"{name} ({number})" if number > 1 else name for name, number in zip(said, numbers, strict=True)]
    notes = [
        f"{name!r} names {said.count(name)} columns; they are called "
        f"{', '.join(now for now, was in zip(names, said, strict=True) if was == name)}."
        for name in dict.fromkeys(said)
        if said.count(name) > 1
    ]
    return frame.rename(dict(zip(frame.columns, names, strict=True))), tuple(notes)


def _empty(column: pl.Series) -> bool:
    return column.null_count() == len(column)


def has_units(frame: pl.DataFrame, missing: Sequence[str], decimal: str) -> bool:
    """Whether the first row is a second line of names, or of units: it holds words alone, and the next one numbers.

    >>> has_units(pl.DataFrame({"date": [None, "2024-01-01"], "load": ["kW", "5"]}), (), ".")
    True
    """
    if frame.height < 2 or any(kind != pl.String for kind in frame.dtypes):
        return False
    first, second = ([cell for cell in frame.slice(row, 1) if not is_missing(cell, missing)] for row in range(2))
    any_value = partial(_any_value, missing=missing, decimal=decimal)
    return bool(first) and not any_value(first) and any_value(second)


def _any_value(cells: Sequence[pl.Series], missing: Sequence[str], decimal: str) -> bool:
    """Whether one of them holds a number or a date."""
    return any(looks_numeric(cell, missing, decimal) for cell in cells) or bool(holding_dates(cells))
