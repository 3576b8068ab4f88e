"""The pages that the benchmarks write: arithmetic, and a small measurement."""

import pytest

import fleet_sizes
import ray_cost
from fleet_sizes import Measured
from ray_cost import Clock, Cost


def test_what_so_many_series_need_is_what_one_needs_times_their_number() -> None:
    slow = Measured(100, 20_000.0, 128.0, 64.0, 0.1, 0.2)
    page = fleet_sizes.page([slow, slow._replace(size=300, rate=50_000.0)], 24, ["| 24 | float64 | 1 | 2 | 3 |"])
    assert "| 100 | 20,000 | 128.0 | 64.0 | 0.10 | 0.20 |" in page
    assert "With shards of 300;" in page
    million = next(line for line in page.splitlines() if line.startswith("| 1,000,000 |"))
    assert million == "| 1,000,000 | 122.1 | 61.0 | < 1 | < 1 | < 1 | 20 |"


def test_a_fleet_is_measured() -> None:
    found = fleet_sizes.measure(size=3, horizon=4, ticks=96)
    assert min(found) > 0
    assert found.file == pytest.approx(found.memory, rel=0.5)  # a snapshot is the state and a few names


def test_the_cost_of_a_row_is_that_of_the_warm_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cost, "WARM_UP", 1)
    clock = Clock()
    assert clock.last is None
    clock.times = [(0.0, 0.0, 0.0), (10.0, 1.0, 2.0), (11.0, 1.2, 2.1), (12.0, 1.4, 2.2)]
    assert clock.last == 3
    assert clock.cost(100, workers=2) == pytest.approx((100.0, 4000.0, 1000.0))  # 200 rows in 2, 2 x 0.4 and 0.2 s
    assert clock.cost(100, workers=0) == pytest.approx((100.0, 2000.0, 0.0))
    page = ray_cost.page({"this process": Cost(1e5, 8.0, 0.0), "one worker": Cost(9e4, 8.5, 0.5)}, 600, 400)
    assert "| one worker | 90.0k | 0.90 | 8.5 | 0.5 |" in page
