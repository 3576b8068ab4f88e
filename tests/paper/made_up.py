"""Results and stores that never ran."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from ompb.bench.findings import Section
from ompb.bench.store import Cell, Result, Store
from ompb.datasets.etth import CHANNELS
from ompb.paper.analysis import Runs


def result(
    method: str,
    mae: float,
    *,
    dataset: str = "etth",
    backbone: str = "tcn",
    horizon: int = 24,
    split: str = "id",
    protocol: str = "honest",
    seed: int = 0,
    seconds: float = 0.01,
    metrics: Mapping[str, float] | None = None,
    facts: Mapping[str, int] | None = None,
) -> Result:
    """One whose MSE is the square of its MAE."""
    cell = Cell(dataset, backbone, horizon, split, protocol, method, seed)
    numbers = {"mae": mae, "mse": mae**2, **(metrics or {})}
    return Result(
        cell, numbers, {"windows": 100, **(facts or {})}, {}, {}, "cpu", "c0ffee", {"seconds_per_step": seconds}
    )


def runs(results: Iterable[Result], folder: Path = Path("nowhere")) -> Runs:
    return Runs(Store(folder), tuple(results))


def with_steps(folder: Path, steps: Mapping[Cell, Mapping[str, Iterable[float]]]) -> Store:
    store = Store(folder)
    for cell, columns in steps.items():
        store.write_steps(cell, {name: np.asarray(list(values)) for name, values in columns.items()})
    return store


def line(section: Section, *start: str) -> tuple[str, ...]:
    """The numbers of the one line that starts like this."""
    (found,) = (line for line in section.lines if line[: len(start)] == start)
    return found[section.keys :]


def write_etth(folder: Path, rows: int) -> None:
    """Both files of ETTh, of so many rows of noise."""
    hours = pl.datetime_range(pl.datetime(2020, 1, 1), pl.datetime(2021, 1, 1), "1h", eager=True)[:rows]
    values = np.random.default_rng(0).normal(size=(rows, len(CHANNELS)))
    table = pl.DataFrame({"date": hours, **dict(zip(CHANNELS, values.T, strict=True))})
    for number in (1, 2):
        table.write_csv(folder / f"ETTh{number}.csv", datetime_format="%Y-%m-%d %H:%M:%S")
