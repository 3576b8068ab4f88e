import numpy as np
import pytest

from ompb.errors import OptionError, ShapeError, TooShortError
from ompb.forecasters import SeasonalProfile


def test_profile_continues_the_phase_when_the_context_is_not_a_multiple_of_the_season() -> None:
    # rows 0..7, season 3: whole seasons are rows 2-4 and 5-7, so the row after row 7 continues rows 2 and 5
    window = np.arange(8.0).reshape(1, 8, 1)
    forecast = SeasonalProfile(horizon=5, season=3)(window)
    assert forecast.ravel().tolist() == [3.5, 4.5, 5.5, 3.5, 4.5]


def test_profile_is_exact_on_a_periodic_series() -> None:
    rows = np.arange(200)
    series = np.stack([rows % 7, (rows * 3) % 7], axis=1).astype(float)
    windows = np.stack([series[k : k + 17] for k in range(50)])
    outcomes = np.stack([series[k + 17 : k + 17 + 10] for k in range(50)])
    np.testing.assert_array_equal(SeasonalProfile(10, 7)(windows), outcomes)


def test_profile_keeps_a_missing_phase_missing_and_no_other() -> None:
    window = np.array([1.0, 2.0, np.nan, 4.0]).reshape(1, 4, 1)
    np.testing.assert_array_equal(SeasonalProfile(2, 2)(window).ravel(), [np.nan, 3.0])


def test_profile_refuses_what_it_cannot_use() -> None:
    with pytest.raises(TooShortError, match="windows of 3 rows"):
        SeasonalProfile(2, 4)(np.zeros((1, 3, 1)))
    with pytest.raises(ShapeError, match="shape"):
        SeasonalProfile(2, 4)(np.zeros((8, 1)))
    with pytest.raises(OptionError, match="season = 0"):
        SeasonalProfile(2, 0)
    with pytest.raises(OptionError, match="horizon = 0"):
        SeasonalProfile(0, 2)
    with pytest.raises(OptionError, match=r"season = 2\.5"):
        SeasonalProfile(2, 2.5)  # type: ignore[arg-type]


def test_profile_takes_numpys_numbers() -> None:
    assert SeasonalProfile(np.int64(2), np.int32(3)) == SeasonalProfile(2, 3)  # type: ignore[arg-type]
