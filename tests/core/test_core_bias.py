"""The running bias and the last value, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.features import FeatureMap
from ompb.core.members.bias import DISCOUNT, Bias, BiasState
from ompb.core.members.contract import MemberOptions
from ompb.core.members.persistence import Persistence
from ompb.types import Floats

LANES, HORIZON, ROWS = 2, 3, 40
OPTIONS = MemberOptions()


def residuals() -> tuple[Floats, Floats]:
    """By row, lane and lead, 0 where they are not observed, and where they are."""
    rng = np.random.default_rng(0)
    observed = (rng.random((ROWS, LANES, HORIZON)) < 0.7).astype(np.float64)
    return rng.normal(1.0, size=(ROWS, LANES, HORIZON)) * observed, observed


def said(state: BiasState) -> Floats:
    """The bias (N, H) that is said of any window."""
    speech = Bias().speak(state, np.ones((LANES, 2, 1)))
    assert speech.leverage is None
    np.testing.assert_array_equal(speech.corrections[:, :, 0], speech.corrections[:, :, 1])
    return np.asarray(speech.corrections[:, 0, 0])


def test_the_bias_is_the_fading_sum_of_residuals() -> None:
    residual, observed = residuals()
    state = Bias().start(np.zeros((LANES, HORIZON)))
    np.testing.assert_array_equal(said(state), 0.0)
    for now in range(ROWS):
        state = Bias().learn(state, now, residual[now], observed[now])
        expected = np.zeros((LANES, HORIZON))
        for row in range(now + 1):
            for lane in range(LANES):
                for lead in range(HORIZON):
                    expected[lane, lead] += (1 - DISCOUNT) * DISCOUNT ** (now - row) * residual[row, lane, lead]
        np.testing.assert_allclose(said(state), expected, atol=1e-12)


def test_a_forecaster_off_by_the_same_amount_is_followed_all_the_way() -> None:
    state = Bias().start(np.zeros((LANES, HORIZON)))
    for row in range(300):
        state = Bias().learn(state, row, np.full((LANES, HORIZON), 2.5), np.ones((LANES, HORIZON)))
    np.testing.assert_allclose(said(state), 2.5, rtol=1e-5)


@pytest.mark.parametrize("age", [0, 1, 7])
def test_late_is_on_time(age: int) -> None:
    residual, observed = residuals()
    late = 20
    on_time = with_late = Bias().start(np.zeros((LANES, HORIZON)))
    for row in range(ROWS):
        on_time = Bias().learn(on_time, row, residual[row], observed[row])
        here = row != late
        with_late = Bias().learn(with_late, row, residual[row] * here, observed[row] * here)
        if row == late + age:
            with_late = Bias().learn_late(with_late, late, row, residual[late], observed[late])
        if row >= late + age:
            np.testing.assert_allclose(said(with_late), said(on_time), atol=1e-12)


@pytest.mark.parametrize(
    ("season", "use_profile", "exists"), [(12, True, False), (None, True, True), (40, True, True), (12, False, True)]
)
def test_persistence_exists_only_where_there_is_no_profile(season: int | None, use_profile: bool, exists: bool) -> None:
    features = FeatureMap.build(np.arange(6.0), season, 24, 4, use_profile)
    assert (Persistence.learner(features, OPTIONS) is not None) == exists


def test_persistence_repeats_the_newest_value() -> None:
    rng = np.random.default_rng(1)
    windows, base = rng.normal(size=(2, 5, 24)), rng.normal(size=(2, 5, 6))
    features = FeatureMap.build(np.arange(6.0), None, 24, 4, use_profile=True)
    learner = Persistence.learner(features, OPTIONS)
    assert learner is not None
    member = learner.finish()
    assert isinstance(member, Persistence)
    said_of = base + member.correction(features.view(windows, base))
    np.testing.assert_allclose(said_of, np.repeat(windows[..., -1:], 6, axis=-1), atol=1e-12)


def test_with_a_season_but_no_profile_persistence_repeats_the_newest_value() -> None:
    rng = np.random.default_rng(2)
    windows, base = rng.normal(size=(1, 2, 24)), rng.normal(size=(1, 2, 6))
    features = FeatureMap.build(np.arange(6.0), 12, 24, 4, use_profile=False)
    said_of = base + Persistence().correction(features.view(windows, base))
    np.testing.assert_allclose(said_of, np.repeat(windows[..., -1:], 6, axis=-1), atol=1e-12)
