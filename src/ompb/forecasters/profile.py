"""The seasonal profile of a window, repeated over the horizon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ompb.errors import ShapeError, TooShortError
from ompb.floor.checks import count
from ompb.types import Floats


@dataclass(frozen=True, slots=True)
class SeasonalProfile:
    r"""Mean over the whole seasons a window contains, tiled over the horizon in phase.

    .. math:: \hat y_{t+h} = \frac1K \sum_{k=1}^{K} x_{t + j(h) - kS}, \quad j(h) = 1 + (h - 1) \bmod S

    with S = ``season`` rows, K = floor(context / S), and t the window's last row. A cell missing (NaN) in
    one of the seasons is missing in the forecast.

    >>> window = np.array([9.0, 1.0, 2.0, 3.0, 4.0])  # two whole seasons of two rows; the 9 is left out
    >>> SeasonalProfile(horizon=3, season=2)(window.reshape(1, 5, 1)).ravel()
    array([2., 3., 2.])
    """

    horizon: int
    season: int

    def __post_init__(self) -> None:
        for name in ("horizon", "season"):
            object.__setattr__(self, name, count(name, getattr(self, name)))

    def __call__(self, windows: ArrayLike) -> Floats:
        """Forecast windows (n, context, C) as (n, horizon, C)."""
        windows = np.asarray(windows, dtype=np.float64)
        if windows.ndim != 3:
            raise ShapeError(f"windows have shape {windows.shape}; pass an array (n, context, channels).")
        n, context, channels = windows.shape
        if context < self.season:
            raise TooShortError(
                f"windows of {context} rows hold no whole season of {self.season}; "
                f"pass at least {self.season} rows, or a shorter season."
            )
        seasons = context // self.season
        newest = windows[:, context - seasons * self.season :]
        profile = newest.reshape(n, seasons, self.season, channels).mean(axis=1)  # (n, season, C)
        return np.asarray(profile[:, np.arange(self.horizon) % self.season])
