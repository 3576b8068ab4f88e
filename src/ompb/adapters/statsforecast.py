"""Models of statsforecast, by their ``forward``: the parameters stay, the state is that of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, Levels, as_series, levels, of_series
from ompb.adapters.phases import Phase
from ompb.errors import ForecasterError, OptionError
from ompb.floor.checks import count
from ompb.floor.names import counted
from ompb.seam.query import Query
from ompb.types import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Statsforecast(Adapter):
    """One model for all channels, or one for each."""

    models: tuple[Any, ...]
    phase: Phase
    quantiles: Levels = ()

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, H, C) or (n, H, C, Q), each from its own window alone."""
        windows = self.windows_of(query)
        if not np.isfinite(windows).all():
            raise ForecasterError("a window has missing values, from which forward makes NaN; fill them first.")
        n, _, channels = windows.shape
        if len(self.models) not in (1, channels):
            raise ForecasterError(
                f"there are {len(self.models)} models for {counted(channels, 'channel')}; wrap one model for all of "
                "them, or one for each in the order of the channels."
            )
        drop = np.repeat(self.phase.rows_to_drop(query), channels)
        models = self.models * (n * channels // len(self.models))
        asked = zip(models, as_series(windows), drop.tolist(), strict=True)
        said = [self._one(model, series, rows) for model, series, rows in asked]
        return of_series(said, n)

    def _one(self, model: Any, series: Floats, drop: int) -> Any:
        """Of one series (context,): (H,) or (H, Q)."""
        if not self.quantiles:
            return model.forward(y=series[drop:], h=self.horizon)["mean"]
        widths = {tau: abs(200 * tau - 100) for tau in self.quantiles}  # of the interval that ends in each quantile
        said = model.forward(y=series[drop:], h=self.horizon, level=sorted(set(widths.values()) - {0.0}))
        names = {
            tau: "mean" if tau == 0.5 else f"{'lo' if tau < 0.5 else 'hi'}-{level:g}" for tau, level in widths.items()
        }
        columns = {_plain(name): values for name, values in said.items()}
        return np.stack([columns[names[tau]] for tau in self.quantiles], axis=-1)


def wrap(
    model: Any, *, context: int, horizon: int, season: int | None = None, times: Any = None, quantiles: Levels = ()
) -> Statsforecast:
    """A fitted model of statsforecast as a forecaster.

    A seasonal model takes the first row of what it is given for the first row of a training season. So each window
    loses as many of its first rows as it takes to start there; see `Phase` for how that is known.

    Args:
        model: a fitted one for all channels, a sequence with one for each, or a fitted ``StatsForecast`` of one model,
            which sorts its series by their ids: so must the channels be, and ``checked`` compares names.
        context: rows in a window, at least two seasons.
        horizon: rows in a forecast.
        season: rows in a season; by default the model's ``season_length``.
        times: those of the training rows, by which the phase of each window is found; by default it is found by row.
        quantiles: to give, such as (0.1, 0.5, 0.9); 0.5 is the model's mean.

    ::

        model = AutoETS(season_length=24).fit(source[:, 0])
        forecaster = ompb.adapters.statsforecast.wrap(model, context=96, horizon=24)
    """
    models = _models_of(model)
    for one in models:
        _require_forward(one)
    found = math.lcm(*(_season_of(one) for one in models)) if season is None else count("season", season)
    if found > 1 and context < 2 * found:
        raise OptionError(
            f"context = {context} is less than two seasons of {found} rows; windows lose up to {found - 1} rows to "
            "start where the training rows did, so pass a longer context."
        )
    phase = Phase.of(found, times)
    return Statsforecast(
        context=context,
        horizon=horizon,
        series=tuple(map(str, getattr(model, "uids", ()))),
        models=models,
        phase=phase,
        quantiles=levels(quantiles),
    )


def _models_of(model: Any) -> tuple[Any, ...]:
    fitted = getattr(model, "fitted_", None)
    if fitted is None and hasattr(model, "models"):
        raise ForecasterError("this StatsForecast is not fitted; call fit(frame) first.")
    if fitted is None:
        return tuple(model) if isinstance(model, Sequence) else (model,)
    if fitted.shape[1] != 1:
        raise ForecasterError(
            f"the StatsForecast holds {fitted.shape[1]} models; wrap one column of it: list(sf.fitted_[:, 0])."
        )
    return tuple(fitted[:, 0])


def _require_forward(model: Any) -> None:
    kind = type(model).__name__
    if not callable(getattr(model, "forward", None)):
        raise ForecasterError(
            f"{kind} has no forward, so it cannot forecast from a new window without being fitted again; use one that "
            "has (AutoARIMA, AutoETS, AutoCES, AutoTheta, MSTL), or bring its forecasts as Recorded.from_frame."
        )
    if not hasattr(model, "model_"):
        raise ForecasterError(f"this {kind} is not fitted; call fit(y) first.")


def _season_of(model: Any) -> int:
    lengths = getattr(model, "season_length", 1)
    return math.lcm(*lengths) if isinstance(lengths, Sequence) else int(lengths)


def _plain(name: str) -> str:
    """A column such as "lo-80.0" as "lo-80"."""
    end, dash, level = name.partition("-")
    return f"{end}-{float(level):g}" if dash else name
