r"""DSOF: the backbone learns slowly from what has matured, a small student on top fast from what has just come.

Ying-yee Ava Lau, Zhiwen Shao and Dit-Yan Yeung, "Fast and Slow Streams for Online Time Series Forecasting Without
Information Leakage", ICLR 2025.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import AdamW

from ompb.baselines.network import (
    array,
    batch,
    known_mse,
    load_network,
    needs_network,
    source_pairs,
    tensor,
    trainable,
)
from ompb.baselines.options import with_options
from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.errors import TooShortError
from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone
from ompb.forecasters.torch.routine import Routine, adamw
from ompb.forecasters.torch.training import own_random_state


@dataclass(frozen=True)
class DsofSettings:
    """The published values; rates, which differ by backbone and data set, are those of PatchTST on ETTh2."""

    teacher_rate: float = 9.2e-5
    student_rate: float = 8.4e-4  # in the slow stream
    student_offline_rate: float = 6.0e-3
    fast_rate: float = 9.0e-4
    width: int = 16
    memory: int = 300  # matured windows
    batch: int = 32
    steps_back: tuple[int, ...] = (1,)  # k of the windows t - k of the fast stream
    discount: float = 0.9  # of pseudo labels, per lead
    epochs: int = 10  # offline, of the student only: the backbone comes trained
    patience: int = 3
    held_out: float = 0.2  # of the source, its end: one month to four

    def __post_init__(self) -> None:
        rates = ("teacher_rate", "student_rate", "student_offline_rate", "fast_rate")
        checks.check_fields(self, checks.positive, *rates, "discount")
        checks.check_fields(self, checks.count, "width", "memory", "patience")
        checks.check_fields(self, partial(checks.count, most=self.memory), "batch")  # it is drawn from the memory
        checks.check_fields(self, partial(checks.count, least=0), "epochs")
        checks.check_fields(self, checks.share, "held_out")
        checks.check_fields(self, _counts, "steps_back")


def _counts(name: str, values: Iterable[int]) -> tuple[int, ...]:
    return tuple(checks.count(name, value) for value in values)


class Student(nn.Module):
    """What to add to the teacher's forecast: one stack of linear maps, the same for every channel.

    Its last layer starts at zero, so that it starts by adding nothing and offline training can only depart from the
    backbone where that helps; a random start would have to be unlearnt first.
    """

    def __init__(self, context: int, horizon: int, width: int) -> None:
        super().__init__()
        last = nn.Linear(width, horizon)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.stack = nn.Sequential(nn.Linear(context + horizon, width), nn.Linear(width, width), last)

    def forward(self, windows: Tensor, forecasts: Tensor) -> Tensor:
        """Read windows (B, context, C) and the teacher's forecasts of them (B, H, C)."""
        both = torch.cat([windows, forecasts], dim=1).transpose(1, 2)  # (B, C, context + H)
        correction: Tensor = self.stack(both)  # (B, C, H)
        return correction.transpose(1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """An origin that the fast stream goes back to."""

    window: Tensor  # (context, C)
    row: Tensor  # (C,): its newest, NaN where missing


@dataclass
class Dsof:
    r"""Teacher f, student s, and the two streams that train them before each forecast.

    .. math:: \hat y_t = \bar f(X_t) + s(X_t, \bar f(X_t))

    with a bar where no gradient passes. Slow stream: a batch of matured windows trains f by MSE(f(X), Y) and s by
    MSE(f(X) + s, Y). Fast stream: see `Dsof.fast`. Unlike in the publication no network is in training mode.
    """

    settings: DsofSettings
    teacher: Backbone
    student: Student
    teacher_optimiser: AdamW
    student_optimiser: AdamW
    fast_optimiser: AdamW
    rng: np.random.Generator
    pairs: Pairs
    memory: deque[Pair]
    recent: deque[Past] = field(default_factory=deque)  # newest first, as far as the fast stream looks back

    def __post_init__(self) -> None:
        self._slow, self._teach = Routine(self.slow), Routine(self._taught)
        self._fast = {back: Routine(partial(self.fast, back)) for back in self.settings.steps_back}
        self._correct = Routine(self._corrected)

    @classmethod
    def start(cls, task: Task, settings: DsofSettings) -> Dsof:
        """Load the teacher and pre-train the student on the source."""
        if max(settings.steps_back, default=1) > task.horizon:
            raise checks.refuse("steps_back", settings.steps_back, f"numbers up to the horizon of {task.horizon}")
        teacher = load_network(task)
        rng = np.random.default_rng(task.seed)
        student = pretrained(task, settings, rng)
        return cls(
            settings,
            teacher,
            student,
            adamw(trainable(teacher), settings.teacher_rate, amsgrad=True),
            adamw(student.parameters(), settings.student_rate, amsgrad=True),
            adamw(student.parameters(), settings.fast_rate, amsgrad=True),
            rng,
            Pairs(task.horizon),
            deque(maxlen=settings.memory),
            deque(maxlen=1 + max(settings.steps_back, default=0)),
        )

    def step(self, snapshot: Snapshot) -> Prediction:
        """Run both streams, then forecast."""
        like = next(self.teacher.parameters())
        self.memory.extend(self.pairs.completed(snapshot))
        if len(self.memory) >= self.settings.batch:
            drawn = self.rng.choice(len(self.memory), self.settings.batch, replace=False)
            self._slow(*batch([self.memory[place] for place in drawn], like))
        self.recent.appendleft(Past(tensor(snapshot.window, like), tensor(snapshot.row, like)))
        backs = [back for back in self.settings.steps_back if back < len(self.recent)]
        windows = torch.stack([self.recent[back].window for back in (0, *backs)])
        forecasts = self._teach(windows)
        for place, back in enumerate(backs, start=1):
            rows = torch.stack([self.recent[age].row for age in reversed(range(back))])  # (k, C)
            self._fast[back](rows, windows[place, None], forecasts[place, None], forecasts[0])
        return Prediction(array(self._correct(windows[:1], forecasts[:1])[0]))

    def _taught(self, windows: Tensor) -> Tensor:
        with torch.no_grad():
            forecasts: Tensor = self.teacher(windows)
        return forecasts

    def _corrected(self, windows: Tensor, forecasts: Tensor) -> Tensor:
        with torch.no_grad():
            corrected: Tensor = forecasts + self.student(windows, forecasts)
        return corrected

    def slow(self, windows: Tensor, outcomes: Tensor) -> None:
        """One step of teacher and student on matured windows (n, context, C) and outcomes (n, H, C)."""
        forecasts = self.teacher(windows)
        frozen = forecasts.detach()
        self.teacher_optimiser.zero_grad(set_to_none=True)
        self.student_optimiser.zero_grad(set_to_none=True)
        known_mse(forecasts, outcomes).backward()  # type: ignore[no-untyped-call]
        known_mse(frozen + self.student(windows, frozen), outcomes).backward()  # type: ignore[no-untyped-call]
        self.teacher_optimiser.step()
        self.student_optimiser.step()

    def fast(self, back: int, rows: Tensor, windows: Tensor, forecasts: Tensor, newest: Tensor) -> None:
        r"""One step of the student on the window k = ``back`` rows ago, (1, context, C) with f of it, (1, H, C).

        The k rows (k, C) that have come since are its first targets, the teacher's newest forecast (H, C) stands in
        for the rest:

        .. math:: \tilde Y_{t-k} = [x_{t-k+1}, \dots, x_t;\ \bar f(X_t)_{1..H-k}], \qquad
           \mathrm{weight}_j = 0.9^{\max(0,\, j - k)}
        """
        target = torch.cat([rows, newest[: len(newest) - back]])  # (H, C)
        root = self.root_weights(back, newest)[:, None]
        corrected = (forecasts + self.student(windows, forecasts))[0]
        self.fast_optimiser.zero_grad(set_to_none=True)
        known_mse(root * corrected, root * target).backward()  # type: ignore[no-untyped-call]
        self.fast_optimiser.step()

    def root_weights(self, back: int, like: Tensor) -> Tensor:
        """Square roots of the weights of H leads, for both sides of a squared error."""
        leads = torch.arange(1, len(like) + 1, dtype=like.dtype, device=like.device)
        return torch.as_tensor(self.settings.discount ** ((leads - back).clamp(min=0) / 2))


def pretrained(task: Task, settings: DsofSettings, rng: np.random.Generator) -> Student:
    """A student of the frozen teacher on the source, whose forecasts are known; the best epoch on the held-out end.

    The teacher has seen the source, so what the student learns here is little; online it learns the rest.
    """
    with own_random_state(task.seed, torch.device("cpu")):
        student = Student(task.context, task.horizon, settings.width).to(task.device)
    optimiser = adamw(student.parameters(), settings.student_offline_rate, amsgrad=True)
    count = len(task.source_base)
    held_out = int(settings.held_out * count)
    learnt = count - held_out - task.horizon  # their outcomes end before the first held-out one begins
    if learnt < 1 or held_out < 1:
        raise TooShortError(f"{count} source windows are too few to train and hold out some; pass a longer source.")
    best, best_loss, waited = copy.deepcopy(student.state_dict()), _held_out_loss(task, student, held_out), 0
    for _ in range(settings.epochs):
        order = rng.permutation(learnt)
        for places in np.split(order, range(settings.batch, learnt, settings.batch)):
            optimiser.zero_grad(set_to_none=True)
            _source_loss(task, student, places).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        loss = _held_out_loss(task, student, held_out)
        if loss < best_loss:
            best, best_loss, waited = copy.deepcopy(student.state_dict()), loss, 0
        else:
            waited += 1
        if waited == settings.patience:
            break
    student.load_state_dict(best)
    return student


def _source_loss(task: Task, student: Student, places: NDArray[np.intp]) -> Tensor:
    like = next(student.parameters())
    windows, outcomes = (tensor(part[places], like) for part in source_pairs(task))
    base = tensor(np.asarray(task.source_base[places]), like)
    return known_mse(base + student(windows, base), outcomes)


def _held_out_loss(task: Task, student: Student, held_out: int) -> float:
    """Mean over blocks of the last windows, each of at most 256: memory stays small."""
    count = len(task.source_base)
    blocks = np.split(np.arange(count - held_out, count), range(256, held_out, 256))
    with torch.no_grad():
        return sum(len(block) * _source_loss(task, student, block).item() for block in blocks) / held_out


@method("dsof", unfit=needs_network)
def dsof(task: Task, **options: Any) -> Method:
    """DSOF with its published settings."""
    return Dsof.start(task, with_options(DsofSettings(), options))
