r"""PB(t), assembled whole: a reading of the risk on the stream, before any of its outcomes is known.

.. math:: PB(t) = R_S(t) + \Gamma_m + \tfrac12 \, \big( D_T(t) - D_S(t) \big)_+

R_S is the proxy risk of what is issued on the certificate windows, D_S its disagreement there, D_T its disagreement
over the ring of the newest target windows (the present one included: it is an input). Both disagreements are read under
one set of weights, so that their difference is a difference of windows and not of weights. Voices that agree *more*
than on the source do not raise the risk.

The certificate windows took no part in any learning, so the present posterior is a legitimate *prior* for them
and the KL inside Gamma is zero. Every `reread` steps that many of them are read again, in time order and in turn, and
all terms of the source are taken under the weights issued at that moment; before the first `reread` steps are over also
at steps 1, 2, 4, ..., since gates open early. So each window's reading belongs to heads at most about m steps old, all
of them independent of the windows, and the bound holds for the average of their risks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, dot, namespace, put, zeros
from ompb.core.certificate.disagreement import DisagreementMode, bounded, differences, gaps, lane_statistics
from ompb.core.certificate.kinds import Kind
from ompb.core.certificate.scales import Scales, proxy
from ompb.core.certificate.windows import CertificateWindows, Reader
from ompb.core.counts import Form, along
from ompb.core.fusing import fused
from ompb.core.mixture import States
from ompb.floor.shapes import Shape


@dataclass(frozen=True)
class CertificateOptions:
    """Of the certificate."""

    kind: str = "betting"
    delta: float = 0.05
    uniform: bool = False  # True: all readings hold at once, and the later ones pay for it
    reread: int = 32  # every so many steps, so many certificate windows are read again
    ring: int = 8  # target windows the disagreement looks back on
    disagreement: DisagreementMode = "clipped"
    variance_factor: float = 1.0


class SourceTerms(NamedTuple):
    """All that is read off the certificate windows, each (S,) but the risks."""

    source_risk: Annotated[Array, Shape("S")]  # R_S
    source_disagreement: Annotated[Array, Shape("S")]  # D_S
    gamma: Annotated[Array, Shape("S")]
    kl: Annotated[Array, Shape("S")]  # KL(rho || pi) inside Gamma
    log_term: Annotated[Array, Shape("S")]  # what confidence costs beside it
    posterior_shift: Annotated[Array, Shape("S")]  # KL(rho_t || source posterior)
    delta: Annotated[Array, Shape("S")]  # confidence spent on this reading
    risks: Annotated[Array, Shape("S m")]  # mean squared error on each window


class Reading(NamedTuple):
    """A certificate for each of S series."""

    source: SourceTerms
    target_disagreement: Array  # D_T: (S,)


class CertificateState(NamedTuple):
    """What is known of the certificate windows and of the ring of target windows, for S series of N lanes in all."""

    squared: Annotated[Array, Shape("N m K", least=0)]  # expected squared error of each voice on each window
    statistics: Annotated[Array, Shape("S m C Q")]  # pair statistics of the certificate windows
    ring: Annotated[Array, Shape("S ring C Q")]  # ... and of the newest target windows; 0 before there are so many
    pairs: Annotated[Array, Shape("S CQ pairs")]  # coefficients of the weights issued at the last reading
    source: SourceTerms  # as last read
    readings: int  # of the source so far
    position: int  # the next certificate window to be read again
    steps: int  # forecasts certified so far


@dataclass(frozen=True)
class Certifier:
    """Certifies what the mixture issues, before any outcome is known."""

    reader: Reader
    windows: CertificateWindows
    scales: Scales
    options: CertificateOptions

    @cached_property
    def kind(self) -> Kind:
        """The kind of complexity."""
        kind: Kind = Kind.tags[self.options.kind]()
        return kind

    @cached_property
    def each(self) -> Array:
        """A one for each place of the ring: a sum is cheaper as a product with it."""
        noise = self.reader.mixture.noise
        return namespace(noise).ones((self.options.ring,), dtype=noise.dtype, device=noise.device)

    @cached_property
    def of_products(self) -> Array:
        """What makes pair statistics of the products of what the voices say: (K K, pairs)."""
        return differences(self.reader.mixture.noise)

    @cached_property
    def unit(self) -> Array:
        """The squared gap that counts as 1, tau_d^2: (S, 1, 1)."""
        return self.scales.tau_d[:, None, None] ** 2

    def start(self, states: States) -> CertificateState:
        """All windows read under the mixture a stream starts with; no target window yet."""
        squared, statistics = self.reader.look(self.windows, states)
        series, _, channels, size = statistics.shape
        weights = zeros(squared, squared.shape[0], squared.shape[2]) + self.reader.mixture.prior
        pairs = self.reader.pairs(weights)
        return CertificateState(
            squared=squared,
            statistics=statistics,
            ring=zeros(squared, series, self.options.ring, channels, size),
            pairs=pairs,
            source=self._source_terms(squared, statistics, pairs, states, weights, reading=1),
            readings=0,
            position=0,
            steps=0,
        )

    def statistics(self, corrections: Array, leverage: Array) -> Array:
        """The pair statistics (N, Q) of what voices say of one window, (N, K, H), with their leverage (N, K)."""
        return lane_statistics(corrections, leverage, self.of_products)

    def form(self, state: CertificateState, origin: int) -> Form | None:
        """Of an origin that is certified; None where the source is read again."""
        return None if self._rereads(state.steps) is not None else (origin - state.steps, self._filled(state))

    def step(
        self, state: CertificateState, origin: int, states: States, weights: Array, statistics: Array
    ) -> tuple[Reading, CertificateState]:
        """The certificate of what is issued with weights (N, K), and the state after.

        ``statistics`` (N, Q) are those of the present window.
        """
        renewed = self._rereads(state.steps)
        if renewed is not None:
            state = self._read(state, states, weights, renewed)
        # a dead place: it is read just below
        put(state.ring, along(state.steps, origin) % self.options.ring, statistics.reshape(state.ring[:, 0].shape))
        total = self._total(state.ring, state.pairs)
        reading = Reading(state.source, total / self._filled(state))
        return reading, CertificateState(*state[:-1], state.steps + 1)

    def _rereads(self, steps: int) -> int | None:
        """How many windows are to be read again after so many steps; None if the source is left as last read."""
        if steps % self.options.reread == 0:
            return self.options.reread
        return 0 if steps < self.options.reread and steps.bit_count() == 1 else None

    def _filled(self, state: CertificateState) -> int:
        """Places of the ring that have a target window, the present one included."""
        return min(state.steps + 1, self.options.ring)

    def _read(self, state: CertificateState, states: States, weights: Array, renewed: int) -> CertificateState:
        """Read the next so many windows again (all of them the first time), then every term under these weights."""
        xp = namespace(weights)
        squared, statistics, first = state.squared, state.statistics, state.position
        last = min(first + (renewed if state.steps else len(self.windows)), len(self.windows))
        if last > first:
            squared, statistics = (xp.asarray(x, copy=True) for x in (squared, statistics))
            squared[:, first:last], statistics[:, first:last] = self.reader.look(self.windows.part(first, last), states)
        pairs = self.reader.pairs(weights)
        readings = state.readings + 1
        return state._replace(
            squared=squared,
            statistics=statistics,
            pairs=pairs,
            source=self._source_terms(squared, statistics, pairs, states, weights, readings),
            readings=readings,
            position=last % len(self.windows),
        )

    def _source_terms(
        self, squared: Array, statistics: Array, pairs: Array, states: States, weights: Array, reading: int
    ) -> SourceTerms:
        """Every term of the j-th reading, which holds with probability 1 - delta.

        If all are to hold at once, its share of the confidence is delta / (j (j + 1)): together they stay within delta.
        """
        xp = namespace(weights)
        risks = self.reader.risk(squared, weights)
        losses = proxy(risks, self.scales.tau_y[:, None])
        risk, windows = xp.mean(losses, axis=-1), len(self.windows)
        delta = self.options.delta / (reading * (reading + 1) if self.options.uniform else 1)
        kl = xp.zeros_like(risk)  # the present posterior is its own prior: it never saw these windows
        log_term = xp.full_like(risk, self.kind.log_term(windows, delta))
        summary = self.kind.summary(losses, self.options.variance_factor)
        return SourceTerms(
            source_risk=risk,
            source_disagreement=xp.mean(self._disagreement(statistics, pairs), axis=-1),
            gamma=self.kind.gamma(kl + log_term, summary, windows),
            kl=kl,
            log_term=log_term,
            posterior_shift=self.reader.posterior_shift(states, weights),
            delta=xp.full_like(risk, delta),
            risks=risks,
        )

    @fused
    def _total(self, ring: Array, pairs: Array) -> Array:
        """The sum of D over the ring, (S,): all of it again is one product, and less to keep than what came of it."""
        return dot(self._disagreement(ring, pairs), self.each)

    def _disagreement(self, statistics: Array, pairs: Array) -> Array:
        """D of each window, (S, n): the mean over pairs of the bounded gap."""
        scaled = bounded(gaps(statistics, pairs), self.unit, self.options.disagreement)
        return scaled[..., 0] if scaled.shape[-1] == 1 else namespace(scaled).mean(scaled, axis=-1)
