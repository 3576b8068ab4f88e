"""Forecasters of other libraries as `ompb.Forecaster`: one small module a library, imported when asked for.

Every module has one verb, with the model first and all else by name::

    forecaster = ompb.adapters.sklearn.wrap(model, context=96, horizon=24)  # an `Adapter`
    forecaster = forecaster.checked(source, times=times)  # runs `ompb.check` on it; the same forecaster
    cal = ompb.Calibrator.fit(forecaster, source, context=96, horizon=24, times=times)

``wrap`` never fits, changes or copies to disk what it is given. It refuses at once what can be seen at once (a model
that is not fitted, a local model that cannot forecast from a new context); what shows only in answers is found by
`Adapter.checked`. A module imports its library inside functions, so that importing the module needs nothing.

`ompb.adapters.wrap` finds the module by the model.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ompb.adapters.base import Adapter, as_series, of_series
from ompb.adapters.finding import wrap

__all__ = ["Adapter", "as_series", "of_series", "wrap"]

LIBRARIES = (
    "darts",
    "gluonts",
    "mlforecast",
    "neuralforecast",
    "pipelines",
    "skforecast",
    "sklearn",
    "sktime",
    "statsforecast",
    "torch",
)


def __getattr__(name: str) -> Any:
    if name in LIBRARIES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; libraries: {', '.join(LIBRARIES)}")
