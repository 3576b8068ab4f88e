"""A forecaster that knows how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ompb.types import Floats


@dataclass
class Timed:
    """Forecasts as another does, and adds up the seconds that takes."""

    forecaster: Callable[[Floats], Floats]
    seconds: float = 0.0

    def __call__(self, windows: Floats) -> Floats:
        """Forecast windows (n, context, C) as (n, horizon, C)."""
        start = time.perf_counter()
        forecasts = self.forecaster(windows)
        self.seconds += time.perf_counter() - start
        return forecasts
