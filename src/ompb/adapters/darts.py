"""Global models of darts, by ``predict(n, series=[...])``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, Levels, as_series, of_series
from ompb.adapters.quiet import quiet
from ompb.errors import ForecasterError, OptionError
from ompb.floor.extras import extra
from ompb.seam.query import Query
from ompb.types import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Darts(Adapter):
    """A model of single series, or of all channels together if it was fitted to series of so many."""

    model: Any
    together: int  # channels of the series it was fitted to
    dtype: str  # of its weights
    quantiles: Levels = ()

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, H, C) or (n, H, C, Q)."""
        windows = self.windows_of(query)
        count, _, channels = windows.shape
        if self.together not in (1, channels):
            raise ForecasterError(
                f"the model was fitted to series of {self.together} channels and the windows have {channels}; fit it "
                "to series of one channel, or of as many as the windows have."
            )
        if self.together == 1:
            said = self._ask(as_series(windows)[..., None])[:, :, 0]
            return of_series(said if self.quantiles else said[..., 0], count)
        said = self._ask(windows)
        return said if self.quantiles else said[..., 0]

    def _ask(self, windows: Floats) -> Floats:
        """Of series (N, context, channels): (N, H, channels, quantiles or 1)."""
        with extra("adapters", needed_by="ompb.adapters.darts"):
            from darts import TimeSeries

        series = [TimeSeries.from_values(window) for window in windows.astype(self.dtype)]
        with quiet():
            options = {"predict_likelihood_parameters": True} if self.quantiles else {}
            said = self.model.predict(self.horizon, series=series, verbose=False, show_warnings=False, **options)
        values = np.stack([one.values() for one in said]).astype(np.float64)
        return values.reshape(*values.shape[:2], self.together, -1)


def wrap(model: Any, *, context: int, horizon: int) -> Darts:
    """A fitted global model of darts as a forecaster; one with a quantile likelihood gives these quantiles.

    Windows come in float64 and a network in float32 cannot take them, so they are cast to what its weights are.

    Args:
        model: the model, which takes nothing but the series.
        context: rows in a window, at least as many as the model looks back.
        horizon: rows in a forecast.

    ::

        model = NHiTSModel(input_chunk_length=96, output_chunk_length=24).fit(series.astype(np.float32))
        forecaster = ompb.adapters.darts.wrap(model, context=96, horizon=24)
    """
    with extra("adapters", needed_by="ompb.adapters.darts"):
        from darts.models.forecasting.forecasting_model import GlobalForecastingModel

    kind = type(model).__name__
    if not isinstance(model, GlobalForecastingModel):
        raise ForecasterError(
            f"{kind} is a local model of darts: it goes on from the series it was fitted to. Use a global one "
            "(LinearRegressionModel, LightGBMModel, NHiTSModel), or bring its backtest as Recorded.from_frame."
        )
    together = _channels(model)
    if model.uses_past_covariates or model.uses_future_covariates or model.uses_static_covariates:
        raise ForecasterError(f"{kind} needs covariates, which windows do not have; fit it to the series alone.")
    back = -model.extreme_lags[0]
    if context < back:
        raise OptionError(f"context = {context} is less than the {back} rows that {kind} looks back; pass as many.")
    quantiles = _quantiles(model, horizon)
    one = model.training_series  # None if it was fitted to several
    return Darts(
        context=context,
        horizon=horizon,
        series=tuple(map(str, one.components)) if together > 1 and one is not None else (),
        model=model,
        together=together,
        dtype=_dtype(model),
        quantiles=quantiles,
    )


def _channels(model: Any) -> int:
    """Of the series that it was fitted to; those of an ensemble are alike."""
    if getattr(model, "forecasting_models", None):
        return _channels(model.forecasting_models[0])
    sizes, shapes = (
        getattr(model, "input_dim", None),
        getattr(getattr(model, "model", None), "train_sample_shape", None),
    )
    if sizes:  # of a regression
        return int(sizes["target"])
    if shapes:  # of a network
        return int(shapes["past_target"][1])
    raise ForecasterError(f"this {type(model).__name__} is not fitted; call fit(series) first.")


def _dtype(model: Any) -> str:
    """Of a network's weights, or of those of the first network in an ensemble; float64 for what is none."""
    for part in getattr(model, "forecasting_models", ()):
        if _dtype(part) != "float64":
            return _dtype(part)
    return str(getattr(getattr(model, "model", None), "dtype", "float64")).removeprefix("torch.")


def _quantiles(model: Any, horizon: int) -> Levels:
    if model.likelihood is None:
        return ()
    kind, found = type(model).__name__, getattr(model.likelihood, "quantiles", None)
    if not found:
        raise ForecasterError(
            f"{kind} draws its forecasts at random from its likelihood; fit it with a quantile likelihood or none."
        )
    if horizon > model.output_chunk_length:
        raise OptionError(
            f"horizon = {horizon}, and {kind} gives quantiles of {model.output_chunk_length} rows at a time; fit it "
            f"with output_chunk_length={horizon}."
        )
    return tuple(sorted(map(float, found)))
