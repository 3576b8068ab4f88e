r"""ACI and DtACI: intervals around the bare forecaster whose level is steered until the promised share is covered.

Isaac Gibbs and Emmanuel Candès, "Adaptive Conformal Inference Under Distribution Shift", NeurIPS 2021 (ACI), and
"Conformal Inference for Online Prediction with Arbitrary Distribution Shifts", JMLR 2024 (DtACI). Needs numpy only.

The score of a label is its absolute residual. Every lead, channel and level has a run of its own; what leads of an
outcome become visible late is learnt late, by what had been issued for them when they were forecast. Arrays go by lead,
channel, level and expert, in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ompb.bench.contract import SCORED_LEVELS, Issued, Labels, Method, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.bench.protocols import Clock
from ompb.errors import TooShortError
from ompb.floor import checks
from ompb.rows.windows import outcomes_at
from ompb.types import Floats

TARGETS = 1 - np.asarray(SCORED_LEVELS)  # alpha: the share that may lie outside
ROUNDING = 1e-9  # a level this close to a step of the empirical quantile is on it


@dataclass(frozen=True)
class ConformalSettings:
    """What both have in common. The publications refit on sliding windows of data; the size is ours."""

    window: int = 500  # newest scores whose quantile is taken, per lead and channel
    # At alpha_t < 0 the published set is the whole line. It is learnt from as such, but what is issued ends at the
    # largest score in the window, so that mean widths stay finite; True issues the whole line.
    whole_line: bool = False

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "window")
        checks.check_fields(self, checks.flag, "whole_line")


@dataclass(frozen=True)
class AciSettings(ConformalSettings):
    """Adds the step size of all experiments in the publication."""

    step: float = 0.005  # gamma

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_fields(self, checks.positive, "step")


@dataclass(frozen=True)
class DtaciSettings(ConformalSettings):
    """Adds the grid of step sizes and the interval length of the publication's experiments."""

    steps: tuple[float, ...] = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)  # gamma of each expert
    interval: int = 500  # labels over which regret is to be small; sets eta and sigma

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_fields(self, checks.count, "interval")
        checks.check_fields(self, _step_sizes, "steps")


def _step_sizes(name: str, values: Sequence[float]) -> tuple[float, ...]:
    if not values:
        raise checks.refuse(name, values, "one step size or more")
    return tuple(checks.positive(name, value) for value in values)


@dataclass
class Calibration:
    """The newest scores of every lead and channel; those of the source stand in until the stream has enough."""

    history: Floats  # (H, C, window + lag): a ring, since late labels ask for the window of an earlier moment
    count: NDArray[np.intp]  # (H, C): scores ever written into the ring
    window: int
    ordered: Floats  # (H, C, window): the newest ones, sorted

    @classmethod
    def start(cls, task: Task, window: int, lag: int = 0) -> Calibration:
        """Scores of the last windows of the source that have no hole; ``lag`` is how late a label may come."""
        last = min(window, len(task.source_base))
        origins = len(task.source) - task.horizon - last + np.arange(last)
        outcomes = outcomes_at(task.source, origins, task.horizon)
        scores = np.abs(outcomes - task.source_base[len(task.source_base) - last :])  # (last, H, C)
        scores = scores[~np.isnan(scores).any(axis=(1, 2))].transpose(1, 2, 0).astype(np.float64)
        size = scores.shape[2]
        if not size:
            raise TooShortError(
                f"none of the last {last} outcomes of the source is complete; pass a source whose end has no holes."
            )
        history = np.concatenate([scores, np.zeros((*scores.shape[:2], lag))], axis=2)
        return cls(history, np.full(scores.shape[:2], size), size, np.sort(scores, axis=2))

    def add(self, leads: NDArray[np.intp], scores: Floats) -> None:
        """Write scores (n, C) of leads (n,), none twice; NaN is none."""
        known = ~np.isnan(scores)
        count = self.count[leads]
        oldest = self._written(leads, count - self.window)
        # Where nothing is known the oldest score replaces itself: the window stays as it is.
        self.ordered[leads] = replaced(self.ordered[leads], oldest, np.where(known, scores, oldest))
        place = (leads[:, None], np.arange(scores.shape[1]), count % self.history.shape[2])
        self.history[place] = np.where(known, scores, self.history[place])
        self.count[leads] += known

    def _written(self, leads: NDArray[np.intp], number: NDArray[np.intp]) -> Floats:
        """The scores of leads (n,) that were written at these numbers, (n, C) or (n, C, any)."""
        channels = np.arange(number.shape[1]).reshape(-1, *[1] * (number.ndim - 2))
        rows = leads.reshape(-1, *[1] * (number.ndim - 1))
        return np.asarray(self.history[rows, channels, number % self.history.shape[2]])

    def quantile(self, share: Floats) -> Floats:
        r"""Empirical quantiles (H, C, levels) at shares p of that shape.

        .. math:: \hat Q(p) = \inf\{ s : \#\{ s_i \le s \} \ge n p \}

        Minus infinity for p <= 0 (the empty set), infinity for p > 1 (the whole line).
        """
        rank = np.ceil(self.window * share - ROUNDING)
        inside = np.clip(rank, 1, self.window).astype(np.intp) - 1
        found = np.take_along_axis(self.ordered, inside, axis=2)
        return np.where(rank < 1, -np.inf, np.where(rank > self.window, np.inf, found))

    def least_share(self, leads: NDArray[np.intp], scores: Floats, count: NDArray[np.intp]) -> Floats:
        r"""The largest alpha at which a score (n, C) was covered, by the window when ``count`` had been written.

        .. math:: \beta = \sup\{ \alpha : s \le \hat Q(1 - \alpha) \} = 1 - \#\{ s_i < s \} / n
        """
        below = (self.ordered[leads] < scores[..., None]).sum(axis=2)
        # The window has moved on since: take out what has come in, put back what has dropped out.
        later = self.count[leads] - count  # (n, C)
        ages = np.arange(later.max(initial=0))
        came = count[..., None] + ages  # (n, C, ages)
        for number, sign in ((came, -1), (came - self.window, 1)):
            lower = self._written(leads, number) < scores[..., None]
            below = below + sign * (lower & (ages < later[..., None])).sum(axis=2)
        return np.asarray(1 - below / self.window)


