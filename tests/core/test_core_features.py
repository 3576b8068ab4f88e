"""What the head sees, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.features import FeatureMap, horizon_basis
from ompb.core.source import Moments, SourceHead, view
from ompb.forecasters import SeasonalProfile
from ompb.types import Floats


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
def test_features_are_profile_deviations_and_base_on_the_basis(context: int, horizon: int, season: int) -> None:
    rng = np.random.default_rng(0)
    windows, base = rng.normal(size=(3, 4, context)), rng.normal(size=(3, 4, horizon))
    leads = np.arange(horizon, dtype=np.float64)
    phi, profile = FeatureMap.build(leads, season, context, 10, use_profile=True)(windows, base)
    basis = horizon_basis(leads, season, 10)
    expected = SeasonalProfile(horizon, season)(windows.reshape(12, context, 1))[..., 0].reshape(3, 4, horizon)
    level = windows[..., context - context // season * season :].mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(profile, expected, atol=1e-12)
    rows = range(context - context // season * season, context)
    off = np.empty_like(windows)  # from the mean of the rows of the same phase
    for place in range(context):
        off[..., place] = windows[..., place] - windows[..., [r for r in rows if (r - place) % season == 0]].mean(-1)
    deviations = [off[..., -1:], *(fading_mean(off, memory) for memory in (season / 4, season))]
    by_hand = [np.ones((3, 4, 1)), (expected - level) @ basis, *deviations, (base - level) @ basis]
    np.testing.assert_allclose(phi, np.concatenate(by_hand, axis=-1), atol=1e-12)


def fading_mean(values: Floats, memory: float) -> Floats:
    weights = [np.exp(-age / memory) for age in reversed(range(values.shape[-1]))]
    return np.average(values, axis=-1, weights=weights)[..., None]


@pytest.mark.parametrize("season", [None, 52])
def test_without_a_whole_season_the_level_is_the_last_value(season: int | None) -> None:
    rng = np.random.default_rng(1)
    windows, base = rng.normal(size=(2, 1, 24)), rng.normal(size=(2, 1, 8))
    leads = np.arange(8, dtype=np.float64)
    features = FeatureMap.build(leads, season, 24, 5, use_profile=True)
    phi, profile = features(windows, base)
    assert not features.has_profile
    np.testing.assert_array_equal(profile, np.repeat(windows[..., -1:], 8, axis=-1))
    deviations = [fading_mean(windows - windows[..., -1:], memory) for memory in (6, 24)]
    by_hand = [np.ones((2, 1, 1)), *deviations, (base - windows[..., -1:]) @ horizon_basis(leads, season, 5)]
    np.testing.assert_allclose(phi, np.concatenate(by_hand, axis=-1), atol=1e-12)


def test_a_level_shift_of_window_and_base_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    windows, base = rng.normal(size=(2, 1, 30)), rng.normal(size=(2, 1, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), 12, 30, 10, use_profile=True)
    np.testing.assert_allclose(features(windows + 7, base + 7)[0], features(windows, base)[0], atol=1e-12)


@pytest.mark.parametrize("season", [12, None])
def test_the_regression_is_the_ridge_solution_on_what_the_profile_leaves_over(season: int | None) -> None:
    rng = np.random.default_rng(3)
    windows, base, outcomes = rng.normal(size=(2, 200, 30)), rng.normal(size=(2, 200, 6)), rng.normal(size=(2, 200, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), season, 30, 4, use_profile=True)
    raw, profile = features(windows, base)
    moments = Moments.empty(raw, 2, features.size, 6), Moments.empty(raw, 2, features.of_window, 6)
    for block in (slice(0, 90), slice(90, 200)):
        moments[0].add(raw[:, block], (outcomes - base)[:, block])
        moments[1].add(raw[:, block, : features.of_window], (outcomes - profile)[:, block])
    head = SourceHead.from_moments(*moments, anchor=50.0)
    forecasts = view(head, features, windows, base).still
    assert len(forecasts) == (2 if season is None else 3)
    for n in range(2):
        x = raw[n, :, : features.of_window]
        ridge = 1e-3 * np.trace(x.T @ x) / x.shape[1]
        solution = np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ (outcomes - profile)[n])
        np.testing.assert_allclose(forecasts[-1][n, 0], profile[n] + x @ solution, atol=1e-9)
        np.testing.assert_array_equal(forecasts[0][n, 0], base[n])


def test_the_regression_follows_a_level_shift_and_ignores_the_base_forecast() -> None:
    rng = np.random.default_rng(4)
    windows, base = rng.normal(size=(1, 50, 30)), rng.normal(size=(1, 50, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), 12, 30, 4, use_profile=True)
    raw, profile = features(windows, base)
    moments = Moments.empty(raw, 1, features.size, 6), Moments.empty(raw, 1, features.of_window, 6)
    moments[0].add(raw, base)
    moments[1].add(raw[..., : features.of_window], profile)
    head = SourceHead.from_moments(*moments, anchor=50.0)
    said = view(head, features, windows, base).still[-1]
    np.testing.assert_allclose(view(head, features, windows + 7, base - 3).still[-1], said + 7, atol=1e-9)
