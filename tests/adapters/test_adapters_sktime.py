from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sine_world import (
    CONTEXT,
    HORIZON,
    SEASON,
    SIZES,
    SOURCE_ROWS,
    ahead_of,
    error,
    follows_a_stream,
    stamps,
    windows_from,
    world,
)
from sklearn.linear_model import LinearRegression
from sktime.forecasting.compose import TransformedTargetForecaster, make_reduction
from sktime.forecasting.croston import Croston
from sktime.forecasting.exp_smoothing import ExponentialSmoothing
from sktime.forecasting.naive import NaiveForecaster
from sktime.forecasting.theta import ThetaForecaster
from sktime.forecasting.trend import PolynomialTrendForecaster, TrendForecaster
from sktime.transformations.detrend import Deseasonalizer

from ompb.adapters import sktime
from ompb.adapters.quiet import quiet
from ompb.errors import ForecasterError, OptionError

LEADS = np.arange(1, HORIZON + 1)


def fitted(model: Any, index: Any = None) -> Any:
    with quiet():
        return model.fit(pd.Series(world()[0][:, 0], index=index), fh=LEADS)


@lru_cache
def reduction(window: int = 48) -> Any:
    return fitted(make_reduction(LinearRegression(), window_length=window, strategy="recursive"))


@lru_cache
def off_season() -> Any:
    """Regression on the last six rows, less the season of its training rows."""
    season, line = Deseasonalizer(sp=SEASON), make_reduction(LinearRegression(), window_length=6)
    # a day and a half off, so that the window after the training rows does not start a season
    with quiet():
        return TransformedTargetForecaster([("season", season), ("line", line)]).fit(
            pd.Series(world()[0][: SOURCE_ROWS - 12, 0]), fh=LEADS
        )


def test_a_stream(tmp_path: Path) -> None:
    follows_a_stream(sktime.wrap(reduction(), **SIZES), 1, tmp_path, every=90, windows=8)


def test_channels_are_series() -> None:
    forecaster, query = sktime.wrap(reduction(), **SIZES), windows_from([0, 5])
    higher = windows_from([0, 5], level=2.0)
    both = type(query)(np.concatenate([query.windows, higher.windows], axis=2), query.origins)
    alone = [forecaster.forecast(asked) for asked in (query, higher)]
    np.testing.assert_array_equal(forecaster.forecast(both), np.concatenate(alone, axis=2))


def test_quantiles_are_those_of_the_model() -> None:
    model = fitted(NaiveForecaster("last", sp=SEASON))
    forecaster = sktime.wrap(model, **SIZES, quantiles=(0.1, 0.5, 0.9))
    query = windows_from([5])
    after = pd.Series(query.windows[0, :, 0], index=range(SOURCE_ROWS, SOURCE_ROWS + CONTEXT))
    with quiet():
        own = copy.deepcopy(model).update(after, update_params=False).predict_quantiles(fh=LEADS, alpha=[0.1, 0.5, 0.9])
    np.testing.assert_allclose(forecaster.forecast(query)[0, :, 0], own.to_numpy(), rtol=1e-9)
    assert (np.diff(own.to_numpy(), axis=-1) > 0).all()


@pytest.mark.parametrize(
    "index",
    [
        None,
        pd.period_range("2024-01-01", periods=SOURCE_ROWS, freq="h"),
        pd.date_range("2024-01-01", periods=SOURCE_ROWS, freq="h"),
    ],
    ids=["rows", "periods", "dates"],
)
def test_forecasts_come_from_the_window(index: Any) -> None:
    query = windows_from([0, 5, 12])
    model = fitted(make_reduction(LinearRegression(), window_length=48, strategy="direct"), index)
    assert error(sktime.wrap(model, **SIZES).forecast(query), query) < 0.3


