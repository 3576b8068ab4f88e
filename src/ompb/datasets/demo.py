"""A small electricity story with known shifts, made on the spot: no download, no licence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.datasets.synthetic import autoregression
from ompb.rows.phases import Phase
from ompb.types import Floats

Integers: TypeAlias = NDArray[np.integer[Any]]
Claims: TypeAlias = NDArray[np.bool_]

FEEDERS = ("old town", "harbour", "university", "mill", "airport")
LEVELS_MW = np.array([18.0, 26.0, 12.0, 34.0, 22.0])
SOURCE_DAYS, PHASE_DAYS, LEAVING_DAYS = 280, 40, 14
PHASES = ("no shift", "covariate shift", "concept shift")
MONDAY = np.datetime64("2024-01-01T00", "h")


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """Hourly load in megawatts; the first ``source_rows`` rows are the source, the phases cover the rest."""

    values: Floats  # (T, C)
    channels: tuple[str, ...]
    times: NDArray[np.datetime64]  # (T,), hours
    source_rows: int
    phases: tuple[Phase, ...]


def demo_series(seed: int = 0) -> Demo:
    r"""Hourly load of five feeders: 280 days of source, then three target phases of 40 days.

    .. math:: x_{t,c} = L_c\, g_{t,c}\, \bigl(1 + A_t\, D_c(u_t) + B_t\, N(u_t) - 0.08\, W_t
              + 0.05\, T_t + e_{t,c}\bigr)

    * L_c: level of the feeder; u_t: hour of the day;
    * D_c: smooth day with a morning and an evening peak; N: a block of four cheap night hours, mean zero;
    * W_t: 1 on Saturday and Sunday;
    * T_t: slow temperature-like driver, AR(1) with coefficient 0.99 and unit variance, shared by all feeders;
    * e_{t,c}: AR(1) noise, :math:`e_t = \rho_t e_{t-1} + \sigma_t \varepsilon_t`.

    ================ ====================================================================================
    source, no shift g = 1, A = 1, B = 0, D as is, rho = 0.9, sigma = 0.015
    covariate shift  a neighbouring station fails and its customers are connected here at once: g_c from 1.4
                     to 1.8, so level and spread rise; relative to the level the law is the same; over the
                     last 14 days they leave one by one and g falls back to 1
    concept shift    a tariff moves load into the cheap hours: D five hours later and damped to A = 0.5,
                     B = 0.2 appears, and the noise forgets sooner but is larger: rho = 0.3, sigma = 0.05
    ================ ====================================================================================

    A linear forecaster reads a mere change of phase off its window; it is the new daily shape and the new
    noise that its weights do not know.

    >>> demo = demo_series()
    >>> demo.values.shape, demo.source_rows, [phase.name for phase in demo.phases]
    ((9600, 5), 6720, ['no shift', 'covariate shift', 'concept shift'])
    """
    source_rows, phases = _calendar()
    _, covariate, concept = phases
    rows = np.arange(phases[-1].stop)[:, None]  # (T, 1), against feeders (C,)
    guests = np.where(covariate.holds(rows), np.minimum(1.0, (covariate.stop - rows) / (24 * LEAVING_DAYS)), 0.0)
    growth = 1 + guests * np.linspace(0.4, 0.8, len(FEEDERS))
    load = LEVELS_MW * growth * _relative_load(rows, concept.holds(rows), np.random.default_rng(seed))
    times = MONDAY + np.arange(len(rows))
    for array in (load, times):
        array.flags.writeable = False
    return Demo(load, FEEDERS, times, source_rows, phases)


def _calendar() -> tuple[int, tuple[Phase, ...]]:
    """Number of source rows, and the target's phases."""
    source_rows, phase_rows = 24 * SOURCE_DAYS, 24 * PHASE_DAYS
    firsts = (source_rows + k * phase_rows for k in range(len(PHASES)))
    return source_rows, tuple(
        Phase(name, first, first + phase_rows) for name, first in zip(PHASES, firsts, strict=True)
    )


def _relative_load(rows: Integers, concept: Claims, rng: np.random.Generator) -> Floats:
    """The bracket of the equation, (T, C)."""
    day = np.where(concept, 0.5 * _smooth_day(rows - 5), _smooth_day(rows))
    night = np.where(concept, 0.2 * _cheap_hours(rows), 0.0)
    weekend = rows // 24 % 7 >= 5
    warming = np.sqrt(1 - 0.99**2) * rng.standard_normal(rows.shape)
    temperature = autoregression(np.full(rows.shape, 0.99), warming)
    shocks = np.where(concept, 0.05, 0.015) * rng.standard_normal((len(rows), len(FEEDERS)))
    noise = autoregression(np.where(concept, 0.3, 0.9), shocks)
    return np.asarray(1 + day + night - 0.08 * weekend + 0.05 * temperature + noise)


def _smooth_day(hours: Integers) -> Floats:
    """D_c, (T, C): one wave a day and one half a day long; each feeder has its own size and hour of peak."""
    size, peak = np.linspace(0.2, 0.12, len(FEEDERS)), np.linspace(17.0, 19.0, len(FEEDERS))
    angle = 2 * np.pi * (hours - peak) / 24
    return np.asarray(size * (np.cos(angle) + 0.4 * np.cos(2 * angle)))


def _cheap_hours(hours: Integers) -> Floats:
    """N, (T, 1): 1 from 00:00 to 03:59, 0 elsewhere, minus its daily mean."""
    return np.asarray((hours % 24 < 4) - 4 / 24)
