"""Cells as numbers, NaN where missing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ompb.errors import DtypeError, NotFiniteError
from ompb.floor.extras import extra
from ompb.floor.names import counted
from ompb.tables.lines import Where, row_of_table
from ompb.types import Floats

with extra("report", needed_by="ompb.tables"):
    import polars as pl

# In lower case; files of the CDC write X. What Excel writes for what it could not compute begins with #.
MISSING = ("", "na", "n/a", "nan", "null", "none", "x", "#n/a", "#div/0!", "#value!", "#ref!", "#num!", "#name?")
FLAGS = {"true": "1", "false": "0", "yes": "1", "no": "0"}
# Numbers whose thousands are set apart, by the sign of the decimals: by the other sign, a space or an apostrophe.
_SPACES = " \u00a0\u2009\u202f'’"
_THOUSANDS = {
    ".": (rf"^[+-]?\d{{1,3}}([,{_SPACES}]\d{{3}})+(\.\d*)?$", f"[,{_SPACES}]"),
    ",": (rf"^[+-]?\d{{1,3}}([.{_SPACES}]\d{{3}})+(,\d*)?$", f"[.{_SPACES}]"),
}
_BESIDE = r"[\p{Sc}%‰]"  # signs of money and shares, which may stand beside every number of a column
_COMMA = re.compile(r"[+-]?\d+,\d+")
_LOOKED_AT = 100  # cells


def numbers(
    column: pl.Series,
    missing: Sequence[str] = (),
    decimal: str = ".",
    *,
    flags: bool = False,
    where: Where = row_of_table,
) -> Floats:
    """The column as float64 with NaN for missing; anything else that is not a finite number is an error.

    ``missing`` are further cells that mean no value, numbers or words; ``flags`` lets true and false be 1 and 0;
    ``where`` tells the place of a cell in an error.

    >>> numbers(pl.Series("a", ["1,5", "-999", "X"]), missing=("-999",), decimal=",")
    array([1.5, nan, nan])
    """
    if flags and column.dtype == pl.Boolean:
        column = column.cast(pl.Float64)
    if column.dtype == pl.String:
        cells = _as_written(column, missing, decimal, flags)
    elif column.dtype.is_numeric() or column.dtype == pl.Null:
        cells = column
    else:
        raise DtypeError(
            f"Column {column.name!r} has the type {column.dtype} (first value {column[0]}); all columns but the time "
            f"must be numbers: {_put_aside(column, column.dtype == pl.Boolean)}."
        )
    values = cells.cast(pl.Float64, strict=False)
    refused = (values.is_null() & cells.is_not_null()).arg_true()
    if len(refused):
        raise DtypeError(_no_number(column, cells, refused[0], len(refused), where))
    found = np.array(values.to_numpy(), dtype=np.float64)
    for number in _numbers_among(missing):
        found[found == number] = np.nan
    if np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found))[0])
        raise NotFiniteError(f"Column {column.name!r} is infinite in {where(row)}; leave the cell empty if unknown.")
    return found


def holds_any(column: pl.Series, word: str, decimal: str = ".") -> bool:
    """Whether a cell of the column is what `numbers` would take for missing on account of ``word``.

    >>> holds_any(pl.Series(["5", "-999.0"]), "-999"), holds_any(pl.Series(["5", " Out "]), "out")
    (True, True)
    """
    if column.dtype == pl.String and bool((_plain(column).str.to_lowercase() == word.strip().lower()).any()):
        return True
    cells = _as_written(column, (), decimal, flags=False) if column.dtype == pl.String else column
    if cells.dtype != pl.String and not cells.dtype.is_numeric():
        return False
    values = cells.cast(pl.Float64, strict=False)
    return any(bool((values == number).any()) for number in _numbers_among((word,)))


def maybe_thousands(column: pl.Series, decimal: str) -> bool:
    """Whether all that is taken for decimals may set thousands apart, as in 1.234 and 12.345.

    >>> maybe_thousands(pl.Series(["1.234", "987"]), "."), maybe_thousands(pl.Series(["1.234", "0.5"]), ".")
    (True, False)
    """
    if column.dtype != pl.String:
        return False
    cells = column.drop_nulls().filter(column.drop_nulls().str.contains(decimal, literal=True))
    form = rf"^\s*[+-]?[1-9]\d{{0,2}}{re.escape(decimal)}\d{{3}}\s*$"
    return len(cells) > 0 and bool(cells.str.contains(form).all())


def is_missing(column: pl.Series, missing: Sequence[str] = ()) -> bool:
    """Whether no cell of a column of texts says anything."""
    return not len(_known(_plain(column), missing).drop_nulls())


def sign_beside(column: pl.Series, missing: Sequence[str] = ()) -> str:
    """A sign of money or shares that stands in every cell which is not missing; empty if there is none.

    >>> sign_beside(pl.Series(["$5", "-$6.50", "NA"])), sign_beside(pl.Series(["5", "6%"]))
    ('$', '')
    """
    if column.dtype != pl.String or not column.str.contains(_BESIDE).any():
        return ""
    return _sign(_known(_plain(column), missing))


def looks_numeric(column: pl.Series, missing: Sequence[str] = (), decimal: str = ".") -> bool:
    """Whether the first cells that are not missing are numbers, or there are none."""
    if column.dtype != pl.String:
        return bool(column.dtype.is_numeric() or column.dtype == pl.Null)
    known = _as_written(column.drop_nulls().head(_LOOKED_AT), missing, decimal, flags=False).drop_nulls()
    return not known.cast(pl.Float64, strict=False).null_count()


def _as_written(column: pl.Series, missing: Sequence[str], decimal: str, flags: bool) -> pl.Series:
    """Cells of text as Python writes numbers, null where missing."""
    if decimal == "." and column.cast(pl.Float64, strict=False).null_count() == column.null_count():
        return column  # as most files are, and much faster
    text = _known(_plain(column), missing)
    if sign := _sign(text):
        text = text.str.replace(sign, "", literal=True).str.strip_chars()
    form, between = _THOUSANDS[decimal]
    text = text.zip_with(~text.str.contains(form).fill_null(False), text.str.replace_all(between, ""))
    if decimal == ",":
        text = text.str.replace(",", ".", literal=True)
    lower = text.str.to_lowercase()
    return lower.replace(FLAGS).zip_with(lower.is_in(list(FLAGS)).fill_null(False), text) if flags else text


def _plain(column: pl.Series) -> pl.Series:
    """Without spaces around, and with the minus of a keyboard: also for numbers in brackets, as accountants write."""
    plain = column.str.strip_chars().str.replace("−", "-", literal=True)
    return plain.str.replace(r"^\(([^()]*\d[^()]*)\)$", "-$1")


def _known(text: pl.Series, missing: Sequence[str]) -> pl.Series:
    """Null where missing."""
    return text.set(text.str.to_lowercase().is_in([*MISSING, *(word.strip().lower() for word in missing)]), None)


def _sign(known: pl.Series) -> str:
    cells = known.drop_nulls()
    sign = cells.head(1).str.extract(f"({_BESIDE})").drop_nulls()
    return str(sign[0]) if len(sign) and bool(cells.str.contains(sign[0], literal=True).all()) else ""


def _no_number(column: pl.Series, cells: pl.Series, row: int, count: int, where: Where) -> str:
    """What is said of a column with a cell that is no number."""
    cell, known = column[row].strip(), len(cells.drop_nulls())
    fault = (
        f"Column {column.name!r} holds {cell!r} in {where(row)}, which is not a number ({_share(count, len(column))})"
    )
    if count == known:
        return f"{fault}; {_put_aside(column, cell.lower() in FLAGS)}, or write its cells as plain numbers."
    decimals = "; if a comma stands before decimals, say --decimal ," if _COMMA.fullmatch(cell) else ""
    return (
        f"{fault}; if it means missing, say --missing {cell!r}{decimals}; if the column is no series of numbers, "
        f"say --exclude {column.name!r}."
    )


def _put_aside(column: pl.Series, flags: bool) -> str:
    """What to do with a column that is no series of numbers."""
    ahead = f", or take it as known ahead with --future {column.name!r}" if flags else ""
    return f"leave it out with --exclude {column.name!r}{ahead}"


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
