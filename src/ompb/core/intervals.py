r"""Predictive law of each lead, and the rules that keep its coverage.

.. math:: \mathrm{var}_h = \sigma_h^2 (1 + q),\qquad
   \sigma_h^2 \leftarrow \sigma_h^2 + g \Bigl( \frac{(y_h - \hat y_h)^2}{1 + q} - \sigma_h^2 \Bigr)

q is the mixture's leverage: sigma_h^2 q is the posterior variance, sigma_h^2 the residual variance, both from matured
labels only. The share g of what is new is 1 - discount. The interval at level b reaches c_b standard deviations below
the mean, and another c_b above; a rule says how they move.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ompb.core.arrays import (
    Array,
    at_least,
    at_most,
    dot,
    has_all,
    is_rising,
    namespace,
    ones_where,
    quantiles,
    small_product,
)
from ompb.core.counts import Form
from ompb.floor.normal import gaussian_half_width
from ompb.floor.shapes import Shape, Tagged

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
# A variance never falls below this (in squared source standard deviations): constant streams stay finite.
FLOOR = 1e-12
# ln c may leave the Gaussian half-width by this much: a bounded integrator cannot wind up.
REACH = math.log(5.0)
# Rows that the source's variance is worth: a stream may err more or less than the source from its first row on. Far
# leads are judged by near ones until their own outcomes come, hence a share of a long horizon: a few rows of near
# errors that follow each other would move the width of all leads. Both numbers were rehearsed on sources.
SOURCE_ROWS, SOURCE_SHARE = 10.0, 0.25
# The variance goes back at least this share of a long horizon: errors of far leads follow each other for as long, and
# the mean of few of them is now small, now large. Rehearsed on sources, too.
MEMORY_SHARE = 0.5
# A shorter horizon counts as this many rows: the misses of few leads are news of few outcomes.
SHORTEST = 10
# Windows of Gaussian errors that the source's are mixed with: the tails of few windows say little.
GAUSSIAN_WINDOWS = 2.0
# How much slower than their sum the difference of both sides is learned. Both numbers were rehearsed on sources
# (benchmarks/coverage.py): a large one makes symmetric errors' intervals noisy, a small one leaves skewed ones off.
TILT = 0.3


@dataclass(frozen=True)
class IntervalOptions:
    """Of the intervals."""

    discount: float = 0.99  # how much of the residual variance survives a row, if `MEMORY_SHARE` asks for no more
    rate: float = 0.5  # a row whose leads all lie outside moves ln c by about rate / H


class Heard(NamedTuple):
    """At which leads a row's cells have come to be known."""

    observed: Array  # 1 where they have, else 0: (N, H)
    share: Array  # of each in the mean over those leads: (N, H)
    some: Array  # 1 where there is any, else 0: (N,)
    is_whole: bool  # every lead of every lane has, as nearly always; False where asking would mean waiting

    @classmethod
    def of(cls, observed: Array) -> Heard:
        """From what is 1 where an error is known, else 0: (N, H)."""
        leads = dot(observed, observed)
        share, some = observed / at_least(leads, 1.0)[:, None], at_most(leads, 1.0)
        return cls(observed, share, some, has_all(observed))


class Matured(NamedTuple):
    """A row's errors, by lead, and what they were issued with."""

    error: Array  # outcome less issued mean; 0 where there is none: (N, H)
    in_sd: Array  # the same in issued standard deviations: (N, H)
    heard: Heard
    half_widths: Array  # issued, in sd, at each of `LEVELS` below and then above: (N, 2 levels, H)
    shrink: Array  # 1 / (1 + leverage): (N, H)


class IntervalState(Tagged):
    """What an interval rule has learned; a frozen dataclass with the residual variance."""

    __slots__ = ()
    variance: Array  # sigma_h^2: (N, H)


