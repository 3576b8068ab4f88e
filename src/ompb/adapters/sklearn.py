"""Regressors with ``predict`` on flat windows: scikit-learn, and the regressors of LightGBM and XGBoost.

A row of the design holds a window, by default from its oldest row to its newest:

========== ============================================= ====================================
model      one row of the design                         its target
========== ============================================= ====================================
each       one channel of a window, (context,)           ``horizon`` values of that channel
joint      a whole window, row by row, (context * C,)    ``horizon`` rows, row by row
recursive  the same                                      one value, or one row: the next
========== ============================================= ====================================

`design` makes the rows and targets of such a model from a source.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ompb.adapters.base import Adapter, as_series, of_series
from ompb.checkup import WINDOWS
from ompb.checkup.probe import Probe
from ompb.errors import CheckError, ForecasterError, TooShortError
from ompb.floor.checks import count, flag
from ompb.floor.names import unended
from ompb.rows.inputs import as_rows
from ompb.rows.windows import sliding
from ompb.seam.query import Query
from ompb.types import Floats

BETTER = 0.5  # an error this much smaller with the lags the other way round says that they are


def wrap(
    model: Any, *, context: int, horizon: int, joint: bool = False, recursive: bool = False, newest_first: bool = False
) -> Regressor:
    """A fitted regressor as a forecaster; see the table above for what it must have been fitted on.

    Args:
        model: any object with ``predict`` on (m, features), fitted.
        context: rows in a window.
        horizon: rows in a forecast.
        joint: it sees all channels of a window at once; else one model serves each channel by itself.
        recursive: it predicts the next row only, and is asked again with its own answer appended.
        newest_first: its lags are ordered from the newest row to the oldest (lag 1, lag 2, ...).

    >>> class LastRow:
    ...     def predict(self, design):
    ...         return design[:, -1]
    >>> forecaster = wrap(LastRow(), context=3, horizon=2, recursive=True)
    >>> forecaster.forecast(Query(np.arange(6.0).reshape(1, 3, 2), np.array([2]))).tolist()
    [[[4.0, 5.0], [4.0, 5.0]]]
    """
    if not callable(getattr(model, "predict", None)):
        raise ForecasterError(f"the model is a {type(model).__name__} without predict; pass a fitted regressor.")
    forecaster = Regressor(
        model=model,
        context=context,
        horizon=horizon,
        joint=flag("joint", joint),
        recursive=flag("recursive", recursive),
        newest_first=flag("newest_first", newest_first),
    )
    forecaster.try_out()
    return forecaster


def design(
    source: Any, *, context: int, horizon: int, joint: bool = False, recursive: bool = False
) -> tuple[Floats, Floats]:
    """What such a model is fitted on: rows (m, features) and targets (m, outputs) of all complete windows of a source.

    Targets of a single output are (m,), as regressors of one output want them.

    >>> rows, targets = design(np.arange(5.0)[:, None], context=3, horizon=2)
    >>> rows.tolist(), targets.tolist()
    ([[0.0, 1.0, 2.0]], [[3.0, 4.0]])
    """
    context, leads = count("context", context), 1 if recursive else count("horizon", horizon)
    rows_of_source = as_rows(source, "source").values
    if len(rows_of_source) < context + leads:
        raise TooShortError(
            f"the source has {len(rows_of_source)} rows, and a window and its outcome take {context + leads}; pass a "
            "longer source, or a shorter context or horizon."
        )
    stretches = sliding(rows_of_source, context + leads)
    stretches = stretches[np.isfinite(stretches).all(axis=(1, 2))]
    windows, outcomes = stretches[:, :context], stretches[:, context:]
    if joint:
        rows, targets = (part.reshape(len(part), -1) for part in (windows, outcomes))
    else:
        rows, targets = as_series(windows), as_series(outcomes)
    return rows, targets[:, 0] if targets.shape[1] == 1 else targets


@dataclass(frozen=True, eq=False, kw_only=True)
class Regressor(Adapter):
    """What `wrap` returns."""

    model: Any
    joint: bool
    recursive: bool
    newest_first: bool

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, horizon, C)."""
        windows = self.windows_of(query)
        return self._recursive(windows) if self.recursive else self._predicted(windows, self.horizon)

    def checked(self, source: Any, *, times: Any = None, future: Any = None, windows: int = WINDOWS) -> Self:
        """Itself, after `ompb.check` and a look at the order of the lags: the other way round must not be better."""
        super().checked(source, times=times, future=future, windows=windows)
        other = replace(self, newest_first=not self.newest_first)
        error, error_of_other = (
            _error(Probe.of(one, source, self.context, self.horizon, times, future, None, windows))
            for one in (self, other)
        )
        if error_of_other < BETTER * error:
            raise CheckError(
                "lag order",
                f"the mean error is {error:.3g} source standard deviations, and {error_of_other:.3g} with the lags the "
                f"other way round; wrap the model with newest_first={other.newest_first}.",
            )
        return self

    def try_out(self) -> None:
        """Ask for one window of zeros, where the number of features can be known, and refuse what cannot work."""
        known = getattr(self.model, "n_features_in_", None)
        features = known if self.joint else self.context
        if features is None:
            return
        if known not in (None, features) or features % self.context:
            raise ForecasterError(
                f"the model was fitted on {known} features, and a window gives it {features} (context={self.context}); "
                "pass the context it was fitted with, or joint=True if it saw all channels of a window at once."
            )
        channels = features // self.context
        try:
            self.forecast(Query(np.zeros((1, self.context, channels)), np.zeros(1, dtype=np.int64)))
        except ForecasterError:  # it has said what is wrong itself
            raise
        except Exception as error:  # each library has its own for a model that is not fitted
            raise ForecasterError(
                f"the {type(self.model).__name__} cannot be asked about a window of zeros: {type(error).__name__}: "
                f"{unended(error)}. Pass a fitted regressor whose predict takes rows (m, features)."
            ) from error

    def _recursive(self, windows: Floats) -> Floats:
        """One call for each lead, about all windows at once."""
        rows = np.concatenate([windows, np.empty((len(windows), self.horizon, windows.shape[2]))], axis=1)
        for lead in range(self.horizon):
            rows[:, self.context + lead] = self._predicted(rows[:, lead : self.context + lead], 1)[:, 0]
        return rows[:, self.context :]

    def _predicted(self, windows: Floats, leads: int) -> Floats:
        """The next rows (n, leads, C) of windows (n, context, C)."""
        n, _, channels = windows.shape
        ordered = np.ascontiguousarray(windows[:, ::-1] if self.newest_first else windows)
        flat = ordered.reshape(n, -1) if self.joint else as_series(ordered)
        with _nameless():
            said = np.asarray(_answer(self.model, flat), dtype=np.float64)
        outputs, expected = said.size // len(flat), leads * channels if self.joint else leads
        if outputs != expected:
            one_row = channels if self.joint else 1
            leads_given, rest = divmod(outputs, one_row)
            if leads_given in (1, self.horizon) and not rest:
                advice = f"pass recursive={leads_given == 1}"
            else:
                advice = "fit it so" if rest or not leads_given else f"pass horizon={leads_given}, or fit it so"
            raise ForecasterError(
                f"the model predicts {outputs} values for a window, and {expected} are needed (horizon={self.horizon}, "
                f"joint={self.joint}, recursive={self.recursive}); {advice}."
            )
        return said.reshape(n, leads, channels) if self.joint else of_series(said.reshape(-1, leads), n)


def _answer(model: Any, rows: Floats) -> Any:
    """What ``model.predict`` says, without what some libraries do at each call that takes longer than their models.

    LightGBM's regressor copies its parameters, scikit-learn's `MultiOutputRegressor` sets up workers. Only those very
    classes are passed by: one derived from them may have a ``predict`` of its own.
    """
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    if kind == "lightgbm.sklearn.LGBMRegressor":
        return model.booster_.predict(rows)
    if kind == "sklearn.multioutput.MultiOutputRegressor":
        return np.column_stack([_answer(one, rows) for one in model.estimators_])
    return model.predict(rows)


@contextmanager
def _nameless() -> Iterator[None]:
    """A model that was fitted on a frame is asked by place, on purpose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def _error(probe: Probe) -> float:
    return float(np.nanmean(np.abs(probe.forecasts - probe.outcomes)))
