"""What the offline stage learns from the source: one pass over the learning windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ompb.core.arrays import Array, at_least, namespace
from ompb.core.certificate.scales import Scales
from ompb.core.certificate.windows import CertificateWindows
from ompb.core.evidence import Usual
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Member, MemberOptions
from ompb.core.mixture import learners
from ompb.core.warnings import SourceSignals
from ompb.floor.shapes import Dim, Shape

# Least mean squared error of the bare forecaster, in squared source standard deviations: a perfect one stays finite.
LEAST_VARIANCE = 1e-6


@dataclass(frozen=True)
class SourceFit:
    """All the online stage needs from the offline one; never changes."""

    features: FeatureMap
    members: Annotated[tuple[Member, ...], Dim("members")]
    base_variance: Annotated[Array, Shape("N H", positive=True)]  # mean squared error of the bare forecaster
    # What its errors reach to in their own standard deviation, below and above: see `ompb.core.intervals`
    half_widths: Annotated[Array, Shape("N 2 levels", positive=True)]
    usual: Usual | None  # None without memory
    windows: CertificateWindows
    scales: Scales
    signals: SourceSignals


class SourceLearner:
    """Shows every member's learner the learning windows, block by block."""

    def __init__(self, features: FeatureMap, names: tuple[str, ...], options: MemberOptions) -> None:
        self.features = features
        self._learners = learners(names, features, options)
        self._squared: Array = 0.0
        self._known: Array = 0.0

    def add(self, view: View, outcomes: Array) -> None:
        """Take in windows with their outcomes (N, n, H), NaN where missing."""
        xp = namespace(outcomes)
        known = xp.isfinite(outcomes)
        self._squared = self._squared + xp.sum(xp.where(known, outcomes - view.base, 0.0) ** 2, axis=1)
        self._known = self._known + xp.sum(xp.astype(known, outcomes.dtype), axis=1)
        for learner in self._learners:
            learner.add(view, outcomes)

    def read(self, rows: Array, outcomes: Array) -> None:
        """Take in the learning rows (S, C, T) with missing cells filled, and as they are."""
        for learner in self._learners:
            learner.read(rows, outcomes)

    def members(self) -> tuple[Member, ...]:
        """What they learned."""
        return tuple(learner.finish() for learner in self._learners)

    def base_variance(self) -> Array:
        """Mean squared error of the bare forecaster, (N, H)."""
        xp = namespace(self._squared)
        return at_least(self._squared / xp.where(self._known > 0, self._known, 1.0), LEAST_VARIANCE)
