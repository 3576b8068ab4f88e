from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from darts import TimeSeries
from darts.models import ExponentialSmoothing, LinearRegressionModel, NaiveEnsembleModel, NaiveSeasonal, NLinearModel
from darts.utils.likelihood_models.torch import GaussianLikelihood
from sine_world import CONTEXT, HORIZON, SEASON, SIZES, error, follows_a_stream, windows_from, world

from ompb.adapters import darts
from ompb.adapters.quiet import quiet
from ompb.errors import CheckError, ForecasterError, OptionError

CPU = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}


def series(channels: int) -> Any:
    return TimeSeries.from_values(world(channels)[0])


@lru_cache
def line(channels: int = 1, quantiles: tuple[float, ...] = ()) -> Any:
    likelihood = {"likelihood": "quantile", "quantiles": list(quantiles)} if quantiles else {}
    return LinearRegressionModel(lags=48, output_chunk_length=HORIZON, **likelihood).fit(series(channels))


@lru_cache
def network(drawn: bool = False) -> Any:
    """In float32."""
    sizes = {"input_chunk_length": 48, "output_chunk_length": HORIZON, "n_epochs": 10, "random_state": 0}
    options = {"likelihood": GaussianLikelihood(), "normalize": False} if drawn else {}
    with quiet():
        return NLinearModel(**sizes, pl_trainer_kwargs=CPU, **options).fit(series(1).astype(np.float32))


def test_a_stream_of_two_channels_as_series(tmp_path: Path) -> None:
    follows_a_stream(darts.wrap(line(), **SIZES), 2, tmp_path)


def test_a_stream_of_two_channels_together(tmp_path: Path) -> None:
    forecaster = darts.wrap(line(2), **SIZES)
    follows_a_stream(forecaster, 2, tmp_path)
    with pytest.raises(ForecasterError, match="fitted to series of 2 channels and the windows have 1"):
        forecaster.forecast(windows_from([0]))


@pytest.mark.parametrize("channels", [1, 2])
def test_a_model_of_quantiles_gives_them(channels: int, tmp_path: Path) -> None:
    forecaster = darts.wrap(line(channels, (0.1, 0.5, 0.9)), **SIZES)
    assert forecaster.quantiles == (0.1, 0.5, 0.9)
    windows = np.stack([world(channels)[0][start : start + CONTEXT] for start in (0, 7)])
    said = forecaster.forecast(type(windows_from([0]))(windows, np.array([59, 66])))
    assert said.shape == (2, HORIZON, channels, 3)
    own = line(channels, (0.1, 0.5, 0.9)).predict(
        HORIZON, series=TimeSeries.from_values(windows[1]), predict_likelihood_parameters=True
    )
    for channel in range(channels):  # by the names that the library gives them
        names = [f"{own.components[channel * 3].rsplit('_q', 1)[0]}_q{tau:.3f}" for tau in forecaster.quantiles]
        np.testing.assert_allclose(said[1, :, channel], own[names].values(), rtol=1e-9)
    follows_a_stream(forecaster, channels, tmp_path)


def test_a_network_in_float32_is_given_float32(tmp_path: Path) -> None:
    query = windows_from([0, 5, 12])
    with quiet(), pytest.raises(RuntimeError, match="must have the same dtype"):
        network().predict(HORIZON, series=[TimeSeries.from_values(window) for window in query.windows])
    forecaster = darts.wrap(network(), **SIZES)
    assert error(forecaster.forecast(query), query) < 1.0
    follows_a_stream(forecaster, 1, tmp_path)


def test_a_call_says_nothing(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    forecaster = darts.wrap(network(), **SIZES)
    capfd.readouterr()
    caplog.clear()
    forecaster.forecast(windows_from([0]))
    assert (*capfd.readouterr(), caplog.records) == ("", "", [])


def test_local_models_are_refused() -> None:
    """They know the series they were fitted to, and no other."""
    for model in (ExponentialSmoothing(seasonal_periods=SEASON), NaiveSeasonal(SEASON)):
        model.fit(series(1))
        with pytest.raises(TypeError, match="unexpected keyword argument 'series'"):
            model.predict(HORIZON, series=[series(1)])
        with pytest.raises(ForecasterError, match=f"{type(model).__name__} is a local model of darts"):
            darts.wrap(model, **SIZES)


def test_an_ensemble_is_asked_as_its_parts_are() -> None:
    query = windows_from([0, 7])
    parts = [LinearRegressionModel(lags=48, output_chunk_length=HORIZON) for _ in range(2)]
    mean = darts.wrap(NaiveEnsembleModel(parts).fit(series(1)), **SIZES)
    np.testing.assert_allclose(mean.forecast(query), darts.wrap(line(), **SIZES).forecast(query))
    with quiet():
        of_networks = NaiveEnsembleModel([network().untrained_model() for _ in range(2)]).fit(
            series(1).astype(np.float32)
        )
    said = darts.wrap(of_networks, **SIZES).forecast(query)
    np.testing.assert_allclose(said, darts.wrap(network(), **SIZES).forecast(query), rtol=1e-5)


def test_channels_in_another_order_than_they_were_fitted_in_are_found_by_name() -> None:
    table = pd.DataFrame(world(2)[0], columns=["north", "east"])
    model = LinearRegressionModel(lags=48, output_chunk_length=HORIZON).fit(TimeSeries.from_dataframe(table))
    forecaster = darts.wrap(model, **SIZES).checked(table)
    with pytest.raises(CheckError, match=r"order north, east, .*, and the source has east, north"):
        forecaster.checked(table[["east", "north"]])


def test_what_cannot_be_wrapped_is_refused_at_once() -> None:
    with pytest.raises(ForecasterError, match="LinearRegressionModel is not fitted"):
        darts.wrap(LinearRegressionModel(lags=3), **SIZES)
    with pytest.raises(
        OptionError, match="context = 40 is less than the 48 rows that LinearRegressionModel looks back"
    ):
        darts.wrap(line(), context=40, horizon=HORIZON)
    with pytest.raises(OptionError, match="horizon = 9, and LinearRegressionModel gives quantiles of 6 rows"):
        darts.wrap(line(1, (0.1, 0.5, 0.9)), context=CONTEXT, horizon=9)
    with_other = LinearRegressionModel(lags=3, lags_past_covariates=3).fit(series(1), past_covariates=series(1))
    with pytest.raises(ForecasterError, match="needs covariates"):
        darts.wrap(with_other, **SIZES)
    with pytest.raises(ForecasterError, match="NLinearModel draws its forecasts at random"):
        darts.wrap(network(drawn=True), **SIZES)
