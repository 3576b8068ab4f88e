"""Wrap any forecaster, keep it frozen, and let a small Bayesian head correct it as the world answers."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ompb.backtest import Run, backtest
from ompb.calibrator import Calibrator
from ompb.episodes import Episode
from ompb.errors import GapError
from ompb.forecasters import Recorded, Ridge, SeasonalProfile
from ompb.metrics.score import Score
from ompb.seam.query import Forecaster, Query
from ompb.settings import Settings
from ompb.stream import Stream
from ompb.types import Alert, Certificate, Forecast, RealisedRisk, TailRisk

if _TYPE_CHECKING:
    from ompb.checkup import Checkup, check
    from ompb.diagnosis import Diagnosis, diagnose
    from ompb.fleet.fleet import Fleet
    from ompb.fleet.forecast import FleetForecast
    from ompb.metrics.breakdown import Breakdown
    from ompb.offline.fitting import calibrate

__all__ = [
    "Alert",
    "Breakdown",
    "Calibrator",
    "Certificate",
    "Checkup",
    "Diagnosis",
    "Episode",
    "Fleet",
    "FleetForecast",
    "Forecast",
    "Forecaster",
    "GapError",
    "Query",
    "RealisedRisk",
    "Recorded",
    "Ridge",
    "Run",
    "Score",
    "SeasonalProfile",
    "Settings",
    "Stream",
    "TailRisk",
    "backtest",
    "calibrate",
    "check",
    "diagnose",
]

# Imported when asked for: not every program needs them, and the last two need more than the core's dependencies.
_LAZY = {
    "Breakdown": "metrics.breakdown",
    "Checkup": "checkup",
    "Diagnosis": "diagnosis",
    "Fleet": "fleet.fleet",
    "FleetForecast": "fleet.forecast",
    "calibrate": "offline.fitting",
    "check": "checkup",
    "diagnose": "diagnosis",
    "report": "reports",
    "study": "studies",
}
_LAZY_MODULES = ("adapters", "estimator", "ray", "testing")


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name == "__version__":
        return import_module("importlib.metadata").version("ompb")
    if name in _LAZY_MODULES:
        return import_module(f"ompb.{name}")
    if name in _LAZY:
        return getattr(import_module(f"ompb.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'ompb' has no attribute {name!r}")