class IntervalRule(Tagged, ABC):
    """How intervals are learned. A rule is a class with a tag, by which options name it."""

    def __init__(self, options: IntervalOptions, like: Array) -> None:
        self.options = options
        xp = namespace(like)

        def constant(values: list[float] | list[list[float]]) -> Array:
            return xp.asarray(values, dtype=like.dtype, device=like.device)

        self.gaussian = constant([gaussian_half_width(level) for level in LEVELS])  # half-widths: (levels,)
        self.tail = constant([(1 - level) / 2 for level in LEVELS])  # share allowed outside on each side: (levels,)
        # what turns an error so that below, and then above, is the direction outwards: (2, 1, 1)
        self.sides = constant([[-1.0], [1.0]])[..., None]
        # row i marks the levels up to the i-th: (levels, levels, 1)
        self._up_to = constant([[float(j <= i) for j in range(len(LEVELS))] for i in range(len(LEVELS))])[..., None]

    @abstractmethod
    def start(self, variance: Array, half_widths: Array) -> IntervalState:
        """The state a stream starts with, from the source's errors.

        They have the ``variance`` (N, H), and lie within ``half_widths`` (N, 2, levels) as `half_widths_of` has them.
        """

    @abstractmethod
    def half_widths(self, state: IntervalState) -> Array:
        """c_b in standard deviations for `LEVELS`, below and above: (N, 2, levels)."""

    @abstractmethod
    def learn(self, state: IntervalState, matured: Matured) -> IntervalState:
        """What a row has taught."""

    def form(self, state: IntervalState) -> Form | None:
        """What, beside arrays, decides how a row is learned and then issued from; None where that is its own.

        See `ompb.core.members.contract.Voices.form`.
        """
        del state
        return None

    def issued(self, state: IntervalState, shape: Array | None = None) -> Array:
        """The half-widths that go out, below and then above, (N, 2 levels, 1): never narrower at a wider level.

        A ``shape`` (N, 2, levels, H) multiplies them lead by lead, which makes them (N, 2 levels, H).
        """
        half_widths = self.half_widths(state)
        if shape is None and is_rising(half_widths):  # as they nearly always are
            return half_widths.reshape((-1, 2 * len(LEVELS), 1))
        half_widths = half_widths[..., None] if shape is None else half_widths[..., None] * shape
        widest = namespace(half_widths).max(half_widths[:, :, None] * self._up_to, axis=3)  # of all levels up to each
        return widest.reshape((widest.shape[0], 2 * len(LEVELS), widest.shape[3]))

    def sd(self, state: IntervalState, leverage: Array) -> Array:
        """Predictive standard deviation (N, H) at a leverage (N,)."""
        return namespace(state.variance).sqrt(state.variance * (1.0 + leverage[:, None]))

    def next_variance(self, state: IntervalState, matured: Matured, share: Array | float) -> Array:
        """sigma_h^2 after a row, (N, H), of which what is new is a ``share``: the module's equation."""
        xp = namespace(matured.error)
        own = matured.error * matured.error * matured.shrink
        if not matured.heard.is_whole:
            own = xp.where(matured.heard.observed > 0, own, self._as_others(state, matured.heard.observed, own))
        return at_least(state.variance + share * (own - state.variance), FLOOR)

    def _as_others(self, state: IntervalState, observed: Array, own: Array) -> Array:
        """What a lead without a label has probably erred, (N, H): as the others did, relative to their variance."""
        xp = namespace(own)
        leads = xp.sum(observed, axis=-1)
        ratio = xp.sum(observed * own / state.variance, axis=-1) / at_least(leads, 1.0)
        return state.variance * xp.where(leads > 0, ratio, 1.0)[:, None]


@dataclass(frozen=True, slots=True)
class ConformalState(IntervalState, tag="conformal"):
    """Residual variance and conformal factors of N lanes."""

    variance: Annotated[Array, Shape("N H", positive=True)]
    rows: Annotated[Array, Shape("N H", least=0)]  # that the variance is a mean of, the source's and those heard
    # ln of c_b over its Gaussian value, below and then above
    log_factor: Annotated[Array, Shape("N 2 levels", least=-REACH, most=REACH)]


