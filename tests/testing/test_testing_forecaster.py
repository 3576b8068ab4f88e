"""`check_forecaster`: the whole way of a good forecaster, and one whose answers depend on what it was asked before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ompb
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import CheckError
from ompb.testing import check_forecaster
from ompb.types import Floats

CONTEXT, HORIZON = 24, 4
SOURCE, STREAM = shifted_stream("level", seed=0, source_rows=400, target_rows=80, channels=2, season=12)
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": 12}
TIMES = np.datetime64("2024-01-01", "us") + np.arange(480) * np.timedelta64(1, "h")


def test_a_good_one_passes_and_its_backtest_is_returned() -> None:
    forecaster = ompb.Ridge.fit(SOURCE, CONTEXT, HORIZON)
    stamps: dict[str, Any] = {"times": TIMES[:400], "stream_times": TIMES[400:]}
    run = check_forecaster(forecaster, SOURCE, STREAM, **stamps, **SIZES)
    assert run.mean.shape == (80 - CONTEXT + 1, HORIZON, 2)
    assert np.abs(run.mean - run.outcome)[:-HORIZON].mean() < np.abs(run.base - run.outcome)[:-HORIZON].mean()


def test_a_fault_is_told_by_the_check() -> None:
    with pytest.raises(CheckError, match="one and the same answer"):
        check_forecaster(lambda windows: np.zeros((len(windows), HORIZON, 2)), SOURCE, STREAM, **SIZES)


class Tired:
    """Answers like another after so many windows: too late for the check."""

    def __init__(self, after: int) -> None:
        self.asked, self.after = 0, after

    def __call__(self, windows: Floats) -> Floats:
        self.asked += len(windows)
        return np.repeat(windows[:, -1:], HORIZON, axis=1) + float(self.asked > self.after)


def test_a_memory_that_shows_late_is_found_in_the_stream() -> None:
    passed = Tired(10**9)
    check_forecaster(passed, SOURCE, STREAM, **SIZES)
    with pytest.raises(AssertionError, match="off its backtest at origin"):
        check_forecaster(Tired(passed.asked - 20), SOURCE, STREAM, **SIZES)
