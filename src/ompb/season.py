"""The season, from the source's own autocorrelation."""

from __future__ import annotations

import numpy as np

from ompb.types import Floats

# A peak of the autocorrelation below this is no season.
WEAK = 0.2
# The first peak this near to the highest is the season; later ones are its multiples.
NEARLY = 0.9


def find_season(values: Floats, longest: int) -> int | None:
    """Lag of the first high peak of the mean autocorrelation of (T, C), at most ``longest``; None if there is none.

    >>> find_season(np.sin(2 * np.pi * np.arange(400)[:, None] / 24), 100)
    24
    """
    rows = len(values)
    time = np.linspace(-1, 1, rows)[:, None]
    known = np.isfinite(values)
    mean = np.where(known, values, 0.0).sum(0) / np.maximum(known.sum(0), 1)
    centred = np.where(known, values - mean, 0.0)
    centred = centred - time * (centred * time).sum(0) / (time**2).sum()
    power = np.abs(np.fft.rfft(centred, 2 * rows, axis=0)) ** 2
    covariance = np.fft.irfft(power, axis=0)[: longest + 2]
    varying = covariance[0] > 1e-12 * rows
    if not varying.any():
        return None
    correlation = (covariance[:, varying] / covariance[0, varying]).mean(axis=1)
    # the sums behind lag k have rows - k terms
    correlation = correlation * rows / (rows - np.arange(len(correlation)))
    inner = correlation[1:-1]
    peaks = 1 + np.flatnonzero((inner > correlation[:-2]) & (inner >= correlation[2:]))
    peaks = peaks[(peaks >= 2) & (correlation[peaks] > WEAK)]
    if len(peaks) == 0:
        return None
    return int(peaks[correlation[peaks] >= NEARLY * correlation[peaks].max()][0])
