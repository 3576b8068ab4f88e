"""The scores of a run, against closed forms and sums by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import ompb
from ompb.errors import InputError, NotFiniteError, OptionError
from ompb.floor.normal import gaussian_half_width
from ompb.metrics.probabilistic import crps, pinball, winkler
from ompb.metrics.score import LEVELS, score
from ompb.types import Floats

SD = 2.0


def gaussian(shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """A mean, and outcomes that are normal around it."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=shape)
    return mean, mean + SD * rng.normal(size=shape)


def test_the_interval_score_charges_length_and_misses() -> None:
    assert winkler([0.0, 0.0, np.nan], [1.0, 1.0, 1.0], [2.0, -0.5, 0.5], 0.9) == pytest.approx(1 + 20 * 1.5 / 2)
    assert math.isnan(winkler([0.0], [1.0], [np.nan], 0.9))


def test_no_interval_scores_better_than_the_true_quantiles() -> None:
    outcome = np.random.default_rng(1).normal(size=200_000)
    one = np.ones_like(outcome)
    true = winkler(-1.2816 * one, 1.2816 * one, outcome, 0.8)
    for lower, upper in ((-1.15, 1.15), (-1.4, 1.4), (-1.1, 1.5)):
        assert winkler(lower * one, upper * one, outcome, 0.8) > true


def test_the_pinball_loss_is_least_at_the_quantile() -> None:
    outcome = np.random.default_rng(2).exponential(size=200_000)
    losses = {x: pinball(np.full_like(outcome, x), outcome, 0.9) for x in (2.1, math.log(10), 2.5)}
    assert min(losses, key=losses.__getitem__) == math.log(10)
    assert pinball([1.0, 1.0, 1.0], [3.0, 0.0, np.nan], 0.75) == pytest.approx((1.5 + 0.25) / 2)


def test_scores_refuse_what_they_cannot_read() -> None:
    with pytest.raises(OptionError, match="level"):
        winkler([0.0], [1.0], [0.0], 1.0)
    with pytest.raises(InputError, match="not intervals"):
        winkler([2.0], [1.0], [0.0], 0.8)
    with pytest.raises(NotFiniteError, match="quantile"):
        pinball([np.inf], [0.0], 0.5)
    with pytest.raises(OptionError, match="q = "):
        pinball([0.0], [0.0], 0.0)


def test_a_gaussian_scores_as_its_closed_forms_say() -> None:
    """In units of the scale, with a tenth of the outcomes unknown."""
    shape, scale = (400, 6, 2), np.asarray([1.0, 4.0])
    mean, outcome = gaussian(shape)
    outcome[np.random.default_rng(3).random(shape) < 0.1] = np.nan

    def interval(level: float) -> tuple[Floats, Floats]:
        half = gaussian_half_width(level) * SD
        return mean - half, mean + half

    found = score(mean, outcome, interval, scale)
    known = np.isfinite(outcome)
    assert found.outcomes == known.sum()
    assert found.mae == pytest.approx(np.nanmean(np.abs(outcome - mean) / scale))
    assert found.mse == pytest.approx(np.nanmean(((outcome - mean) / scale) ** 2))
    exact = crps(mean / scale, np.broadcast_to(SD / scale, shape), outcome / scale)
    assert found.crps == pytest.approx(exact, rel=0.01)
    lower, upper = interval(0.95)
    assert found.winkler95 == pytest.approx(winkler(lower / scale, upper / scale, outcome / scale, 0.95))
    hits = np.where(known, (lower <= outcome) & (outcome <= upper), np.nan)
    assert found.coverage[LEVELS.index(0.95)] == pytest.approx(np.nanmean(hits))
    np.testing.assert_allclose(found.coverage_by_lead[LEVELS.index(0.95)], np.nanmean(hits, axis=(0, 2)))
    assert found.width[1] == pytest.approx(2 * norm.ppf(0.9) * np.mean(SD / scale))
    np.testing.assert_allclose(found.coverage, found.levels, atol=0.02)


def test_where_nothing_is_known_nothing_is_told() -> None:
    mean, one = np.zeros((3, 2, 1)), np.ones((3, 2, 1))
    found = score(mean, np.nan * one, lambda level: (-level * one, level * one), np.ones(1))
    assert found.outcomes == 0
    assert all(math.isnan(value) for value in (found.mae, found.crps, found.winkler80, *found.coverage))


def test_a_run_tells_its_scores_in_words_and_as_a_line_of_a_table() -> None:
    rows = np.random.default_rng(4).normal(size=(300, 2)).cumsum(axis=0)

    def last(windows: Floats) -> Floats:
        return np.repeat(windows[:, -1:], 3, axis=1)

    cal = ompb.Calibrator.fit(last, rows[:200], context=8, horizon=3, season=None)
    run = ompb.backtest(cal, last, rows[200:])
    found = run.score()
    lower, upper = (end / run.scale for end in run.interval(0.8))
    assert found.winkler80 == pytest.approx(winkler(lower, upper, run.outcome / run.scale, 0.8))
    terms = found.terms()
    assert list(terms)[:3] == ["outcomes", "mae", "mse"]
    assert terms["coverage80"] == found.coverage[1]
    assert terms["width95"] == found.width[3]
    words = str(found)
    assert words == repr(found)
    assert f"{found.outcomes} outcomes" in words
    assert f"{found.mae:.3f}" in words
    assert f"{found.coverage[0]:.1%}" in words
    assert found.coverage_by_lead.shape == (len(LEVELS), 3)
    with pytest.raises(ValueError, match="read-only"):
        found.coverage_by_lead[0, 0] = 1.0
