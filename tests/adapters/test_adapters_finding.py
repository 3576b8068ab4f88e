"""The adapter of a model by the library it is from; no library is needed for that."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ompb.adapters
from ompb.adapters import finding
from ompb.errors import ForecasterError


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
    monkeypatch.setattr(module, "wrap", lambda model, **options: asked.append((model, options)))
    model = model_of(f"{package}.deep.inside")
    ompb.adapters.wrap(model, context=24, horizon=6, season=12)
    assert asked == [(model, {"context": 24, "horizon": 6, "season": 12})]


def test_every_adapter_but_the_pipelines_is_found() -> None:
    assert {*finding.ADAPTERS.values(), "pipelines"} == set(ompb.adapters.LIBRARIES)


def test_an_unknown_library_is_named() -> None:
    with pytest.raises(ForecasterError, match="there is no adapter for ndarray of numpy; known: darts, "):
        ompb.adapters.wrap(np.zeros(3), context=24, horizon=6)


def test_importing_an_adapter_imports_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ompb.adapters.LIBRARIES:
        monkeypatch.delitem(sys.modules, f"ompb.adapters.{name}", raising=False)
    for package in (*finding.ADAPTERS, "pandas", "lightning"):
        monkeypatch.setitem(sys.modules, package, None)  # importing it would fail
    for name in ompb.adapters.LIBRARIES:
        assert callable(getattr(ompb.adapters, name).wrap)
