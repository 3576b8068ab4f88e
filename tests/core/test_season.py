"""The season of series whose season is known."""

from pathlib import Path

import numpy as np
import pytest

from ompb.rows.season import (
    LONGEST,
    MOST,
    SHARE,
    SPAN,
    WITHIN,
    _clearest,
    _contrasts,
    _less_moving_average,
    find_season,
)
from ompb.types import Floats


def beside_noise(season: float, noise: float, rows: int, seed: int) -> Floats:
    """A sine in noise, and a channel of noise."""
    chance = np.random.default_rng(seed)
    sine = np.sin(2 * np.pi * np.arange(rows) / season)
    return np.stack([sine + noise * chance.normal(size=rows), chance.normal(size=rows)], axis=1)


@pytest.mark.parametrize("season", [7, 12, 24, 52])
@pytest.mark.parametrize("seed", range(8))
def test_a_smooth_season_is_found_to_the_row(season: int, seed: int) -> None:
    assert find_season(beside_noise(season, 0.3, 12 * season + 400, seed)) == season


def test_a_long_smooth_season_is_found_within_a_few_rows() -> None:
    found = [find_season(beside_noise(168, 0.3, 1600, seed)) for seed in range(10)]
    assert all(lag is not None and abs(lag - 168) <= 3 for lag in found)


def test_a_broken_season_is_rounded() -> None:
    assert find_season(beside_noise(52.18, 0.3, 2000, 0)) == 52


def test_the_short_one_of_two_seasons_is_found() -> None:
    hours = np.arange(2000)[:, None]
    day, year = np.sin(2 * np.pi * hours / 24), np.sin(2 * np.pi * hours / 400)
    assert find_season(day + 2 * year) == 24


def test_a_pattern_with_a_shorter_one_inside() -> None:
    """Twelve rows repeat partly, twenty-four wholly."""
    hours = np.arange(1000)[:, None]
    assert find_season(np.sin(2 * np.pi * hours / 24) + np.sin(2 * np.pi * hours / 12)) == 24


@pytest.mark.parametrize("seed", range(8))
def test_wandering_is_no_season(seed: int) -> None:
    chance = np.random.default_rng(seed)
    steps = chance.normal(size=(1500, 2))
    assert find_season(steps) is None
    assert find_season(np.cumsum(steps, axis=0)) is None


def test_trend_level_and_holes_change_nothing() -> None:
    values = beside_noise(24, 0.2, 800, 3) + 0.1 * np.arange(800)[:, None] + 1000
    values[100:110] = values[::17, 0] = np.nan
    assert find_season(values) == 24


@pytest.mark.parametrize("unit", [2.0**-40, 1e-12, 1e9])
def test_units_do_not_matter(unit: float) -> None:
    values = np.column_stack([beside_noise(24, 0.3, 800, 5), np.full(800, 0.1)])
    assert find_season(unit * values) == 24


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 10, 30])
def test_little_or_nothing_to_go_by(rows: int) -> None:
    assert find_season(np.ones((rows, 2))) is None
    assert find_season(np.full((rows, 1), np.nan)) is None
    assert find_season(np.arange(float(rows))[:, None]) is None


@pytest.mark.parametrize("seed", range(8))
def test_a_week_under_a_random_walk_is_found(seed: int) -> None:
    chance = np.random.default_rng(seed)
    week = np.sin(2 * np.pi * np.arange(1200) / 7)[:, None]
    walk = np.cumsum(0.3 * chance.normal(size=(1200, 1)), axis=0)
    values = week + 0.3 * chance.normal(size=(1200, 1)) + walk
    assert find_season(values) == 7


def test_the_moving_average_is_that_of_the_known_cells_around() -> None:
    values = np.random.default_rng(0).normal(size=(60, 2)) + 100
    values[10:14] = values[30, 1] = np.nan
    around = [np.nanmean(values[max(0, row - 5) : row + 5], axis=0) for row in range(60)]
    np.testing.assert_allclose(_less_moving_average(values, 10), values - around, atol=1e-10)


@pytest.mark.parametrize("memory", [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0])
def test_what_a_moving_average_leaves_of_wandering_is_no_season(memory: float) -> None:
    """Random walks and AR series, 120 of each kind; without the average, a few of the long ones seem to have one."""
    chance = np.random.default_rng(int(1000 * memory))
    for rows in (200, 400, 800, 1600, 3000, 6000):
        series = np.zeros((rows, 20))
        for row in range(1, rows):
            series[row] = memory * series[row - 1] + chance.normal(size=20)
        span = min(SPAN, int(SHARE * rows))
        flat = _less_moving_average(series, span)
        found = [_clearest(flat[:, [one]], int(WITHIN * span)) for one in range(20)]
        assert found == [None] * 20


@pytest.mark.parametrize(("name", "season"), [("opsd_daily", 7), ("wikipedia", 7), ("dam_price", 24), ("evap", 24)])
def test_real_series_with_slow_movements(data_dir: Path, name: str, season: int) -> None:
    file = data_dir / "rehearsal" / f"{name}.csv"
    if not file.exists():
        pytest.skip(f"no {file.name} in the data folder")
    values = np.genfromtxt(file, delimiter=",", skip_header=1)
    values = values.reshape(len(values), -1)
    assert [find_season(values[: len(values) * part // 4]) for part in (1, 2, 3, 4)] == [season] * 4


@pytest.mark.parametrize("rows", [8, 50, 333])
def test_the_contrast_is_that_of_the_formula_lag_by_lag(rows: int) -> None:
    correlation = np.random.default_rng(rows).uniform(-1, 1, size=rows)
    longest = int(LONGEST * (rows - 1))
    contrasts, multiples = _contrasts(correlation, longest, longest)
    assert len(contrasts) == longest + 2
    for lag in range(2, longest + 1):
        count = min(MOST, int((rows - 1) / lag - 0.5))
        at_multiples = np.mean([correlation[k * lag] for k in range(1, count + 1)])
        around = np.mean([correlation[j] for j in range(lag // 2 + 1, count * lag + lag // 2 + 1)])
        np.testing.assert_allclose(contrasts[lag], at_multiples - around, rtol=1e-9, atol=1e-12)
        assert multiples[lag] == count
    assert np.all(contrasts[[0, 1, -1]] == -2.0)
