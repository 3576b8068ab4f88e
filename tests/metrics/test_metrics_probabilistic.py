from collections.abc import Callable

import numpy as np
import pytest
import scoringrules
from scipy.integrate import quad
from scipy.stats import norm

from ompb.errors import InputError, NotFiniteError, OptionError, ShapeError
from ompb.metrics.probabilistic import coverage, crps, ece, nll, pinball, width, winkler

MOMENTS = [(0.0, 1.0, 0.0), (2.0, 0.5, 3.7), (-1.0, 4.0, 2.0)]


def test_coverage_counts_the_ends_and_leaves_out_the_unknown() -> None:
    lower = [0.0, 0.0, 0.0, np.nan, -np.inf]
    upper = [1.0, 1.0, 1.0, 1.0, np.inf]
    assert coverage(lower, upper, [0.0, 1.0, np.nan, 0.5, 9.0]) == 1.0
    assert coverage(lower, upper, [-0.1, 1.0, 0.5, 0.5, 9.0]) == 0.75
    assert np.isnan(coverage([0.0], [1.0], [np.nan]))


def test_coverage_of_exact_gaussian_intervals_is_their_level() -> None:
    outcome = np.random.default_rng(0).normal(3, 2, 20_000)
    half = 2 * norm.ppf(0.9) * np.ones_like(outcome)
    assert coverage(3 - half, 3 + half, outcome) == pytest.approx(0.8, abs=0.01)


def test_width_ignores_the_unknown_and_shows_infinity() -> None:
    assert width([0.0, np.nan, 1.0], [1.0, 3.0, 4.0]) == 2.0
    assert width([0.0, -np.inf], [1.0, 3.0]) == np.inf


@pytest.mark.parametrize(("lower", "upper"), [(2.0, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)])
def test_ends_in_the_wrong_order_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(InputError, match="1 intervals are not intervals"):
        width([lower], [upper])
    with pytest.raises(InputError, match="pass the lower ends first"):
        coverage([lower], [upper], [0.0])


def test_an_infinite_outcome_is_refused() -> None:
    with pytest.raises(NotFiniteError, match="outcome"):
        coverage([0.0], [1.0], [np.inf])


@pytest.mark.parametrize(("mean", "sd", "outcome"), MOMENTS)
def test_nll_is_that_of_scipy(mean: float, sd: float, outcome: float) -> None:
    assert nll([mean], [sd], [outcome]) == pytest.approx(-norm.logpdf(outcome, mean, sd))


@pytest.mark.parametrize(("mean", "sd", "outcome"), MOMENTS)
def test_crps_is_the_integral_that_defines_it(mean: float, sd: float, outcome: float) -> None:
    below = quad(lambda x: norm.cdf(x, mean, sd) ** 2, mean - 12 * sd, outcome)[0]
    above = quad(lambda x: norm.sf(x, mean, sd) ** 2, outcome, mean + 12 * sd)[0]
    assert crps([mean], [sd], [outcome]) == pytest.approx(below + above)


@pytest.mark.parametrize("missing", [False, True])
def test_scores_are_those_of_scoringrules(missing: bool) -> None:
    chance = np.random.default_rng(0)
    mean, outcome = chance.normal(size=(2, 500))
    sd = chance.uniform(0.1, 3, 500)
    outcome[:100] = np.nan if missing else outcome[:100]
    lower, upper = mean - sd, mean + 2 * sd
    assert crps(mean, sd, outcome) == pytest.approx(np.nanmean(scoringrules.crps_normal(outcome, mean, sd)))
    # theirs has fewer digits of the density's constant
    assert nll(mean, sd, outcome) == pytest.approx(np.nanmean(scoringrules.logs_normal(outcome, mean, sd)), rel=1e-6)
    theirs = scoringrules.interval_score(outcome, lower, upper, 0.2)
    assert winkler(lower, upper, outcome, 0.8) == pytest.approx(np.nanmean(theirs))
    assert pinball(mean, outcome, 0.9) == pytest.approx(np.nanmean(scoringrules.quantile_score(outcome, mean, 0.9)))


def test_crps_of_a_sharp_forecast_is_the_absolute_error() -> None:
    assert crps([1.0], [1e-9], [4.0]) == pytest.approx(3.0)


@pytest.mark.parametrize("score", [nll, crps])
def test_gaussian_scores_leave_out_the_unknown(score: Callable[..., float]) -> None:
    assert score([0.0, 0.0, np.nan], [1.0, 1.0, 1.0], [0.5, np.nan, 0.5]) == score([0.0], [1.0], [0.5])


@pytest.mark.parametrize("score", [nll, crps])
@pytest.mark.parametrize("sd", [0.0, -1.0])
def test_a_standard_deviation_must_be_positive(score: Callable[..., float], sd: float) -> None:
    with pytest.raises(InputError, match=f"sd holds {sd:g}"):
        score([0.0], [sd], [0.0])


def test_ece_is_the_mean_gap_over_known_levels() -> None:
    assert ece([0.2, 0.5, 0.8], [0.3, np.nan, 0.5]) == pytest.approx(0.2)
    assert ece([0.2, 0.8], [0.2, 0.8]) == 0


def test_ece_refuses_what_is_no_coverage() -> None:
    with pytest.raises(InputError, match="observed holds 80"):
        ece([0.8], [80.0])
    with pytest.raises(OptionError, match="nominal"):
        ece([1.0], [0.8])
    with pytest.raises(ShapeError, match="flat"):
        ece([[0.8]], [[0.8]])
