"""Forecasters of sktime, by ``update(update_params=False)`` on a copy."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, Levels, as_series, levels, of_series
from ompb.adapters.phases import Phase
from ompb.adapters.quiet import quiet
from ompb.errors import ForecasterError, OptionError
from ompb.floor.checks import count
from ompb.floor.extras import extra
from ompb.floor.names import unended
from ompb.seam.query import Query
from ompb.types import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Sktime(Adapter):
    """A forecaster of one series, asked for one window at a time as if it came after the training rows."""

    model: Any
    phase: Phase
    quantiles: Levels = ()

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, H, C) or (n, H, C, Q); channels are series."""
        windows = self.windows_of(query)
        drop = np.repeat(self.phase.rows_to_drop(query), windows.shape[2])
        said = [self.after(series[rows:]) for series, rows in zip(as_series(windows), drop, strict=True)]
        return of_series(said, len(windows))

    def after(self, series: Floats) -> Floats:
        """The forecast (H,) or (H, Q) from rows that come after the training rows."""
        leads = np.arange(1, self.horizon + 1)
        with quiet():
            model = copy.deepcopy(self.model)
            model.update(_following(model.cutoff, series), update_params=False)
            if self.quantiles:
                return np.asarray(model.predict_quantiles(fh=leads, alpha=list(self.quantiles)), dtype=np.float64)
            return np.asarray(model.predict(fh=leads), dtype=np.float64).ravel()


def wrap(
    model: Any, *, context: int, horizon: int, season: int | None = None, times: Any = None, quantiles: Levels = ()
) -> Sktime:
    """A fitted forecaster of sktime as one of windows.

    Many of them take ``update`` and forecast as if nothing had come, and some go on reading training rows; both are
    refused here. To find out, it is asked about two made-up windows.

    Args:
        model: the forecaster, fitted to one series.
        context: rows in a window, at least as many as the model looks back.
        horizon: rows in a forecast.
        season: rows in a season that the model counts from its first training row (a ``Deseasonalizer`` does): each
            window then loses as many of its first rows as it takes to come in step; see `Phase`.
        times: those of the training rows, by which the phase of each window is found; by default it is found by row.
        quantiles: to give, such as (0.1, 0.5, 0.9), if the model has ``predict_quantiles``.

    ::

        model = make_reduction(LinearRegression(), window_length=48).fit(y)
        forecaster = ompb.adapters.sktime.wrap(model, context=96, horizon=24)
    """
    kind = type(model).__name__
    if not getattr(model, "is_fitted", False):
        raise ForecasterError(f"this {kind} is not fitted; call fit(y, fh=range(1, horizon + 1)) first.")
    if quantiles and not model.get_tag("capability:pred_int", tag_value_default=False, raise_error=False):
        raise ForecasterError(f"{kind} has no predict_quantiles; wrap it without quantiles=.")
    if season is not None and context < 2 * count("season", season):
        raise OptionError(f"context = {context} is less than two seasons of {season} rows; pass a longer one.")
    phase = Phase.of(season or 1, times, _training_rows(model) if season else 0)
    wrapped = Sktime(context=context, horizon=horizon, model=model, phase=phase, quantiles=levels(quantiles))
    _require_own_window(wrapped, kind, context - (season or 1) + 1)
    return wrapped


def _require_own_window(wrapped: Sktime, kind: str, rows: int) -> None:
    """Its answer must depend on its window, the shortest one too, and on nothing that came before it."""
    point = replace(wrapped, quantiles=())  # how wide its intervals are it may have learned before
    window, other, before, else_before = np.random.default_rng(0).uniform(1.0, 2.0, size=(4, rows))
    said = _tried(point, kind, window)
    if np.allclose(said, point.after(other), rtol=1e-9):
        raise ForecasterError(
            f"{kind} ignores its context: after update(update_params=False) it forecasts the same whatever came. Use "
            "one that answers, such as make_reduction, or bring its forecasts as Recorded.from_frame."
        )
    one, another = (point.after(np.concatenate([rest, window])) for rest in (before, else_before))
    if not np.allclose(one, another, rtol=1e-9):
        raise ForecasterError(
            f"{kind} reads rows before its window of {rows}: it would take training rows for what came before. Pass a "
            "longer context, or fit it with a shorter memory (window_length=)."
        )


def _tried(point: Sktime, kind: str, window: Floats) -> Floats:
    """Its first answer (H,)."""
    try:
        said = point.after(window)
    except ForecasterError:  # it has said what is wrong itself
        raise
    except Exception as error:
        raise ForecasterError(
            f"{kind} cannot forecast {point.horizon} rows after a new window: {type(error).__name__}: "
            f"{unended(error)}. Fit it to one series without X, with fh=range(1, {point.horizon + 1})."
        ) from error
    if said.shape != (point.horizon,):
        raise ForecasterError(
            f"{kind} answers with {said.size} values for {point.horizon} rows of one series; fit it to one series."
        )
    return said


def _training_rows(model: Any) -> int:
    rows = getattr(model, "_y", None)
    if rows is None:
        raise OptionError(
            f"season is given, and this {type(model).__name__} does not remember how many rows it was fitted to; fit "
            "it after set_config(remember_data=True)."
        )
    return len(rows)


def _following(cutoff: Any, series: Floats) -> Any:
    """The values on the index that goes on after the last training row."""
    with extra("adapters", needed_by="ompb.adapters.sktime"):
        import pandas as pd

    last, steps = cutoff[0], len(series) + 1
    if isinstance(cutoff, pd.PeriodIndex):
        index: Any = pd.period_range(last, periods=steps)
    elif isinstance(cutoff, pd.DatetimeIndex):
        if cutoff.freq is None:
            raise ForecasterError("the training rows have dates without a freq; fit the model to y.asfreq(...).")
        index = pd.date_range(last, periods=steps, freq=cutoff.freq)
    else:
        index = pd.RangeIndex(int(last), int(last) + steps)
    return pd.Series(series, index=index[1:])
