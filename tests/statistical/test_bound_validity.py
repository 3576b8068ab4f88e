"""Do the bounds hold as often as they say? Dependent losses in [0, 1] whose conditional means are known exactly.

What is bounded: the *average conditional risk*, (1/m) sum_i E[l_i | past]. Under dependence that is not the stationary
risk, and no bound of this kind says anything of the latter: `test_dependence_breaks_the_stationary_reading` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from ompb.core.certificate.kinds import Kind
from ompb.core.certificate.realised import RealisedRisks
from ompb.types import Floats

DELTA = 0.05
STREAMS = 2000
# losses and conditional means, each (streams, m)
Maker: TypeAlias = Callable[[int, int, int], tuple[Floats, Floats]]


def beta(rng: np.random.Generator, mean: Floats, size: float) -> Floats:
    """Beta losses of that mean; size is the sum of the two shapes, small = wild."""
    return np.asarray(rng.beta(size * mean, size * (1 - mean)))


def regimes(streams: int, m: int, seed: int, stay: float = 0.95) -> tuple[Floats, Floats]:
    """A calm and a rough regime, seen before each loss: E[l | past] is the regime's mean."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 2, streams)
    means, losses = np.empty((streams, m)), np.empty((streams, m))
    for i in range(m):
        state = np.where(rng.uniform(size=streams) < stay, state, 1 - state)
        means[:, i] = np.where(state == 0, 0.1, 0.7)
        losses[:, i] = beta(rng, means[:, i], 4.0)
    return losses, means


