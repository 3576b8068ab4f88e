"""Forecasters of skforecast, asked by ``predict(last_window=)``: recursive and direct, of one series or of many.

One of many series knows its series by name. With an encoding of the names, or a transformer for each, an unknown name
silently gets a missing value as its code: such a model is asked about one window at a time under the names it was
fitted with. Without either, names mean nothing and all windows are asked about at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, as_series, of_series
from ompb.errors import ForecasterError, OptionError
from ompb.floor.extras import extra
from ompb.seam.query import Query
from ompb.types import Floats

LOCAL = ("ForecasterStats", "ForecasterSarimax")  # which know only the series they were fitted to


def wrap(model: Any, *, context: int, horizon: int) -> Skforecast:
    """A fitted forecaster of skforecast.

    Args:
        model: fitted, without exogenous columns: ``ForecasterRecursive``, ``ForecasterDirect`` (one model for all
            channels) or ``ForecasterRecursiveMultiSeries``.
        context: rows in a window, at least the model's ``window_size``.
        horizon: rows in a forecast.
    """
    kind = type(model).__name__
    if not getattr(model, "is_fitted", False):
        raise ForecasterError(f"the {kind} is not fitted; call fit first.")
    if getattr(model, "exog_in_", False):
        raise ForecasterError(
            f"the {kind} was fitted with exogenous columns, which windows do not have; fit it without, or bring its "
            "forecasts as ompb.Recorded."
        )
    if kind in LOCAL:
        raise ForecasterError(
            f"a {kind} goes on from the rows it was fitted to; use a ForecasterRecursive or ForecasterDirect, or bring "
            "its forecasts as ompb.Recorded."
        )
    if kind == "ForecasterDirectMultiVariate":
        raise ForecasterError(f"a {kind} forecasts one series of many; use one that forecasts all its channels.")
    if context < model.window_size:
        raise ForecasterError(
            f"context={context} is shorter than the window_size={model.window_size} of the {kind}; pass at least that."
        )
    steps = getattr(model, "max_step", horizon)
    if horizon > steps:
        raise OptionError(f"horizon = {horizon}, and the {kind} was fitted for {steps} steps; pass at most that.")
    by_name = kind == "ForecasterRecursiveMultiSeries"
    coded = by_name and not (model.encoding is None and model.transformer_series is None)
    return Skforecast(
        model=model,
        context=context,
        horizon=horizon,
        series=tuple(model.series_names_in_) if coded else (),
        by_name=by_name,
        coded=coded,
        uses_times=getattr(model, "calendar_features", None) is not None,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Skforecast(Adapter):
    """What `wrap` returns."""

    model: Any
    by_name: bool  # it takes several series at once
    coded: bool  # and their names mean something to it
    uses_times: bool

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, horizon, C)."""
        windows = self.windows_of(query)
        if self.coded:
            self._require_known_names(windows.shape[2])
        if not self.by_name:
            said = [self._of_one(row, place // windows.shape[2], query) for place, row in enumerate(as_series(windows))]
            return of_series(np.stack(said), len(windows))
        if self.coded or self.uses_times:
            return np.stack([self._of_many(window, place, query) for place, window in enumerate(windows)])
        series = as_series(windows)
        return of_series(self._of_many(series.T, 0, query).T, len(windows))

    def _require_known_names(self, channels: int) -> None:
        names = self.model.series_names_in_
        if len(names) != channels:
            raise ForecasterError(
                f"the model tells its series apart by name, {', '.join(names)}, and there are {channels} channels; "
                "pass those series in that order, or fit it with encoding=None and without transformer_series."
            )

    def _of_one(self, row: Floats, place: int, query: Query) -> Floats:
        """The forecast (horizon,) of one series (context,)."""
        pandas = _pandas()
        said = self.model.predict(self.horizon, last_window=pandas.Series(row.copy(), index=self._index(place, query)))
        return np.asarray(said, dtype=np.float64)

    def _of_many(self, columns: Floats, place: int, query: Query) -> Floats:
        """The forecasts (horizon, m) of m series (context, m)."""
        known = self.model.series_names_in_
        names = known if self.coded or len(known) == columns.shape[1] else [f"{i}" for i in range(columns.shape[1])]
        frame = _pandas().DataFrame(columns.copy(), columns=names, index=self._index(place, query))
        said = self.model.predict(self.horizon, levels=list(names), last_window=frame)  # step by step, names within
        return np.asarray(said["pred"], dtype=np.float64).reshape(self.horizon, len(names))

    def _index(self, place: int, query: Query) -> Any:
        """Of the window's rows: of the kind that the model was fitted with, the true stamps where they matter."""
        pandas = _pandas()
        if self.model.index_type_ is not pandas.DatetimeIndex:
            return pandas.RangeIndex(self.context)
        dated = query.times is not None and query.times.dtype.kind == "M"
        if self.uses_times and not dated:
            raise ForecasterError("the model has calendar features; pass times=, dates, with the source and every row.")
        last = query.times[place] if dated and query.times is not None else np.datetime64("2000-01-01", "us")
        return pandas.date_range(end=pandas.Timestamp(last), periods=self.context, freq=self.model.index_freq_)


def _pandas() -> Any:
    with extra("adapters", needed_by="ompb.adapters.skforecast"):
        import pandas
    return pandas
