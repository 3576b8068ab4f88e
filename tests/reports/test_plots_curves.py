import numpy as np
import pytest
from small_study import HORIZON, small_study

from ompb.plots.curves import error_by_row, rolling_mean


def test_error_by_row_averages_the_forecasts_about_it() -> None:
    run = small_study().run
    row = 80
    errors = [
        np.abs(run.mean[row - lead - run.origins[0], lead - 1] - run.outcome[row - lead - run.origins[0], lead - 1])
        / run.scale
        for lead in range(1, HORIZON + 1)
    ]
    assert error_by_row(run, run.mean)[row] == pytest.approx(np.mean(errors))
    assert np.isnan(error_by_row(run, run.mean)[: run.origins[0] + 1]).all()


def test_rolling_mean_skips_the_unknown() -> None:
    values = np.array([np.nan, 2.0, np.nan, np.nan, 6.0, 8.0])
    assert np.array_equal(rolling_mean(values, 2), [np.nan, 2.0, 2.0, np.nan, 6.0, 7.0], equal_nan=True)


def test_a_rolling_mean_longer_than_the_curve_is_the_mean_so_far() -> None:
    assert np.allclose(rolling_mean(np.array([1.0, 2.0, 6.0]), 10_000_000), [1.0, 1.5, 3.0])
