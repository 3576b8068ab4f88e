"""Times of a table's column, which may be text, and the stamps that follow a table."""

from __future__ import annotations

import numpy as np

from ompb.checks import count
from ompb.errors import DtypeError, TimeOrderError
from ompb.extras import extra
from ompb.times import Grid, Times, as_times, iso_stamp

with extra("report", needed_by="ompb.datasets.times"):
    import polars as pl


def starts_with_stamp(column: pl.Series) -> bool:
    """Whether a column looks like dates or date-times."""
    if column.dtype != pl.String:
        return column.dtype in (pl.Date, pl.Datetime)
    first = next(iter(column.drop_nulls()), "")
    return whole_number(first) is None and iso_stamp(first) is not None


def whole_number(text: str) -> int | None:
    """The integer a text spells; None for any other text."""
    try:
        return int(text)
    except ValueError:
        return None


def times_of(column: pl.Series) -> Times:
    """The column as datetime64[us] or int64; an error names the first cell that is neither."""
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise TimeOrderError(f"Column {column.name!r} has no time in data row {row + 1}; drop or fill that row.")
    if column.dtype == pl.String:
        return _parsed(column)
    if column.dtype.is_integer() or column.dtype in (pl.Date, pl.Datetime):
        return as_times(column, f"column {column.name!r}")  # polars gives a zoned column in UTC
    raise DtypeError(
        f"The time column {column.name!r} has the type {column.dtype} (first value {column[0]}); "
        "pass dates, date-times or integers."
    )


def _parsed(column: pl.Series) -> Times:
    whole = column.str.strip_chars().cast(pl.Int64, strict=False)
    if not whole.null_count():
        return as_times(whole, f"column {column.name!r}")
    stamps = [iso_stamp(text) for text in column]
    refused = [text for text, stamp in zip(column, stamps, strict=True) if stamp is None]
    if refused:
        # Among integers the odd one out is the culprit.
        culprit = next((text for text in refused if whole_number(text) is None), refused[0])
        raise DtypeError(
            f"The time column {column.name!r} holds {culprit!r}; "
            "write times as 2024-01-31 or 2024-01-31 23:00:00 (ISO 8601), or as integers."
        )
    return np.array(stamps, dtype="datetime64[us]")


def with_future(times: Times, horizon: int) -> Times:
    """The times of a table followed by the next ``horizon`` stamps."""
    return np.concatenate([times, Grid.of(times, "The table").after(times[-1], count("horizon", horizon))])
