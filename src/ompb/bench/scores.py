"""Scores of a method, some windows at a time: no forecast is kept for long."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ompb.bench.contract import SCORED_LEVELS, Prediction
from ompb.errors import NotFiniteError, ShapeError
from ompb.floor.normal import gaussian_half_width
from ompb.metrics.point import mae, mse
from ompb.metrics.probabilistic import coverage, crps, ece, nll, width, winkler
from ompb.types import Floats

SHOWN = {0.8: "80", 0.95: "95"}  # levels whose coverage, width and Winkler score are reported
TOGETHER = 32  # windows whose laws are scored at once: a score's call costs more than its work


class Form(NamedTuple):
    """What a prediction brings beside its mean."""

    has_sd: bool
    levels: tuple[float, ...] | None  # of its own intervals

    @classmethod
    def of(cls, prediction: Prediction) -> Form:
        """That of a prediction."""
        return cls(prediction.sd is not None, None if prediction.intervals is None else tuple(prediction.intervals))

    def packed(self, prediction: Prediction, outcome: Floats) -> Floats:
        """All its arrays, and then the outcome, as one: (k, H, C)."""
        ends = [end for pair in (prediction.intervals or {}).values() for end in pair]
        sd = [] if prediction.sd is None else [prediction.sd]
        return np.stack([prediction.mean, *sd, *ends, outcome])

    def unpacked(self, arrays: Floats) -> tuple[Prediction, Floats]:
        """Of arrays (k, ...) the prediction and the outcome."""
        mean, *others, outcome = arrays
        sd, ends = (others[0], others[1:]) if self.has_sd else (None, others)
        own = {level: (ends[2 * place], ends[2 * place + 1]) for place, level in enumerate(self.levels or ())}
        return Prediction(mean, sd, None if self.levels is None else own), outcome


@dataclass
class RunningScores:
    """Sums over windows of their scores, on standardised data."""

    windows: int = 0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    inside: dict[float, float] = field(default_factory=lambda: defaultdict(float))  # coverage by level
    form: Form | None = None  # of what is waiting
    waiting: list[Floats] = field(default_factory=list)  # predictions and outcomes whose laws are to be scored

    def add(self, prediction: Prediction, outcome: Floats) -> tuple[float, float]:
        """Score one forecast against its outcome (H, C); returns its MAE and MSE."""
        self._require_shapes(prediction, outcome.shape)
        if not np.isfinite(prediction.mean).all():
            raise NotFiniteError(f"forecast {self.windows + 1} of the stream is not finite; return numbers only.")
        self.windows += 1
        errors = mae(prediction.mean, outcome), mse(prediction.mean, outcome)
        self.sums["mae"] += errors[0]
        self.sums["mse"] += errors[1]
        self._wait(Form.of(prediction), prediction, outcome)
        return errors

    def _require_shapes(self, prediction: Prediction, wanted: tuple[int, ...]) -> None:
        """Each array has a number for each lead and channel: one that lacks an axis would be spread over it."""
        for name, array in _named_arrays(prediction):
            if np.shape(array) != wanted:
                raise ShapeError(
                    f"{name} of forecast {self.windows + 1} of the stream has the shape {np.shape(array)}; every array "
                    f"of a Prediction has to be (H, C) = {wanted}: one line for each lead, one column for each channel."
                )

    def _wait(self, form: Form, prediction: Prediction, outcome: Floats) -> None:
        if form != self.form:
            self._score_laws()
            self.form = form
        self.waiting.append(form.packed(prediction, outcome))
        if len(self.waiting) == TOGETHER:
            self._score_laws()

    def _score_laws(self) -> None:
        """Score what is waiting: at once if every window counts the same, which it does where no outcome is missing."""
        if self.form is None or not self.waiting:
            return
        windows = np.stack(self.waiting, axis=1)  # (k, windows, H, C)
        self.waiting.clear()
        each = 1 if np.isnan(windows[-1]).any() else windows.shape[1]
        for first in range(0, windows.shape[1], each):
            self._add_law(*self.form.unpacked(windows[:, first : first + each]), each)

    def _add_law(self, prediction: Prediction, outcome: Floats, windows: int) -> None:
        """Add what so many windows score in the mean."""
        if prediction.sd is not None:
            self.sums["nll"] += windows * nll(prediction.mean, prediction.sd, outcome)
            self.sums["crps"] += windows * crps(prediction.mean, prediction.sd, outcome)
        for level, (lower, upper) in intervals(prediction).items():
            self.inside[level] += windows * coverage(lower, upper, outcome)
            if level in SHOWN:
                self.sums[f"width{SHOWN[level]}"] += windows * width(lower, upper)
                self.sums[f"winkler{SHOWN[level]}"] += windows * winkler(lower, upper, outcome, level)

    def metrics(self) -> dict[str, float]:
        """The mean over windows of every score there is. Raises `NotFiniteError` for one that is no number."""
        self._score_laws()
        means = {name: total / self.windows for name, total in self.sums.items()}
        covered = {level: total / self.windows for level, total in self.inside.items()}
        means |= {f"coverage{shown}": covered[level] for level, shown in SHOWN.items() if level in covered}
        means |= {"ece": ece(list(covered), list(covered.values()))} if covered else {}
        lost = [name for name, value in means.items() if not math.isfinite(value)]
        if lost:
            raise NotFiniteError(
                f"over the stream {', '.join(lost)} come to no finite number; return a positive sd, finite ends of "
                "intervals, and forecasts whose squares can be added."
            )
        return means


def _named_arrays(prediction: Prediction) -> Iterator[tuple[str, Floats]]:
    yield "the mean", prediction.mean
    if prediction.sd is not None:
        yield "the sd", prediction.sd
    for level, ends in (prediction.intervals or {}).items():
        yield from ((f"an end of the interval {level}", end) for end in ends)


def intervals(prediction: Prediction) -> Mapping[float, tuple[Floats, Floats]]:
    """The method's own intervals (H, C) by level, else those of a Gaussian, else none."""
    if prediction.intervals is not None:
        return prediction.intervals
    if prediction.sd is None:
        return {}
    half_widths = {level: gaussian_half_width(level) * prediction.sd for level in SCORED_LEVELS}
    return {level: (prediction.mean - half, prediction.mean + half) for level, half in half_widths.items()}
