"""Forecasts made elsewhere, looked up by origin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ompb.errors import ForecasterError, ShapeError
from ompb.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Forecasts (T, H, C) the user brings: ``forecasts[t, h - 1]`` is lead h of origin row t.

    It cannot forecast a window it has not seen, so it is looked up by origin and not called on windows.

    >>> forecasts = np.array([[[1.0], [2.0]], [[3.0], [np.nan]]])
    >>> recorded = Recorded(forecasts)
    >>> recorded.at([0]).ravel()
    array([1., 2.])
    >>> recorded.at([0, 1])
    Traceback (most recent call last):
    ompb.errors.ForecasterError: origin 1 has no complete forecast; ...
    """

    forecasts: Floats

    def __post_init__(self) -> None:
        forecasts = np.array(self.forecasts, dtype=np.float64)
        if forecasts.ndim != 3 or not forecasts.size:
            raise ShapeError(f"forecasts have shape {forecasts.shape}; pass a non-empty array (T, horizon, channels).")
        forecasts.flags.writeable = False
        object.__setattr__(self, "forecasts", forecasts)

    def at(self, origins: ArrayLike) -> Floats:
        """Forecasts (n, H, C) of n origin rows.

        Raises ``ForecasterError``, naming the first origin without a complete forecast.
        """
        rows = np.asarray(origins, dtype=np.intp).ravel()
        last = len(self.forecasts) - 1
        found = self.forecasts[rows.clip(0, last)]
        complete = (rows >= 0) & (rows <= last) & np.isfinite(found).all(axis=(1, 2))
        if not complete.all():
            raise ForecasterError(
                f"origin {rows[~complete][0]} has no complete forecast; "
                f"record all leads and channels of it, or start at a later origin."
            )
        return np.asarray(found)
