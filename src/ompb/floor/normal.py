"""The normal law's half-widths: the one place where a level becomes a number of standard deviations."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist


@lru_cache(maxsize=256)
def gaussian_half_width(level: float) -> float:
    """Standard deviations on each side of the mean that hold a share ``level`` of a normal law.

    >>> round(gaussian_half_width(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + level / 2)
