"""Scores of a method, window by window: no forecast is kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ompb.bench.contract import SCORED_LEVELS, Prediction
from ompb.errors import NotFiniteError
from ompb.floor.normal import gaussian_half_width
from ompb.metrics.point import mae, mse
from ompb.metrics.probabilistic import coverage, crps, ece, nll, width, winkler
from ompb.types import Floats

SHOWN = {0.8: "80", 0.95: "95"}  # levels whose coverage, width and Winkler score are reported


@dataclass
class RunningScores:
    """Sums over windows of their scores, on standardised data."""

    windows: int = 0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    inside: dict[float, float] = field(default_factory=lambda: defaultdict(float))  # coverage by level

    def add(self, prediction: Prediction, outcome: Floats) -> tuple[float, float]:
        """Score one forecast against its outcome (H, C); returns its MAE and MSE."""
        if not np.isfinite(prediction.mean).all():
            raise NotFiniteError(f"forecast {self.windows + 1} of the stream is not finite; return numbers only.")
        self.windows += 1
        errors = mae(prediction.mean, outcome), mse(prediction.mean, outcome)
        self.sums["mae"] += errors[0]
        self.sums["mse"] += errors[1]
        if prediction.sd is not None:
            self.sums["nll"] += nll(prediction.mean, prediction.sd, outcome)
            self.sums["crps"] += crps(prediction.mean, prediction.sd, outcome)
        for level, (lower, upper) in intervals(prediction).items():
            self.inside[level] += coverage(lower, upper, outcome)
            if level in SHOWN:
                self.sums[f"width{SHOWN[level]}"] += width(lower, upper)
                self.sums[f"winkler{SHOWN[level]}"] += winkler(lower, upper, outcome, level)
        return errors

    def metrics(self) -> dict[str, float]:
        """The mean over windows of every score there is."""
        means = {name: total / self.windows for name, total in self.sums.items()}
        covered = {level: total / self.windows for level, total in self.inside.items()}
        means |= {f"coverage{shown}": covered[level] for level, shown in SHOWN.items() if level in covered}
        return means | ({"ece": ece(list(covered), list(covered.values()))} if covered else {})


def intervals(prediction: Prediction) -> Mapping[float, tuple[Floats, Floats]]:
    """The method's own intervals (H, C) by level, else those of a Gaussian, else none."""
    if prediction.intervals is not None:
        return prediction.intervals
    if prediction.sd is None:
        return {}
    half_widths = {level: gaussian_half_width(level) * prediction.sd for level in SCORED_LEVELS}
    return {level: (prediction.mean - half, prediction.mean + half) for level, half in half_widths.items()}
