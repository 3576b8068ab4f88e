"""Cells as numbers, NaN where missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ompb.errors import DtypeError, NotFiniteError
from ompb.extras import extra
from ompb.names import counted
from ompb.types import Floats

with extra("report", needed_by="ompb.tables"):
    import polars as pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "x")  # CDC files write X; compared in lower case
FLAGS = {"true": "1", "false": "0"}
# Numbers whose thousands are set apart, by the sign of the decimals.
_THOUSANDS = {".": r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$", ",": r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$"}
_LOOKED_AT = 100  # cells


def numbers(column: pl.Series, missing: Sequence[str] = (), decimal: str = ".", *, flags: bool = False) -> Floats:
    """The column as float64 with NaN for missing; anything else that is not a finite number is an error.

    ``missing`` are further cells that mean no value, numbers or words; ``flags`` lets true and false be 1 and 0.

    >>> numbers(pl.Series("a", ["1,5", "-999", "X"]), missing=("-999",), decimal=",")
    array([1.5, nan, nan])
    """
    if flags and column.dtype == pl.Boolean:
        column = column.cast(pl.Float64)
    if column.dtype == pl.String:
        column = _as_written(column, missing, decimal, flags)
    elif not (column.dtype.is_numeric() or column.dtype == pl.Null):
        raise DtypeError(
            f"Column {column.name!r} has the type {column.dtype} (first value {column[0]}); all columns but the time "
            f"must be numbers: leave it out with --exclude {column.name!r}, or encode it."
        )
    values = column.cast(pl.Float64, strict=False)
    refused = column.filter(values.is_null() & column.is_not_null())
    if len(refused):
        raise DtypeError(
            f"Column {column.name!r} holds {refused[0]!r}, which is not a number "
            f"({_share(len(refused), len(column))}); if it means missing, say --missing {refused[0]!r}; if the column "
            f"is no series of numbers, say --exclude {column.name!r}."
        )
    found = np.array(values.to_numpy(), dtype=np.float64)
    for number in _numbers_among(missing):
        found[found == number] = np.nan
    if np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found))[0])
        raise NotFiniteError(
            f"Column {column.name!r} is infinite in data row {row + 1}; leave the cell empty if unknown."
        )
    return found


def looks_numeric(column: pl.Series, missing: Sequence[str] = (), decimal: str = ".") -> bool:
    """Whether the first cells that are not missing are numbers, or there are none."""
    if column.dtype != pl.String:
        return bool(column.dtype.is_numeric() or column.dtype == pl.Null)
    known = _as_written(column.drop_nulls().head(_LOOKED_AT), missing, decimal, flags=False).drop_nulls()
    return not known.cast(pl.Float64, strict=False).null_count()


def _as_written(column: pl.Series, missing: Sequence[str], decimal: str, flags: bool) -> pl.Series:
    """Cells of text as Python writes numbers, null where missing."""
    text = column.str.strip_chars()
    lower = text.str.to_lowercase()
    text = text.set(lower.is_in([*MISSING, *(word.strip().lower() for word in missing)]), None)
    apart = text.str.contains(_THOUSANDS[decimal]).fill_null(False)
    if decimal == ",":
        text = text.zip_with(~apart, text.str.replace_all(".", "", literal=True)).str.replace(",", ".", literal=True)
    else:
        text = text.zip_with(~apart, text.str.replace_all(",", "", literal=True))
    return lower.replace(FLAGS).zip_with(lower.is_in(list(FLAGS)).fill_null(False), text) if flags else text


def _share(refused: int, cells: int) -> str:
    """How many cells are no numbers: one is a slip, all are another kind of column.

    >>> _share(1, 500), _share(500, 500)
    ('1 of 500 cells is no number', '500 of 500 cells are no numbers')
    """
    return f"{refused} of {counted(cells, 'cell')} {'is no number' if refused == 1 else 'are no numbers'}"


def _numbers_among(words: Sequence[str]) -> list[float]:
    found = []
    for word in words:
        try:
            found.append(float(word))
        except ValueError:
            continue
    return found