def replaced(ordered: Floats, old: Floats, new: Floats) -> Floats:
    """Sorted values (..., n) with one that is among them, (...), replaced by a new one: sorted again, without sorting.

    >>> replaced(np.asarray([1.0, 2.0, 4.0, 8.0]), np.asarray(2.0), np.asarray(5.0))
    array([1., 4., 5., 8.])
    """
    left = np.where(ordered[..., :-1] < old[..., None], ordered[..., :-1], ordered[..., 1:])  # without the old one
    end = np.full((*old.shape, 1), np.inf)
    before, after = np.concatenate([-end, left], axis=-1), np.concatenate([left, end], axis=-1)
    return np.asarray(np.maximum(before, np.minimum(after, new[..., None])))


def surround(base: Floats, half: Floats, calibration: Calibration, *, whole_line: bool) -> Prediction:
    """The forecast with the intervals of half widths (H, C, levels); an empty one is shown as the point itself."""
    largest = np.inf if whole_line else calibration.ordered[..., -1:]
    shown = np.clip(half, 0.0, largest)
    ends = {level: (base - shown[..., place], base + shown[..., place]) for place, level in enumerate(SCORED_LEVELS)}
    return Prediction(base, intervals=ends)


@dataclass
class Aci:
    r"""One step size.

    .. math:: \alpha_{t+1} = \alpha_t + \gamma\, (\alpha - 1\{ s_t > \hat Q_t(1 - \alpha_t) \})
    """

    settings: AciSettings
    calibration: Calibration
    alpha: Floats  # alpha_t: (H, C, levels)
    issued: Issued  # half widths (H, C, levels)

    @classmethod
    def start(cls, task: Task, settings: AciSettings) -> Aci:
        """At alpha_1 = alpha, with the scores of the source."""
        calibration = Calibration.start(task, settings.window)
        issued = Issued(Clock(task.protocol, task.horizon).pending)
        return cls(settings, calibration, np.tile(TARGETS, (*calibration.count.shape, 1)), issued)

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn what has become visible, then put intervals around the base forecast."""
        if len(snapshot.labels):
            self._learn(snapshot.labels)
        half = self.calibration.quantile(1 - self.alpha)
        self.issued.put(snapshot.origin, half)
        return surround(snapshot.base, half, self.calibration, whole_line=self.settings.whole_line)

    def _learn(self, labels: Labels) -> None:
        scores = np.abs(labels.residual)
        score = scores[..., None]
        missed = score > self.issued.of(labels)  # (n, C, levels)
        self.alpha[labels.leads] += self.settings.step * np.where(np.isnan(score), 0.0, TARGETS - missed)
        self.calibration.add(labels.leads, scores)


@dataclass
class Dtaci:
    r"""Experts with one step size each, mixed by exponential weights on the pinball loss.

    .. math::
       \bar\alpha_t &= \sum_i p_i\, \alpha^i_t, \qquad
       \ell(\beta, \theta) = \alpha (\beta - \theta) - \min(0, \beta - \theta) \\
       \bar w_i &= p_i\, e^{-\eta\, \ell(\beta_t, \alpha^i_t)}, \qquad
       p_i \leftarrow (1 - \sigma) \frac{\bar w_i}{\sum_j \bar w_j} + \frac{\sigma}{K} \\
       \alpha^i_{t+1} &= \alpha^i_t + \gamma_i\, (\alpha - 1\{ \beta_t \le \alpha^i_t \})

    The interval is that of the mean level (the deterministic variant). beta_t is the largest alpha at which the label
    would have been covered, so the last indicator says whether expert i missed it.
    """

    settings: DtaciSettings
    calibration: Calibration
    eta: Floats  # (levels, 1)
    alphas: Floats  # alpha^i_t: (H, C, levels, K)
    weights: Floats  # p_i: (H, C, levels, K)
    issued: Issued  # alphas
    counts: Issued  # scores that had been written, (H, C)

    @classmethod
    def start(cls, task: Task, settings: DtaciSettings) -> Dtaci:
        """Every expert at alpha, all with one weight, with the scores of the source."""
        lag = Clock(task.protocol, task.horizon).pending
        calibration = Calibration.start(task, settings.window, lag)
        experts = len(settings.steps)
        alphas = np.tile(TARGETS[:, None], (*calibration.count.shape, 1, experts))
        eta = learning_rate(TARGETS, settings.interval, experts)[:, None]
        return cls(settings, calibration, eta, alphas, np.full_like(alphas, 1 / experts), Issued(lag), Issued(lag))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn what has become visible, then put intervals around the base forecast."""
        if len(snapshot.labels):
            self._learn(snapshot.labels)
        self.issued.put(snapshot.origin, self.alphas)
        self.counts.put(snapshot.origin, self.calibration.count)
        half = self.calibration.quantile(1 - (self.weights * self.alphas).sum(axis=3))
        return surround(snapshot.base, half, self.calibration, whole_line=self.settings.whole_line)

    def _learn(self, labels: Labels) -> None:
        scores, leads = np.abs(labels.residual), labels.leads
        beta = self.calibration.least_share(leads, scores, self.counts.of(labels))  # (n, C)
        target, sigma = TARGETS[:, None], 1 / (2 * self.settings.interval)
        known = ~np.isnan(scores)[..., None, None]
        gap = beta[..., None, None] - self.issued.of(labels)  # (n, C, levels, K)
        loss = target * gap - np.minimum(0.0, gap)
        raw = self.weights[leads] * np.exp(-self.eta * loss)
        mixed = (1 - sigma) * raw / raw.sum(axis=3, keepdims=True) + sigma / len(self.settings.steps)
        self.weights[leads] = np.where(known, mixed, self.weights[leads])
        moved = np.asarray(self.settings.steps) * (target - (gap <= ROUNDING))
        self.alphas[leads] += np.where(known, moved, 0.0)
        self.calibration.add(leads, scores)


def learning_rate(target: Floats, interval: int, experts: int) -> Floats:
    r"""The publication's choice, by the loss's second moment for uniform beta at the right level.

    .. math:: \eta = \sqrt{\frac{3}{|I|} \cdot
       \frac{\ln(2 K |I|) + 1}{(1 - \alpha)^2 \alpha^3 + \alpha^2 (1 - \alpha)^3}}
    """
    covered = 1 - target
    second_moment = covered**2 * target**3 + target**2 * covered**3
    return np.asarray(np.sqrt(3 / interval * (np.log(2 * experts * interval) + 1) / second_moment))


@method("aci")
def aci(task: Task) -> Method:
    """ACI with its published settings."""
    return Aci.start(task, AciSettings())


@method("dtaci")
def dtaci(task: Task) -> Method:
    """DtACI with its published settings."""
    return Dtaci.start(task, DtaciSettings())
