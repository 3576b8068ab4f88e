"""Small frozen value classes: what the stream hands out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import OptionError
from ompb.normal import gaussian_half_width
from ompb.times import Times

Floats: TypeAlias = NDArray[np.float64]


def float64(numbers: NDArray[Any]) -> Floats:
    """A fresh row-major array of them, NaN where masked; what float64 cannot hold becomes infinite."""
    with np.errstate(over="ignore"):  # a long double
        floats = numbers.astype(np.float64, order="C")
    return np.asarray(np.ma.filled(floats, np.nan)) if isinstance(floats, np.ma.MaskedArray) else floats


OMITTED = (
    "lambda_rho, the change in how inputs map to outcomes, is not part of this number: "
    "it cannot be seen before outcomes are known."
)


@dataclass(frozen=True, slots=True)
class TailRisk:
    """An upper bound on the probability of a large error; ``str()`` gives it as a sentence."""

    threshold: float
    probability: float
    in_sample: bool

    def __str__(self) -> str:
        note = " The source errors behind it are in-sample, hence optimistic." if self.in_sample else ""
        return (
            f"If how inputs map to outcomes has not changed, the probability that a forecast's RMS error reaches "
            f"{self.threshold:g} source standard deviations is at most {self.probability:.3f}.{note}"
        )


@dataclass(frozen=True, slots=True)
class Certificate:
    r"""A PAC-Bayes reading, known before any outcome, of the bounded proxy risk of a forecast.

    .. math:: PB(t) = R_S(t) + \Gamma_m + \tfrac12 \mathrm{dis}(t)

    Everything lives in [0, 1] units of ``min(1, MSE / tau_y**2)``; it is never mixed with raw errors.
    """

    source_risk: float  # R_S(t): mean proxy loss on the certificate windows
    gamma: float  # complexity term
    disagreement: float  # dis(t) = |source_disagreement - target_disagreement|
    source_disagreement: float
    target_disagreement: float
    disagreement_null: float  # what dis(t) rarely exceeds without shift: an alarm line
    kl: float  # KL(rho || pi) inside gamma
    log_term: float  # ln(2 sqrt(m) / delta)
    variance: float  # V_m, predictable
    scale: float  # c: B/3 for freedman, c-bar for subgamma
    windows: int  # m
    delta: float  # confidence spent on this reading of the source
    tau_y: float
    tau_d: float
    draws: int  # K; 0 = the expectation in closed form
    posterior_shift: float  # KL(rho_t || source posterior)
    kind: str
    stride: int
    in_sample: bool  # the forecaster was trained on the certificate windows

    @property
    def value(self) -> float:
        """PB(t), the sum of the three terms."""
        return self.source_risk + self.gamma + 0.5 * self.disagreement

    @property
    def omitted(self) -> str:
        """The term no label-free certificate can contain, in words."""
        return OMITTED

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the number to be a bound, in words."""
        unseen = "The forecaster was trained on the certificate windows: source_risk is optimistic."
        return (
            "Given what came before them, the certificate windows are independent of the stream "
            "(another site, or a gap of some horizons).",
            "The predictable variance is an estimate from earlier certificate windows.",
            OMITTED,
            *((unseen,) if self.in_sample else ()),
        )

    def terms(self) -> dict[str, Any]:
        """Every term and setting behind the value, by name."""
        return {"value": self.value, **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)}}

    def tail_risk(self, tau: float) -> TailRisk:
        """Bound on the probability that the RMS error over horizon and channels reaches ``tau``.

        ``tau`` is in source standard deviations. From ``1{e >= tau} <= max(1, tau_y/tau)**2 * min(1, e**2/tau_y**2)``.
        """
        if not tau > 0:
            raise OptionError(
                f"tau = {tau} is not a positive number; pass an error size in source standard deviations."
            )
        factor = max(1.0, self.tau_y / tau) ** 2
        return TailRisk(tau, min(1.0, factor * self.value), self.in_sample)


