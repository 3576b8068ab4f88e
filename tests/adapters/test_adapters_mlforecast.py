from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from mlforecast import MLForecast
from sine_world import (
    CONTEXT,
    HORIZON,
    SEASON,
    SIZES,
    SOURCE_ROWS,
    error,
    follows_a_stream,
    long_frame,
    stamps,
    windows_from,
    world,
)
from sklearn.linear_model import LinearRegression, QuantileRegressor

from ompb.adapters import as_series, mlforecast
from ompb.adapters.nixtla import true_stamps
from ompb.errors import ForecasterError, OptionError


@lru_cache
def fitted(channels: int = 1, calendar: bool = False) -> Any:
    """On lags of a day, or on the last row and the hour."""
    features: dict[str, Any] = {"lags": [1], "date_features": [hour_of_day]} if calendar else {"lags": [1, 2, SEASON]}
    return MLForecast({"line": LinearRegression()}, freq="h", **features).fit(
        long_frame(world(channels)[0], stamps(0, SOURCE_ROWS)), static_features=[]
    )


def hour_of_day(times: Any) -> Any:
    """What the sine adds at the hour that comes."""
    return np.sin(2 * np.pi * times.hour / SEASON)


def test_a_stream_of_two_channels(tmp_path: Path) -> None:
    follows_a_stream(mlforecast.wrap(fitted(2), **SIZES), 2, tmp_path)


def test_a_stream_with_a_calendar(tmp_path: Path) -> None:
    follows_a_stream(mlforecast.wrap(fitted(calendar=True), **SIZES), 1, tmp_path, timed=True)


def test_forecasts_come_in_the_order_of_the_windows() -> None:
    """With plain numbers for ids the library returns the tenth window after the first."""
    query = windows_from(list(range(0, 65, 5)))
    said = mlforecast.wrap(fitted(), **SIZES).forecast(query)
    assert error(said, query) < 0.3
    frame = long_frame(as_series(query.windows).T, stamps(0, CONTEXT))
    raw = fitted().predict(HORIZON, new_df=frame)["line"].to_numpy().reshape(said.shape)
    assert error(raw, query) > 1.5
    in_text_order = sorted(range(13), key=str)
    np.testing.assert_allclose(raw, said[in_text_order], rtol=1e-9)


def test_a_calendar_needs_true_stamps() -> None:
    query = windows_from([5, 12, 17, 24], timed=True)
    forecaster = mlforecast.wrap(fitted(calendar=True), **SIZES)
    assert error(forecaster.forecast(query), query) < 0.3
    made_up = type(query)(query.windows, query.origins, np.broadcast_to(stamps(CONTEXT - 1, 1), 4))
    assert error(forecaster.forecast(made_up), query) > 1.5  # and nobody would say so
    with pytest.raises(ForecasterError, match=r"hour_of_day.* and the windows have no times; pass times="):
        forecaster.forecast(windows_from([5]))
    with pytest.raises(ForecasterError, match="the time 64 is no date"):
        forecaster.forecast(type(query)(query.windows, query.origins, query.origins))


def test_whole_numbers_as_times() -> None:
    counted = MLForecast([LinearRegression()], freq=1, lags=[1, 2, SEASON]).fit(
        long_frame(world()[0], np.arange(SOURCE_ROWS))
    )
    query = windows_from([3, 50])
    assert error(mlforecast.wrap(counted, **SIZES).forecast(query), query) < 0.3


def test_a_context_too_short_for_the_lags_is_refused() -> None:
    """Trees go on from missing lags as if they were numbers."""
    trees = MLForecast({"trees": LGBMRegressor(n_estimators=5, verbose=-1)}, freq="h", lags=[1, SEASON]).fit(
        long_frame(world()[0], stamps(0, SOURCE_ROWS))
    )
    short = windows_from([0]).windows[:, -10:]
    query = type(windows_from([0]))(short, np.array([9]))
    with pytest.warns(UserWarning, match="Found null values in lag24"):
        raw = trees.predict(HORIZON, new_df=long_frame(short[0], stamps(0, 10)))
    assert np.isfinite(raw["trees"]).all()
    with pytest.raises(ForecasterError, match="needs more than 10 rows: Found null values in lag24"):
        mlforecast.wrap(trees, context=10, horizon=HORIZON).forecast(query)


