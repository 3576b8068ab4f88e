r"""PB(t), assembled whole: a reading of the risk on the stream, before any of its outcomes is known.

.. math:: PB(t) = R_S(t) + \Gamma_m + \tfrac12 \, \big| D_S(t) - D_T(t) \big|

R_S is the proxy risk of the present posterior on the certificate windows, D_S its disagreement there, D_T its
disagreement over the ring of the newest target windows (the present one included: it is an input). Both disagreements
are read under one belief, so that their difference is a difference of windows and not of beliefs.

The certificate windows took no part in any learning, so the present posterior is a legitimate *prior* for them
and the KL inside Gamma is zero. Every `reread` steps that many of them are read again, in time order and in turn, and
all terms of the source are taken under the belief of that moment. So each window's reading belongs to heads at most
about m steps old; since all of those are independent of the windows, the bound holds for the average of their risks.
V is read once a sweep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, namespace, zeros
from ompb.core.certificate.disagreement import DisagreementMode, bounded, pair_statistics
from ompb.core.certificate.kinds import Kind, Spread
from ompb.core.certificate.scales import Scales
from ompb.core.certificate.windows import CertificateWindows, Reader
from ompb.core.mixture import Chorus, States
from ompb.shapes import Shape

# The constant in ln(C0 sqrt(m) / delta).
C0 = 2.0


@dataclass(frozen=True)
class CertificateOptions:
    """Of the certificate."""

    kind: str = "freedman"
    delta: float = 0.05
    reread: int = 32  # every so many steps, so many certificate windows are read again
    ring: int = 64  # target windows the disagreement looks back on
    disagreement: DisagreementMode = "clipped"
    variance_factor: float = 1.0


class SourceTerms(NamedTuple):
    """All that is read off the certificate windows, each (S,)."""

    source_risk: Annotated[Array, Shape("S")]  # R_S
    source_disagreement: Annotated[Array, Shape("S")]  # D_S
    gamma: Annotated[Array, Shape("S")]
    kl: Annotated[Array, Shape("S")]  # KL(rho || pi) inside Gamma
    log_term: Annotated[Array, Shape("S")]  # ln(C0 sqrt(m) / delta)
    spread: Spread
    posterior_shift: Annotated[Array, Shape("S")]  # KL(rho_t || source posterior)
    delta: Annotated[Array, Shape("S")]  # confidence spent on this reading


class Reading(NamedTuple):
    """A certificate for each of S series: every term that is a number of its own, each (S,)."""

    source: SourceTerms
    target_disagreement: Array  # D_T
    disagreement: Array  # |D_S - D_T|
    disagreement_null: Array  # what it rarely exceeds without shift


class CertificateState(NamedTuple):
    """What is known of the certificate windows and of the ring of target windows, for S series of N lanes in all."""

    squared: Annotated[Array, Shape("N m K", least=0)]  # expected squared error of each voice on each window
    statistics: Annotated[Array, Shape("N m KK+K")]  # pair statistics of the certificate windows
    ring_statistics: Annotated[Array, Shape("N ring KK+K")]  # ... and of the newest target windows
    pairs: Annotated[Array, Shape("N KK+K pairs")]  # coefficients of the belief at the last reading
    ring: Annotated[Array, Shape("S ring")]  # disagreement on the newest target windows under it
    source: SourceTerms  # as last read
    position: int  # the next certificate window to be read again
    steps: int  # forecasts certified so far


@dataclass(frozen=True)
class Certifier:
    """Certifies what the mixture says, before any outcome is known."""

    reader: Reader
    windows: CertificateWindows
    scales: Scales
    options: CertificateOptions

    @property
    def kind(self) -> Kind:
        """The kind of complexity."""
        kind: Kind = Kind.tags[self.options.kind]()
        return kind

    def start(self, states: States) -> CertificateState:
        """All windows read under the mixture a stream starts with; no target window yet."""
        xp = namespace(self.windows.residual)
        squared, statistics = self.reader.look(self.windows, states)
        lanes, _, size = statistics.shape
        series = lanes // self.reader.channels
        belief = zeros(squared, lanes, squared.shape[2]) + self.reader.mixture.prior
        pairs = self.reader.pairs(belief)
        spread = self.kind.spread(self._losses(squared, belief), self.options.variance_factor)
        source = self._source_terms(squared, statistics, pairs, spread, states, belief, reading=1)
        return CertificateState(
            squared=squared,
            statistics=statistics,
            ring_statistics=zeros(squared, lanes, self.options.ring, size),
            pairs=xp.asarray(pairs, copy=True),
            ring=zeros(squared, series, self.options.ring),
            source=source,
            position=0,
            steps=0,
        )

    def step(
        self, state: CertificateState, states: States, belief: Array, chorus: Chorus
    ) -> tuple[Reading, CertificateState]:
        """The certificate of what is said of the present window (n = 1) under a belief (N, K), and the state after."""
        xp = namespace(belief)
        if state.steps % self.options.reread == 0:
            state = self._reread(state, states, belief)
        place, steps = state.steps % self.options.ring, state.steps + 1
        statistics = pair_statistics(chorus.corrections, chorus.leverage)  # (N, 1, K * K + K)
        # a dead place: what it held is only read for the entry of the ring that is replaced here
        state.ring_statistics[:, place] = statistics[:, 0]
        ring = xp.asarray(state.ring, copy=True)
        ring[:, place] = self._disagreement(statistics, state.pairs)[:, 0]
        target = xp.matmul(ring, xp.ones_like(ring[0])) / min(steps, self.options.ring)
        source = state.source
        reading = Reading(
            source=source,
            target_disagreement=target,
            disagreement=xp.abs(source.source_disagreement - target),
            disagreement_null=self.scales.null_ratio * source.source_disagreement,
        )
        return reading, CertificateState(
            state.squared, state.statistics, state.ring_statistics, state.pairs, ring, source, state.position, steps
        )

    def _reread(self, state: CertificateState, states: States, belief: Array) -> CertificateState:
        """Read the next certificate windows (all of them the first time), then every term under the present belief."""
        xp = namespace(belief)
        first = state.position
        last = min(first + (self.options.reread if state.steps else len(self.windows)), len(self.windows))
        squared, statistics = (xp.asarray(x, copy=True) for x in (state.squared, state.statistics))
        squared[:, first:last], statistics[:, first:last] = self.reader.look(self.windows.part(first, last), states)
        pairs = self.reader.pairs(belief)
        seen = min(state.steps, self.options.ring)
        ring = xp.asarray(state.ring, copy=True)
        ring[:, :seen] = self._disagreement(state.ring_statistics[:, :seen], pairs)
        spread, position = state.source.spread, last % len(self.windows)
        if position == 0:  # V walks through all windows in time order: once a sweep is often enough
            spread = self.kind.spread(self._losses(squared, belief), self.options.variance_factor)
        reading = 1 + state.steps // self.options.reread
        source = self._source_terms(squared, statistics, pairs, spread, states, belief, reading)
        return CertificateState(squared, statistics, state.ring_statistics, pairs, ring, source, position, state.steps)

    def _source_terms(
        self,
        squared: Array,
        statistics: Array,
        pairs: Array,
        spread: Spread,
        states: States,
        belief: Array,
        reading: int,
    ) -> SourceTerms:
        """Every term of the j-th reading. Its share of the confidence is delta / (j (j + 1)).

        The shares of all readings together stay within delta: the certificate holds at all times at once.
        """
        xp = namespace(belief)
        risk = xp.mean(self._losses(squared, belief), axis=-1)
        windows = len(self.windows)
        delta = self.options.delta / (reading * (reading + 1))
        kl = xp.zeros_like(risk)  # the present posterior is its own prior: it never saw these windows
        log_term = xp.full_like(risk, math.log(C0 * windows**0.5 / delta))
        return SourceTerms(
            source_risk=risk,
            source_disagreement=xp.mean(self._disagreement(statistics, pairs), axis=-1),
            gamma=self.kind.gamma(kl + log_term, spread, windows),
            kl=kl,
            log_term=log_term,
            spread=spread,
            posterior_shift=self.reader.posterior_shift(states, belief),
            delta=xp.full_like(risk, delta),
        )

    def _losses(self, squared: Array, belief: Array) -> Array:
        """Proxy losses min(1, MSE / tau_y^2), (S, m)."""
        return namespace(squared).minimum(self.reader.risk(squared, belief) / self.scales.tau_y**2, 1.0)

    def _disagreement(self, statistics: Array, pairs: Array) -> Array:
        """D of each window, (S, n): the mean over pairs of the bounded gap."""
        scaled = bounded(self.reader.gaps(statistics, pairs), self.scales.tau_d, self.options.disagreement)
        return scaled[..., 0] if scaled.shape[-1] == 1 else namespace(scaled).mean(scaled, axis=-1)
