"""The adapter of a model by the library it is from; no library is needed for that."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ompb.adapters
from ompb.adapters import finding
from ompb.errors import ForecasterError, OptionError


def model_of(module: str, name: str = "Model") -> Any:
    """An instance of a class that another package might define."""
    return type(name, (), {"__module__": module})()


@pytest.mark.parametrize(
    ("module", "name"), [("prophet.forecaster", "Prophet"), ("river.time_series.snarimax", "SNARIMAX")]
)
def test_what_knows_no_windows_is_sent_to_recorded_forecasts(module: str, name: str) -> None:
    model = model_of(module, name)
    package = module.partition(".")[0]
    with pytest.raises(
        ForecasterError, match=rf"{name} of {package} cannot forecast from a new window.*Recorded\.from_frame"
    ):
        ompb.adapters.wrap(model, context=24, horizon=6)
    derived = type("Mine", (type(model),), {"__module__": "my_models"})()
    with pytest.raises(ForecasterError, match=f"Mine of {package} cannot"):
        ompb.adapters.wrap(derived, context=24, horizon=6)


@pytest.mark.parametrize(("package", "adapter"), finding.ADAPTERS.items())
def test_each_library_has_its_module(package: str, adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    module = getattr(ompb.adapters, adapter)
    assert isinstance(module, ModuleType)

    def wrap(model: Any, *, context: int, horizon: int, season: int) -> None:
        asked.append((model, {"context": context, "horizon": horizon, "season": season}))

    monkeypatch.setattr(module, "wrap", wrap)
    model = model_of(f"{package}.deep.inside")
    ompb.adapters.wrap(model, context=24, horizon=6, season=12)
    assert asked == [(model, {"context": 24, "horizon": 6, "season": 12})]


def test_every_adapter_is_found() -> None:
    assert set(finding.ADAPTERS.values()) == set(ompb.adapters.LIBRARIES)


def test_an_option_may_be_called_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the modules have an option of this name."""
    asked: list[Any] = []

    def wrap(fitted: Any, *, context: int, horizon: int, model: str) -> None:
        asked.append((fitted, context, horizon, model))

    monkeypatch.setattr(ompb.adapters.mlforecast, "wrap", wrap)
    fitted = model_of("mlforecast.forecast")
    ompb.adapters.wrap(fitted, context=24, horizon=6, model="trees")
    assert asked == [(fitted, 24, 6, "trees")]


def test_models_for_each_channel_are_of_one_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(ompb.adapters.statsforecast, "wrap", lambda model, **_: asked.append(model))
    models = [model_of("statsforecast.models"), model_of("statsforecast.models")]
    ompb.adapters.wrap(models, context=24, horizon=6)
    assert asked == [models]


def test_an_option_that_the_module_has_not_is_named() -> None:
    with pytest.raises(OptionError, match=r"sklearn\.wrap has no option 'recursiv'; accepted: joint, recursive, "):
        ompb.adapters.wrap(model_of("sklearn.linear_model"), context=24, horizon=6, recursiv=True)
    with pytest.raises(OptionError, match="has no option 'season'; accepted: none but context and horizon"):
        ompb.adapters.wrap(model_of("darts.models"), context=24, horizon=6, season=12)


@pytest.mark.parametrize("package", finding.ADAPTERS)
def test_sizes_are_whole_numbers_for_every_library(package: str) -> None:
    with pytest.raises(OptionError, match="option context = '24'"):
        ompb.adapters.wrap(model_of(package), context="24", horizon=6)  # type: ignore[arg-type]


def test_a_class_is_no_model() -> None:
    with pytest.raises(ForecasterError, match="the model is the class Ridge itself; pass a fitted instance"):
        ompb.adapters.wrap(type(model_of("sklearn.linear_model", "Ridge")), context=24, horizon=6)


def test_an_unknown_library_is_named() -> None:
    with pytest.raises(ForecasterError, match="there is no adapter for ndarray of numpy; known: chronos, darts, "):
        ompb.adapters.wrap(np.zeros(3), context=24, horizon=6)


def test_importing_an_adapter_imports_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ompb.adapters.LIBRARIES:
        monkeypatch.delitem(sys.modules, f"ompb.adapters.{name}", raising=False)
    for package in (*finding.ADAPTERS, "pandas", "lightning"):
        monkeypatch.setitem(sys.modules, package, None)  # importing it would fail
    for name in ompb.adapters.LIBRARIES:
        assert callable(getattr(ompb.adapters, name).wrap)