def test_models_of_quantiles_are_a_quantile_forecaster(tmp_path: Path) -> None:
    models = {
        name: QuantileRegressor(quantile=tau, alpha=0.0) for name, tau in (("mid", 0.5), ("low", 0.1), ("up", 0.9))
    }
    three = MLForecast(models, freq="h", lags=[1, SEASON]).fit(long_frame(world()[0], stamps(0, SOURCE_ROWS)))
    forecaster = mlforecast.wrap(three, **SIZES, model={0.9: "up", 0.5: "mid", 0.1: "low"})
    assert forecaster.quantiles == (0.1, 0.5, 0.9)
    first = forecaster.forecast(windows_from([0, 7]))[:, 0, 0]
    assert (np.diff(first, axis=-1) > 0).all()
    follows_a_stream(forecaster, 1, tmp_path)
    with pytest.raises(OptionError, match="model = None; accepted: one of mid, low, up, or one for each quantile"):
        mlforecast.wrap(three, **SIZES)
    assert mlforecast.wrap(three, **SIZES, model="mid").forecast(windows_from([0])).shape == (1, HORIZON, 1)


def test_stamps_keep_the_steps_of_the_model() -> None:
    ends = np.array(["2024-03-01", "2025-01-01"], dtype="datetime64[us]")
    months = true_stamps("MS", ends, 3).astype("datetime64[D]").astype(str).tolist()
    assert months == [["2024-01-01", "2024-02-01", "2024-03-01"], ["2024-11-01", "2024-12-01", "2025-01-01"]]
    assert true_stamps(15, np.array([145]), 3).tolist() == [[115, 130, 145]]
    with pytest.raises(ForecasterError, match="the time 2024-03-02T00:00:00 is not on the model's steps of 'MS'"):
        true_stamps("MS", ends + np.timedelta64(1, "D"), 3)
    with pytest.raises(
        ForecasterError, match="counts time in whole numbers and the time 2024-03-01T00:00:00 is a date"
    ):
        true_stamps(1, ends, 3)


def test_what_the_user_has_is_left_as_it_was() -> None:
    """The library puts the new series in the place of those it was fitted to."""
    own = MLForecast([LinearRegression()], freq="h", lags=[1]).fit(long_frame(world()[0], stamps(0, SOURCE_ROWS)))
    mlforecast.wrap(own, **SIZES).forecast(windows_from([0, 1]))
    assert list(own.ts.uids) == ["0"]
    own.predict(HORIZON, new_df=long_frame(world(2)[0], stamps(0, SOURCE_ROWS)))
    assert list(own.ts.uids) == ["0", "1"]


def test_what_cannot_be_wrapped_is_refused_at_once() -> None:
    with pytest.raises(ForecasterError, match="MLForecast is not fitted"):
        mlforecast.wrap(MLForecast([LinearRegression()], freq="h", lags=[1]), **SIZES)
    frame = long_frame(world()[0], stamps(0, SOURCE_ROWS)).assign(size=1.0)
    sized = MLForecast([LinearRegression()], freq="h", lags=[1]).fit(frame, static_features=["size"])
    with pytest.raises(ForecasterError, match="static features size"):
        mlforecast.wrap(sized, **SIZES)
    moving = MLForecast([LinearRegression()], freq="h", lags=[1]).fit(frame, static_features=[])
    with pytest.raises(ForecasterError, match="needs the covariates size, which windows do not have"):
        mlforecast.wrap(moving, **SIZES)
    direct = MLForecast([LinearRegression()], freq="h", lags=[1]).fit(frame[["unique_id", "ds", "y"]], max_horizon=3)
    with pytest.raises(OptionError, match="and the model was fitted with max_horizon=3"):
        mlforecast.wrap(direct, **SIZES)
