"""The signals of the warnings against twins in plain loops, and their false alarms against the stated rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ompb.core.expected import GAUSSIAN
from ompb.core.record import BLOCK, Record
from ompb.core.warnings import DRIFT, MEMORY, MOST, SourceSignals, WarningOptions, Warnings, WarningState, level_span
from ompb.types import Floats

SPAN, CONTEXT, FEATURES = 6, 12, 3


def rules(lanes: int, channels: int = 1, record: Record | None = None, **changed: Any) -> Warnings:
    """Warnings whose source has had levels from -1 to 1."""
    sees_inputs, sees_novelty = changed.pop("sees_inputs", True), changed.pop("sees_novelty", False)
    signals = 2 + sees_inputs + sees_novelty
    if record is None:
        record = Record.empty(np.zeros(1), lanes // channels, signals)
    source = SourceSignals(record, np.tile([-1.0, 1.0], (lanes, 1)), SPAN)
    return Warnings(source, channels, sees_inputs, sees_novelty, WarningOptions(**changed))


def autoregressive(rows: int, lanes: int, seed: int, memory: float = 0.7) -> Floats:
    """Seasonal series with AR noise, (rows, lanes), of about unit variance."""
    shocks = np.random.default_rng(seed).normal(size=(rows, lanes))
    noise = np.zeros_like(shocks)
    for row in range(1, rows):
        noise[row] = memory * noise[row - 1] + math.sqrt(1 - memory**2) * shocks[row]
    return np.asarray(np.sin(2 * np.pi * np.arange(rows)[:, None] / SPAN) + 0.7 * noise)


def stepped(warnings: Warnings, values: Floats, errors: Floats, first: int = 0) -> list[WarningState]:
    """The states after the rows (T, N), each with the first-lead errors of its cells."""
    states = [warnings.start()]
    weights = np.random.default_rng(0).normal(size=(CONTEXT, FEATURES))
    for row in range(CONTEXT - 1, len(values)):
        window = np.ascontiguousarray(values[row + 1 - CONTEXT : row + 1].T)
        known = np.isfinite(errors[row])
        erring = warnings.risen(states[-1].erring, np.where(known, errors[row], 0.0), known.astype(float))
        state = states[-1].with_erring(erring)
        whitened = np.c_[window @ weights, np.ones(len(window))] if warnings.sees_inputs else None
        novelty = np.abs(window[:, -1]) + 0.1 if warnings.sees_novelty else None
        ratio = np.where(known, np.abs(errors[row]), GAUSSIAN)
        states.append(warnings.issue(state, first + row, window, whitened, novelty, ratio))
    return states


@pytest.mark.parametrize("channels", [1, 4])
def test_calm_streams_warn_as_seldom_as_they_say(channels: int) -> None:
    """Twenty streams of 3,000 rows: each signal once in 500 rows, from a law of 480 rows."""
    streams, rows, between = 20, 3000, 500.0
    lanes = streams * channels
    warnings = rules(lanes, channels, rows=between)
    errors = np.random.default_rng(5).normal(size=(rows, lanes))
    states = stepped(warnings, autoregressive(rows, lanes, seed=4), errors)
    heard = streams * (rows - 5 * BLOCK - CONTEXT) / between  # before that there is no law
    for signal in range(3):
        since = np.stack([state.since[:, signal] for state in states[1:]])
        count = sum(len(set(column.tolist()) - {-1}) for column in since.T)
        assert 0.3 * heard < count < 1.3 * heard, warnings.names[signal]


def test_the_sum_of_errors_is_a_cusum() -> None:
    chance = np.random.default_rng(1)
    errors = 2 * chance.standard_t(3, size=(300, 6))
    errors[chance.random(errors.shape) < 0.2] = np.nan
    errors[50] = np.nan
    states = stepped(rules(6, channels=3), autoregressive(300, 6, 0), errors)[1:]
    total = [0.0, 0.0]
    for state, row in zip(states, errors[CONTEXT - 1 :], strict=True):
        for series in range(2):
            known = [e * e for e in row[3 * series : 3 * series + 3] if not math.isnan(e)]
            total[series] = max(0.0, total[series] + min(sum(e - DRIFT for e in known) / 3, MOST))
        np.testing.assert_allclose(state.erring, total, atol=1e-9)


def test_errors_are_of_the_lanes_that_err() -> None:
    values, errors = autoregressive(600, 3, 9), np.random.default_rng(9).normal(size=(600, 3))
    errors[500:, 2] = 6.0
    warnings = rules(3, channels=3)
    last = stepped(warnings, values, errors)[-1]
    found = next(w for w in warnings.in_force(last, 599) if w.signal == "errors")
    assert np.flatnonzero(2 * found.parts >= found.parts.max()).tolist() == [2]


def test_signals_equal_a_direct_computation() -> None:
    values, errors = (
        autoregressive(80, 4, 2) + np.asarray([3.0, 0.0, 0.0, -3.0]),
        np.random.default_rng(2).normal(size=(80, 4)),
    )
    states = stepped(rules(4, channels=2, sees_novelty=True), values, errors)[1:]
    weights = np.random.default_rng(0).normal(size=(CONTEXT, FEATURES))
    usual, high = np.zeros(4), np.full((2, 4), -np.inf)
    for place, (state, row) in enumerate(zip(states, range(CONTEXT - 1, 80), strict=True)):
        window = values[row + 1 - CONTEXT : row + 1].T
        level = window[:, -SPAN:].mean(axis=1)
        if place == 0:
            usual = np.clip(level, -1.0, 1.0)
        features = np.log(((window @ weights) ** 2).sum(axis=1) + 1)
        means = [(level - usual) ** 2, features, np.log(np.abs(window[:, -1]) + 0.1)]
        level_signal, inputs, novelty = (lanes.reshape(2, 2).mean(axis=1) for lanes in means)
        now = np.stack([np.sqrt(level_signal), np.sqrt(state.erring), inputs, novelty], axis=1)
        high = np.maximum(high, now) if place % BLOCK else now
        np.testing.assert_allclose(state.record.high, high, rtol=1e-9)
        usual = usual + (level - usual) / MEMORY


def test_series_side_by_side_are_series_one_by_one() -> None:
    values, errors = autoregressive(700, 6, 3), np.random.default_rng(3).normal(size=(700, 6))
    values[400:] += 2.0
    together = rules(6, channels=2, rows=200.0)
    last = stepped(together, values, errors)[-1]
    assert together.in_force(last, 699)
    for series in range(3):
        lanes = slice(2 * series, 2 * series + 2)
        alone = rules(2, channels=2, rows=200.0)
        one = stepped(alone, values[:, lanes], errors[:, lanes])[-1]
        for name in ("usual", "parts"):
            np.testing.assert_allclose(getattr(last, name)[lanes], getattr(one, name), rtol=1e-12)
        for name in ("erring", "since", "newest", "peak", "line"):
            np.testing.assert_allclose(getattr(last, name)[series], getattr(one, name)[0], rtol=1e-9)
        found, expected = together.in_force(last, 699, series), alone.in_force(one, 699)
        assert [(w.signal, w.since, w.newest) for w in found] == [(w.signal, w.since, w.newest) for w in expected]


def test_an_earlier_state_stays_good() -> None:
    values, errors = autoregressive(400, 2, 6), np.random.default_rng(6).normal(size=(400, 2))
    values[300:] += 5.0
    warnings = rules(2)
    states = stepped(warnings, values, errors)
    again = stepped(warnings, values, errors)
    for state, same in zip(states, again, strict=True):
        for a, b in zip(state, same, strict=True):
            assert all(map(np.array_equal, a, b)) if isinstance(a, Record) else np.array_equal(a, b)


def test_a_warning_ends_a_block_after_its_newest_alarm_and_names_the_lane() -> None:
    values, errors = autoregressive(900, 3, 7), np.random.default_rng(7).normal(size=(900, 3))
    values[600:603, 1] += 40.0
    warnings = rules(3, channels=3)
    states = stepped(warnings, values, errors)[1:]
    by_row = {row: warnings.in_force(state, row) for row, state in enumerate(states, CONTEXT - 1)}
    level = next(w for w in by_row[604] if w.signal == "level")
    assert level.since == 600
    assert int(np.argmax(level.parts)) == 1
    newest = next(w for w in by_row[620] if w.signal == "level").newest
    assert any(w.signal == "level" for w in by_row[newest + BLOCK])
    assert not any(w.signal == "level" for w in by_row[newest + BLOCK + 1])
    strongest = [w.excess for w in by_row[604]]
    assert strongest == sorted(strongest, reverse=True)


def test_without_a_head_the_other_signals_speak() -> None:
    values, errors = autoregressive(410, 1, 8), np.random.default_rng(8).normal(size=(410, 1))
    values[400:] += 4.0
    warnings = rules(1, sees_inputs=False)
    assert warnings.names == ("level", "errors")
    assert warnings.in_force(stepped(warnings, values, errors)[-1], 409)[0].signal == "level"


def test_a_level_that_the_source_has_had_is_usual() -> None:
    calm = Record.empty(np.zeros(1), 2, 3)._replace(
        location=np.zeros((2, 3)), scale=np.full((2, 3), 0.1), rows=20 * BLOCK
    )
    warnings = rules(2, record=calm, sees_inputs=True)
    values = np.tile([0.9, 9.0], (CONTEXT, 1))
    state = stepped(warnings, values, np.zeros_like(values))[-1]
    assert not any(w.signal == "level" for w in warnings.in_force(state, CONTEXT - 1, 0))
    assert any(w.signal == "level" for w in warnings.in_force(state, CONTEXT - 1, 1))


@pytest.mark.parametrize(("season", "context", "rows"), [(24, 96, 24), (168, 96, 24), (None, 96, 24), (None, 6, 6)])
def test_the_level_is_a_seasons_mean_where_one_fits(season: int | None, context: int, rows: int) -> None:
    assert level_span(season, context) == rows