@dataclass(frozen=True, slots=True)
class RealisedRisk:
    """A time-uniform upper bound, from matured outcomes, on the average proxy risk of what was issued."""

    upper: float
    mean: float
    outcomes: int  # matured, non-overlapping outcomes behind it
    newest_age: int  # rows since the newest of those forecasts was issued
    delta: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """One issued forecast of H rows of C channels, in the user's units. Its arrays are read-only."""

    origin: int  # the row it was issued with
    times: Times | None  # of the rows it speaks of, (H,); None if nobody gave any
    mean: Floats  # (H, C)
    base: Floats  # what the bare forecaster said: (H, C)
    gate: Floats  # how far the correction is trusted: (C,)
    sd: Floats  # predictive standard deviation: (H, C)
    levels: Floats  # interval levels whose half-widths are tracked online: (levels,)
    multipliers: Floats  # half-widths below and above at each level, in sd: (2, levels, H, C), or H = 1 for all leads
    bounds: Floats | None  # what no value can lie below or above: (2, C); None if nobody gave any
    certificate: Certificate | None
    hidden: tuple[str, ...]  # channels whose newest cell was not believed and counts as missing

    def __repr__(self) -> str:
        horizon, channels = self.mean.shape
        certified = "" if self.certificate is None else f", certificate {self.certificate.value:.3f}"
        gate = f"gate {self.gate.mean():.2f}{certified}"
        return f"Forecast(origin {self.origin}, {horizon} leads, {channels} channels, {gate})"

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Lower and upper end, each (H, C), of the central interval of that level, within the bounds."""
        return ends(self.mean, self.sd, half_widths(level, self.levels, self.multipliers), self.bounds)

    def quantile(self, q: float) -> Floats:
        """The q-quantile of each value, (H, C), which never falls as q rises. The 0.5-quantile is ``mean``.

        Where bounds were given it lies within them, even if ``mean``, which is never moved, does not.
        """
        if not 0 < q < 1:
            raise OptionError(f"q = {q} is not inside (0, 1); pass 0.9 for the 90 % quantile.")
        if q == 0.5:
            return self.mean if self.bounds is None else np.clip(self.mean, *self.bounds)
        lower, upper = self.interval(abs(2 * q - 1))
        return upper if q > 0.5 else lower


def half_widths(level: float, levels: Floats, multipliers: Floats) -> Floats:
    """Half-widths in sd at any level, (..., 2, H, C), from those tracked at ``levels``, (..., 2, levels, H, C).

    Linear in the Gaussian half-width from one tracked level to the next, from zero on, so that a wider level never gets
    a narrower interval and an untouched Gaussian stays exact; beyond the last level its ratio to the Gaussian is kept.
    """
    if not 0 < level < 1:
        raise OptionError(f"level = {level} is not inside (0, 1); pass 0.8 for an 80 % interval.")
    grid = [gaussian_half_width(float(b)) for b in levels]
    z = gaussian_half_width(float(level))
    right = min(int(np.searchsorted(grid, z)), len(grid))
    if right in (0, len(grid)):
        nearest = min(right, len(grid) - 1)
        return np.asarray(z / grid[nearest] * multipliers[..., nearest, :, :])
    share = (z - grid[right - 1]) / (grid[right] - grid[right - 1])
    return np.asarray((1 - share) * multipliers[..., right - 1, :, :] + share * multipliers[..., right, :, :])


def ends(mean: Floats, sd: Floats, half: Floats, bounds: Floats | None) -> tuple[Floats, Floats]:
    """Lower and upper end (..., H, C) at half-widths (..., 2, H, C) in sd, within the bounds (2, C)."""
    lower, upper = mean - half[..., 0, :, :] * sd, mean + half[..., 1, :, :] * sd
    return (lower, upper) if bounds is None else (np.clip(lower, *bounds), np.clip(upper, *bounds))
