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
from ompb.types import Floats

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MethodSettings: TypeAlias = "Mapping[str, Any] | DataclassInstance"

SCORED_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the intervals that are scored


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """Leads of one origin's outcome that have become visible, with the base forecast of them."""

    origin: int
    leads: slice  # places among the H leads, from 0
    values: Floats  # (leads, C)
    base: Floats  # (leads, C)

    @property
    def residual(self) -> Floats:
        """What the forecaster should have added, (leads, C)."""
        return self.values - self.base


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The stream as a method sees it at one origin: what is known there, and what is new since the one before."""

    origin: int  # counts the rows of the stream, from 0
    row: Floats  # (C,), the newest
    window: Floats  # (context, C), which ends in it
    base: Floats  # (H, C), the forecaster's own forecast of the rows to come
    labels: tuple[Label, ...]  # newly visible, oldest origin first


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

    context: int
    horizon: int
    season: int | None
    protocol: str
    trainable: bool  # whether the forecaster is a network whose weights a method may train on
    continues: bool = False  # whether the stream goes on where the source ends


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(Conditions):
    """What a method may learn from before the stream starts."""

    source: Floats  # (T, C)
    source_base: NDArray[np.floating[Any]]  # (n, H, C): the forecasts of origins context - 1 .. T - H - 1
    seed: int
    network: Path | None = None  # the file of the trained network, for `TrainedForecaster.load`
    device: str = "cpu"


def snapshots(
    rows: Floats, filled: Floats, base: NDArray[np.floating[Any]], clock: Clock, context: int
) -> Iterator[Snapshot]:
    """One snapshot per origin of a stream (T, C) whose forecasts (n, H, C) begin at origin context - 1.

    The clock decides which labels each of them shows. Windows are cut from ``filled``: the rows with their missing
    cells filled.
    """
    for place in range(len(base)):
        origin = context - 1 + place
        labels = tuple(
            Label(
                shown.origin,
                leads := slice(shown.first_lead - 1, shown.last_lead),
                rows[shown.origin + shown.first_lead : shown.origin + shown.last_lead + 1],
                np.asarray(base[shown.origin - context + 1, leads], dtype=np.float64),
            )
            for shown in clock.revealed(origin)
        )
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
class Pairs:
    """Puts labels together until an origin's outcome is complete, for learners of whole pairs."""

    horizon: int
    windows: dict[int, Floats] = field(default_factory=dict)  # of the origins that are not complete
    labels: dict[int, list[Label]] = field(default_factory=dict)

    def completed(self, snapshot: Snapshot) -> list[Pair]:
        """The pairs that this snapshot completes, oldest first; call it with every snapshot."""
        self.windows[snapshot.origin] = snapshot.window
        whole = []
        for label in snapshot.labels:
            self.labels.setdefault(label.origin, []).append(label)
            if label.leads.stop == self.horizon:  # every protocol shows leads in order
                parts = self.labels.pop(label.origin)
                base, outcome = (np.concatenate([getattr(p, what) for p in parts]) for what in ("base", "values"))
                whole.append(Pair(label.origin, self.windows.pop(label.origin), base, outcome))
        return whole
