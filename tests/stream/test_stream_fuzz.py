"""The fuzzed streams: some of them in every run of the tests, and a stream that is wrong is found."""

from __future__ import annotations

import numpy as np
import pytest
from small_streams import HORIZON

import ompb
from fuzz_streams import fuzz
from ompb.core.intervals import IntervalRule, IntervalState
from ompb.types import Floats


def test_nothing_untyped_nothing_infinite_nothing_changed_by_an_error() -> None:
    tally = fuzz(60, seed=1)
    assert tally.of("wrong") == 0, str(tally)
    assert tally.of("refused") > 50  # it does misbehave
    assert tally.of("answered") > 1000


def test_a_stream_that_says_nan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def sd(_: IntervalRule, state: IntervalState, leverage: Floats) -> Floats:
        return np.asarray(state.variance * leverage[:, None] * np.nan)

    monkeypatch.setattr(IntervalRule, "sd", sd)
    tally = fuzz(1)
    assert tally.of("wrong") > 0
    assert "sd" in str(tally)


def test_a_stream_that_changes_and_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    step = ompb.Stream.step

    def hasty(stream: ompb.Stream, row: Floats, **more: object) -> ompb.Forecast | None:
        forecast = step(stream, row)
        if stream.rows % HORIZON == 0:
            raise ompb.errors.InputError("too late")
        del more
        return forecast

    monkeypatch.setattr(ompb.Stream, "step", hasty)
    tally = fuzz(3)
    assert "changed the state" in str(tally)
