"""benchmarks/row_cost.py: what is held at most, and that every cost that tables show is measured."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import row_cost
from methods_cost import Size
from ompb.datasets.benchmark import BenchmarkData
from ompb.paper.grid import ANEW, PRESET, SINGLE, Spot
from ompb.paper.partial import MODES
from ompb.paper.sensitivity import SWEPT
from row_cost import most_held, of_steps, of_training, wanted

TINY = Spot("etth", "tcn", 4, "ood")
SIZE = Size(4, 24, 2, "tcn", "honest", 2, 9, 120)


def test_most_is_what_lies_there_at_once_and_not_what_went_before() -> None:
    """Two megabytes of tensors one after the other are one; a tensor and an array together are both."""
    turns = most_held(lambda: [torch.ones(250_000).sum() for _ in range(2)])
    assert turns == pytest.approx(1, abs=0.1)
    both = most_held(lambda: (torch.ones(250_000), np.ones(250_000)))
    assert both == pytest.approx(1 + 2, abs=0.2)


def test_every_mode_and_training_is_asked_for() -> None:
    asked = wanted()
    assert all(set(MODES) <= set(asked[spot]) for spot in SINGLE)
    assert all(PRESET in asked[spot] for spot in ANEW)
    assert {"ompb[draws=2]", "ompb-paper[draws=32]"} <= set(asked[SWEPT])


def test_costs_of_steps_and_of_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(of_steps(SIZE, ["ompb", "ompb-paper"], tmp_path))
    assert list(found) == ["ompb", "ompb-paper"]
    assert all(cost.milliseconds > 0 and cost.megabytes > 0 for cost in found.values())
    monkeypatch.setattr(row_cost, "BATCHES", 1)
    rows = np.random.default_rng(0).normal(size=(30_000, 2))
    costs = [
        of_training(TINY, SIZE, BenchmarkData("etth", ("a", "b"), 9, None, part, {})) for part in (rows[:300], rows)
    ]
    assert 0 < costs[0].milliseconds < costs[1].milliseconds
