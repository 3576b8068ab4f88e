"""Small frozen value classes: what the stream hands out."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import OptionError
from ompb.floor.cards import ORANGE, PURPLE, SKY, card, facts, fan, fans_legend, stacked
from ompb.floor.names import counted, listed
from ompb.floor.normal import gaussian_half_width
from ompb.floor.times import Stamp, Times, shown

if TYPE_CHECKING:
    from ompb.plots.look import Picture

Floats: TypeAlias = NDArray[np.float64]


def as_array(numbers: Any) -> NDArray[Any]:
    """Whatever holds numbers as an array, masked where it was; also a tensor with a gradient or on another device.

    Where there is no such array it raises what the library behind it does.
    """
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().cpu().numpy()
    return numbers if isinstance(numbers, np.ma.MaskedArray) else np.asarray(numbers)


def float64(numbers: NDArray[Any]) -> Floats:
    """A fresh row-major array of them, NaN where masked; what float64 cannot hold becomes infinite."""
    with np.errstate(over="ignore"):  # a long double
        floats = numbers.astype(np.float64, order="C")
    return np.asarray(np.ma.filled(floats, np.nan)) if isinstance(floats, np.ma.MaskedArray) else floats


SMALLEST_ERROR = 1e-100  # whose square is a number
OMITTED = (
    "lambda_rho, how far risk minus half the disagreement has moved since the source, is not part of this number: "
    "it cannot be seen before outcomes are known. It may move even if inputs map to outcomes as they always did."
)

FANS = 3  # channels that a notebook shows of a forecast
SPEAKS_OF = "all channels of the calibrator together; fit a calibrator for each to have one for each."


@dataclass(frozen=True, slots=True)
class TailRisk:
    """An upper bound on the probability of a large error; ``str()`` gives it as a sentence."""

    threshold: float
    probability: float
    delta: float  # it holds with probability 1 - delta, ...
    in_sample: bool

    def __str__(self) -> str:
        note = " The source errors behind it are in-sample, hence optimistic." if self.in_sample else ""
        return (
            f"With confidence {1 - self.delta:.4g}, and if risk minus half the disagreement is as it was on the "
            f"source, the probability that a forecast's RMS error reaches {self.threshold:g} source standard "
            f"deviations is at most {self.probability:.3f}.{note}"
        )


class SourceAt(Protocol):
    """The source's part of a certificate at any size of error."""

    @property
    def assumption(self) -> str:
        """What its kind of complexity asks for, in words; empty if nothing."""

    def at(self, tau: float) -> tuple[float, float]:
        """Source risk and complexity of the losses min(1, MSE / tau^2)."""


