import numpy as np
import pytest

import ompb
from ompb.bench.compare import references_of_each, run_references
from ompb.datasets.synthetic import shifted_stream


@pytest.mark.parametrize("season", [None, 12, 30])
def test_seasonal_profile_is_there_only_if_a_season_fits(season: int | None) -> None:
    source, target = shifted_stream("none", seed=0, source_rows=300, target_rows=40, channels=2, season=12)
    forecaster = ompb.Ridge.fit(source, 24, 3)
    calibrator = ompb.Calibrator.fit(forecaster, source, context=24, horizon=3, season=season)
    run = ompb.backtest(calibrator, forecaster, target)
    forecasts = run_references(run)
    assert ("seasonal profile" in forecasts) == (season == 12)
    assert {"last value", "running bias", "copied residual"} <= set(forecasts)
    for forecast in forecasts.values():
        assert forecast.shape == run.base.shape
        assert np.isfinite(forecast).all()


def test_references_of_many_runs_are_those_of_each() -> None:
    runs = []
    for seed, rows, season in ((0, 40, 12), (1, 40, 12), (2, 35, 12), (3, 40, None), (4, 40, 12)):
        source, target = shifted_stream("level", seed=seed, source_rows=300, target_rows=rows, channels=2, season=12)
        target[10:13, seed % 2] = np.nan
        forecaster = ompb.Ridge.fit(source, 24, 3)
        calibrator = ompb.Calibrator.fit(forecaster, source, context=24, horizon=3, season=season)
        runs.append(ompb.backtest(calibrator, forecaster, target))
    for run, many in zip(runs, references_of_each(runs), strict=True):
        alone = run_references(run)
        assert list(many) == list(alone)
        for name, forecast in alone.items():
            np.testing.assert_array_equal(many[name], forecast, strict=True)
