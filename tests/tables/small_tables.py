"""Small tables, in memory and on disk."""

from pathlib import Path

import numpy as np

from ompb.floor.times import Times
from ompb.tables import Table

UNKNOWN = np.nan


def csv(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def days(*numbers: int) -> Times:
    return np.array([f"2024-01-{n:02d}" for n in numbers], dtype="datetime64[us]")


def daily(count: int, channels: tuple[str, ...] = ("a", "b")) -> Table:
    values = np.arange(count * len(channels), dtype=np.float64).reshape(count, -1)
    return Table(values, days(*range(1, count + 1)), channels, "ds")
