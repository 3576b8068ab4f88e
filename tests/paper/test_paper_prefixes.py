"""Gamma as windows come in: closed form, a loop, a root found by halving."""

import math

import numpy as np
import pytest

from ompb.core.certificate.betting import FIRST_GUESS, GRID, MOST_AT_STAKE
from ompb.paper.prefixes import below_from, gammas, running_means, windows_behind
from ompb.types import Floats

LOSSES = np.random.default_rng(0).beta(2, 5, 40)


def test_iid_has_a_closed_form() -> None:
    expected = [math.sqrt(math.log(2 * math.sqrt(m) / 0.05) / (2 * m)) for m in range(1, 41)]
    np.testing.assert_allclose(gammas("iid", LOSSES), expected)


@pytest.mark.parametrize("kind", ["freedman", "subgamma"])
def test_martingale_kinds_by_a_loop(kind: str) -> None:
    mean, variance, total, largest, expected = 0.5, 0.25, 0.0, 0.0, []
    for place, loss in enumerate(LOSSES.tolist()):
        total, largest, m = total + variance, max(largest, variance), place + 1
        rate = max(1 / (place + 2), 0.05)
        variance += rate * ((loss - mean) ** 2 - variance)
        mean += rate * (loss - mean)
        kappa = math.log(2 * math.sqrt(m) / 0.05)
        scale = 1 / 3 if kind == "freedman" else math.sqrt(largest)
        expected.append((math.sqrt(2 * total * kappa) + scale * kappa) / m)
    np.testing.assert_allclose(gammas(kind, LOSSES), expected)


def log_capital(mean: float, losses: list[float]) -> float:
    """ln of the mean over stakes of the capital, if the average conditional mean were this."""
    capitals = []
    for stake in GRID:
        guess, log = FIRST_GUESS, len(losses) * stake * mean
        for place, loss in enumerate(losses):
            used = max(guess, 1 - MOST_AT_STAKE / stake)
            log += math.log(1 + stake * (used - loss)) - stake * used
            guess = (FIRST_GUESS + sum(losses[: place + 1])) / (place + 2)
        capitals.append(math.exp(log))
    return math.log(sum(capitals) / len(GRID))


@pytest.mark.parametrize("count", [5, 20, 40])
def test_betting_by_halving(count: int) -> None:
    losses = LOSSES[:count].tolist()
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_capital(middle, losses) > math.log(1 / 0.05) else (middle, high)
    assert gammas("betting", LOSSES)[count - 1] == pytest.approx(low - np.mean(losses), abs=1e-6)


@pytest.mark.parametrize("windows", [1, 2, 4, 141, 5000])
def test_the_number_of_windows_is_read_off_gamma_as_it_is_kept(windows: int) -> None:
    """In single precision, in which steps are kept."""
    gamma = np.float32(math.sqrt(math.log(2 * math.sqrt(windows) / 0.05) / (2 * windows)))
    assert windows_behind(float(gamma)) == windows


def test_running_means() -> None:
    np.testing.assert_allclose(running_means(LOSSES), [LOSSES[:m].mean() for m in range(1, 41)])


@pytest.mark.parametrize("seed", range(30))
def test_below_from_by_trying_every_place(seed: int) -> None:
    ours: Floats = np.random.default_rng(seed).integers(0, 3, 6).astype(float)
    rival = np.ones(6)
    places = [m for m in range(1, 7) if (ours[m - 1 :] < rival[m - 1 :]).all()]
    assert below_from(ours, rival) == (places[0] if places else None)
