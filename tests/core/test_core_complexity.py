"""Gamma in its kinds against hand-worked numbers and plain-Python twins, and so the predictable variance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from betting_twin import GRID, betting_twin

from ompb.core.certificate import betting
from ompb.core.certificate.kinds import Betting, Freedman, Iid, Kind, SubGamma
from ompb.core.certificate.kinds.contract import C0, RATE, START_MEAN, START_VARIANCE, predictable_spread
from ompb.core.certificate.kinds.freedman import B
from ompb.types import Floats

# those with a closed form in the variance and its scale
CLOSED = ("iid", "freedman", "subgamma")


def of(kind: str) -> Kind:
    made = Kind.tags[kind]()
    assert isinstance(made, Kind)
    return made


def gamma(kind: str, kappa: float, variance: float, scale: float, windows: int) -> float:
    return float(of(kind).gamma(np.asarray([kappa]), np.asarray([[variance, scale]]), windows)[0])


def twin(losses: Floats) -> tuple[float, float, list[float]]:
    """V, c-bar and every v_i of one stream: each v_i afresh from the losses before it, by the recursion's weights.

    After i windows the mean is a weighted sum of the start value and the losses, and so is the variance, of the squared
    deviations from the mean in force before each. The weights are products of (1 - rate), worked out in a double loop.
    """
    rates = [max(1 / (index + 2), 0.05) for index in range(len(losses))]

    def weighted(start: float, terms: list[float]) -> float:
        total = start * math.prod(1 - rates[j] for j in range(len(terms)))
        for i, term in enumerate(terms):
            total += term * rates[i] * math.prod(1 - rates[j] for j in range(i + 1, len(terms)))
        return total

    means, variances = [], []
    for i in range(len(losses)):
        means.append(weighted(0.5, [float(x) for x in losses[:i]]))
        variances.append(weighted(0.25, [(float(losses[j]) - means[j]) ** 2 for j in range(i)]))
    return math.fsum(variances), math.sqrt(max(variances)), variances


def test_constants_are_those_of_the_method() -> None:
    assert C0 == 2.0
    assert B == 1.0
    assert (START_MEAN, START_VARIANCE) == (0.5, 0.25)
    assert RATE == 0.05


def test_iid_hand_worked() -> None:
    # sqrt(8 / (2 * 100)) = sqrt(0.04)
    assert gamma("iid", 8.0, 123.0, 456.0, 100) == pytest.approx(0.2, abs=1e-15)
    # sqrt(4.5 / (2 * 25)) = sqrt(0.09)
    assert gamma("iid", 4.5, 0.0, 0.0, 25) == pytest.approx(0.3, abs=1e-15)


def test_freedman_hand_worked() -> None:
    # sqrt(2 * 4 * 8) / 100 + 8 / (3 * 100) = 0.08 + 0.026666...
    assert gamma("freedman", 8.0, 4.0, B / 3, 100) == pytest.approx(0.08 + 8 / 300, abs=1e-15)
    # no variance: only the linear term is left
    assert gamma("freedman", 6.0, 0.0, B / 3, 10) == pytest.approx(0.2, abs=1e-15)


def test_subgamma_hand_worked() -> None:
    # sqrt(2 * 9 * 8) / 60 + 0.5 * 8 / 60 = 0.2 + 0.0666...
    assert gamma("subgamma", 8.0, 9.0, 0.5, 60) == pytest.approx(0.2 + 4 / 60, abs=1e-15)


def test_kinds_name_their_functions() -> None:
    ours = {tag: kind for tag, kind in Kind.tags.items() if kind.__module__.startswith("ompb.")}
    assert {"betting": Betting, "iid": Iid, "freedman": Freedman, "subgamma": SubGamma} == ours


@pytest.mark.parametrize("factor", [1.0, 4.0])
@pytest.mark.parametrize("kind", ["freedman", "subgamma"])
def test_kinds_read_the_spread_they_charge_for(kind: str, factor: float) -> None:
    """V is the same for both, times the factor; the scale is B / 3 for bounded increments, else c-bar."""
    losses = np.random.default_rng(8).uniform(size=(3, 40))
    variance, scale = of(kind).summary(losses, factor).T
    for stream in range(3):
        total, largest, _ = twin(losses[stream])
        assert float(variance[stream]) == pytest.approx(factor * total, rel=1e-12)
        expected = 1 / 3 if kind == "freedman" else math.sqrt(factor) * largest
        assert float(scale[stream]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", CLOSED)
def test_grows_with_kappa(kind: str) -> None:
    kappas = np.linspace(0.1, 50.0, 40)
    values = [gamma(kind, float(k), 5.0, 1 / 3, 80) for k in kappas]
    assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("kind", ["freedman", "subgamma"])
def test_grows_with_variance_and_scale(kind: str) -> None:
    assert np.all(np.diff([gamma(kind, 6.0, float(v), 1 / 3, 80) for v in np.linspace(0, 20, 30)]) > 0)
    assert np.all(np.diff([gamma(kind, 6.0, 5.0, float(c), 80) for c in np.linspace(0, 2, 30)]) > 0)


def test_iid_ignores_variance_and_scale() -> None:
    assert gamma("iid", 6.0, 0.0, 0.0, 80) == gamma("iid", 6.0, 99.0, 99.0, 80)


@pytest.mark.parametrize("kind", CLOSED)
def test_falls_with_windows_even_as_variance_and_log_term_grow_with_them(kind: str) -> None:
    counts = [8, 16, 32, 64, 128, 256, 1024]
    fixed = [gamma(kind, 6.0, 5.0, 1 / 3, m) for m in counts]
    natural = [gamma(kind, math.log(2 * m**0.5 / 0.05), 0.05 * m, 1 / 3, m) for m in counts]
    assert np.all(np.diff(fixed) < 0)
    assert np.all(np.diff(natural) < 0)


@pytest.mark.parametrize("kind", CLOSED)
def test_works_on_arrays_elementwise(kind: str) -> None:
    kappa, variance, scale = np.asarray([2.0, 8.0]), np.asarray([4.0, 1.0]), np.asarray([0.1, 0.7])
    together = of(kind).gamma(kappa, np.stack([variance, scale], axis=-1), 50)
    one_by_one = [gamma(kind, 2.0, 4.0, 0.1, 50), gamma(kind, 8.0, 1.0, 0.7, 50)]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-15)


def test_predictable_variance_hand_worked() -> None:
    # before window 0: mean 1/2, v = 1/4. Loss 1, rate 1/2: mean 3/4, v = 1/4 + 1/2 (1/4 - 1/4) = 1/4.
    # Loss 0, rate 1/3: v = 1/4 + 1/3 (9/16 - 1/4) = 17/48. The third loss is the last and moves nothing.
    total, largest = predictable_spread(np.asarray([1.0, 0.0, 0.3]), 1.0)
    assert float(total) == pytest.approx(1 / 4 + 1 / 4 + 17 / 48, abs=1e-15)
    assert float(largest) == pytest.approx(math.sqrt(17 / 48), abs=1e-15)


@pytest.mark.parametrize("windows", [1, 2, 18, 19, 20, 60])
def test_predictable_variance_against_the_double_loop(windows: int) -> None:
    losses = np.random.default_rng(windows).beta(0.5, 1.5, size=(4, windows))
    total, largest = predictable_spread(losses, 1.0)
    for stream in range(4):
        expected_total, expected_largest, _ = twin(losses[stream])
        assert float(total[stream]) == pytest.approx(expected_total, rel=1e-12)
        assert float(largest[stream]) == pytest.approx(expected_largest, rel=1e-12)


def test_predictable_variance_of_many_axes_is_that_of_each_stream() -> None:
    losses = np.random.default_rng(3).uniform(size=(2, 3, 25))
    total, largest = predictable_spread(losses, 1.0)
    assert total.shape == largest.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        one_total, one_largest = predictable_spread(losses[i, j], 1.0)
        assert float(total[i, j]) == pytest.approx(float(one_total), rel=1e-14)
        assert float(largest[i, j]) == pytest.approx(float(one_largest), rel=1e-14)


@pytest.mark.parametrize("changed", [0, 1, 7, 28, 29])
def test_a_loss_changes_only_what_comes_after_it(changed: int) -> None:
    losses = np.random.default_rng(5).uniform(size=30)
    other = losses.copy()
    other[changed] = 0.1 + 0.37 * other[changed]

    def each(values: Floats) -> Floats:
        """v_i as the growth of V from i to i + 1 windows."""
        totals = [float(predictable_spread(values[: i + 1], 1.0)[0]) for i in range(len(values))]
        return np.diff([0.0, *totals])

    before, after = each(losses), each(other)
    np.testing.assert_array_equal(before[: changed + 1], after[: changed + 1])
    if changed < 29:
        assert np.all(before[changed + 1 :] != after[changed + 1 :])
    np.testing.assert_allclose(before, twin(losses)[2], rtol=1e-9, atol=1e-14)


def test_a_long_quiet_stream_forgets_the_start() -> None:
    total, largest = predictable_spread(np.full(2000, 0.2), 1.0)
    assert float(largest) == pytest.approx(0.5)  # the start value, sqrt(1/4), is the largest
    tail = float(total - predictable_spread(np.full(1000, 0.2), 1.0)[0])
    assert 0 <= tail < 1e-12
    assert float(total) < 2.0


# ----------------------------------------------------------------------------------------------------- betting

LAWS = {"wild": (0.1, 0.9), "small": (0.5, 40.0), "middle": (20.0, 20.0), "skewed": (1.0, 9.0)}


def betting_gamma(losses: Floats, kappa: float) -> Floats:
    summary = Betting().summary(losses, 1.0)
    return np.asarray(Betting().gamma(np.full(losses.shape[:-1], kappa), summary, losses.shape[-1]))


@pytest.mark.parametrize("windows", [1, 2, 7, 60, 400])
@pytest.mark.parametrize("law", LAWS)
def test_betting_against_a_bisection(law: str, windows: int) -> None:
    losses = np.random.default_rng(windows).beta(*LAWS[law], size=(3, windows))
    for kappa in (0.4, math.log(20), math.log(20) + 30.0):
        expected = [betting_twin(one, kappa) - one.mean() for one in losses]
        np.testing.assert_allclose(betting_gamma(losses, kappa), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", [0.0, 0.5, 1.0])
def test_betting_on_losses_that_never_vary(loss: float) -> None:
    found = loss + betting_gamma(np.full((1, 30), loss), math.log(20))[0]
    assert found == pytest.approx(betting_twin([loss] * 30, math.log(20)), abs=1e-10)
    assert loss <= found <= 1


def test_betting_hand_worked() -> None:
    # one loss of 1/2, guessed 1/2: A(lambda) = lambda / 2 where the guess need not be raised, so with one lambda
    # alone mu = 1/2 + (price + ln J) / lambda; the mixture of all is below each of them
    losses = np.asarray([[0.5]])
    price = 0.01
    alone = [0.5 + (price + math.log(len(GRID))) / stake for stake in GRID if stake < 1.9]
    assert 0.5 < 0.5 + betting_gamma(losses, price)[0] < min(1.0, *alone)


def test_betting_grows_with_its_price_and_falls_with_windows() -> None:
    losses = np.random.default_rng(2).beta(2, 8, size=(1, 800))
    prices = [float(betting_gamma(losses[:, :100], kappa)[0]) for kappa in np.linspace(0.1, 30, 40)]
    assert np.all(np.diff(prices) > 0)
    windows = [float(betting_gamma(losses[:, :m], 3.0)[0]) for m in (10, 20, 50, 100, 200, 400, 800)]
    assert np.all(np.diff(windows) < 0)


def test_betting_pays_for_confidence_alone() -> None:
    assert Betting().log_term(100, 0.05) == pytest.approx(math.log(20))
    assert Freedman().log_term(100, 0.05) == pytest.approx(math.log(2 * 10 * 20))
    losses = np.random.default_rng(1).uniform(size=(1, 9))
    np.testing.assert_array_equal(Betting().summary(losses, 9.0), Betting().summary(losses, 1.0))  # no variance


def test_constants_of_betting_are_those_of_its_twin() -> None:
    assert betting.GRID == GRID
    assert (betting.FIRST_GUESS, betting.MOST_AT_STAKE) == (0.5, 0.98)
