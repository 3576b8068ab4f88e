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


def chain(streams: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """A two-state chain of whole losses, seen one window late: E[l | past] is the chance to go there from the last."""
    rng = np.random.default_rng(seed)
    loss = (rng.uniform(size=streams) < 1 / 3).astype(np.float64)
    means, losses = np.empty((streams, m)), np.empty((streams, m))
    for i in range(m):
        means[:, i] = np.where(loss == 1, 0.8, 0.1)
        loss = (rng.uniform(size=streams) < means[:, i]).astype(np.float64)
        losses[:, i] = loss
    return losses, means


def clumps(streams: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """Hardly any loss, but for rare clumps of heavy ones that nobody sees coming and that last for a while."""
    rng = np.random.default_rng(seed)
    left = np.zeros(streams)
    means, losses = np.empty((streams, m)), np.empty((streams, m))
    for i in range(m):
        begins = 0.02
        means[:, i] = np.where(left > 0, 0.9, begins * 0.9 + (1 - begins) * 0.01)
        fresh = (left == 0) & (rng.uniform(size=streams) < begins)
        left = np.where(fresh, rng.geometric(0.1, size=streams), left)
        losses[:, i] = np.where(left > 0, rng.uniform(0.8, 1.0, size=streams), rng.uniform(0, 0.02, size=streams))
        left = np.maximum(left - 1, 0)
    return losses, means


def adaptive(streams: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """Someone who knows the losses so far works against the bound: rough while it may break, calm once that is lost."""
    rng = np.random.default_rng(seed)
    behind = np.zeros(streams)  # sum of means less losses
    means, losses = np.empty((streams, m)), np.empty((streams, m))
    for i in range(m):
        means[:, i] = np.where(behind > -1, 0.5, 0.02)
        losses[:, i] = rng.uniform(size=streams) < means[:, i]
        behind = behind + means[:, i] - losses[:, i]
    return losses, means


MAKERS: dict[str, Maker] = {
    "regimes": regimes,
    "feedback": feedback,
    "driven": driven,
    "rare": rare,
    "outbreak": outbreak,
    "chain": chain,
    "clumps": clumps,
    "adaptive": adaptive,
}


def upper(kind: str, losses: Floats) -> Floats:
    """Mean loss plus Gamma of each stream with KL = 0 and all of delta spent at once."""
    m = losses.shape[1]
    complexity: Kind = Kind.tags[kind]()
    kappa = np.full(len(losses), complexity.log_term(m, DELTA))
    return np.asarray(losses.mean(axis=1) + complexity.gamma(kappa, complexity.summary(losses, 1.0), m))


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


@pytest.mark.parametrize("kind", ["betting", "freedman", "iid", "subgamma"])
@pytest.mark.parametrize("m", [4, 16, 64, 256])
@pytest.mark.parametrize("maker", MAKERS)
def test_average_conditional_risk_is_bounded(maker: str, m: int, kind: str) -> None:
    losses, means = MAKERS[maker](STREAMS, m, m)
    violated = np.mean(means.mean(axis=1) > upper(kind, losses))
    assert violated <= allowed(STREAMS)


def test_the_bound_is_no_platitude() -> None:
    """Freedman reads well below one on calm losses, below iid, and betting below both; a tenth of it would not hold."""
    losses, means = regimes(STREAMS, 256, 3)
    freedman, iid = (upper(kind, losses) - losses.mean(axis=1) for kind in ("freedman", "iid"))
    assert np.median(upper("freedman", losses)) < 0.6
    calm = np.random.default_rng(4).beta(4, 36, size=(STREAMS, 256))
    assert np.all(upper("freedman", calm) < upper("iid", calm))
    assert np.mean(upper("betting", calm) < upper("freedman", calm)) > 0.99
    betting = upper("betting", losses) - losses.mean(axis=1)
    for gamma in (freedman, betting):
        assert np.mean(means.mean(axis=1) > losses.mean(axis=1) + 0.1 * gamma) > allowed(STREAMS)
    assert np.all(iid > 0)


@pytest.mark.parametrize("kind", ["betting", "iid", "freedman"])
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


# ------------------------------------------------------------------------------------------ overlapping windows


def overlapping(streams: int, m: int, horizon: int, seed: int) -> tuple[Floats, Floats]:
    """Losses of all origins: each the mean of the next ``horizon`` rows of a two-state chain, known at its origin.

    The chance to be in state 1 after h rows is p + (s - p) r^h, with s the state, p = 0.3 and r = 0.5.
    """
    rng = np.random.default_rng(seed)
    share, memory = 0.3, 0.5
    rows = np.empty((streams, m + horizon))
    rows[:, 0] = rng.uniform(size=streams) < share
    for i in range(1, m + horizon):
        rows[:, i] = rng.uniform(size=streams) < share + (rows[:, i - 1] - share) * memory
    windows = np.lib.stride_tricks.sliding_window_view(rows[:, 1:], horizon, axis=1)
    fades = np.mean(memory ** np.arange(1, horizon + 1))
    return windows.mean(axis=2), share + (rows[:, :m] - share) * fades


@pytest.mark.parametrize("kind", ["betting", "freedman"])
def test_overlapping_windows_as_if_they_did_not_overlap_break_the_bound(kind: str) -> None:
    """Windows one row apart repeat each other's outcomes: the bound fails many times as often as it says.

    Every 24th of them, which do not overlap, keep it.
    """
    horizon = 24
    losses, means = overlapping(STREAMS, 10 * horizon, horizon, 7)
    violated = np.mean(means.mean(axis=1) > upper(kind, losses))
    assert violated > 2 * DELTA
    apart = losses[:, ::horizon], means[:, ::horizon]
    assert np.mean(apart[1].mean(axis=1) > upper(kind, apart[0])) <= allowed(STREAMS)


# ------------------------------------------------------------------------------------------------ realised risk


EVERY = 4  # outcomes between two looks at the bound


def realised_paths(losses: Floats, *deltas: float) -> list[Floats]:
    """The bounds after every fourth outcome, (streams, m / 4), by the rules a stream uses: one lead, one channel."""
    streams, m = losses.shape
    rules = RealisedRisks(channels=1, tau=np.asarray([2.0]), patience=0)
    state = rules.start(np.zeros((streams, 1)))
    looks: list[list[Floats]] = [[] for _ in deltas]
    for row in range(1, m + 2):  # an outcome counts once the next row is there
        known = row <= m
        error = 2.0 * np.sqrt(losses[:, row - 1 : row]) if known else np.zeros((streams, 1))
        state = rules.learn(state, row, error, np.full((streams, 1), float(known)))
        if row > 1 and (row - 1) % EVERY == 0:
            for delta, path in zip(deltas, looks, strict=True):
                path.append(np.asarray(rules.bound(state, delta).upper))
    return [np.stack(path, axis=1) for path in looks]


def running(values: Floats) -> Floats:
    """Their mean so far, at every look."""
    return np.asarray(np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1))[:, EVERY - 1 :: EVERY]


@pytest.mark.parametrize("maker", MAKERS)
def test_realised_risk_holds_at_all_times_at_once(maker: str) -> None:
    """A stream counts as violated if the bound fails at *any* look."""
    losses, means = MAKERS[maker](STREAMS, 240, 11)
    deltas = (0.05, 0.3)
    for delta, path in zip(deltas, realised_paths(losses, *deltas), strict=True):
        violated = np.mean(np.any(running(means) > path + 1e-12, axis=1))
        assert violated <= delta + 3 * math.sqrt(delta * (1 - delta) / STREAMS)


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_realised_risk_of_every_forecast_holds_though_their_outcomes_overlap(delta: float) -> None:
    """Horizons of six rows: each origin counts."""
    horizon, m = 6, 240
    losses, means = overlapping(STREAMS, m, horizon, 8)
    rules = RealisedRisks(channels=1, tau=np.asarray([1.0]), patience=2)
    state = rules.start(np.zeros((STREAMS, horizon)))
    violated, outcomes = np.zeros(STREAMS, dtype=bool), 0
    for row in range(1, m):
        # lead h is a part of the loss of origin row - h; only their mean matters
        error = np.zeros((STREAMS, horizon))
        for lead in range(1, min(row, horizon) + 1):
            error[:, lead - 1] = np.sqrt(losses[:, row - lead])
        state = rules.learn(state, row, error, (error > -1) * (np.arange(horizon) < row) * 1.0)
        if row % 5 == 0:
            found = rules.bound(state, delta)
            outcomes = int(found.outcomes[0])
            if outcomes:
                np.testing.assert_allclose(found.mean, losses[:, :outcomes].mean(axis=1), rtol=1e-9, atol=1e-12)
                violated |= means[:, :outcomes].mean(axis=1) > found.upper
    assert outcomes == 235 - 1 - 2 - horizon + 1
    assert np.mean(violated) <= delta + 3 * math.sqrt(delta * (1 - delta) / STREAMS)


def test_realised_risk_closes_in() -> None:
    losses, means = driven(200, 1000, 13)
    [path] = realised_paths(losses, 0.05)
    gap = path[:, -1] - running(means)[:, -1]
    assert 0 < np.median(gap) < 0.07
    assert np.all(path[:, 0] > 0.9)


@pytest.mark.parametrize("patience", [0, 1, 4])
def test_realised_risk_follows_every_outcome(patience: int) -> None:
    """Three leads, two channels: every origin is followed, missing cells stay out of its mean."""
    rng = np.random.default_rng(14)
    horizon, rows = 3, 40
    errors, heard = rng.normal(size=(rows, 2, horizon)), (rng.uniform(size=(rows, 2, horizon)) < 0.7).astype(float)
    heard[:3] = 0.0  # nothing was issued before row 2
    heard[3, :, 1:], heard[4, :, 2:] = 0.0, 0.0
    heard[20:24] = 0.0  # an outcome of which nothing is known
    rules = RealisedRisks(channels=2, tau=np.asarray([1.5]), patience=patience)
    state = rules.start(np.zeros((2, horizon)))
    for row in range(rows):
        state = rules.learn(state, row, errors[row] * heard[row], heard[row])
        expected, newest = [], -1
        for origin in range(2, row - horizon - patience):
            cells = [(errors[origin + h, n, h - 1], heard[origin + h, n, h - 1]) for h in (1, 2, 3) for n in (0, 1)]
            known = [e**2 for e, is_heard in cells if is_heard]
            if known:
                expected.append(min(1.0, float(np.mean(known)) / 1.5**2))
                newest = origin
        found = rules.bound(state, 0.05)
        assert found.outcomes[0] == len(expected)
        assert found.newest[0] == newest
        assert float(found.mean[0]) == pytest.approx(np.mean(expected) if expected else 0.0, rel=1e-12)
    assert len(expected) < rows - 3 - horizon - patience  # one fell out


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_realised_risk_in_float32_follows_every_outcome_however_long_a_stream_is(library: str) -> None:
    """Float32 does not tell whole numbers beyond 2^24 apart: ticks of a second come to that in half a year."""
    xp = pytest.importorskip(library)
    horizon, rows = 3, 40
    rules = RealisedRisks(channels=1, tau=xp.ones(1, dtype=xp.float32), patience=0)
    state = rules.start(xp.zeros((1, horizon), dtype=xp.float32))
    for row in range(2**24, 2**24 + rows):
        heard = xp.ones((1, horizon), dtype=xp.float32)
        state = rules.learn(state, row, 0.5 * heard, heard)
        # the first row tells of the last origins before it, so each row that follows makes one more complete
        assert int(rules.bound(state, 0.05).outcomes[0]) == row - 2**24
    assert float(rules.bound(state, 0.05).mean[0]) == pytest.approx(0.25)
