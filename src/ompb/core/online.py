"""The online stage on lanes: what one row does to any number of them at once.

reveal   a row arrived: its labels go from the ledger to the members, the gate, the intervals and the realised risk
issue    a window and a base forecast give a correction, an interval and a certificate, and enter the ledger

Each of them takes a state and returns the next; an earlier state stays good until the next one takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ompb.core import tally
from ompb.core.arrays import Array, at_least, dot, has_all, namespace, ones_where, small_product, tiny
from ompb.core.certificate.certifier import CertificateState, Certifier, Reading
from ompb.core.certificate.realised import RealisedRisks, RealisedState
from ompb.core.counts import Form
from ompb.core.evidence import Evidence, EvidenceState, Novelty
from ompb.core.expected import ExpectedErrors, ExpectedState
from ompb.core.features import FeatureMap
from ompb.core.fusing import fused
from ompb.core.gate import Gate, GateState
from ompb.core.guard import Guard, GuardState
from ompb.core.intervals import Heard, IntervalRule, IntervalState, Matured
from ompb.core.ledger import Ledger, Page, Width
from ompb.core.members.contract import Speech
from ompb.core.mixture import Mixture, States, joined
from ompb.core.quantiles import OwnShape
from ompb.core.rings import SLACK
from ompb.core.warnings import Warnings, WarningState


class Issued(NamedTuple):
    """A forecast of N lanes, standardised, as a correction to the base forecast."""

    correction: Array  # (N, H); exactly 0 where the gate is closed
    gate: Array  # (N,)
    novelty: Array | None  # (N,); None without memory
    sd: Array  # (N, H)
    half_widths: Array  # in sd, at each level below and then above: (N, 2 levels, H), or H = 1 for all leads
    expected_error: Array  # mean absolute error over the leads: (N,)
    certificate: Reading | None


class Labels(NamedTuple):
    """What a row reveals, by lead; 0 where nothing is observed."""

    residual: Array  # outcome less base forecast: (N, H)
    error: Array  # outcome less issued mean: (N, H)
    in_sd: Array  # the same in issued standard deviations: (N, H)
    heard: Heard
    counted: Array  # what the leads count at which there is a label: (N,)
    losses: Array  # of each voice and each speed: (N, K + Z)


class Taught(NamedTuple):
    """What a row teaches to all but the members and the realised risk, and what it has for these."""

    parts: Array  # of the row's page
    known: Array  # which cells are: (N,)
    residual: Array  # as in `Labels`: (N, H)
    error: Array  # (N, H)
    observed: Array  # 1 at leads with a label, else 0: (N, H)
    gate: GateState
    evidence: EvidenceState
    intervals: IntervalState
    expected: ExpectedState
    erring: Array  # see `WarningState`


class Mixed(NamedTuple):
    """What is made of all that the voices say of a window."""

    correction: Array  # (N, H)
    gate: Array  # (N,)
    novelty: Array | None  # (N,)
    evidence: EvidenceState
    weights: Array  # of the voices: (N, K)
    mean: Array  # (N, H)
    sd: Array  # (N, H)
    parts: Array  # what enters the ledger, see `Ledger.entry`
    terms: Array
    width: Width
    expected_error: Array  # (N,)
    tallied: Array  # see `ompb.core.tally`
    statistics: Array | None  # of pairs: (N, Q); None without a certificate


class OnlineState(NamedTuple):
    """All that rows have taught about N lanes."""

    members: States
    gate: GateState
    evidence: EvidenceState
    intervals: IntervalState
    guard: GuardState
    ledger: Ledger
    certificate: CertificateState | None
    realised: RealisedState
    expected: ExpectedState
    warnings: WarningState


# What late labels neither read nor change.
UNTOLD = (GuardState, CertificateState, ExpectedState, WarningState)


@dataclass(frozen=True)
class Online:
    """The rules of the online stage for N lanes; nothing here changes as rows arrive."""

    features: FeatureMap
    mixture: Mixture
    gate: Gate
    novelty: Novelty | None  # None without memory
    evidence: Evidence
    intervals: IntervalRule
    shape: OwnShape | None  # of a forecaster that gives quantiles
    guard: Guard
    certifier: Certifier | None
    realised: RealisedRisks
    expected: ExpectedErrors
    warnings: Warnings
    base_variance: Array  # mean squared error of the bare forecaster on the source: (N, H)
    half_widths: Array  # what its errors reached to there, in their standard deviation: (N, 2, levels)
    patience: int  # rows that a label may be late
    learns: bool  # False: members and gate stay as the source left them

    def start(self) -> OnlineState:
        """The state in which a stream starts: the source's word, a closed gate."""
        members = self.mixture.start()
        like = self.base_variance
        return OnlineState(
            members=members,
            gate=self.gate.start(like.shape[0]),
            evidence=self.evidence.start(like),
            intervals=self._start_intervals(),
            guard=self.guard.start(like),
            ledger=Ledger.empty(like, self.mixture.size + self.gate.speeds, self.patience, self.shape is not None),
            certificate=None if self.certifier is None else self.certifier.start(members),
            realised=self.realised.start(like),
            expected=self.expected.start(like),
            warnings=self.warnings.start(),
        )

    def _start_intervals(self) -> IntervalState:
        """As wide and of such a shape as the source's errors; all is relative to a forecaster's own quantiles."""
        if self.shape is None:
            return self.intervals.start(self.base_variance, self.half_widths)
        gaussian = namespace(self.half_widths).broadcast_to(self.intervals.gaussian, self.half_widths.shape)
        return self.intervals.start(namespace(gaussian).ones_like(self.base_variance), gaussian)

    def reveal(self, state: OnlineState, row: int, values: Array, guard: GuardState) -> OnlineState:
        """The newest row has arrived: cells (N,), NaN where missing or not believed by the guard."""
        ledger, members = state.ledger, state.members
        taught = self._taught(state, *ledger.page_places(row), values)
        ledger = ledger.keep(row, self.patience, taught.parts, taught.known)
        if self.learns:
            members = self.mixture.learn(members, row, taught.residual, taught.observed)
        return OnlineState(
            members=members,
            gate=taught.gate,
            evidence=taught.evidence,
            intervals=taught.intervals,
            guard=guard,
            ledger=ledger,
            certificate=state.certificate,
            realised=self.realised.learn(state.realised, row, taught.error, taught.observed),
            expected=taught.expected,
            warnings=state.warnings.with_erring(taught.erring),
        )

    @fused
    def _taught(self, state: OnlineState, places: Array, place: int, values: Array) -> Taught:
        """What the cells (N,) of a row teach, NaN where there is none; its page has those places in the ledger."""
        page, known = state.ledger.page(places, place), namespace(values).isfinite(values)
        labels = self._labels(page, values, known)
        observed, gate, evidence = labels.heard.observed, state.gate, state.evidence
        if self.learns:
            gate = self.gate.learn(gate, labels.heard.some, labels.losses)
            evidence = self.evidence.learn(evidence, labels.heard.some)
        return Taught(
            parts=page.parts,
            known=known,
            residual=labels.residual,
            error=labels.error,
            observed=observed,
            gate=gate,
            evidence=evidence,
            intervals=self._learn_intervals(state.intervals, page, labels),
            expected=self.expected.learn(state.expected, labels.in_sd, labels.counted),
            erring=self.warnings.risen(state.warnings.erring, labels.in_sd[:, 0], observed[:, 0]),
        )

    def reveal_late(
        self, state: OnlineState, row: int, newest: int, stood: Array, values: Array
    ) -> tuple[Array, OnlineState]:
        """Cells (N,) of a row that is ``newest - row`` rows old have arrived; those learned before change nothing.

        ``stood`` (N,) is what the window has in their place. Returns which of them are not believed, too.
        """
        xp = namespace(values)
        if newest - row > self.patience:
            return self.guard.judge_late(None, stood, values), state
        missing, page = state.ledger.late_page(row, newest)
        hidden = self.guard.judge_late(page, stood, values)
        news = xp.isfinite(values) & ~hidden & missing
        labels = self._labels(page, values, news)
        members, gate, evidence = state.members, state.gate, state.evidence
        if self.learns:
            members = self.mixture.learn_late(members, row, newest, labels.residual, labels.heard.observed)
            gate = self.gate.learn_late(gate, labels.heard.some, labels.losses, age=newest - row)
            evidence = self.evidence.learn_late(evidence, row, labels.heard.some)
        return hidden, state._replace(
            members=members,
            gate=gate,
            evidence=evidence,
            intervals=self._learn_intervals(state.intervals, page, labels),
            ledger=state.ledger.with_learned(row, news),
            realised=self.realised.learn_late(state.realised, row, labels.error, labels.heard.observed),
        )

    def issue(
        self,
        state: OnlineState,
        origin: int,
        rows: Array,
        base: Array,
        known: int | None = None,
        spreads: Array | None = None,
        seen: tuple[Array, ...] | None = None,
    ) -> tuple[Issued, OnlineState]:
        """Forecast from the newest rows (N, L or more) and base forecasts (N, H), both standardised.

        ``known`` says how many rows are known, if not just those that are given; ``spreads`` (N, Q, H) how far the
        forecaster's quantiles lie off the base forecast, if it gives any; ``seen`` what the members `see` of this
        window, where they were shown it before.
        """
        # rows beyond those given tell nobody anything, and a number that no longer grows makes no new program
        known = int(rows.shape[1]) if known is None else min(known, int(rows.shape[1]))
        seen = self.see(rows[:, None], base[:, None], (known,)) if seen is None else seen
        speeches, members = self.mixture.issue(state.members, origin, seen)
        usual = None if self.novelty is None else self.novelty.usual_with(known)
        mixed = self._mixed(state, origin, base, speeches, usual, spreads)
        ledger = state.ledger.issue(origin, mixed.parts, mixed.terms, mixed.tallied)
        reading, certificate = None, state.certificate
        if self.certifier is not None and certificate is not None:
            reading, certificate = self.certifier.step(certificate, origin, members, mixed.weights, mixed.statistics)
        issued = Issued(
            correction=mixed.correction,
            gate=mixed.gate,
            novelty=mixed.novelty,
            sd=mixed.sd,
            half_widths=mixed.width.half_widths,
            expected_error=mixed.expected_error,
            certificate=reading,
        )
        return issued, OnlineState(
            members=members,
            gate=state.gate,
            evidence=mixed.evidence,
            intervals=state.intervals,
            guard=self.guard.issue(state.guard, origin, mixed.mean, mixed.sd),
            ledger=ledger,
            certificate=certificate,
            realised=state.realised,
            expected=state.expected,
            warnings=self.warnings.issue(
                state.warnings, origin, rows, self.mixture.whitened(seen), mixed.novelty, state.expected.ratio
            ),
        )

    def form(self, state: OnlineState, row: int) -> Form | None:
        """What, beside arrays, decides how a row is revealed and then issued from; None where something rare is due."""
        parts = [
            row % SLACK,
            self.guard.form(state.guard, row),
            self.mixture.form(state.members, row),
            self.intervals.form(state.intervals),
            self.realised.form(state.realised, row),
            self.warnings.form(state.warnings, row),
        ]
        if self.certifier is not None and state.certificate is not None:
            parts.append(self.certifier.form(state.certificate, row))
        return None if None in parts else tuple(parts)

    def pass_over(self, state: OnlineState, origin: int) -> OnlineState:
        """No forecast was issued at this origin."""
        ledger = state.ledger.pass_over(origin)
        return state._replace(members=self.mixture.pass_over(state.members, origin), ledger=ledger)

    @fused
    def see(self, rows: Array, base: Array, known: tuple[int, ...]) -> tuple[Array, ...]:
        """What each member needs of the newest rows (N, n, L or more) and base forecasts (N, n, H) of n windows."""
        return self.mixture.see(self.features.view(rows, base, known))

    @fused
    def _mixed(
        self,
        state: OnlineState,
        origin: int,
        base: Array,
        speeches: tuple[Speech, ...],
        usual: Array | None,
        spreads: Array | None,
    ) -> Mixed:
        """The forecast of one window, from base forecasts (N, H) and what the members say; ``usual`` is s (N,)."""
        chorus = joined(speeches)
        corrections, leverages = chorus.corrections[:, :, 0], chorus.leverage[..., 0]  # (N, K, H) and (N, K)
        novelty, against, evidence = self._evidence(state.evidence, origin, corrections, usual)
        by_speed, weights = self.gate.opinion(state.gate, against)
        mixing = namespace(base).concat([by_speed, weights[:, None]], axis=1)
        mixes = small_product(mixing, corrections)  # (N, Z + 1, H)
        correction = mixes[:, -1]
        sd, width = self._spread(state.intervals, dot(weights, leverages), spreads)
        mean = base + correction
        compared = corrections, mixes[:, :-1]  # of the voices, and of the speeds
        parts, terms = state.ledger.entry(base, mean, 1.0 / sd, width)
        return Mixed(
            correction=correction,
            gate=1.0 - weights[:, self.mixture.backbone_place],
            novelty=novelty,
            evidence=evidence,
            weights=weights,
            mean=mean,
            sd=sd,
            parts=parts,
            terms=terms,
            width=width,
            expected_error=self.expected.of(state.expected, sd),
            tallied=tally.issued(state.ledger.tally, base, compared, mean, self.gate.leads),
            statistics=None if self.certifier is None else self.certifier.statistics(corrections, leverages),
        )

    def _evidence(
        self, state: EvidenceState, origin: int, corrections: Array, usual: Array | None
    ) -> tuple[Array | None, Array | None, EvidenceState]:
        """Novelty (N,), what it says against the backbone (N,), None for nothing, and the episode."""
        if self.novelty is None:
            return None, None, state
        novelty = self.novelty.of(corrections, usual)
        return novelty, *self.evidence.issue(state, origin, novelty)

    def _learn_intervals(self, state: IntervalState, page: Page, labels: Labels) -> IntervalState:
        half_widths, shrink = page.width.half_widths, page.width.shrink
        return self.intervals.learn(state, Matured(labels.error, labels.in_sd, labels.heard, half_widths, shrink))

    def _spread(self, state: IntervalState, leverage: Array, spreads: Array | None) -> tuple[Array, Width]:
        """Predictive standard deviation (N, H), and what else intervals are issued with."""
        sd, shrink = self.intervals.sd(state, leverage), (1.0 / (1.0 + leverage))[:, None]
        if self.shape is None or spreads is None:
            return sd, Width(shrink, self.intervals.issued(state))
        scale, shape = self.shape.read(spreads, self.base_variance)
        return sd * scale, Width(shrink / (scale * scale), self.intervals.issued(state, shape))

    def _labels(self, page: Page, values: Array, known: Array) -> Labels:
        """The labels that the known cells (N,) of a row give to what was said of it."""
        xp = namespace(values)
        if has_all(known) and has_all(page.precision):  # which is 0 where nothing was issued
            heard, counted, share = self._whole
            off = values[:, None, None] - page.said
        else:
            heard, counted, share = self._heard(known[:, None] & (page.precision > 0))
            values = xp.where(known, values, 0.0)
            off = (values[:, None, None] - page.said) * heard.observed[:, None]
        error = off[:, 1]
        losses = tally.losses(page.sums, values, counted, share)
        return Labels(off[:, 0], error, error * page.precision, heard, counted, losses)

    @cached_property
    def _whole(self) -> tuple[Heard, Array, Array]:
        """What is heard of a row of which every lead has its label, as most have."""
        return self._heard(self.base_variance > 0)

    def _heard(self, is_observed: Array) -> tuple[Heard, Array, Array]:
        """At which leads (N, H) there are labels, what these count (N,), and 1 over it, 0 where there is none: (N,)."""
        observed = ones_where(is_observed, self.base_variance)
        heard, counted = Heard.of(observed), dot(observed, self.gate.leads)
        return heard, counted, heard.some / at_least(counted, tiny(counted))
