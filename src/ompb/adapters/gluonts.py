"""Predictors of gluonts, by ``predict``: distributions, quantiles or samples as quantiles or their mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, Levels, as_series, levels, of_series
from ompb.adapters.quiet import quiet
from ompb.errors import ForecasterError, OptionError
from ompb.floor.extras import extra
from ompb.floor.times import Times
from ompb.seam.query import Query
from ompb.types import Floats

SOME_DAY = np.datetime64("2000-01-01", "us")  # at which windows end whose predictor does not look at the calendar


@dataclass(frozen=True, eq=False, kw_only=True)
class Gluonts(Adapter):
    """A predictor of single series."""

    predictor: Any
    freq: str
    quantiles: Levels = ()
    uses_times: bool = False  # whether it looks at the calendar

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, H, C) or (n, H, C, Q); channels are series."""
        windows = self.windows_of(query)
        count, _, channels = windows.shape
        entries = self._entries(as_series(windows), np.repeat(self._last_times(query), channels))
        with quiet():
            first = self._ask(entries[:1])
            if len(getattr(first[0], "samples", ())) > 1:
                # the draws of one window would depend on how many come before it
                rest = [said for entry in entries[1:] for said in self._ask([entry])]
            else:
                rest = self._ask(entries[1:]) if len(entries) > 1 else []
            return of_series([self._numbers(said) for said in first + rest], count)

    def _ask(self, entries: list[dict[str, Any]]) -> list[Any]:
        with same_draws():
            return list(self.predictor.predict(entries))

    def _numbers(self, said: Any) -> Floats:
        """Of one forecast, (H,) or (H, Q)."""
        if self.quantiles:
            return np.stack([said.quantile(tau) for tau in self.quantiles], axis=-1)
        keys = getattr(said, "forecast_keys", None)  # of one that holds quantiles, perhaps without a mean
        return np.asarray(said.mean if keys is None or "mean" in keys else said.quantile(0.5))

    def _last_times(self, query: Query) -> Times:
        if not self.uses_times:
            return np.full(len(query.windows), SOME_DAY)
        if query.times is None or query.times.dtype.kind != "M":
            raise ForecasterError(
                "the predictor looks at the calendar and the windows have no dates; pass times= to Calibrator.fit and "
                "at= with every row."
            )
        return query.times

    def _entries(self, series: Floats, last: Times) -> list[dict[str, Any]]:
        with extra("adapters", needed_by="ompb.adapters.gluonts"):
            import pandas as pd

        rows = series.astype(np.float32)  # as its networks are
        starts = pd.PeriodIndex(last, freq=self.freq) - (self.context - 1)
        return [{"start": start, "target": row} for start, row in zip(starts, rows, strict=True)]


@contextmanager
def same_draws() -> Iterator[None]:
    """Within it, torch and NumPy draw from the same seed; after it they go on as if nothing had been."""
    with extra("adapters", needed_by="ompb.adapters.gluonts"):
        import torch

    before = np.random.get_state()  # noqa: NPY002  # the one that the library draws from
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002


def wrap(predictor: Any, *, context: int, horizon: int, freq: str | None = None, quantiles: Levels = ()) -> Gluonts:
    """A predictor of gluonts as a forecaster of its means, or of quantiles.

    One that draws samples is asked for one window at a time with the same seed, so that it answers the same each time.

    Args:
        predictor: what an estimator's ``train`` returns.
        context: rows in a window, at least as many as the predictor reads, lags included.
        horizon: rows in a forecast, the predictor's ``prediction_length``.
        freq: steps of time, such as "h"; needed, as are times of the rows, if it looks at the calendar.
        quantiles: to give, such as (0.1, 0.5, 0.9).

    ::

        predictor = DeepAREstimator(freq="h", prediction_length=24, context_length=72).train(dataset)
        forecaster = ompb.adapters.gluonts.wrap(predictor, context=800, horizon=24, freq="h")
    """
    if not callable(getattr(predictor, "predict", None)):
        raise ForecasterError(
            f"{type(predictor).__name__} has no predict; pass the predictor that its train(dataset) returns."
        )
    if horizon != predictor.prediction_length:
        raise OptionError(
            f"horizon = {horizon}, and the predictor gives {predictor.prediction_length} rows; pass that."
        )
    steps = list(_steps(getattr(predictor, "input_transform", None)))
    reads = max((int(step.past_length) for step in steps if hasattr(step, "past_length")), default=0)
    if context < reads:
        raise OptionError(
            f"context = {context} is less than the {reads} rows that the predictor reads, lags included; it would take "
            "zeros for the rest and say nothing, so pass a longer context."
        )
    calendar = any(type(step).__name__ == "AddTimeFeatures" and step.date_features for step in steps)
    if calendar and freq is None:
        raise OptionError(
            'freq is not given, and the predictor looks at the calendar; pass its steps, such as freq="h".'
        )
    return Gluonts(
        context=context,
        horizon=horizon,
        predictor=predictor,
        freq=freq or "D",
        quantiles=levels(quantiles),
        uses_times=calendar,
    )


def _steps(transformation: Any) -> Iterator[Any]:
    """All that a predictor does to its input, chains taken apart."""
    if hasattr(transformation, "transformations"):
        for part in transformation.transformations:
            yield from _steps(part)
    elif transformation is not None:
        yield transformation
