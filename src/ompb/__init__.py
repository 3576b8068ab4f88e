"""Wrap any forecaster, keep it frozen, and let a small Bayesian head correct it as the world answers."""

from typing import Any as _Any

from ompb.backtest import Run, backtest
from ompb.calibrator import Calibrator
from ompb.diagnosis import Diagnosis, diagnose
from ompb.episodes import Episode
from ompb.forecasters import Recorded, Ridge, SeasonalProfile
from ompb.metrics.score import Score
from ompb.query import Forecaster, Query
from ompb.settings import Settings
from ompb.stream import Stream
from ompb.types import Alert, Certificate, Forecast, RealisedRisk, TailRisk

__all__ = [
    "Alert",
    "Calibrator",
    "Certificate",
    "Diagnosis",
    "Episode",
    "Forecast",
    "Forecaster",
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
    "diagnose",
]

# Imported when asked for: they need more than the core's dependencies.
_LAZY = {"study": "ompb.studies", "report": "ompb.reports"}


def __getattr__(name: str) -> _Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("ompb")
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'ompb' has no attribute {name!r}")
