"""benchmarks/rehearsal.py plays the gate of a stream over what its voices said."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ompb import Calibrator, Recorded, Ridge, Settings, backtest
from ompb.rows.windows import sliding

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CONTEXT, HORIZON, SEASON = 24, 6, 12


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import rehearsal
    import rehearsal_streams

    return rehearsal, rehearsal_streams


def rows() -> Any:
    hours = np.arange(700)[:, None]
    return np.sin(2 * np.pi * hours / SEASON) + 0.3 * np.random.default_rng(0).normal(size=(700, 2))


@pytest.mark.parametrize("change", [{}, {"novelty": 0.0, "gate_discounts": (0.99,), "cautions": (50.0,)}])
def test_the_gate_plays_as_it_does_in_a_stream(modules: tuple[Any, Any], change: dict[str, Any]) -> None:
    rehearsal, streams = modules
    past, later = rows()[:450], rows()[450:] + 1.0
    ridge = Ridge.fit(past, CONTEXT, HORIZON)
    sizes: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, "certificate": False}
    one = streams.Series("sines", rows(), CONTEXT, SEASON, (HORIZON,))
    calibrator = Calibrator.fit(ridge, past, **sizes, **change)
    said = streams.record(one, "a stream", "ridge", calibrator, ridge, later)
    assert said.leads.tolist() == [1, 2, 3, 4, 5, 6]
    issued = rehearsal.Group.of([said]).played(calibrator.settings)
    base = np.concatenate([np.full((CONTEXT - 1, HORIZON, 2), np.nan), ridge(sliding(later, CONTEXT))])
    run = backtest(calibrator, Recorded(base), later)
    expected = np.moveaxis((run.mean - run.base) / run.scale, 1, 2)
    np.testing.assert_allclose(issued, expected, atol=2e-6)  # records are of single precision
    ((key, ratio),) = rehearsal.Group.of([said]).log_ratios(calibrator.settings)
    ours, bare = (np.nanmean(np.abs((by - run.outcome) / run.scale)) for by in (run.mean, run.base))
    assert key == ("sines", "ridge", "a stream")
    assert ratio == pytest.approx(math.log(ours / bare), abs=1e-5)


def test_harm_counts_three_times_and_a_small_gain_is_not_worth_a_change(modules: tuple[Any, Any]) -> None:
    rehearsal, _ = modules
    now = rehearsal.Outcome(
        {("a", "ridge", "first"): -0.2, ("a", "knows", "second"): 0.1, ("b", "ridge", "third"): -0.3}
    )
    assert now.score == pytest.approx((((-0.2 + 0.3) / 2) - 0.3) / 2)
    assert (now.harmed(False), now.harmed(True)) == (0, 1)
    slightly = rehearsal.Outcome({key: ratio - 0.001 for key, ratio in now.log_ratios.items()})
    clearly = rehearsal.Outcome({key: ratio - 0.2 for key, ratio in now.log_ratios.items()})
    unworthy = rehearsal.page({"as it is": now, "other": slightly})
    assert "is not worth making" in unworthy
    assert "Made by `python benchmarks/rehearsal.py --data DIR`" in unworthy
    assert "*other*, gains" in rehearsal.page({"as it is": now, "other": clearly})
    assert "is worth making" in rehearsal.page({"as it is": now, "other": clearly})


def test_every_change_is_one_of_settings(modules: tuple[Any, Any]) -> None:
    rehearsal, _ = modules
    for change in rehearsal.CHANGES.values():
        Settings.of(**change)