@pytest.mark.parametrize(
    "model",
    [
        ExponentialSmoothing(sp=SEASON, seasonal="add"),
        ThetaForecaster(deseasonalize=False),
        PolynomialTrendForecaster(),
        TrendForecaster(),
        Croston(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_those_that_ignore_the_context_are_refused(model: Any) -> None:
    """Ten more in the window moves their forecast by nothing, and they do not say so."""
    own, said = fitted(model), []
    for level in (0.0, 10.0):
        asked = copy.deepcopy(own)
        window = pd.Series(world()[0][:CONTEXT, 0] + level, index=range(SOURCE_ROWS, SOURCE_ROWS + CONTEXT))
        with quiet():
            said.append(asked.update(window, update_params=False).predict(fh=LEADS).to_numpy())
    np.testing.assert_array_equal(*said)
    with pytest.raises(ForecasterError, match=f"{type(model).__name__} ignores its context"):
        sktime.wrap(own, **SIZES)


def test_those_that_read_training_rows_are_refused() -> None:
    """A memory longer than the window goes on into the training rows."""
    own = fitted(NaiveForecaster("mean", window_length=CONTEXT + 12))
    flat = pd.Series(np.zeros(CONTEXT), index=range(SOURCE_ROWS, SOURCE_ROWS + CONTEXT))
    with quiet():
        said = copy.deepcopy(own).update(flat, update_params=False).predict(fh=LEADS)
    assert (np.abs(said) > 1).all()  # of a window of zeros
    with pytest.raises(ForecasterError, match="NaiveForecaster reads rows before its window of 60"):
        sktime.wrap(own, **SIZES)
    sktime.wrap(own, context=CONTEXT + 12, horizon=HORIZON)


def test_a_season_counted_from_the_training_rows_is_met_in_phase() -> None:
    query = windows_from([0, 5, 12, 17, 24])
    as_it_is = np.abs(sktime.wrap(off_season(), **SIZES).forecast(query) - ahead_of(query)).mean(axis=(1, 2))
    assert as_it_is[[0, 1, 3, 4]].min() > 1.0
    assert as_it_is[2] < 0.3  # which starts half a day off, as the row after the training rows does
    in_phase = sktime.wrap(off_season(), **SIZES, season=SEASON)
    assert error(in_phase.forecast(query), query) < 0.3
    later = windows_from([SOURCE_ROWS + 5], timed=True)
    anew = type(later)(later.windows, np.array([CONTEXT - 1]), later.times)
    by_time = sktime.wrap(off_season(), **SIZES, season=SEASON, times=stamps(0, SOURCE_ROWS))
    assert error(by_time.forecast(anew), later) < 0.3


def test_what_the_user_has_is_left_as_it_was() -> None:
    before = reduction().cutoff
    sktime.wrap(reduction(), **SIZES).forecast(windows_from([0]))
    assert reduction().cutoff.equals(before)


def test_what_cannot_be_wrapped_is_refused_at_once() -> None:
    with pytest.raises(ForecasterError, match="NaiveForecaster is not fitted"):
        sktime.wrap(NaiveForecaster(), **SIZES)
    direct = fitted(make_reduction(LinearRegression(), window_length=48, strategy="direct"))
    with pytest.raises(
        ForecasterError, match=r"cannot forecast 30 rows after a new window: ValueError.* fh=range\(1, 31\)"
    ):
        sktime.wrap(direct, context=CONTEXT, horizon=30)
    with quiet():
        both = make_reduction(LinearRegression(), window_length=48).fit(pd.DataFrame(world(2)[0]))
    with pytest.raises(ForecasterError, match=r"cannot forecast .* rows after a new window: .* Fit it to one series"):
        sktime.wrap(both, **SIZES)
    with pytest.raises(ForecasterError, match="has no predict_quantiles; wrap it without quantiles"):
        sktime.wrap(reduction(), **SIZES, quantiles=(0.1, 0.5, 0.9))
    with pytest.raises(OptionError, match="option season = '24'"):
        sktime.wrap(off_season(), **SIZES, season="24")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="context = 40 is less than two seasons of 24 rows"):
        sktime.wrap(off_season(), context=40, horizon=HORIZON, season=SEASON)
