"""Data sets that others publish: which files they need, where to get them, and how columns are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ompb.datasets.splits import BenchmarkData
from ompb.errors import FormatError, InputError, TimeOrderError
from ompb.floor.extras import extra
from ompb.floor.times import Times
from ompb.tables import Table, regular
from ompb.types import Floats

with extra("report", needed_by="ompb.datasets.public"):
    import polars as pl

VARIABLE = "OMPB_DATA"  # the environment variable that names the folder
MISSING = ("", "X", "NA", "NaN", "nan")


@dataclass(frozen=True, slots=True)
class PublicSet:
    """The files of a data set, one per pattern, and how their tables become benchmark data."""

    name: str  # what it is asked for by
    patterns: tuple[str, ...]
    origin: str  # in words, after "get it from"
    read: Callable[[Path], Table]  # one file as it stands, NaN for missing
    build: Callable[..., BenchmarkData]  # from the tables, in the order of the patterns

    def missing(self, folder: Path) -> list[str]:
        """The patterns that no file in the folder fits."""
        return [pattern for pattern in self.patterns if not any(folder.glob(pattern))]

    def tables(self, folder: Path) -> dict[Path, Table]:
        """Every file as it stands, by path; raises with the way to get one that is not there."""
        return {path: self.read(path) for path in (self._path(folder, pattern) for pattern in self.patterns)}

    def _path(self, folder: Path, pattern: str) -> Path:
        found = sorted(folder.glob(pattern))
        if not found:
            raise InputError(
                f"{self.name} needs {pattern}, which is not in {str(folder)!r}. Get it from {self.origin}; then name "
                f"its folder with --folder (in Python: folder=) or the environment variable {VARIABLE}."
            )
        if len(found) > 1:
            raise InputError(
                f"{self.name} needs one file {pattern} and {str(folder)!r} has "
                f"{', '.join(path.name for path in found)}; keep one of them there."
            )
        return found[0]


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder given, else the one OMPB_DATA names, else "data" in the current directory."""
    return Path(folder or os.environ.get(VARIABLE) or "data")


def read_hourly(path: Path, time: str, channels: Sequence[str]) -> Table:
    """These channels of a CSV with one row per time stamp; a stamp left out becomes a row of NaN."""
    frame = read_columns(path, (time, *channels))
    times = _stamps(path, frame[time])
    require_increasing(times, path)
    return regular(Table(numbers(path, frame.select(channels)), times, tuple(channels), time))[0]


def _stamps(path: Path, column: pl.Series) -> Times:
    stamps = column.str.replace("T", " ").str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False)
    refused = column.filter(stamps.is_null())
    if len(refused):
        raise FormatError(
            f"{path.name} holds {refused[0]!r} in column {column.name!r}; "
            "every row needs a time like 2016-07-01 00:00:00. Get the file in its public layout."
        )
    return stamps.to_numpy()


def read_columns(path: Path, columns: Sequence[str], title_lines: int = 0) -> pl.DataFrame:
    """These columns of a CSV as text, null for missing."""
    try:
        frame = pl.read_csv(path, infer_schema=False, null_values=list(MISSING), skip_rows=title_lines)
    except pl.exceptions.PolarsError as problem:
        raise FormatError(f"{path.name} cannot be read as CSV: {problem}; get the file again.") from problem
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        raise FormatError(
            f"{path.name} has no column {absent[0]!r}; it needs {', '.join(columns)} and has "
            f"{', '.join(frame.columns)}. Get the file in its public layout."
        )
    return frame.select(columns)


def numbers(path: Path, text: pl.DataFrame) -> Floats:
    """Columns of text as float64 (rows, columns), NaN for missing."""
    values = text.select(pl.all().str.strip_chars().cast(pl.Float64, strict=False))
    for column in text:
        refused = column.filter(values[column.name].is_null() & column.is_not_null())
        if len(refused):
            raise FormatError(f"{path.name} holds {refused[0]!r} in column {column.name!r}; it must hold numbers only.")
    return values.fill_null(np.nan).to_numpy()


def require_increasing(times: Times, path: Path) -> None:
    """Raise unless each time is later than the one before."""
    wrong = np.flatnonzero(times[1:] <= times[:-1])
    if len(wrong):
        raise TimeOrderError(
            f"{path.name} has the time {times[wrong[0] + 1]} after {times[wrong[0]]}; each must be later than the one "
            "before, so sort the rows and keep one site and one row for each time."
        )
