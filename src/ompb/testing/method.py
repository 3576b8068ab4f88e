"""What every method of the benchmark must keep to, whatever it does.

A method knows rows and a clock, and nothing else: what it has issued by one origin is the same whatever comes later.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.bench.contract import (
    Method,
    Prediction,
    Snapshot,
    Task,
    can_be_recorded,
    snapshots,
)
from ompb.bench.methods import make
from ompb.bench.protocols import HONEST, Clock
from ompb.datasets.synthetic import shifted_stream
from ompb.floor.names import unended
from ompb.forecasters import SeasonalProfile
from ompb.rows.windows import fill_forward, sliding
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, CHANNELS, SOURCE_ROWS, STEPS = 24, 4, 12, 2, 400, 80
POISON = 1e3  # source standard deviations, in rows that are not known yet


def task_of(source: Floats, source_base: Floats, context: int, **others: Any) -> Task:
    """A task of a source (T, C) and its forecasts (n, H, C); others of its fields where they are not the plain ones."""
    plain = {"season": None, "protocol": HONEST, "trainable": False, "seed": 0}
    sizes = {"context": context, "horizon": source_base.shape[1]}
    return Task(source=source, source_base=source_base, **{**plain, **sizes, **others})


@dataclass(frozen=True, eq=False)
class MethodWorld:
    """A task and a stream, standardised with the source; ``task.network`` is where a method of networks finds one."""

    task: Task
    rows: Floats  # (T, C) of the stream, NaN where missing
    base: Floats  # (n, H, C): the forecasts of origins context - 1 .., n at most T - context + 1

    @classmethod
    def small(cls, protocol: str = "honest", seed: int = 0) -> MethodWorld:
        """A seasonal source, a stream whose level has moved, and a seasonal forecaster; it takes a moment."""
        target_rows = CONTEXT - 1 + STEPS + HORIZON
        source, stream = shifted_stream("level", 1, SOURCE_ROWS, target_rows, CHANNELS, SEASON)
        source, stream = ((rows - source.mean(axis=0)) / source.std(axis=0) for rows in (source, stream))
        forecaster = SeasonalProfile(HORIZON, SEASON)
        source_base, base = (forecaster(sliding(rows[:-HORIZON], CONTEXT)) for rows in (source, stream))
        return cls(task_of(source, source_base, CONTEXT, season=SEASON, protocol=protocol, seed=seed), stream, base)

    def snapshots(self, rows: Floats | None = None, base: Floats | None = None) -> list[Snapshot]:
        """What a method is shown, by the clock of the task; of other rows or forecasts where they are given."""
        shown = self.rows if rows is None else rows
        clock = Clock(self.task.protocol, self.task.horizon, self.task.context - 1)
        filled = fill_forward(shown, np.zeros(shown.shape[1]))
        return list(snapshots(shown, filled, self.base if base is None else base, clock, self.task.context))

    def copy(self) -> MethodWorld:
        """The same in arrays of its own."""
        return copy.deepcopy(self)


def check_method(method: str | Callable[[Task], Method], world: MethodWorld | None = None) -> None:
    """Run a method, by name or factory, through all that the benchmark relies on; `AssertionError` where it fails.

    It gives forecasts (H, C), laws that are laws and signals of the same names; leaves what it is shown and what it has
    issued as they are; says the same again, whatever the global random state; goes on from a pickled copy; never
    depends on a row before the clock shows it; and bears missing cells.

    >>> check_method("bias")
    >>> check_method(lambda task: None)
    Traceback (most recent call last):
    AssertionError: None is no method; it needs `step`, and `settings`: a mapping or a dataclass.
    """
    world = MethodWorld.small() if world is None else world
    factory = (lambda task: make(method, task)) if isinstance(method, str) else method
    issued = _issued_without_side_effects(factory, world)
    _require_forecasts(issued, world.task)
    _require_repeated(factory, world, issued)
    _require_resumed(factory, world, issued)
    _require_blind_to_the_future(factory, world, issued)
    _require_bearing_holes(factory, world)


def _made(factory: Callable[[Task], Method], task: Task, noise: int) -> Method:
    """A fresh method, made while the global random state is what it happens to be."""
    before = np.random.get_state()  # noqa: NPY002  # a method must not use it
    np.random.seed(noise)  # noqa: NPY002
    try:
        made = factory(task)
    finally:
        np.random.set_state(before)  # noqa: NPY002
    if not (callable(getattr(made, "step", None)) and can_be_recorded(getattr(made, "settings", None))):
        raise AssertionError(f"{made!r} is no method; it needs `step`, and `settings`: a mapping or a dataclass.")
    return made


def _issued_without_side_effects(factory: Callable[[Task], Method], world: MethodWorld) -> list[Prediction]:
    mine = world.copy()
    made = _made(factory, mine.task, noise=1)
    issued, as_said = [], []
    for snapshot in mine.snapshots():
        before = copy.deepcopy(snapshot)
        issued.append(made.step(snapshot))
        as_said.append(copy.deepcopy(issued[-1]))
        if not np.array_equal(before.window, snapshot.window):
            raise AssertionError("the method writes into its window; copy what you change.")
    for name, one, other in (
        ("the source", mine.task.source, world.task.source),
        ("the source's forecasts", mine.task.source_base, world.task.source_base),
        ("rows of the stream", mine.rows, world.rows),
        ("base forecasts", mine.base, world.base),
    ):
        if not np.array_equal(one, other, equal_nan=True):
            raise AssertionError(f"the method writes into {name}; copy what you change.")
    _require_same(as_said, issued, "the method changes forecasts that it has issued; return fresh arrays")
    return as_said


def _require_forecasts(issued: Sequence[Prediction], task: Task) -> None:
    shape = (task.horizon, task.source.shape[1])
    names, levels = set(issued[0].signals), set(issued[0].intervals or {})
    for step, said in enumerate(issued):
        if np.shape(said.mean) != shape or not np.isfinite(said.mean).all():
            raise AssertionError(f"step {step}: the mean has shape {np.shape(said.mean)}; return finite {shape}.")
        if said.sd is not None and (np.shape(said.sd) != shape or not (np.asarray(said.sd) > 0).all()):
            raise AssertionError(f"step {step}: the sd must be positive and of shape {shape}, or None.")
        if set(said.intervals or {}) != levels:
            raise AssertionError(
                f"step {step}: intervals have other levels than at step 0; give the same at every step."
            )
        if set(said.signals) != names:
            raise AssertionError(f"step {step}: signals have other names than at step 0; give all, or NaN.")
        _require_intervals(said, step, shape)


def _require_intervals(said: Prediction, step: int, shape: tuple[int, ...]) -> None:
    for level, (lower, upper) in (said.intervals or {}).items():
        if not 0 < level < 1 or np.shape(lower) != shape or np.shape(upper) != shape:
            raise AssertionError(f"step {step}: intervals are lower and upper ends {shape} by level inside (0, 1).")
        if not (np.asarray(lower) <= upper).all():
            raise AssertionError(f"step {step}: the interval of level {level} ends before it begins.")


def _require_repeated(factory: Callable[[Task], Method], world: MethodWorld, issued: Sequence[Prediction]) -> None:
    again = _steps(_made(factory, world.copy().task, noise=2), world.copy().snapshots())
    _require_same(issued, again, "the method says something else when it is run again; draw from task.seed alone")


def _require_resumed(factory: Callable[[Task], Method], world: MethodWorld, issued: Sequence[Prediction]) -> None:
    made, shown = _made(factory, world.copy().task, noise=1), world.copy().snapshots()
    half = len(shown) // 2
    _steps(made, shown[:half])
    try:
        resumed = pickle.loads(pickle.dumps(made))
    except Exception as error:
        raise AssertionError(f"the method cannot be pickled between two steps: {unended(error)}.") from error
    rest = _steps(resumed, shown[half:])
    _require_same(issued[half:], rest, "a pickled copy goes on in another way than the method; keep all state in it")


def _require_blind_to_the_future(
    factory: Callable[[Task], Method], world: MethodWorld, issued: Sequence[Prediction]
) -> None:
    task, known = world.task, len(world.base) // 2
    clock = Clock(task.protocol, task.horizon, task.context - 1)
    ahead = 0 if clock.delay is None else max(0, task.horizon - clock.delay)  # rows that a leaking protocol shows
    other = world.copy()
    other.rows[task.context - 1 + known + ahead :] = POISON  # beyond the last origin that is asked for
    other.base[known:] = POISON
    found = _steps(_made(factory, other.task, noise=1), other.snapshots()[:known])
    _require_same(
        issued[:known], found, "the method's forecasts depend on rows that were not known; use the snapshot only"
    )


def _require_bearing_holes(factory: Callable[[Task], Method], world: MethodWorld) -> None:
    other = world.copy()
    start = world.task.context
    other.rows[start + 5, 0] = np.nan
    other.rows[start + 9] = np.nan
    for step, said in enumerate(_steps(_made(factory, other.task, noise=1), other.snapshots())):
        if not np.isfinite(said.mean).all():
            raise AssertionError(f"step {step}: a missing cell of an earlier row reached the forecast; leave it out.")


def _steps(method: Method, shown: Sequence[Snapshot]) -> list[Prediction]:
    return [method.step(snapshot) for snapshot in shown]


def _require_same(one: Sequence[Prediction], other: Sequence[Prediction], otherwise: str) -> None:
    for step, pair in enumerate(zip(one, other, strict=True)):
        for name, first, second in zip(_FIELDS, *map(_flat, pair), strict=True):
            if not np.array_equal(first, second, equal_nan=True):
                raise AssertionError(f"step {step}, {name}: {otherwise}.")


_FIELDS = tuple(field.name for field in dataclasses.fields(Prediction))


def _flat(said: Prediction) -> list[Any]:
    """The fields of a prediction as arrays, in the order of `_FIELDS`."""
    intervals = [np.stack(ends) for _, ends in sorted((said.intervals or {}).items())]
    signals = [said.signals[name] for name in sorted(said.signals)]
    sd = np.empty(0) if said.sd is None else np.asarray(said.sd)
    return [np.asarray(said.mean), sd, np.asarray(intervals), np.asarray(signals, dtype=np.float64)]