class Conformal(IntervalRule, tag="conformal"):
    r"""Each row moves c_b by the shares of its leads that lay outside the intervals that were *issued* for them.

    .. math:: \ln c_b^\pm \leftarrow \ln c_b^\pm + \frac{rate}{H} \bigl[
       (above + below - (1 - b)) \pm tilt \, (above - below) \bigr]

    with the horizon H, or `SHORTEST` if that is longer.

    So in the long run (1 - b) / 2 of all leads lie outside on each side, whatever the errors are, even chosen by an
    adversary who knows everything. Proof: the moves of T rows add up to the difference between the last ln c_b and the
    first, which is at most 2 `REACH`. The sum of both sides moves by the first bracket, their difference by the second:

    .. math:: \Bigl| \frac1T \sum_{t \le T} (above_t + below_t) - (1 - b) \Bigr| \le \frac{2 H \, REACH}{rate \; T},
       \qquad \Bigl| \frac1T \sum_{t \le T} (above_t - below_t) \Bigr| \le \frac{2 H \, REACH}{rate \; tilt \; T}.

    It holds as long as no move is stopped at `REACH`. Where moves up are stopped, since errors lie beyond five times
    the Gaussian interval for long, the shares may be larger; where moves down are, smaller. A row without labels counts
    in neither sum, and a late one when it comes.

    A forecast's last lead is known H rows after it was issued. In that time ln c_b moves by ``rate`` or little more:
    hence a rate per horizon. A larger one would go on answering misses of widths that have long been left behind.

    The variance is a plain mean at first, in which the source counts as `SOURCE_ROWS` rows, or as `SOURCE_SHARE` of a
    long horizon: g = 1 / rows, until that has fallen to 1 - discount, or to the mean of `MEMORY_SHARE` of a long
    horizon.
    """

    def __init__(self, options: IntervalOptions, like: Array) -> None:
        super().__init__(options, like)
        rate = options.rate / max(int(like.shape[1]), SHORTEST)
        own, other = rate * (1 + TILT), rate * (1 - TILT)
        # what excess below and above moves ln c below and above: (2, 2)
        self._pull = namespace(like).asarray([[own, other], [other, own]], dtype=like.dtype, device=like.device)
        remembered = 1 / (1 - options.discount) if options.discount < 1 else math.inf
        self._most_rows = max(remembered, MEMORY_SHARE * int(like.shape[1]))

    def start(self, variance: Array, half_widths: Array) -> ConformalState:
        """Intervals with the tails that the source's errors have."""
        xp = namespace(variance)
        return ConformalState(
            variance=xp.asarray(variance, copy=True),
            rows=xp.full_like(variance, max(SOURCE_ROWS, SOURCE_SHARE * int(variance.shape[1]))),
            log_factor=at_most(xp.log(half_widths / self.gaussian), REACH),
        )

    def half_widths(self, state: IntervalState) -> Array:
        """The Gaussian half-width times the factor."""
        assert isinstance(state, ConformalState)
        return self.gaussian * namespace(state.log_factor).exp(state.log_factor)

    def form(self, state: IntervalState) -> Form:
        """All rows are alike."""
        del state
        return ()

    def learn(self, state: IntervalState, matured: Matured) -> ConformalState:
        """Move variance and factors."""
        assert isinstance(state, ConformalState)
        excess = shares_outside(matured, self.sides) - matured.heard.some[:, None, None] * self.tail
        moved = state.log_factor + small_product(self._pull, excess)
        rows = at_most(state.rows + matured.heard.observed, self._most_rows)
        return ConformalState(
            variance=self.next_variance(state, matured, 1.0 / rows),
            rows=rows,
            log_factor=at_least(at_most(moved, REACH), -REACH),
        )


def half_widths_of(errors: Array, windows: float) -> Array:
    r"""What errors (N, n, H), NaN where there is none, reach to at `LEVELS`, below and above: (N, 2, levels).

    .. math:: c_b^\pm = \max\Bigl( g_b,\; \frac{m \, (\pm z_{(1 \pm b) / 2}) + m_0 \, g_b}{m + m_0} \Bigr), \qquad
       z = \frac{e_h - \bar e_h}{s_h}

    in standard deviations, with the quantiles of z over all leads: their shape alone, since the head takes the mean
    away and the variance is learned apart. They count as the ``windows`` m that do not overlap, the Gaussian half-width
    g_b as `GAUSSIAN_WINDOWS` more. Tails that are heavier than the Gaussian are believed at once, since a stream tells
    of them late; a sharper peak is not, since the variance of a forecaster that has learned the source by heart is too
    small already.
    """
    xp = namespace(errors)
    known = xp.isfinite(errors).reshape((errors.shape[0], -1))
    is_told = xp.any(known, axis=-1, keepdims=True)  # whether a lane has any
    tails = [(1 - level) / 2 for level in LEVELS]
    in_sd = _in_own_sd(errors).reshape(known.shape)
    ends = quantiles(in_sd, [*tails, *(1 - tail for tail in tails)], known | ~is_told).reshape((-1, 2, len(LEVELS)))
    reached = xp.concat([-ends[:, :1], ends[:, 1:]], axis=1)
    gaussian = xp.asarray([gaussian_half_width(level) for level in LEVELS], dtype=errors.dtype, device=errors.device)
    share = windows / (windows + GAUSSIAN_WINDOWS) * ones_where(is_told, errors)[..., None]
    return xp.maximum(share * reached + (1 - share) * gaussian, gaussian)


def _in_own_sd(errors: Array) -> Array:
    """How far errors (N, n, H) lie off the mean of their lead, in its standard deviation; 0 where there is none."""
    xp = namespace(errors)
    known = xp.isfinite(errors)
    counts = at_least(xp.sum(ones_where(known, errors), axis=1, keepdims=True), 1.0)
    mean = xp.sum(xp.where(known, errors, 0.0), axis=1, keepdims=True) / counts
    off = xp.where(known, errors - mean, 0.0)
    return off / xp.sqrt(at_least(xp.sum(off * off, axis=1, keepdims=True) / counts, FLOOR))


def shares_outside(matured: Matured, sides: Array) -> Array:
    """Share of a row's leads outside their issued interval, below and above: (N, 2, levels)."""
    off = matured.in_sd  # 0, which is inside, where there is none
    half_widths = matured.half_widths.reshape((off.shape[0], 2, len(LEVELS), -1))
    outside = off[:, None, None] * sides > half_widths
    return small_product(ones_where(outside, off), matured.heard.share[:, None, :, None])[..., 0]
