"""The online stage on lanes: what one row does to any number of them at once.

reveal   a row arrived: its labels go from the ledger to the posterior, the gate and the intervals
issue    a window and a base forecast give a correction, an interval and a certificate, and enter the ledger
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace
from ompb.core.certificate import Certifier, Probe, Reader
from ompb.core.features import FeatureMap
from ompb.core.gate import Gate
from ompb.core.intervals import Intervals
from ompb.core.ledger import Ledger
from ompb.core.posterior import Posterior
from ompb.core.realised import RealisedLoss
from ompb.core.source import SourceHead, view
from ompb.settings import Settings


@dataclass(frozen=True)
class SourceLaw:
    """All the online stage needs from the offline one; never changes."""

    channels: int
    settings: Settings
    features: FeatureMap
    head: SourceHead
    probe: Probe  # the certificate windows
    reader: Reader

    @property
    def members(self) -> int:
        """K: backbone, profile where there is one, window regression, heads."""
        return int(self.reader.prior.shape[0])


@dataclass(frozen=True)
class Issued:
    """A forecast of N lanes, standardised, as a correction to the base forecast."""

    correction: Array  # (N, H); exactly 0 where the gate is closed
    gate: Array  # (N,)
    sd: Array  # (N, H)
    half_widths: Array  # (N, levels)
    terms: dict[str, Array] | None  # of the certificate, each (S,)


# Places of the quantities in the ledger behind those of the K members; the issued mean comes first.
PRECISION, SHRINK, EXTRA = 1, 2, 3


@dataclass
class Lanes:
    """Online state of N lanes."""

    posterior: Posterior
    gate: Gate
    intervals: Intervals
    ledger: Ledger
    certifier: Certifier | None
    realised: RealisedLoss

    @classmethod
    def start(cls, law: SourceLaw) -> Lanes:
        """The state in which a stream starts: the source's word, a closed gate."""
        settings, head = law.settings, law.head
        like = head.noise
        xp = namespace(like)
        lanes, horizon = like.shape
        discounts = xp.asarray(settings.discounts, dtype=like.dtype)
        posterior = Posterior.start(head.weights, discounts, settings.patience)
        return cls(
            posterior,
            Gate.start(lanes, horizon, law.reader.prior, law.channels, settings),
            Intervals.start(head.base_variance, settings.interval_discount, settings.conformal_rate),
            Ledger.empty(like, lanes, law.members + EXTRA, horizon, settings.patience),
            Certifier.start(law.probe.phi.shape[1], law.reader) if settings.certificate else None,
            RealisedLoss.start(head.noise, law.channels, law.reader.scales.tau_y),
        )

    def reveal(self, law: SourceLaw, row: int, values: Array) -> None:
        """The newest row has arrived: cells (N,), NaN where missing."""
        errors, heard = self._mature(law, row, values)
        if law.settings.online:
            self.posterior.absorb(row, errors[:, 0], heard)
            self.gate.fade()
            self.gate.learn(errors[:, : law.members], heard, age=0)
        self.realised.learn(row, errors[:, law.members], heard)

    def reveal_late(self, law: SourceLaw, row: int, newest: int, values: Array) -> None:
        """Cells (N,) of a row that is ``newest - row`` rows old have arrived; those learned before change nothing."""
        errors, heard = self._mature(law, row, values)
        if law.settings.online:
            self.posterior.absorb_late(row, newest, errors[:, 0], heard)
            self.gate.learn(errors[:, : law.members], heard, age=newest - row)

    def _mature(self, law: SourceLaw, row: int, values: Array) -> tuple[Array, Array]:
        """Take a row's cells out of the ledger.

        Returns errors (N, quantities, H) of what was said of them, and 1 or 0 where there are any (N, H).
        """
        xp = namespace(values)
        known = xp.isfinite(values)
        said, is_heard = self.ledger.tear_out(row, known)
        heard = xp.astype(is_heard, values.dtype)
        errors = (xp.where(known, values, 0.0)[:, None] * heard)[:, None] - said
        leads = xp.vecdot(heard, heard)  # heard is 0 or 1
        extra = said[:, law.members :]
        self.intervals.learn(errors[:, law.members], extra[:, PRECISION], extra[:, SHRINK], heard, leads)
        return errors, heard

    def issue(self, law: SourceLaw, origin: int, windows: Array, base: Array) -> Issued:
        """Forecast from windows (N, L) and base forecasts (N, H), both standardised."""
        xp = namespace(windows)
        seen = view(law.head, law.features, windows[:, None], base[:, None])
        heads = seen.still[0] + self.posterior.correction(seen.phi)
        forecasts = xp.concat([*seen.still, heads], axis=1)[:, :, 0]  # (N, K, H)
        moves = forecasts - base[:, None]
        belief = self.gate.belief()
        weights = self.gate.weights(belief) if law.settings.online else belief
        correction = xp.matmul(weights[:, None], moves)[:, 0]
        leverage = self.posterior.take_in(origin, seen.phi[:, 0])
        of_heads = weights[:, law.members - leverage.shape[1] :]
        mixed_leverage = law.settings.posterior_scale * xp.vecdot(of_heads, leverage)
        sd = self.intervals.sd(mixed_leverage)
        shrink = self.intervals.variance / sd**2
        extra = xp.stack([base + correction, 1 / sd, shrink], axis=1)
        self.ledger.issue(origin, xp.concat([forecasts, extra], axis=1))
        self.realised.issued(origin)
        terms = None
        if self.certifier is not None:
            terms = self.certifier.step(law.reader, law.probe, self.posterior, belief, moves, leverage)
        return Issued(correction, 1 - weights[:, 0], sd, self.intervals.half_widths, terms)