def feedback(streams: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """Each Bernoulli loss depends on the losses before it: E[l | past] = 0.1 + 0.8 * their running average."""
    rng = np.random.default_rng(seed)
    average = np.full(streams, 0.3)
    means, losses = np.empty((streams, m)), np.empty((streams, m))
    for i in range(m):
        means[:, i] = 0.1 + 0.8 * average
        losses[:, i] = rng.uniform(size=streams) < means[:, i]
        average = 0.9 * average + 0.1 * losses[:, i]
    return losses, means


def driven(streams: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """An AR(1) driver, seen before each loss, through a logistic curve; losses are beta around it."""
    rng = np.random.default_rng(seed)
    driver = rng.normal(size=streams) / math.sqrt(1 - 0.9**2)
    means, losses = np.empty((streams, m)), np.empty((streams, m))
    for i in range(m):
        driver = 0.9 * driver + rng.normal(size=streams)
        means[:, i] = 1 / (1 + np.exp(1.5 - driver))
        losses[:, i] = beta(rng, np.clip(means[:, i], 1e-3, 1 - 1e-3), 2.0)
    return losses, np.clip(means, 1e-3, 1 - 1e-3)


def rare(streams: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """Nearly always nought, one in twenty-five a whole one: the estimated variance is nearly always too small."""
    rng = np.random.default_rng(seed)
    means = np.full((streams, m), 0.04)
    return (rng.uniform(size=(streams, m)) < means).astype(np.float64), means


def outbreak(streams: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """Calm for three quarters of the windows, then fair coins: the variance estimate runs behind."""
    rng = np.random.default_rng(seed)
    rough = np.arange(m) >= m - m // 4
    means = np.broadcast_to(np.where(rough, 0.5, 0.05), (streams, m))
    losses = np.where(rough, rng.uniform(size=(streams, m)) < 0.5, beta(rng, means, 200.0))
    return losses, np.asarray(means)


MAKERS: dict[str, Maker] = {
    "regimes": regimes,
    "feedback": feedback,
    "driven": driven,
    "rare": rare,
    "outbreak": outbreak,
}


def upper(kind: str, losses: Floats) -> Floats:
    """Mean loss plus Gamma of each stream with KL = 0 and all of delta spent at once."""
    m = losses.shape[1]
    complexity: Kind = Kind.tags[kind]()
    kappa = np.full(len(losses), math.log(2 * math.sqrt(m) / DELTA))
    spread = complexity.spread(losses, 1.0)
    if kind == "freedman":
        np.testing.assert_array_equal(spread.scale, np.full(len(losses), 1 / 3))
    return np.asarray(losses.mean(axis=1) + complexity.gamma(kappa, spread, m))


def allowed(streams: int) -> float:
    """delta plus three standard errors of a rate of delta."""
    return DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / streams)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("m", [4, 16, 64, 256])
def test_conditional_means_are_what_they_are_called(maker: str, m: int) -> None:
    """The simulations themselves: losses less their conditional means average to nought within four standard errors."""
    losses, means = MAKERS[maker](STREAMS, m, 100 + m)
    assert losses.min() >= 0
    assert losses.max() <= 1
    difference = (losses - means).mean(axis=1)
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(STREAMS)


@pytest.mark.parametrize("kind", ["freedman", "iid", "subgamma"])
@pytest.mark.parametrize("m", [4, 16, 64, 256])
@pytest.mark.parametrize("maker", MAKERS)
def test_average_conditional_risk_is_bounded(maker: str, m: int, kind: str) -> None:
    losses, means = MAKERS[maker](STREAMS, m, m)
    violated = np.mean(means.mean(axis=1) > upper(kind, losses))
    assert violated <= allowed(STREAMS)


def test_the_bound_is_no_platitude() -> None:
    """Freedman reads well below one on calm losses, below iid, and a tenth of it would not hold."""
    losses, means = regimes(STREAMS, 256, 3)
    freedman, iid = (upper(kind, losses) - losses.mean(axis=1) for kind in ("freedman", "iid"))
    assert np.median(upper("freedman", losses)) < 0.6
    calm = np.random.default_rng(4).beta(4, 36, size=(STREAMS, 256))
    assert np.all(upper("freedman", calm) < upper("iid", calm))
    assert np.mean(means.mean(axis=1) > losses.mean(axis=1) + 0.1 * freedman) > allowed(STREAMS)
    assert np.all(iid > 0)


@pytest.mark.parametrize("kind", ["iid", "freedman"])
def test_dependence_breaks_the_stationary_reading(kind: str) -> None:
    """Regimes that last five hundred windows: sixty-four of them say nothing of the other regime.

    Read as a bound on the stationary risk (0.4), iid is wrong about half of the time, ten times delta; with independent
    windows of the same law it is right. Freedman is no better at that: what it bounds is the average conditional risk.
    """
    m, stationary = 64, 0.4
    sticky, means = regimes(STREAMS, m, 5, stay=0.998)
    wrong = np.mean(stationary > upper(kind, sticky))
    assert wrong > 0.3
    shuffled = regimes(STREAMS, m, 6, stay=0.5)[0]  # the regime is drawn afresh each time: independent windows
    assert np.mean(stationary > upper(kind, shuffled)) <= allowed(STREAMS)
    assert np.mean(means.mean(axis=1) > upper(kind, sticky)) <= allowed(STREAMS)


def realised_path(losses: Floats, delta: float) -> Floats:
    """The bound after every outcome, (streams, m), by the rules a stream uses: one lead, one channel, tau 2."""
    streams, m = losses.shape
    rules = RealisedRisks(channels=1, tau=2.0)
    state = rules.start(np.zeros((streams, 1)))
    path = np.empty((streams, m))
    for i in range(m):
        state = rules.issue(state, i)
        state = rules.learn(state, i + 1, 2.0 * np.sqrt(losses[:, i : i + 1]), np.ones((streams, 1)))
        path[:, i] = rules.bound(state, delta)[1]
    return path


def running(values: Floats) -> Floats:
    return np.asarray(np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1))


@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("maker", MAKERS)
def test_realised_risk_holds_at_all_times_at_once(maker: str, delta: float) -> None:
    """A stream counts as violated if the bound fails at *any* of its four hundred times."""
    losses, means = MAKERS[maker](STREAMS, 400, 11)
    path = realised_path(losses, delta)
    violated = np.mean(np.any(running(means) > path + 1e-12, axis=1))
    assert violated <= delta + 3 * math.sqrt(delta * (1 - delta) / STREAMS)


def test_realised_risk_against_its_formula() -> None:
    losses, _ = driven(50, 120, 12)
    path = realised_path(losses, 0.05)
    for stream, last in ((0, 0), (7, 3), (21, 50), (49, 119)):
        seen = losses[stream, : last + 1]
        guesses = [(0.5 + seen[:i].sum()) / (1 + i) for i in range(len(seen))]
        deviation = float(np.sum((seen - guesses) ** 2))
        slack = min(
            (math.log(9 / 0.05) + (-math.log(1 - lam) - lam) * deviation) / (lam * len(seen))
            for lam in (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
        )
        assert path[stream, last] == pytest.approx(min(1.0, seen.mean() + slack), rel=1e-10)


def test_realised_risk_closes_in() -> None:
    losses, means = driven(200, 2000, 13)
    path = realised_path(losses, 0.05)
    gap = path[:, -1] - running(means)[:, -1]
    assert np.median(gap) < 0.07
    assert np.median(gap) > 0
    assert np.all(path[:, 0] == 1.0)


def test_realised_risk_follows_outcomes_that_do_not_overlap() -> None:
    """Three leads, two channels: every third origin is followed, missing cells stay out of its mean."""
    rng = np.random.default_rng(14)
    horizon, rows = 3, 20
    errors, heard = rng.normal(size=(rows, 2, horizon)), (rng.uniform(size=(rows, 2, horizon)) < 0.8).astype(float)
    rules = RealisedRisks(channels=2, tau=1.5)
    state = rules.start(np.zeros((2, horizon)))
    for row in range(rows):
        state = rules.learn(state, row, errors[row] * heard[row], heard[row])
        if row >= 2:
            state = rules.issue(state, row)
    expected = []
    for origin in range(2, rows - horizon, horizon):
        cells = [(errors[origin + h, n, h - 1], heard[origin + h, n, h - 1]) for h in (1, 2, 3) for n in (0, 1)]
        known = [e**2 for e, is_heard in cells if is_heard]
        expected.append(min(1.0, float(np.mean(known)) / 1.5**2))
    assert state.outcomes[0] == len(expected) == 5
    assert float(rules.bound(state, 0.05)[0][0]) == pytest.approx(float(np.mean(expected)), rel=1e-12)
    assert state.newest == 14
