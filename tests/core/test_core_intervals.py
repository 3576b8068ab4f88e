"""The residual variance and the conformal factor, against their formulas in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ompb.core.intervals import FLOOR, LEVELS, REACH, Conformal, ConformalState, IntervalOptions
from ompb.normal import gaussian_half_width
from ompb.types import Floats

LANES, LEADS, DISCOUNT, RATE = 2, 3, 0.9, 0.2


def rule() -> Conformal:
    return Conformal(IntervalOptions(DISCOUNT, RATE), np.ones((LANES, LEADS)))


def draw(seed: int, scale: float = 1.0) -> tuple[Floats, Floats, Floats, Floats]:
    """Errors, 1/sd, 1/(1 + q) and which were observed, of one row."""
    rng = np.random.default_rng(seed)
    observed = np.asarray(rng.random((LANES, LEADS)) < 0.7, dtype=np.float64)
    leverage = rng.uniform(0.2, 3.0, (LANES, LEADS))
    return scale * rng.normal(size=(LANES, LEADS)) * observed, rng.uniform(0.3, 2, (LANES, LEADS)), leverage, observed


def test_the_variance_is_the_discounted_mean_of_errors_freed_of_their_leverage() -> None:
    """An error has variance sigma^2 (1 + q): without its share 1/(1 + q) sigma^2 would take the posterior's for its."""
    rules = rule()
    state = rules.start(np.full((LANES, LEADS), 2.0))
    expected = np.full((LANES, LEADS), 2.0)
    for seed in range(30):
        error, precision, leverage, observed = draw(seed)
        state = rules.learn(state, error, precision, 1 / (1 + leverage), observed)
        for place in np.ndindex(LANES, LEADS):
            if observed[place]:
                own = error[place] ** 2 / (1 + leverage[place])
                expected[place] = DISCOUNT * expected[place] + (1 - DISCOUNT) * own
        np.testing.assert_allclose(state.variance, expected, rtol=1e-12)


def test_the_variance_is_that_of_the_noise_whatever_the_leverage() -> None:
    rng = np.random.default_rng(0)
    rules = Conformal(IntervalOptions(0.999, 0.0), np.ones((1, 1)))
    state: ConformalState = rules.start(np.ones((1, 1)))
    for _ in range(20_000):
        leverage, noise = rng.uniform(0, 9), 0.5
        error = rng.normal(scale=noise * math.sqrt(1 + leverage), size=(1, 1))
        state = rules.learn(state, error, np.ones((1, 1)), np.full((1, 1), 1 / (1 + leverage)), np.ones((1, 1)))
    assert state.variance[0, 0] == pytest.approx(0.25, rel=0.1)


def test_sd_puts_the_leverage_back() -> None:
    state = ConformalState(np.asarray([[4.0, 9.0, 1.0]]), np.zeros((1, len(LEVELS))))
    np.testing.assert_allclose(rule().sd(state, np.asarray([3.0])), [[4.0, 6.0, 2.0]])


def test_factors_move_by_the_share_outside_less_the_share_allowed() -> None:
    rules = rule()
    state = rules.start(np.ones((LANES, LEADS)))
    logs = np.zeros((LANES, len(LEVELS)))
    for seed in range(40):
        error, precision, leverage, observed = draw(seed, scale=2.0)
        for lane in range(LANES):
            seen = [lead for lead in range(LEADS) if observed[lane, lead]]
            for place, level in enumerate(LEVELS):
                half = gaussian_half_width(level) * math.exp(logs[lane, place])
                outside = [abs(error[lane, lead]) * precision[lane, lead] > half for lead in seen]
                if seen:
                    moved = logs[lane, place] + RATE * (sum(outside) / len(seen) - (1 - level))
                    logs[lane, place] = min(max(moved, -math.log(5)), math.log(5))
        state = rules.learn(state, error, precision, 1 / (1 + leverage), observed)
        np.testing.assert_allclose(state.log_factor, logs, atol=1e-12)


def test_neither_variance_nor_factors_leave_their_bounds() -> None:
    rules = rule()
    state = rules.start(np.ones((LANES, LEADS)))
    ones = np.ones((LANES, LEADS))
    for _ in range(500):
        state = rules.learn(state, 0 * ones, ones, ones, ones)
    assert (state.variance == FLOOR).all()
    assert (state.log_factor == -REACH).any()
    for _ in range(500):
        state = rules.learn(state, 1e6 * ones, ones, ones, ones)
    assert (state.log_factor == REACH).all()
    np.testing.assert_allclose(rules.half_widths(state)[0], [5 * gaussian_half_width(level) for level in LEVELS])
