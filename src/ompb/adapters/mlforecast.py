"""Models of mlforecast, by ``predict(new_df=)``."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, Levels, as_series, of_series
from ompb.adapters.nixtla import any_stamps, in_order, long_frame, true_stamps
from ompb.errors import ForecasterError, OptionError
from ompb.seam.query import Query
from ompb.types import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Mlforecast(Adapter):
    """One or more regressions on lags of each series."""

    fitted: Any
    columns: list[str]  # of the answer: one, or one for each quantile
    quantiles: Levels = ()
    uses_times: bool = False  # whether it looks at the calendar

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, H, C) or (n, H, C, Q); channels are series."""
        series = as_series(self.windows_of(query))
        ts = self.fitted.ts
        frame = long_frame(series, self._stamps(query), (ts.id_col, ts.time_col, ts.target_col))
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Found null values in ")  # trees go on from them in silence
            try:
                said = copy.copy(self.fitted).predict(self.horizon, new_df=frame)
            except UserWarning as warning:
                raise ForecasterError(
                    f"the model needs more than {self.context} rows: {warning} Wrap it with a longer context."
                ) from warning
        values = of_series(in_order(said, (ts.id_col, ts.time_col), self.columns, self.horizon), len(query.windows))
        return values if self.quantiles else np.asarray(values[..., 0])

    def _stamps(self, query: Query) -> Any:
        count, _, channels = query.windows.shape
        if not self.uses_times:
            return any_stamps(self.fitted.ts.freq, count * channels, self.context)
        if query.times is None:
            raise ForecasterError(
                f"the model looks at the calendar ({', '.join(map(str, self.fitted.ts.date_features))}) and the "
                "windows have no times; pass times= to Calibrator.fit and at= with every row. Made-up stamps would "
                "give forecasts of another hour."
            )
        return np.repeat(true_stamps(self.fitted.ts.freq, query.times, self.context), channels, axis=0)


def wrap(fitted: Any, *, context: int, horizon: int, model: str | Mapping[float, str] | None = None) -> Mlforecast:
    """A fitted ``MLForecast`` as a forecaster. One with date features needs the times of the rows.

    Args:
        fitted: the ``MLForecast``, without static or other features that the windows do not hold.
        context: rows in a window, enough for the longest lag.
        horizon: rows in a forecast.
        model: the name of one of its models, if it has several; or the name of the model of each quantile, such as
            ``{0.1: "low", 0.5: "middle", 0.9: "high"}``.

    ::

        fitted = MLForecast({"trees": LGBMRegressor()}, freq="h", lags=[1, 24], date_features=["hour"]).fit(frame)
        forecaster = ompb.adapters.mlforecast.wrap(fitted, context=96, horizon=24)
    """
    names = list(getattr(fitted, "models_", ()))
    if not names:
        raise ForecasterError("this MLForecast is not fitted; call fit(frame) first.")
    extra_features = [name for name in fitted.ts.static_features_ if name != fitted.ts.id_col]
    if extra_features:
        raise ForecasterError(
            f"the model was fitted with the static features {', '.join(extra_features)}, which windows do not have; "
            "fit it with static_features=[]."
        )
    known = {*fitted.ts.features, *fitted.ts.static_features_}
    asked = [name for name in fitted.ts.features_order_ if name not in known]
    if asked:
        raise ForecasterError(f"the model needs the covariates {', '.join(asked)}, which windows do not have.")
    longest = fitted.ts.max_horizon
    if longest is not None and horizon > longest:
        raise OptionError(
            f"horizon = {horizon}, and the model was fitted with max_horizon={longest}; pass at most that."
        )
    columns, quantiles = _chosen(names, model)
    calendar = bool(fitted.ts.date_features)
    return Mlforecast(
        context=context, horizon=horizon, fitted=fitted, columns=columns, quantiles=quantiles, uses_times=calendar
    )


def _chosen(names: list[str], model: str | Mapping[float, str] | None) -> tuple[list[str], Levels]:
    """Columns of the answer, and the quantiles they are."""
    by_quantile = sorted(model.items()) if isinstance(model, Mapping) else []
    wanted = [name for _, name in by_quantile] or ([model] if isinstance(model, str) else names)
    unknown = [name for name in wanted if name not in names]
    if unknown or (not by_quantile and len(wanted) > 1):
        raise OptionError(f"model = {model!r}; accepted: one of {', '.join(names)}, or one for each quantile.")
    return wanted, tuple(tau for tau, _ in by_quantile)
