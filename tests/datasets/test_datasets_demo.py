import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from ompb.datasets.demo import Demo, demo_series
from ompb.forecasters import Ridge

CONTEXT, HORIZON = 96, 24


def error_by_phase(demo: Demo) -> dict[str, float]:
    """Mean squared error, in source standard deviations, over all origins and outcomes inside each phase."""
    source = demo.values[: demo.source_rows]
    forecaster = Ridge.fit(source, CONTEXT, HORIZON)
    pairs = sliding_window_view(demo.values / source.std(axis=0), CONTEXT + HORIZON, axis=0).transpose(0, 2, 1)
    windows = sliding_window_view(demo.values, CONTEXT, axis=0).transpose(0, 2, 1)[: len(pairs)]
    errors = forecaster(windows) / source.std(axis=0) - pairs[:, CONTEXT:]
    squared = (errors**2).mean(axis=(1, 2))  # entry k has origin k + CONTEXT - 1
    return {p.name: float(squared[p.first - CONTEXT + 1 : p.stop - HORIZON - CONTEXT + 1].mean()) for p in demo.phases}


def test_demo_is_the_same_under_the_same_seed_only() -> None:
    np.testing.assert_array_equal(demo_series(5).values, demo_series(5).values)
    assert not np.array_equal(demo_series(5).values, demo_series(6).values)


def test_demo_phases_cover_the_target() -> None:
    demo = demo_series()
    assert [p.name for p in demo.phases] == ["no shift", "covariate shift", "concept shift"]
    assert [p.first for p in demo.phases] == [demo.source_rows, *(p.stop for p in demo.phases[:-1])]
    assert demo.phases[-1].stop == len(demo.values)
    assert demo.values[demo.phases[0].rows].shape == (40 * 24, len(demo.channels))


def test_demo_is_hourly_positive_complete_and_read_only() -> None:
    demo = demo_series()
    assert demo.times.shape == (len(demo.values),)
    assert (np.diff(demo.times) == np.timedelta64(1, "h")).all()
    assert np.isfinite(demo.values).all()
    assert demo.values.min() > 0
    assert not demo.values.flags.writeable


def test_demo_load_is_lower_on_weekends() -> None:
    demo = demo_series()
    weekday = (demo.times.astype("datetime64[D]").astype(int) + 3) % 7  # 1970-01-01 was a Thursday
    source = slice(0, demo.source_rows // 168 * 168)
    weekend = weekday[source] >= 5
    assert demo.values[source][weekend].mean() < 0.97 * demo.values[source][~weekend].mean()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ridge_is_good_without_shift_and_hurt_by_each_shift(seed: int) -> None:
    errors = error_by_phase(demo_series(seed))
    assert errors["no shift"] < 0.25
    assert errors["covariate shift"] > 1.5 * errors["no shift"]
    assert errors["concept shift"] > 1.5 * errors["no shift"]
