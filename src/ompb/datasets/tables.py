"""The user's own tables: time series and recorded forecasts in CSV or Parquet.

Missing values are NaN. Times are kept as ``datetime64[us]`` (in UTC when the file has an offset) or, for an
integer time column, as int64 row numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.datasets.times import starts_with_stamp, times_of, whole_number, with_future
from ompb.errors import (
    DtypeError,
    FormatError,
    InputError,
    NotFiniteError,
    OptionError,
    ShapeError,
    TimeOrderError,
    TooShortError,
)
from ompb.extras import extra
from ompb.files import replacing
from ompb.frames import TIME_NAMES, distinct, pivoted
from ompb.times import Times, iso_stamp, require_increasing, shown
from ompb.times import regular as regular_rows
from ompb.types import Floats

with extra("report", needed_by="ompb.datasets.tables"):
    import polars as pl

Ints: TypeAlias = NDArray[np.int64]

MISSING = ("", "na", "n/a", "nan", "null", "none", "x")  # CDC files write X; compared in lower case
SUFFIXES = (".csv", ".parquet")
# A text that a spreadsheet would run, and the same with the quote that keeps it from doing so.
FORMULA, QUOTED_FORMULA = r"^([=+\-@\t\r])", r"^'([=+\-@\t\r])"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A multivariate series: ``values`` (T, C) with NaN for missing, ``times`` (T,) strictly increasing."""

    values: Floats
    times: Times
    channels: tuple[str, ...]
    time_name: str

    def select(self, channels: Sequence[str]) -> Table:
        """The same rows with these channels only, in this order."""
        for channel in channels:
            if channel not in self.channels:
                raise InputError(f"The table has no channel {channel!r}; it has {', '.join(self.channels)}.")
        columns = [self.channels.index(channel) for channel in channels]
        return Table(self.values[:, columns], self.times, tuple(channels), self.time_name)


def common_channels(a: Table, b: Table) -> tuple[str, ...]:
    """The channels that both tables have, in the order of the first; at least one."""
    common = tuple(channel for channel in a.channels if channel in b.channels)
    if not common:
        raise InputError(
            f"No channel is in both tables: one has {', '.join(a.channels)}, the other "
            f"{', '.join(b.channels)}; rename the columns that mean the same."
        )
    return common


def read_table(path: str | Path, time: str | None = None) -> Table:
    r"""Read a series from CSV or Parquet, in wide or in long layout.

    Wide: a time column and one numeric column for each channel. The time column is the one called ``time``
    when given, else the one named ds, date, time, timestamp or datetime, else the only one that holds dates.
    Long: the columns unique_id, ds (or ``time``) and y, other columns being ignored; channels come in order
    of first appearance, rows are the union of the times.

    Times are ISO 8601 dates or date-times, or integers, strictly increasing (in long layout: for each
    unique_id). Empty cells and NA, N/A, NaN, null, None, X (in any case) are missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "load.csv"
    >>> _ = path.write_text("date,load,temperature\n2024-01-01,5.5,X\n2024-01-02,6.0,-1\n")
    >>> table = read_table(path)
    >>> table.channels
    ('load', 'temperature')
    >>> table.values
    array([[ 5.5,  nan],
           [ 6. , -1. ]])
    """
    frame = _read_frame(Path(path))
    if {"unique_id", time or "ds", "y"} <= set(frame.columns):
        return _pivoted(frame, time or "ds")
    return _wide(frame, _time_column(frame, time))


def regular(table: Table) -> tuple[Table, int]:
    """The table with an all-NaN row for each missing stamp, and how many rows were inserted: see `ompb.times.regular`.

    >>> table = Table(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 3]), ("y",), "row")
    >>> full, inserted = regular(table)
    >>> full.values[:, 0], inserted
    (array([ 1.,  2., nan,  4.]), 1)
    """
    values, times, inserted = regular_rows(table.values, table.times, "the table")
    full = Table(values, times, table.channels, table.time_name) if inserted else table
    return full, inserted


def split_row(table: Table, place: str, name: str = "source_end") -> int:
    """How many rows lie before a place, from a number of rows or an ISO date or date-time.

    Rows at or after the date lie behind it. Both parts must have a row; ``name`` says in errors whose place it is.

    >>> days = np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]").astype("datetime64[us]")
    >>> table = Table(np.zeros((4, 1)), days, ("y",), "date")
    >>> split_row(table, "3"), split_row(table, "2024-01-02")
    (3, 1)
    """
    if len(table.times) < 2:
        raise TooShortError(f"the table has {len(table.times)} row; pass one with rows for both source and target.")
    rows = whole_number(place)
    if rows is None:
        rows = _rows_before(table, place, name)
    if not 0 < rows < len(table.times):
        raise OptionError(
            f"{name} = {place!r} does not split the {len(table.times)} rows in two; pass 1 to "
            f"{len(table.times) - 1} rows, or a date (2024-01-31) after {shown(table.times[0])} and up to "
            f"{shown(table.times[-1])}."
        )
    return rows


