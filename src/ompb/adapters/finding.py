"""The adapter of a model, found by the library that the model is from."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ompb.adapters.base import Adapter
from ompb.errors import ForecasterError

# What a model's package is called, and the module that wraps it.
ADAPTERS = {
    "darts": "darts",
    "gluonts": "gluonts",
    "lightgbm": "sklearn",
    "mlforecast": "mlforecast",
    "neuralforecast": "neuralforecast",
    "skforecast": "skforecast",
    "sklearn": "sklearn",
    "sktime": "sktime",
    "statsforecast": "statsforecast",
    "torch": "torch",
    "xgboost": "sklearn",
}
# These go on from what they have learned last: a new window is nothing that they could be asked about.
WITHOUT_WINDOWS = ("prophet", "river")


def wrap(model: Any, *, context: int, horizon: int, **options: Any) -> Adapter:
    """The model as a forecaster, by ``wrap`` of the module for its library, which takes the options.

    Raises `ForecasterError` for a model whose library cannot forecast from a new window, or is not known here.
    """
    # the class itself first, then those that it is derived from
    packages = [base.__module__.partition(".")[0] for base in type(model).__mro__]
    kind = type(model).__name__
    for package in packages:
        if package in WITHOUT_WINDOWS:
            raise ForecasterError(
                f"{kind} of {package} cannot forecast from a new window without learning again; make its forecasts "
                "beforehand, with the time of each, and bring them: ompb.Recorded.from_frame(table, column=...)."
            )
        if package in ADAPTERS:
            module = import_module(f"ompb.adapters.{ADAPTERS[package]}")
            found: Adapter = module.wrap(model, context=context, horizon=horizon, **options)
            return found
    raise ForecasterError(
        f"there is no adapter for {kind} of {packages[0]}; known: {', '.join(sorted(ADAPTERS))}. Pass a callable from "
        "windows (n, context, C) to forecasts (n, horizon, C), or derive from ompb.Forecaster."
    )
