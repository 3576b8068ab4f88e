"""Seasonal series with AR(1) noise whose target part is shifted in one known way."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from ompb.floor import checks
from ompb.types import Floats

Shift: TypeAlias = Literal["none", "level", "scale", "phase", "dynamics"]

LEVEL_STEP = 4.0  # added by "level": more than twice the source standard deviation
SCALE_FACTOR = 1.6  # multiplies the series in "scale": spread and level move together
PERSISTENCE, CHANGED_PERSISTENCE = 0.95, 0.3  # AR coefficient, and what "dynamics" turns it into
NOISE, CHANGED_NOISE = 0.3, 1.2  # standard deviation of the AR innovations, and what "dynamics" turns it into


def shifted_stream(
    shift: Shift,
    seed: int,
    source_rows: int = 2000,
    target_rows: int = 1500,
    channels: int = 3,
    season: int = 24,
) -> tuple[Floats, Floats]:
    r"""Source (source_rows, C) and target (target_rows, C), the target directly after the source.

    .. math:: x_{t,c} = g\,(10 + d + a_c \sin(2\pi (t - p - o_c) / S) + e_{t,c}), \qquad
              e_{t,c} = \rho\, e_{t-1,c} + \sigma\, \varepsilon_{t,c}

    with S = ``season``, amplitudes a_c in [1.5, 2.5], offsets o_c in [0, S), standard normal noise, and on
    the source g = 1, d = 0, p = 0, rho = 0.95, sigma = 0.3. One thing changes on the target:

    * ``none``: nothing;
    * ``level``: d = 4;
    * ``scale``: g = 1.6, which also moves the level;
    * ``phase``: p = S / 4 in every channel but the first, which keeps the time (think of load moving against
      temperature). A forecaster that sees each channel alone reads the phase off its window and is hardly hurt; one
      that has learned how channels move together is misled;
    * ``dynamics``: rho = 0.3, sigma = 1.2, so that persistence learned on the source misleads.

    Equal seeds give equal noise: the source, and the shocks of the target, are the same whatever the shift.

    >>> source, target = shifted_stream("scale", seed=0)
    >>> source.shape, target.shape, round(float(target.mean() / source.mean()), 1)
    ((2000, 3), (1500, 3), 1.6)
    """
    checks.choice("shift", shift, get_args(Shift))
    sizes = {"source_rows": source_rows, "target_rows": target_rows, "channels": channels, "season": season}
    for name, size in sizes.items():
        checks.count(name, size)
    rng = np.random.default_rng(seed)
    amplitudes = rng.uniform(1.5, 2.5, channels)
    offsets = rng.uniform(0, season, channels)
    shocks = rng.standard_normal((source_rows + target_rows, channels))

    rows = np.arange(source_rows + target_rows)[:, None]
    shifted = rows >= source_rows
    keeps_time = np.arange(channels) == 0
    roll = np.where(shifted & ~keeps_time & (shift == "phase"), season / 4, 0.0)
    seasonal = amplitudes * np.sin(2 * np.pi * (rows - roll - offsets) / season)
    changed = shifted & (shift == "dynamics")
    noise = autoregression(
        np.where(changed, CHANGED_PERSISTENCE, PERSISTENCE), np.where(changed, CHANGED_NOISE, NOISE) * shocks
    )
    level = np.where(shifted & (shift == "level"), 10 + LEVEL_STEP, 10.0)
    values = np.where(shifted & (shift == "scale"), SCALE_FACTOR, 1.0) * (level + seasonal + noise)
    return values[:source_rows], values[source_rows:]


def autoregression(coefficients: Floats, innovations: Floats) -> Floats:
    r"""AR(1) series (T, C) with a coefficient per row, :math:`e_t = \rho_t e_{t-1} + u_t`.

    ``coefficients`` is (T, 1) or (T, C), ``innovations`` (T, C). The first row is drawn up to the stationary
    spread: :math:`e_0 = u_0 / \sqrt{1 - \rho_0^2}`.

    >>> autoregression(np.full((3, 1), 0.6), np.array([[0.8], [0.0], [1.0]])).round(2).ravel()
    array([1.  , 0.6 , 1.36])
    """
    series = np.empty_like(innovations)
    series[0] = innovations[0] / np.sqrt(1 - coefficients[0] ** 2)
    for t in range(1, len(innovations)):
        series[t] = coefficients[t] * series[t - 1] + innovations[t]
    return series
