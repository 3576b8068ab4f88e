"""Real cross-validation tables and backtests: StatsForecast and darts where they are installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_world import CONTEXT, HORIZON, SEASON, SIZES, SOURCE, STAMPS, STREAM, TIMES

import ompb
from ompb.testing import check_forecaster

pd = pytest.importorskip("pandas")

VALUES = np.concatenate([SOURCE, STREAM])
NAMES = ("north", "east")  # not in the order of the alphabet


def last_season(cutoff: Any) -> Any:
    return VALUES[cutoff + 1 - SEASON : cutoff + 1][np.arange(HORIZON) % SEASON]


def require_on_its_way(recorded: ompb.Recorded, names: tuple[str, ...]) -> None:
    """The same forecasts as plain algebra gives, at the cutoffs that there are, from the fit to the stream."""
    assert recorded.times is not None
    rows = np.searchsorted(TIMES, recorded.times)
    np.testing.assert_array_equal(TIMES[rows], recorded.times)
    middle = recorded.forecasts[..., recorded.quantiles.index(0.5)] if recorded.quantiles else recorded.forecasts
    np.testing.assert_allclose(middle, [last_season(row) for row in rows])
    source, stream = (pd.DataFrame(part, columns=list(names)) for part in (SOURCE, STREAM))
    check_forecaster(recorded, source, stream, **SIZES, **STAMPS, season=SEASON)


def test_a_table_of_statsforecast() -> None:
    statsforecast = pytest.importorskip("statsforecast")
    naive = pytest.importorskip("statsforecast.models").SeasonalNaive(SEASON)
    frame = pd.concat(
        pd.DataFrame({"unique_id": name, "ds": TIMES, "y": VALUES[:, channel]}) for channel, name in enumerate(NAMES)
    )
    windows = (len(VALUES) - CONTEXT - HORIZON) // 2
    table = statsforecast.StatsForecast([naive], freq="h").cross_validation(
        df=frame, h=HORIZON, n_windows=windows, step_size=2, level=[80]
    )
    require_on_its_way(ompb.Recorded.from_frame(table, names=NAMES), NAMES)
    quantiles = ompb.Recorded.from_frame(table, "SeasonalNaive", names=NAMES, levels=[80])
    assert (quantiles.quantiles, quantiles.forecasts.shape) == ((0.1, 0.5, 0.9), (windows, HORIZON, 2, 3))
    assert (np.diff(quantiles.forecasts, axis=-1) > 0).all()


def test_backtests_of_darts() -> None:
    pytest.importorskip("darts")
    frame = pd.DataFrame(VALUES, columns=list(NAMES), index=pd.DatetimeIndex(TIMES, freq="h"))
    series = pytest.importorskip("darts.timeseries").TimeSeries.from_dataframe(frame)
    model = pytest.importorskip("darts.models").NaiveSeasonal(K=SEASON)
    forecasts = model.historical_forecasts(
        series, start=CONTEXT, forecast_horizon=HORIZON, stride=3, last_points_only=False, retrain=True, verbose=False
    )
    recorded = ompb.Recorded.from_frame(forecasts)
    assert recorded.times is not None
    assert (np.diff(recorded.times) == np.timedelta64(3, "h")).all()
    require_on_its_way(recorded, NAMES)
