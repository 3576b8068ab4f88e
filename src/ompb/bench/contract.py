"""What a method of the benchmark is, what it is made from, and all that it is ever shown.

A method is made from a `Task` and stepped once per origin with a `Moment`, all numbers standardised with the source.
Between two steps it can be pickled, and goes on from the copy as if nothing had been.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ompb.bench.protocols import Clock
from ompb.types import Floats

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the intervals that are scored


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """Leads of one origin's outcome that have become visible, with what the forecaster had said of them."""

    origin: int
    leads: slice  # places among the H leads, from 0
    values: Floats  # (leads, C)
    base: Floats  # (leads, C)

    @property
    def residual(self) -> Floats:
        """What the forecaster should have added, (leads, C)."""
        return self.values - self.base


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """All that is known at an origin and new since the one before."""

    origin: int  # counts the rows of the stream, from 0
    row: Floats  # (C,), the newest
    window: Floats  # (context, C), which ends in it
    base: Floats  # (H, C), what the forecaster says of the rows to come
    labels: tuple[Label, ...]  # newly visible, oldest origin first


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A forecast (H, C), with its predictive standard deviation and intervals where the method has them."""

    mean: Floats
    sd: Floats | None = None  # (H, C)
    intervals: Mapping[float, tuple[Floats, Floats]] | None = None  # lower and upper end, (H, C), by level


class Method(Protocol):
    """A correction of a frozen forecaster, in its online stage."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What it runs with, for the record."""

    def step(self, moment: Moment) -> Prediction:
        """Learn what has become visible, then forecast."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    """The part of a task that decides whether a method can take it on."""

    context: int
    horizon: int
    season: int | None
    protocol: str
    trainable: bool  # whether the forecaster is a network whose weights a method may train on


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(Setting):
    """What a method may learn from before the stream starts."""

    source: Floats  # (T, C)
    source_base: NDArray[np.floating[Any]]  # (n, H, C): the forecasts of origins context - 1 .. T - H - 1
    seed: int
    network: Path | None = None  # the file of the trained network, for `TrainedForecaster.load`
    device: str = "cpu"


def moments(
    rows: Floats, filled: Floats, base: NDArray[np.floating[Any]], clock: Clock, context: int
) -> Iterator[Moment]:
    """The moments of a stream (T, C) whose forecasts (n, H, C) begin at origin context - 1, as the clock allows.

    Windows are cut from ``filled``: the rows with their missing cells filled.
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
        yield Moment(origin, rows[origin], window, np.asarray(base[place], dtype=np.float64), labels)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A window with its complete outcome, and what the forecaster had said of it."""

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

    def completed(self, moment: Moment) -> list[Pair]:
        """The pairs that this moment completes, oldest first; call it at every moment."""
        self.windows[moment.origin] = moment.window
        whole = []
        for label in moment.labels:
            self.labels.setdefault(label.origin, []).append(label)
            if label.leads.stop == self.horizon:  # every protocol shows leads in order
                parts = self.labels.pop(label.origin)
                base, outcome = (np.concatenate([getattr(p, what) for p in parts]) for what in ("base", "values"))
                whole.append(Pair(label.origin, self.windows.pop(label.origin), base, outcome))
        return whole
