"""Wrap any forecaster, keep it frozen, and let a small Bayesian head correct it as the world answers."""

from ompb.backtest import Run, backtest
from ompb.calibrator import Calibrator
from ompb.diagnosis import Diagnosis, diagnose
from ompb.forecasters import Recorded, Ridge, SeasonalProfile
from ompb.settings import Settings
from ompb.stream import Stream
from ompb.types import Certificate, Forecast, RealisedRisk, TailRisk

__all__ = [
    "Calibrator",
    "Certificate",
    "Diagnosis",
    "Forecast",
    "RealisedRisk",
    "Recorded",
    "Ridge",
    "Run",
    "SeasonalProfile",
    "Settings",
    "Stream",
    "TailRisk",
    "backtest",
    "diagnose",
]
