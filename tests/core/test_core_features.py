"""What the head sees, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.features import FeatureMap, View, horizon_basis
from ompb.core.members.bias import Bias
from ompb.core.members.contract import MemberOptions
from ompb.core.members.memory import Memory
from ompb.core.mixture import MEMBERS, Mixture
from ompb.core.source import SourceLearner
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
    seen = FeatureMap.build(leads, season, context, 10, use_profile=True).view(windows, base)
    phi, profile = seen.features, seen.profile
    np.testing.assert_array_equal(seen.base, base)
    np.testing.assert_array_equal(seen.rows, windows)
    assert seen.known == (context,) * 4
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
    seen = features.view(windows, base)
    phi, profile = seen.features, seen.profile
    assert not features.has_profile
    np.testing.assert_array_equal(profile, np.repeat(windows[..., -1:], 8, axis=-1))
    deviations = [fading_mean(windows - windows[..., -1:], memory) for memory in (6, 24)]
    by_hand = [np.ones((2, 1, 1)), *deviations, (base - windows[..., -1:]) @ horizon_basis(leads, season, 5)]
    np.testing.assert_allclose(phi, np.concatenate(by_hand, axis=-1), atol=1e-12)


def test_a_level_shift_of_window_and_base_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    windows, base = rng.normal(size=(2, 1, 30)), rng.normal(size=(2, 1, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), 12, 30, 10, use_profile=True)
    one, other = features.view(windows + 7, base + 7), features.view(windows, base)
    np.testing.assert_allclose(one.features, other.features, atol=1e-12)


def test_rows_before_the_window_change_nothing_but_the_rows() -> None:
    rng = np.random.default_rng(5)
    rows, base = rng.normal(size=(2, 3, 70)), rng.normal(size=(2, 3, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), 12, 30, 10, use_profile=True)
    longer, window = features.view(rows, base, (200, 50, 3)), features.view(rows[..., -30:], base)
    np.testing.assert_array_equal(longer.features, window.features)
    np.testing.assert_array_equal(longer.profile, window.profile)
    np.testing.assert_array_equal(longer.rows, rows)
    assert longer.known == (200, 50, 3)
    assert window.known == (30, 30, 30)


# those that learn from windows, and those that need no source; the memory, which reads rows, has tests of its own
TAUGHT_BY_WINDOWS = tuple(member.tag for member in MEMBERS if member is not Memory)


def learned(features: FeatureMap, *blocks: tuple[View, Floats]) -> Mixture:
    """All members but the memory, taught by blocks of windows with their outcomes."""
    options = MemberOptions(anchor=50.0)
    learner = SourceLearner(features, TAUGHT_BY_WINDOWS, options)
    for seen, outcomes in blocks:
        learner.add(seen, outcomes)
    return Mixture.of(learner.members(), 0.6, options, learner.base_variance())


def still_forecasts(mixture: Mixture, seen: View) -> dict[str, Floats]:
    """What the voices that never move say of windows, (N, n, H) by name."""
    corrections = mixture.speak(mixture.start(), mixture.see(seen)).corrections
    said = {name: seen.base + corrections[:, place] for place, name in enumerate(mixture.names)}
    return {name: forecasts for name, forecasts in said.items() if not name.startswith(("head", Bias.tag))}


@pytest.mark.parametrize("season", [12, None])
def test_the_regression_is_the_ridge_solution_on_what_the_profile_leaves_over(season: int | None) -> None:
    rng = np.random.default_rng(3)
    windows, base, outcomes = rng.normal(size=(2, 200, 30)), rng.normal(size=(2, 200, 6)), rng.normal(size=(2, 200, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), season, 30, 4, use_profile=True)
    seen = features.view(windows, base)
    raw, profile = seen.features, seen.profile
    blocks = (slice(0, 90), slice(90, 200))
    mixture = learned(features, *((features.view(windows[:, b], base[:, b]), outcomes[:, b]) for b in blocks))
    forecasts = still_forecasts(mixture, seen)
    assert list(forecasts) == ["backbone", *(["profile"] if season else []), "regression"]
    for n in range(2):
        x = raw[n, :, : features.of_window]
        ridge = 1e-3 * np.trace(x.T @ x) / x.shape[1]
        solution = np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ (outcomes - profile)[n])
        np.testing.assert_allclose(forecasts["regression"][n], profile[n] + x @ solution, atol=1e-9)
        np.testing.assert_array_equal(forecasts["backbone"][n], base[n])
        if season:
            np.testing.assert_allclose(forecasts["profile"][n], profile[n], atol=1e-12)


def test_the_regression_follows_a_level_shift_and_ignores_the_base_forecast() -> None:
    rng = np.random.default_rng(4)
    windows, base = rng.normal(size=(1, 50, 30)), rng.normal(size=(1, 50, 6))
    features = FeatureMap.build(np.arange(6, dtype=np.float64), 12, 30, 4, use_profile=True)
    seen = features.view(windows, base)
    mixture = learned(features, (seen, 2 * seen.profile))  # which the profile leaves half of over
    said = still_forecasts(mixture, seen)["regression"]
    assert np.abs(said - seen.profile).max() > 0.1  # it says something
    moved = still_forecasts(mixture, features.view(windows + 7, base - 3))["regression"]
    np.testing.assert_allclose(moved, said + 7, atol=1e-9)


@pytest.mark.parametrize(("horizon", "season", "size"), [(24, 24, 10), (48, 12, 7), (30, 24, 6)])
def test_the_basis_spans_level_trend_and_the_first_harmonics(horizon: int, season: int, size: int) -> None:
    leads = np.arange(float(horizon))
    angles = [2 * np.pi * order * leads / season for order in range(1, size)]
    waves = [wave(angle) for angle in angles for wave in (np.cos, np.sin)]
    wanted = np.stack([np.ones(horizon), leads, *waves][:size], axis=1)
    found = horizon_basis(leads, season, size)
    assert found.shape == (horizon, size)
    np.testing.assert_allclose(found.T @ found, np.eye(size) / horizon, atol=1e-12)
    np.testing.assert_allclose(found @ (horizon * found.T @ wanted), wanted, atol=1e-9)  # nothing is left over
