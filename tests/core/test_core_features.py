"""What the head sees, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.features import FeatureMap, horizon_basis
from ompb.forecasters import SeasonalProfile


@pytest.mark.parametrize(("horizon", "season"), [(24, 24), (96, 24), (6, 12), (1, 7), (24, None), (2, None), (48, 52)])
def test_basis_is_orthogonal_and_starts_with_level_and_trend(horizon: int, season: int | None) -> None:
    leads = np.arange(horizon, dtype=np.float64)
    basis = horizon_basis(leads, season, 10)
    assert basis.shape[1] <= min(10, horizon)
    np.testing.assert_allclose(basis.T @ basis * horizon, np.eye(basis.shape[1]), atol=1e-9)
    np.testing.assert_allclose(basis[:, 0], 1 / horizon, atol=1e-12)
    if horizon > 1:
        trend = leads - leads.mean()
        assert abs(basis[:, 1] @ trend) * np.sqrt(horizon) == pytest.approx(np.linalg.norm(trend))


@pytest.mark.parametrize(("context", "horizon", "season"), [(96, 24, 24), (30, 6, 12), (50, 100, 24), (24, 5, 24)])
def test_features_are_level_profile_and_base_on_the_basis(context: int, horizon: int, season: int) -> None:
    rng = np.random.default_rng(0)
    windows, base = rng.normal(size=(3, 4, context)), rng.normal(size=(3, 4, horizon))
    leads = np.arange(horizon, dtype=np.float64)
    phi, profile = FeatureMap.build(leads, season, context, 10, use_profile=True)(windows, base)
    basis = horizon_basis(leads, season, 10)
    expected = SeasonalProfile(horizon, season)(windows.reshape(12, context, 1))[..., 0].reshape(3, 4, horizon)
    level = windows[..., context - context // season * season :].mean(axis=-1, keepdims=True)
    assert profile is not None
    np.testing.assert_allclose(profile, expected, atol=1e-12)
    by_hand = [np.ones((3, 4, 1)), (base - level) @ basis, (expected - level) @ basis]
    np.testing.assert_allclose(phi, np.concatenate(by_hand, axis=-1), atol=1e-12)


@pytest.mark.parametrize("season", [None, 52])
def test_without_a_whole_season_the_level_is_the_last_value(season: int | None) -> None:
    rng = np.random.default_rng(1)
    windows, base = rng.normal(size=(2, 1, 24)), rng.normal(size=(2, 1, 8))
    leads = np.arange(8, dtype=np.float64)
    features = FeatureMap.build(leads, season, 24, 5, use_profile=True)
    phi, profile = features(windows, base)
    assert profile is None
    assert features.size == phi.shape[-1] == 6
    np.testing.assert_allclose(phi[..., 1:], (base - windows[..., -1:]) @ horizon_basis(leads, season, 5), atol=1e-12)


def test_a_level_shift_of_window_and_base_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    windows, base = rng.normal(size=(2, 1, 30)), rng.normal(size=(2, 1, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), 12, 30, 10, use_profile=True)
    np.testing.assert_allclose(features(windows + 7, base + 7)[0], features(windows, base)[0], atol=1e-12)
