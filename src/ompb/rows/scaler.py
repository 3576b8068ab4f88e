"""The one scaler: mean and population standard deviation of each channel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ompb.floor.names import counted
from ompb.floor.shapes import Shape
from ompb.types import Floats

# Values this many standard deviations off the mean are no measurements and no forecasts: squares of them, and inverses
# of sums of squares, still have all their digits.
LIMIT = 1e6


@dataclass(frozen=True, eq=False, repr=False)
class Scaler:
    r"""Standardises rows whose last axis is the channels, and brings them back.

    .. math:: z = (x - \mu) / \sigma

    A channel that does not vary has sigma 1, one of which nothing is known mu 0 and sigma 1.

    >>> scaler = Scaler.fit(np.asarray([[1.0, 7.0], [3.0, 7.0]]))
    >>> scaler.standardise(np.asarray([[3.0, 8.0]]))
    array([[1., 1.]])
    """

    centre: Annotated[Floats, Shape("N")]  # mu: (C,), read-only; (S, 1, C) of S series
    scale: Annotated[Floats, Shape("N", positive=True)]  # sigma: (C,), read-only; (S, 1, C) of S series
    _reach: Floats = field(init=False, repr=False)  # LIMIT in the user's units, of the same shape

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reach", LIMIT * self.scale)
        if isinstance(self.centre, np.ndarray):
            self.centre.flags.writeable = self.scale.flags.writeable = False

    def __repr__(self) -> str:
        return f"Scaler(of {counted(self.centre.shape[-1], 'channel')})"

    @classmethod
    def fit(cls, rows: Any) -> Scaler:
        """Of rows (T, C), at least one, NaN where missing."""
        rows = np.asarray(rows, dtype=np.float64)
        known = ~np.isnan(rows)
        some = known.any(axis=0)
        usable = np.where(some, rows, 0.0)  # a channel of which nothing is known counts as one that does not vary
        centre, scale = np.nanmean(usable, axis=0), np.nanstd(usable, axis=0)
        # the deviation of a constant is often not zero but a rounding error
        varies = (np.nanmax(usable, axis=0) > np.nanmin(usable, axis=0)) & (scale > 0)
        return cls(centre, np.where(varies, scale, 1.0))

    def of(self, series: int) -> Scaler:
        """That of one of S series."""
        return Scaler(self.centre[series, 0], self.scale[series, 0])

    def standardise(self, rows: Floats) -> Floats:
        """Rows (..., C) in source standard deviations from the source mean."""
        return (rows - self.centre) / self.scale

    def near(self, rows: Floats) -> NDArray[np.bool_]:
        """Which cells (..., C) lie within `LIMIT`; a missing one does not."""
        return abs(rows - self.centre) <= self._reach

    def restore(self, rows: Floats) -> Floats:
        """Standardised rows (..., C) in the user's units."""
        return np.asarray(self.centre + self.scale * rows)