@dataclass(frozen=True, slots=True)
class Certificate:
    r"""A PAC-Bayes reading, known before any outcome, of the bounded proxy risk of a forecast.

    .. math:: PB(t) = R_S(t) + \Gamma_m + \tfrac12 \mathrm{dis}(t)

    Everything lives in [0, 1] units of ``min(1, MSE / tau_y**2)``; it is never mixed with raw errors. What is certified
    is what is issued: where the gate is closed, the bare forecaster; else forecasts drawn from the mixture, whose mean
    squared error is at least that of the issued mean.
    """

    source_risk: float  # R_S(t): mean proxy loss on the certificate windows, of such draws
    gamma: float  # complexity term
    disagreement: float  # dis(t) = max(0, disagreement_change)
    disagreement_change: float  # target less source: below 0 the members agree more than they did on the source
    source_disagreement: float
    target_disagreement: float
    kl: float  # KL(rho || pi) inside gamma
    log_term: float  # what confidence costs beside it
    windows: int  # m
    delta: float  # confidence spent on this reading of the source
    uniform: bool  # whether all readings hold at once; else each of them does
    tau_y: float
    tau_d: float
    draws: int  # K; 0 = the expectation in closed form
    posterior_shift: float  # KL(rho_t || source posterior)
    kind: str
    stride: int  # rows between certificate windows
    horizon: int
    in_sample: bool  # the forecaster was trained on the certificate windows
    source: SourceAt = field(repr=False, compare=False)  # the same windows at any other size of error

    def __repr__(self) -> str:
        terms = " + ".join(f"{name} {length:.3f}" for name, length, _ in self._bar())
        return f"Certificate({self.value:.3f} = {terms}; {self._rests_on()})"

    def _repr_html_(self) -> str:
        named = [assumption for assumption in self.assumptions if assumption != OMITTED]
        holds = {"rests on": self._rests_on(), "holds if": " ".join(named), "leaves out": OMITTED}
        return card(
            f"Certificate {self.value:.3f}, on a scale from 0 to 1",
            stacked(self._bar()),
            facts({"speaks of": SPEAKS_OF, **holds}),
        )

    def _bar(self) -> list[tuple[str, float, str]]:
        """The three terms: name, size and colour."""
        return [
            ("source risk", self.source_risk, SKY),
            ("complexity", self.gamma, ORANGE),
            ("half the disagreement", 0.5 * self.disagreement, PURPLE),
        ]

    def _rests_on(self) -> str:
        return f"{self.windows} source windows{', in sample' if self.in_sample else ''}"

    @property
    def value(self) -> float:
        """PB(t), the sum of the three terms."""
        return self.source_risk + self.gamma + 0.5 * self.disagreement

    @property
    def omitted(self) -> str:
        """The term no label-free certificate can contain, in words."""
        return OMITTED

    @property
    def confidence(self) -> str:
        """How often source risk and complexity together bound the risk on the source, in words."""
        often = f"{1 - self.delta:.4g}"
        if self.uniform:
            return f"This reading of the source holds with probability {often}, and all of a stream hold at once."
        return f"Each reading of the source holds with probability {often}; all of them at once may hold less often."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the number to be a bound, in words."""
        overlapping = (
            f"The outcomes of certificate windows {self.stride} rows apart overlap over a horizon of {self.horizon}, "
            "and no kind of complexity allows for that: the value is an index, not a bound."
        )
        unseen = "The forecaster was trained on the certificate windows: source_risk is optimistic."
        return (
            "The certificate windows took no part in learning, and given what came before them they are independent of "
            "the stream (another site, or a gap of some horizons).",
            *((self.source.assumption,) if self.source.assumption else ()),
            *((overlapping,) if self.stride < self.horizon else ()),
            OMITTED,
            *((unseen,) if self.in_sample else ()),
        )

    def terms(self) -> dict[str, Any]:
        """Every term and setting behind the value, by name."""
        fields = (f.name for f in dataclasses.fields(self) if f.compare)
        return {"value": self.value, **{name: getattr(self, name) for name in fields}}

    def tail_risk(self, tau: float) -> TailRisk:
        """Bound on the probability that the RMS error over horizon and channels reaches ``tau``.

        ``tau`` is in source standard deviations. The source is read again with ``tau`` in place of ``tau_y``, as
        ``1{e >= tau} <= min(1, e**2 / tau**2)``.
        """
        if not SMALLEST_ERROR <= tau < math.inf:
            raise OptionError(
                f"tau = {tau} is not a positive number; pass an error size in source standard deviations."
            )
        risk, gamma = self.source.at(tau)
        return TailRisk(tau, min(1.0, risk + gamma + 0.5 * self.disagreement), self.delta, self.in_sample)


@dataclass(frozen=True, slots=True)
class RealisedRisk:
    """A time-uniform upper bound, from matured outcomes, on the average conditional risk of what was issued.

    The risk of a forecast is that of its proxy loss given all that was known when it was issued. Outcomes without any
    known cell are left out, which is harmless only if cells are missing at random.
    """

    upper: float
    mean: float
    outcomes: int  # forecasts whose outcome is behind it
    newest_age: int  # rows since the newest of those forecasts was issued
    delta: float


# What each signal of the warnings has seen, in words.
SEEN = {
    "inputs": "the inputs look unlike those before them",
    "level": "the level has moved",
    "errors": "forecasts err more than their intervals say",
    "novelty": "the forecaster and what is remembered part ways",
}


@dataclass(frozen=True, slots=True)
class Alert:
    """A warning: one signal does what a calm stream hardly ever does. ``str()`` gives it as a sentence."""

    signal: str  # inputs, level, errors or novelty
    since: int  # the row at which it began
    newest: int  # the newest row at which it was above its line
    since_time: Stamp | None  # of that first row; None if nobody gave times
    channels: tuple[str, ...]  # that have most to do with it
    rows_between: float  # rows between two times that a calm stream does this; the more, the stronger

    def __str__(self) -> str:
        seen = SEEN[self.signal]
        stamp = self.since if self.since_time is None else self.since_time
        when = f"row {stamp}" if isinstance(stamp, int) else shown(stamp)
        often = "less than once in a million" if self.rows_between > 0.99e6 else f"once in {self.rows_between:,.0f}"
        who = listed(self.channels)
        return f"{seen[0].upper()}{seen[1:]} since {when} ({who}): a calm stream does so {often} rows."


@dataclass(frozen=True, slots=True)
class Forecast:
    """One issued forecast of H rows of C channels, in the user's units. Its arrays are read-only."""

    origin: int  # the row it was issued with
    times: Times | None  # of the rows it speaks of, (H,); None if nobody gave any
    mean: Floats  # (H, C)
    base: Floats  # what the bare forecaster said: (H, C)
    gate: Floats  # how far the correction is trusted: (C,)
    novelty: Floats | None  # distance of base forecast and memory, 1 = rare on the source: (C,); None without memory
    sd: Floats  # predictive standard deviation: (H, C)
    levels: Floats  # interval levels whose half-widths are tracked online: (levels,)
    multipliers: Floats  # half-widths below and above at each level, in sd: (2, levels, H, C), or H = 1 for all leads
    bounds: Floats | None  # what no value can lie below or above: (2, C); None if nobody gave any
    expected_error: Floats  # mean absolute error over the leads that is to be expected: (C,)
    certificate: Certificate | None
    hidden: tuple[str, ...]  # channels whose newest cell was not believed and counts as missing
    warnings: tuple[Alert, ...]  # in force when it was issued, strongest first
    replaced: int | None  # origin of a new model's first forecast, until all rows it spoke of have come; else None

    def __repr__(self) -> str:
        horizon, channels = self.mean.shape
        certified = "" if self.certificate is None else f", certificate {self.certificate.value:.3f}"
        gate = f"gate {self.gate.mean():.2f}{certified}"
        return f"Forecast(origin {self.origin}, {counted(horizon, 'lead')}, {counted(channels, 'channel')}, {gate})"

    def _repr_html_(self) -> str:
        horizon, channels = self.mean.shape
        when = f"row {self.origin}" if self.times is None else f"{shown(self.times[0])} to {shown(self.times[-1])}"
        lines = {
            "issued with" if self.times is None else "speaks of": when,
            "gate, by channel": listed([f"{gate:.2f}" for gate in self.gate.tolist()]),
            "expected error": listed([f"{error:.3g}" for error in self.expected_error.tolist()]),
            "certificate": "" if self.certificate is None else f"{self.certificate.value:.3f}",
            "not believed": listed(self.hidden),
            "warning": self.warning or "",
        }
        lower, upper = self.interval(0.8)
        fans = [
            fan(*(ends[:, channel].tolist() for ends in (lower, upper, self.mean, self.base)))
            for channel in range(min(channels, FANS))
        ]
        legend = fans_legend(0.8)
        size = f"{counted(horizon, 'lead')}, {counted(channels, 'channel')}"
        return card(f"Forecast of {size}", facts(lines), *fans, legend)

    def plot(self) -> Picture:
        """A picture of the forecast with its intervals, one panel for each of the first channels.

        It is a matplotlib figure: ``forecast.plot().savefig("forecast.png")``. Needs the extra ``report``.
        """
        from ompb.plots.fan import forecast_picture  # the layer above

        return forecast_picture(self)

    @property
    def warning(self) -> str | None:
        """The strongest warning in words; None where there is none."""
        return str(self.warnings[0]) if self.warnings else None

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Lower and upper end, each (H, C), of the central interval of that level, within the bounds."""
        return ends(self.mean, self.sd, half_widths(level, self.levels, self.multipliers), self.bounds)

    def quantile(self, q: float) -> Floats:
        """The q-quantile of each value, (H, C), which never falls as q rises. The 0.5-quantile is ``mean``.

        Where bounds were given it lies within them, even if ``mean``, which is never moved, does not.
        """
        if not isinstance(q, Real) or not 0 < q < 1:
            raise OptionError(f"q = {q!r} is not inside (0, 1); pass 0.9 for the 90 % quantile.")
        if q == 0.5:
            return self.mean if self.bounds is None else np.clip(self.mean, *self.bounds)
        lower, upper = self.interval(abs(2 * q - 1))
        return upper if q > 0.5 else lower


def half_widths(level: float, levels: Floats, multipliers: Floats) -> Floats:
    """Half-widths in sd at any level, (..., 2, H, C), from those tracked at ``levels``, (..., 2, levels, H, C).

    Linear in the Gaussian half-width from one tracked level to the next, from zero on, so that a wider level never gets
    a narrower interval and an untouched Gaussian stays exact; beyond the last level its ratio to the Gaussian is kept.
    """
    if not isinstance(level, Real) or not 0 < level < 1:
        raise OptionError(f"level = {level!r} is not inside (0, 1); pass 0.8 for an 80 % interval.")
    grid = [gaussian_half_width(float(b)) for b in levels]
    z = gaussian_half_width(float(level))
    right = int(np.searchsorted(grid, z, side="right"))
    if right in (0, len(grid)):
        nearest = min(right, len(grid) - 1)
        return z / grid[nearest] * multipliers[..., nearest, :, :]
    share = (z - grid[right - 1]) / (grid[right] - grid[right - 1])
    narrower, wider = multipliers[..., right - 1, :, :], multipliers[..., right, :, :]
    return narrower + share * (wider - narrower)  # a mean of two equal ones may be rounded to less than either


def ends(mean: Floats, sd: Floats, half: Floats, bounds: Floats | None) -> tuple[Floats, Floats]:
    """Lower and upper end (..., H, C) at half-widths (..., 2, H, C) in sd, within the bounds (2, C)."""
    lower, upper = mean - half[..., 0, :, :] * sd, mean + half[..., 1, :, :] * sd
    return (lower, upper) if bounds is None else (lower.clip(*bounds), upper.clip(*bounds))
