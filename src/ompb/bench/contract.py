"""What a method of the benchmark is, what it is made from, and all that it is ever shown.

A method is made from a `Task` and stepped once per origin with a `Snapshot`, all numbers standardised with the source.
Between two steps it can be pickled, and goes on from the copy as if nothing had been.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.bench.protocols import Clock
from ompb.errors import OptionError
from ompb.types import Floats

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MethodSettings: TypeAlias = "Mapping[str, Any] | DataclassInstance"

SCORED_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the intervals that are scored


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Outcomes that have become visible together, one line for each, with the base forecasts of them.

    Every protocol shows the leads of an origin in order, and a lead at most once in a snapshot: so what is kept by lead
    is changed for all of them at once by ``kept[labels.leads] += ...``.
    """

    origins: NDArray[np.intp]  # (n,), oldest first
    leads: NDArray[np.intp]  # (n,), places among the H leads, from 0
    values: Floats  # (n, C)
    base: Floats  # (n, C)

    def __len__(self) -> int:
        return len(self.origins)

    @property
    def residual(self) -> Floats:
        """What the forecaster should have added, (n, C)."""
        return self.values - self.base


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The stream as a method sees it at one origin: what is known there, and what is new since the one before."""

    origin: int  # counts the rows of the stream, from 0
    row: Floats  # (C,), the newest
    window: Floats  # (context, C), which ends in it
    base: Floats  # (H, C), the forecaster's own forecast of the rows to come
    labels: Labels  # newly visible


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A forecast (H, C), with its predictive standard deviation and intervals where the method has them.

    ``signals`` are what the method reads off the stream before it knows any outcome, by name: the same names at every
    step, NaN where there is no reading.
    """

    mean: Floats
    sd: Floats | None = None  # (H, C)
    intervals: Mapping[float, tuple[Floats, Floats]] | None = None  # lower and upper end, (H, C), by level
    signals: Mapping[str, float] = field(default_factory=dict)


def as_prediction(answer: object) -> Prediction:
    """What a step returned. Raises `OptionError` if it is none, or holds no array."""
    if not isinstance(answer, Prediction) or not isinstance(answer.mean, np.ndarray):
        shown = (
            f"a Prediction whose mean is {_shown(answer.mean)}" if isinstance(answer, Prediction) else _shown(answer)
        )
        raise OptionError(
            f"a step returned {shown}; return an ompb.bench.contract.Prediction, whose mean is an array (H, C)."
        )
    return answer


def _shown(answer: object) -> str:
    """An array by its shape, anything else by what Python calls it, in short."""
    return f"an array of shape {answer.shape}" if isinstance(answer, np.ndarray) else f"{answer!r}"[:60]


class Method(Protocol):
    """A correction of a frozen forecaster, in its online stage."""

    @property
    def settings(self) -> MethodSettings:
        """What it runs with, for the record: a dataclass of options, or a mapping."""

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn what has become visible, then forecast."""


def can_be_recorded(settings: object) -> bool:
    """Whether these are settings of the form that `Method` asks for."""
    return isinstance(settings, Mapping) or (dataclasses.is_dataclass(settings) and not isinstance(settings, type))


def settings_record(method: Method) -> dict[str, Any]:
    """What a method runs with, by name, as results keep it."""
    settings = method.settings
    return dict(settings) if isinstance(settings, Mapping) else dataclasses.asdict(settings)


@dataclass(frozen=True, eq=False, kw_only=True)
class Conditions:
    """What a method must cope with: the part of a task that decides whether it can take it on."""

    source: Floats  # (T, C); that of a task is standardised
    context: int
    horizon: int
    season: int | None
    protocol: str
    trainable: bool  # whether the forecaster is a network whose weights a method may train on
    continues: bool = False  # whether the stream goes on where the source ends; who reads it is entered `by_stream`


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(Conditions):
    """What a method may learn from before the stream starts."""

    source_base: NDArray[np.floating[Any]]  # (n, H, C): the forecasts of origins context - 1 .. T - H - 1
    seed: int
    network: Path | None = None  # the file of the trained network, for `TrainedForecaster.load`
    device: str = "cpu"
    shelf: Path | None = None  # a folder for what takes long to make, by names that tell all that decided it


def snapshots(
    rows: Floats, filled: Floats, base: NDArray[np.floating[Any]], clock: Clock, context: int
) -> Iterator[Snapshot]:
    """One snapshot per origin of a stream (T, C) whose forecasts (n, H, C) begin at origin context - 1.

    The clock decides which labels each of them shows. Windows are cut from ``filled``: the rows with their missing
    cells filled.
    """
    for place in range(len(base)):
        origin = context - 1 + place
        origins, leads = clock.revealed(origin)
        said = np.asarray(base[origins - context + 1, leads - 1], dtype=np.float64)
        labels = Labels(origins, leads - 1, rows[origins + leads], said)
        window = filled[origin + 1 - context : origin + 1]
        yield Snapshot(origin, rows[origin], window, np.asarray(base[place], dtype=np.float64), labels)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A window with its complete outcome, and the base forecast of it."""

    origin: int
    window: Floats  # (context, C)
    base: Floats  # (H, C)
    outcome: Floats  # (H, C); NaN where a row was missing


@dataclass(slots=True)
class Issued:
    """What was said of every lead at each of the newest origins, where their labels find it again."""

    pending: int  # origins that wait for the end of their outcome at once
    ring: NDArray[Any] | None = None  # (pending, H, ...), by origin; None before the first

    def put(self, origin: int, said: NDArray[Any]) -> None:
        """Keep a copy of what is said, (H, ...), in place of what was said ``pending`` origins ago."""
        if self.ring is None:
            self.ring = np.empty((self.pending, *said.shape), said.dtype)
        self.ring[origin % self.pending] = said

    def of(self, labels: Labels) -> NDArray[Any]:
        """What was said of the labels, (n, ...)."""
        assert self.ring is not None  # there is no label before the first forecast
        return np.asarray(self.ring[labels.origins % self.pending, labels.leads])


@dataclass(slots=True)
class Pairs:
    """Puts labels together until an origin's outcome is complete, for learners of whole pairs."""

    horizon: int
    windows: dict[int, Floats] = field(default_factory=dict)  # of the origins that are not complete
    parts: Floats | None = None  # base and values of those shown in part, (2, H, H, C), by origin and lead

    def completed(self, snapshot: Snapshot) -> list[Pair]:
        """The pairs that this snapshot completes, oldest first; call it with every snapshot."""
        self.windows[snapshot.origin] = snapshot.window
        labels = snapshot.labels
        if self.parts is None:
            self.parts = np.empty((2, self.horizon, *snapshot.base.shape))
        # leads of an origin come all at once, or one with each of H rows: H origins are shown in part at most
        self.parts[:, labels.origins % self.horizon, labels.leads] = labels.base, labels.values
        ended = labels.origins[labels.leads == self.horizon - 1].tolist()
        return [
            Pair(origin, self.windows.pop(origin), *self.parts[:, origin % self.horizon].copy()) for origin in ended
        ]