def read_forecasts(path: str | Path, table: Table, horizon: int) -> Floats:
    """Recorded forecasts, (T, horizon, C), by the row of their cutoff: the last row known when made.

    The file has the columns unique_id (may be absent when the table has one channel), ds, cutoff and y_hat;
    ``[t, h - 1, c]`` is the forecast made at row t for row t + h of channel c, NaN where the file has none.
    Leads are counted in rows of the table, so pass one without gaps (see ``regular``); stamps up to
    ``horizon`` steps after its end are known.
    """
    frame = _read_frame(Path(path))
    channel = _channel_numbers(frame, table)
    origin = _positions(frame, "cutoff", table.times)
    lead = _positions(frame, "ds", with_future(table.times, horizon)) - origin
    _require_leads(frame, lead, horizon)
    values = _numbers(_column(frame, "y_hat"))
    forecasts = np.full((len(table.times), horizon, len(table.channels)), np.nan)
    cells = np.ravel_multi_index((origin, lead - 1, channel), forecasts.shape)
    _require_distinct(frame, cells)
    forecasts.flat[cells] = values
    return forecasts


def write_table(path: str | Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write flat columns of equal length to CSV or Parquet, by suffix; NaN becomes an empty cell (null).

    A text that a spreadsheet would take for a formula (it begins with =, +, -, @, a tab or a carriage return) gets a
    single quote before it in CSV: the spreadsheet then shows it and does not run it. Numbers stay as they are.
    """
    path = Path(path)
    _require_suffix(path)
    shapes = {name: np.shape(values) for name, values in columns.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ShapeError(f"The columns have shapes {shapes}; pass one or more flat columns of equal length.")
    frame = pl.DataFrame({name: np.asarray(values) for name, values in columns.items()}).fill_nan(None)
    # an open file, since polars takes no path that is not UTF-8
    with replacing(path, parents=True) as part, part.open("wb") as file:
        if path.suffix.lower() == ".csv":
            frame.with_columns(pl.col(pl.String).str.replace(FORMULA, "'$1")).write_csv(
                file, datetime_format="%Y-%m-%dT%H:%M:%S%.f"
            )
        else:
            frame.write_parquet(file)


# Files and columns


def _require_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(f"{str(path)!r} ends in {path.suffix!r}; only .csv and .parquet are known, so convert it.")


def _read_frame(path: Path) -> pl.DataFrame:
    """The file as it stands: CSV cells as text, Parquet columns with their own types."""
    _require_suffix(path)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; check the path.")
    is_csv = path.suffix.lower() == ".csv"
    try:
        with path.open("rb") as file:  # an open file, since polars takes no path that is not UTF-8
            frame = pl.read_csv(file, infer_schema=False) if is_csv else pl.read_parquet(file)
    except pl.exceptions.NoDataError as problem:
        raise TooShortError(f"{str(path)!r} is empty; it needs a header and at least one row.") from problem
    except pl.exceptions.PolarsError as problem:
        raise FormatError(
            f"{str(path)!r} cannot be read as {path.suffix[1:]}: {problem}; mend or export it again."
        ) from problem
    if frame.height == 0:
        raise TooShortError(f"{str(path)!r} has no rows under its header; it needs at least one.")
    return frame


def _column(frame: pl.DataFrame, name: str) -> pl.Series:
    if name not in frame.columns:
        raise InputError(f"There is no column {name!r}; the file has {', '.join(frame.columns)}. Rename one of them.")
    return frame[name]


def _numbers(column: pl.Series) -> Floats:
    """The column as float64 with NaN for missing; anything else that is not a finite number is an error."""
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        column = text.set(text.str.to_lowercase().is_in(MISSING), None)
    elif not (column.dtype.is_numeric() or column.dtype == pl.Null):
        raise DtypeError(
            f"Column {column.name!r} has the type {column.dtype} (first value {column[0]}); "
            "all columns but the time must be numeric, so drop or encode it."
        )
    values = column.cast(pl.Float64, strict=False)
    refused = column.filter(values.is_null() & column.is_not_null())
    if len(refused):
        raise DtypeError(
            f"Column {column.name!r} holds {refused[0]!r}, which is not a number; all columns but the time "
            "must be numeric (missing: an empty cell, NA, NaN, null or X), so drop or encode it."
        )
    numbers = values.to_numpy().astype(np.float64)
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise NotFiniteError(
            f"Column {column.name!r} is infinite in data row {row + 1}; leave the cell empty if unknown."
        )
    return numbers


def _time_column(frame: pl.DataFrame, time: str | None) -> str:
    if time is not None:
        return _column(frame, time).name
    named = [name for name in frame.columns if name.lower() in TIME_NAMES]
    found = named or [column.name for column in frame if starts_with_stamp(column)]
    if len(found) != 1:
        number = f"{len(found)} time columns ({', '.join(found)})" if found else "no time column"
        raise InputError(
            f"Found {number} among {', '.join(frame.columns)}; name it with time (--time on the command line)."
        )
    return found[0]


def _wide(frame: pl.DataFrame, time: str) -> Table:
    columns = [column for column in frame if column.name != time]
    if not columns:
        raise InputError(f"There is no numeric column beside the time column {time!r}; add the values.")
    times = times_of(frame[time])
    require_increasing(times, f"column {time!r}")
    values = np.stack([_numbers(column) for column in columns], axis=1)
    return Table(values, times, tuple(column.name for column in columns), time)


def _pivoted(frame: pl.DataFrame, time: str) -> Table:
    values, names, times = pivoted(_identities(frame), times_of(frame[time]), _numbers(frame["y"]))
    return Table(values, times, names, time)


def _identities(frame: pl.DataFrame) -> list[str]:
    """The unique_id of each row as text, without the quote that `write_table` puts before a formula."""
    texts = frame["unique_id"].cast(pl.String).str.replace(QUOTED_FORMULA, "$1")
    if texts.null_count():
        row = int(texts.is_null().arg_max() or 0)
        raise InputError(f"Column 'unique_id' is empty in data row {row + 1}; name the series of that row.")
    return texts.to_list()


# Recorded forecasts


def _channel_numbers(frame: pl.DataFrame, table: Table) -> Ints:
    """The channel of each forecast row."""
    if "unique_id" not in frame.columns and len(table.channels) == 1:
        return np.zeros(frame.height, dtype=np.int64)
    _column(frame, "unique_id")
    names, numbers = distinct(_identities(frame))
    unknown = [name for name in names if name not in table.channels]
    if unknown:
        raise InputError(
            f"The forecasts have unique_id {unknown[0]!r}; the table has the channels "
            f"{', '.join(table.channels)}. Rename or drop those rows."
        )
    return np.array([table.channels.index(name) for name in names])[numbers]


def _positions(frame: pl.DataFrame, name: str, stamps: Times) -> Ints:
    """The position of each cell of a time column among ``stamps``, which are sorted."""
    times = times_of(_column(frame, name))
    if times.dtype.kind != stamps.dtype.kind:
        found, wanted = ("integers", "dates") if times.dtype.kind == "i" else ("dates", "integers")
        raise DtypeError(f"Column {name!r} holds {found} and the table's times are {wanted}; write both alike.")
    positions = np.minimum(np.searchsorted(stamps, times), len(stamps) - 1)
    missed = stamps[positions] != times
    if missed.any():
        raise TimeOrderError(
            f"{name} = {shown(times[missed][0])} is not on the table's steps from {shown(stamps[0])} to "
            f"{shown(stamps[-1])}; drop such forecasts, fill the gaps of the table, or raise the horizon."
        )
    return positions


def _require_leads(frame: pl.DataFrame, lead: Ints, horizon: int) -> None:
    wrong = np.flatnonzero((lead < 1) | (lead > horizon))
    if len(wrong):
        row = int(wrong[0])
        raise TimeOrderError(
            f"The forecast for ds = {frame['ds'][row]} from cutoff = {frame['cutoff'][row]} has lead "
            f"{lead[row]}; leads go from 1 to {horizon}, so drop it or raise the horizon."
        )


def _require_distinct(frame: pl.DataFrame, cells: Ints) -> None:
    _, first = np.unique(cells, return_index=True)
    if len(first) < len(cells):
        row = int(np.setdiff1d(np.arange(len(cells)), first)[0])
        raise TimeOrderError(
            f"Data row {row + 1} (ds = {frame['ds'][row]}, cutoff = {frame['cutoff'][row]}) repeats a "
            "forecast of the same series; keep one of them."
        )


def _rows_before(table: Table, place: str, name: str) -> int:
    stamp = iso_stamp(place)
    if stamp is None:
        raise OptionError(
            f"{name} = {place!r} is neither a number of rows nor a date; write 1000, 2024-01-31 or 2024-01-31T12:00."
        )
    if table.times.dtype.kind == "i":
        raise OptionError(f"{name} = {place!r} is a date and the table's times are integers; pass a number of rows.")
    return int(np.searchsorted(table.times, stamp))
