"""The adapter of a model, found by the library that the model is from."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

from ompb.adapters.base import Adapter
from ompb.errors import ForecasterError, OptionError
from ompb.floor.checks import count

# What a model's package is called, and the module that wraps it.
ADAPTERS = {
    "chronos": "pipelines",
    "darts": "darts",
    "gluonts": "gluonts",
    "lightgbm": "sklearn",
    "mlforecast": "mlforecast",
    "neuralforecast": "neuralforecast",
    "skforecast": "skforecast",
    "sklearn": "sklearn",
    "sktime": "sktime",
    "statsforecast": "statsforecast",
    "timesfm": "pipelines",
    "torch": "torch",
    "xgboost": "sklearn",
}
# These go on from what they have learned last: a new window is nothing that they could be asked about.
WITHOUT_WINDOWS = ("prophet", "river")


def wrap(model: Any, /, *, context: int, horizon: int, **options: Any) -> Adapter:
    """The model as a forecaster, by ``wrap`` of the module for its library, which takes the options.

    A sequence of models, one for each channel, is of the library of its first one.

    Raises `ForecasterError` for a model whose library cannot forecast from a new window, or is not known here, and
    `OptionError` for an option that the module's ``wrap`` does not have.
    """
    sizes = {"context": count("context", context), "horizon": count("horizon", horizon)}
    of = model[0] if isinstance(model, list | tuple) and model else model
    if isinstance(of, type):
        raise ForecasterError(f"the model is the class {of.__name__} itself; pass a fitted instance of it.")
    # the class itself first, then those that it is derived from
    packages = [base.__module__.partition(".")[0] for base in type(of).__mro__]
    kind = type(of).__name__
    for package in packages:
        if package in WITHOUT_WINDOWS:
            raise ForecasterError(
                f"{kind} of {package} cannot forecast from a new window without learning again; make its forecasts "
                "beforehand, with the time of each, and bring them: ompb.Recorded.from_frame(table, column=...)."
            )
        if package in ADAPTERS:
            module = import_module(f"ompb.adapters.{ADAPTERS[package]}")
            _require_known(options, module)
            found: Adapter = module.wrap(model, **sizes, **options)
            return found
    raise ForecasterError(
        f"there is no adapter for {kind} of {packages[0]}; known: {', '.join(sorted(ADAPTERS))}. Pass a callable from "
        "windows (n, context, C) to forecasts (n, horizon, C), or derive from ompb.Forecaster."
    )


def _require_known(options: dict[str, Any], module: ModuleType) -> None:
    """Raise unless the module's ``wrap`` takes each of these options."""
    parameters = inspect.signature(module.wrap).parameters.values()
    known = [of.name for of in parameters if of.kind is of.KEYWORD_ONLY and of.name not in ("context", "horizon")]
    for name in options:
        if name not in known:
            accepted = ", ".join(known) or "none but context and horizon"
            raise OptionError(f"{module.__name__}.wrap has no option {name!r}; accepted: {accepted}.")
