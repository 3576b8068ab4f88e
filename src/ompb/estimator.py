"""A forecaster and its calibrator as one estimator of scikit-learn, for its splits, searches and scores."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, Self

import numpy as np

from ompb.backtest import Run, backtest
from ompb.calibrator import Calibrator
from ompb.errors import OptionError
from ompb.offline.fitting import certificate_start
from ompb.rows.frames import read_frame
from ompb.rows.inputs import as_rows
from ompb.seam.query import AnyForecaster
from ompb.types import Floats


class CalibratedForecaster:
    """Fits a forecaster and a calibrator on rows in time order, and follows other rows as a stream.

    Args:
        train: makes a forecaster from rows, and is told ``context`` and ``horizon``; such as `ompb.Ridge.fit`.
        context: rows in a window.
        horizon: rows in a forecast.
        season: see `Calibrator.fit`.
        unseen: rows (int) or share (float) at the end that the forecaster is not trained on, for an honest certificate.
        options: fields of `ompb.Settings`.

    What it needs of scikit-learn is there without it; with it, ``cross_val_score``, ``GridSearchCV`` and the like take
    it, with splits in time order (``TimeSeriesSplit``).

    >>> import ompb
    >>> from ompb.datasets.synthetic import shifted_stream
    >>> source, stream = shifted_stream("level", seed=0, source_rows=400, target_rows=80)
    >>> estimator = CalibratedForecaster(ompb.Ridge.fit, context=24, horizon=4).fit(source)
    >>> estimator.predict(stream).shape, round(estimator.score(stream), 2)
    ((80, 4, 3), -0.3)
    """

    def __init__(
        self,
        train: Callable[..., AnyForecaster],
        *,
        context: int,
        horizon: int,
        season: int | Literal["auto"] | None = "auto",
        unseen: int | float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.train, self.context, self.horizon = train, context, horizon
        self.season, self.unseen, self.options = season, unseen, options

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  # as scikit-learn asks
        """Everything it was made with, by name."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Change what it was made with; the next `fit` heeds it."""
        for name, value in parameters.items():
            if name not in _PARAMETERS:
                raise OptionError(f"there is no parameter {name!r}; accepted: {', '.join(_PARAMETERS)}.")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        return import_module("sklearn.base").BaseEstimator().__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrator_")

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # rows are their own targets
        """Train a forecaster on rows (T, C), an array or frame, and fit its calibrator on them."""
        seen = X if self.unseen is None else X[: self._seen(X)]
        sizes: dict[str, Any] = {"context": self.context, "horizon": self.horizon}
        self.forecaster_ = self.train(seen, **sizes)
        self.calibrator_ = Calibrator.fit(
            self.forecaster_, X, season=self.season, unseen=self.unseen, **sizes, **dict(self.options or {})
        )
        return self

    def _seen(self, X: Any) -> int:
        """How many rows come before those that the calibrator takes for unseen, missing ones among them."""
        table = as_rows(X, "source")
        split = certificate_start(len(table.values), self.unseen, 0.0, self.context + self.horizon)
        if len(table.values) == len(X):
            return split
        times = read_frame(X, "source")[2]
        if times is None or table.times is None or len(times) != len(X):
            raise OptionError("unseen= needs a table with a line for each row; pass a wide one, not a long one.")
        return int(np.searchsorted(times, table.times[split]))

    def run(self, X: Any) -> Run:
        """The backtest of a fresh stream over rows (T, C)."""
        if not self.__sklearn_is_fitted__():
            raise OptionError("the estimator is not fitted; call fit with the rows of a source first.")
        run: Run = backtest(self.calibrator_, self.forecaster_, X)
        return run

    def predict(self, X: Any) -> Floats:
        """Corrected forecasts (T, H, C) issued with each row; NaN where none was.

        Rows that a table left out have none; those of a long one are its times.
        """
        run = self.run(X)
        forecasts = np.full((len(run.rows), *run.mean.shape[1:]), np.nan)
        forecasts[run.origins] = run.mean
        if len(forecasts) == len(X):
            return forecasts
        times, every = read_frame(X, "rows")[2], as_rows(X, "rows", grid=self.calibrator_.grid).times
        assert times is not None  # else no row is missing
        assert every is not None
        return forecasts[np.searchsorted(every, times)]

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Minus the mean absolute error, in source standard deviations, over all outcomes within the rows."""
        run = self.run(X)
        return -float(np.nanmean(np.abs(run.mean - run.outcome) / run.scale))


_PARAMETERS = tuple(inspect.signature(CalibratedForecaster).parameters)
