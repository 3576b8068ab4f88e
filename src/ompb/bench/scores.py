"""Scores of a method, window by window: no forecast is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from ompb.bench.contract import LEVELS, Prediction
from ompb.errors import NotFiniteError
from ompb.metrics.point import mae, mse
from ompb.metrics.probabilistic import coverage, crps, ece, nll, width
from ompb.types import Floats

SHOWN = {0.8: "80", 0.95: "95"}  # levels whose coverage and width are reported
HALF_WIDTHS = {level: NormalDist().inv_cdf(0.5 + level / 2) for level in LEVELS}  # of a Gaussian, in sd


@dataclass
class Scores:
    """Sums over windows of their scores, on standardised data."""

    windows: int = 0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    inside: dict[float, float] = field(default_factory=lambda: defaultdict(float))  # coverage by level

    def add(self, said: Prediction, outcome: Floats) -> tuple[float, float]:
        """Score one forecast against its outcome (H, C); returns its MAE and MSE."""
        if not np.isfinite(said.mean).all():
            raise NotFiniteError(f"forecast {self.windows + 1} of the stream is not finite; return numbers only.")
        self.windows += 1
        errors = mae(said.mean, outcome), mse(said.mean, outcome)
        self.sums["mae"] += errors[0]
        self.sums["mse"] += errors[1]
        if said.sd is not None:
            self.sums["nll"] += nll(said.mean, said.sd, outcome)
            self.sums["crps"] += crps(said.mean, said.sd, outcome)
        for level, (lower, upper) in _intervals(said).items():
            self.inside[level] += coverage(lower, upper, outcome)
            if level in SHOWN:
                self.sums[f"width{SHOWN[level]}"] += width(lower, upper)
        return errors

    def metrics(self) -> dict[str, float]:
        """The mean over windows of every score there is."""
        means = {name: total / self.windows for name, total in self.sums.items()}
        covered = {level: total / self.windows for level, total in self.inside.items()}
        means |= {f"coverage{shown}": covered[level] for level, shown in SHOWN.items() if level in covered}
        return means | ({"ece": ece(list(covered), list(covered.values()))} if covered else {})


def _intervals(said: Prediction) -> Mapping[float, tuple[Floats, Floats]]:
    """The method's own intervals, else those of a Gaussian, else none."""
    if said.intervals is not None:
        return said.intervals
    if said.sd is None:
        return {}
    return {level: (said.mean - half * said.sd, said.mean + half * said.sd) for level, half in HALF_WIDTHS.items()}
