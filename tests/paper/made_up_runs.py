"""Finished cells that nobody ran, with steps that are known by heart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ompb.bench.store import Cell, Result, Steps, Store
from ompb.datasets.benchmark import BenchmarkData
from ompb.errors import InputError
from ompb.paper import places
from ompb.paper.analysis import Runs

CONTEXT = 8


def made_up_runs(folder: Path, kept: Mapping[Cell, Steps], metrics: Mapping[str, float] | None = None) -> Runs:
    """A store with these cells."""
    store = Store(folder)
    for cell, steps in kept.items():
        store.write(Result(cell, metrics or {"mae": 1.0}, {}, {}, {"ompb": "0"}, "cpu", "abc", {}))
        store.write_steps(cell, steps)
    return Runs.of(store)


def made_up_steps(count: int = 60, seed: int = 0, horizon: int = 4, channels: int = 2, **columns: Any) -> Steps:
    """Random signals, but for the columns given."""
    chance = np.random.default_rng(seed)
    names = (
        "mae", "mse", "value", "source_risk", "gamma", "disagreement", "source_disagreement", "target_disagreement",
        "posterior_shift", "gate", "expected_error", "warnings", "novelty",
    )  # fmt: skip
    random = {name: chance.uniform(0.1, 0.9, count) for name in names}
    shape = (3, horizon, channels)
    shown = {f"shown_{name}": chance.normal(size=shape) for name in ("mean", "base", "outcome")}
    shown |= {"shown_lower": shown["shown_mean"] - 1, "shown_upper": shown["shown_mean"] + 1}
    return {
        "origin": CONTEXT - 1 + np.arange(count),
        "tau_y": np.full(count, 1.0),
        **random,
        **shown,
        "shown_origin": CONTEXT - 1 + np.array([count // 4, count // 2, 3 * count // 4]),
        **{name: np.asarray(values) for name, values in columns.items()},
    }


def made_up_data(streams: tuple[str, ...] = ("id", "ood"), rows: int = 80) -> BenchmarkData:
    """Two channels; each stream lies two further up than the one before."""
    chance = np.random.default_rng(1)
    away = {split: chance.normal(2.0 * place, 1.0, (rows, 2)) for place, split in enumerate(streams)}
    return BenchmarkData("made up", ("a", "b"), CONTEXT, 4, chance.normal(0.0, 1.0, (300, 2)), away)


def use_data(monkeypatch: pytest.MonkeyPatch, data: BenchmarkData | None) -> None:
    """Every data set is this one, or absent."""

    def load(name: str) -> BenchmarkData:
        if data is None:
            raise InputError(f"{name} is not there")
        return data

    monkeypatch.setattr(places, "load", load)
