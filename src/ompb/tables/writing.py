"""Columns as a file that people and programs can open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.errors import OptionError, ShapeError
from ompb.floor.extras import extra
from ompb.floor.files import replacing
from ompb.tables.clock import Clock

with extra("report", needed_by="ompb.tables"):
    import polars as pl

SUFFIXES = (".csv", ".parquet")
FORMULA = r"^([=+\-@\t\r])"  # a text that a spreadsheet would run


def write_table(path: str | Path, columns: Mapping[str, NDArray[Any]], clock: Clock | None = None) -> None:
    """Write flat columns of equal length to CSV or Parquet, by suffix; NaN becomes an empty cell (null).

    Columns of times are told by ``clock``. A text that a spreadsheet would take for a formula (it begins with =, +, -,
    @, a tab or a carriage return) gets a single quote before it in CSV: the spreadsheet then shows it and does not run
    it. Numbers stay as they are.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(f"{str(path)!r} ends in {path.suffix!r}; name it .csv or .parquet.")
    shapes = {name: np.shape(values) for name, values in columns.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ShapeError(f"The columns have shapes {shapes}; pass one or more flat columns of equal length.")
    is_csv = path.suffix.lower() == ".csv"
    clock = clock or Clock()
    frame = pl.DataFrame({name: _series(np.asarray(values), clock, is_csv) for name, values in columns.items()})
    # an open file, since polars takes no path that is not UTF-8
    with replacing(path, parents=True) as part, part.open("wb") as file:
        if is_csv:
            texts = frame.with_columns(pl.col(pl.String).str.replace(FORMULA, "'$1"))
            texts.write_csv(file)
        else:
            frame.write_parquet(file, compression="zstd")


def _series(values: NDArray[Any], clock: Clock, is_csv: bool) -> pl.Series:
    if values.dtype.kind != "M":
        return pl.Series(values, nan_to_null=True)
    stamps = values.astype("datetime64[us]")
    if not (clock.known or is_csv):
        return pl.Series(stamps)
    # a stamp comes with every lead and channel: each is told once
    different, places = np.unique(stamps, return_inverse=True)
    return (clock.texts(different) if is_csv else clock.column(different)).gather(places)
