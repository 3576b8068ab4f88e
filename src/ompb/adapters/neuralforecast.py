"""Networks of neuralforecast, by ``predict(df=)``."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, Levels, as_series, of_series
from ompb.adapters.nixtla import any_stamps, in_order, long_frame
from ompb.adapters.quiet import quiet
from ompb.errors import ForecasterError, OptionError
from ompb.floor.names import counted
from ompb.seam.query import Query
from ompb.types import Floats

# A Trainer is made at every call; these keep it from writing files and bars.
SILENT = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


@dataclass(frozen=True, eq=False, kw_only=True)
class Neuralforecast(Adapter):
    """One network for all series, or, if it is multivariate, one for all channels of a window together."""

    fitted: Any  # of one silent model
    columns: list[str]  # of the answer: one, or one for each quantile
    together: int  # channels that the network takes together; 0 if it takes single series
    drawn: bool = False  # whether it draws samples of its forecasts
    quantiles: Levels = ()

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, H, C) or (n, H, C, Q)."""
        windows = self.windows_of(query)
        channels = windows.shape[2]
        if self.together and channels != self.together:
            raise ForecasterError(
                f"the network takes {self.together} series together and the windows have "
                f"{counted(channels, 'channel')}; fit it to as many series as there are channels."
            )
        series = as_series(windows)
        said = np.concatenate([self._ask(part) for part in np.split(series, len(series) // self._at_once(series))])
        values = of_series(said, len(windows))
        return values if self.quantiles else np.asarray(values[..., 0])

    def _at_once(self, series: Floats) -> int:
        """How many of the series go into one call."""
        if self.together:
            return self.together  # several windows would be series that belong together
        return 1 if self.drawn else len(series)  # the draws of one would depend on how many come before it

    def _ask(self, series: Floats) -> Floats:
        """Of N series (N, context): (N, H, names)."""
        fitted = self.fitted
        names = (fitted.id_col, fitted.time_col, fitted.target_col)
        frame = long_frame(series, any_stamps(fitted.freq, len(series), self.context), names)
        with quiet():
            said = copy.copy(fitted).predict(df=frame)
        return in_order(said, names[:2], self.columns, self.horizon)


def wrap(fitted: Any, *, context: int, horizon: int, model: str | None = None) -> Neuralforecast:
    """A fitted ``NeuralForecast`` as a forecaster; one trained on quantiles with the median among them gives these.

    Args:
        fitted: the ``NeuralForecast``, whose models take nothing but the series.
        context: rows in a window, at least the network's ``input_size``: it fills what is missing with zeros.
        horizon: rows in a forecast, those the network was trained for.
        model: the name of one of its models, if it has several.

    ::

        fitted = NeuralForecast([NHITS(h=24, input_size=96)], freq="h")
        fitted.fit(frame)
        forecaster = ompb.adapters.neuralforecast.wrap(fitted, context=96, horizon=24)
    """
    if not hasattr(fitted, "models"):
        raise ForecasterError(
            f"{type(fitted).__name__} is a network by itself; pass the NeuralForecast([network], freq=...) that it was "
            "fitted in."
        )
    if not getattr(fitted, "_fitted", False):
        raise ForecasterError("this NeuralForecast is not fitted; call fit(frame) first.")
    network = _network(fitted, model)
    kind = str(network)
    if horizon != network.h:
        raise OptionError(f"horizon = {horizon}, and {kind} was trained for {network.h}; pass that.")
    if context < network.input_size:
        raise OptionError(
            f"context = {context} is less than the {network.input_size} rows that {kind} reads; it would take zeros "
            "for the rest and say nothing, so pass a longer context."
        )
    asked = [*network.futr_exog_list, *network.hist_exog_list, *network.stat_exog_list]
    if asked:
        raise ForecasterError(f"{kind} needs the covariates {', '.join(asked)}, which windows do not have.")
    columns, quantiles = _outputs(kind, list(network.loss.output_names))
    return Neuralforecast(
        context=context,
        horizon=horizon,
        fitted=_alone_and_silent(fitted, network),
        series=tuple(map(str, fitted.uids)) if network.MULTIVARIATE else (),
        columns=columns,
        together=network.n_series if network.MULTIVARIATE else 0,
        drawn=network.loss.is_distribution_output,
        quantiles=quantiles,
    )


def _network(fitted: Any, model: str | None) -> Any:
    by_name = {str(network): network for network in fitted.models}
    if model is None and len(by_name) == 1:
        return fitted.models[0]
    if model not in by_name:
        raise OptionError(f"model = {model!r}; accepted: one of {', '.join(by_name)}.")
    return by_name[model]


def _alone_and_silent(fitted: Any, network: Any) -> Any:
    """The same with this model only; what the user has is left as it was."""
    other, silent = copy.copy(fitted), copy.copy(network)
    silent.trainer_kwargs = {**network.trainer_kwargs, **SILENT}
    other.models = [silent]
    return other


def _outputs(kind: str, endings: list[str]) -> tuple[list[str], Levels]:
    """Columns of the answer and the quantiles they are: all that the network gives, or its only one."""
    quantiles = {tau: f"{kind}{ending}" for ending in endings if (tau := _quantile(ending)) is not None}
    if len(quantiles) > 1:
        taus = tuple(sorted(quantiles))
        return [quantiles[tau] for tau in taus], taus
    return [f"{kind}{endings[0]}"], ()


def _quantile(ending: str) -> float | None:
    """What a column's ending stands for: "-lo-80.0" is 0.1, "-median" 0.5."""
    if ending == "-median":
        return 0.5
    found = re.fullmatch(r"-(lo|hi)-([\d.]+)", ending)
    if found is None:
        return None
    half = float(found[2]) / 200
    return round(0.5 - half if found[1] == "lo" else 0.5 + half, 9)
