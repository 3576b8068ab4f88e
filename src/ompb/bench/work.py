"""The work on cells, in whatever process: the base forecasts that some share, then the cells themselves.

An error of this package, or of code that was added, is a finding; any other is raised.
"""

from __future__ import annotations

import math
import pickle
import platform
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from ompb.bench.added import add_file, blaming
from ompb.bench.backbones import (
    SOURCE,
    BaseForecasts,
    RunContext,
    Status,
    backbone_code,
    is_network,
    prepare,
    versions,
)
from ompb.bench.contract import Conditions, Method, Task, as_prediction, settings_record, snapshots
from ompb.bench.law import OwnErrors
from ompb.bench.methods import make, method_code
from ompb.bench.protocols import Clock
from ompb.bench.scores import RunningScores
from ompb.bench.steps import StepLog
from ompb.bench.store import BARE, FACTS, LOST, SECONDS, WINDOWS, Cell, Result
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.datasets.splits import ID
from ompb.errors import OmpbError, OptionError
from ompb.metrics.point import mae
from ompb.rows.scaler import Scaler
from ompb.rows.windows import sliding

LARGEST = 1e100  # of a forecast: the squares of larger numbers cannot be added up
CellEnd: TypeAlias = tuple[Cell, str | None]  # and what went wrong, if anything


@dataclass(frozen=True, slots=True)
class Job:
    """What all the work of a run has in common."""

    run_context: RunContext
    commit: str | None


@dataclass(frozen=True, slots=True, eq=False)  # each is itself, whatever it holds
class Prepare:
    """Cells that share their base forecasts: these come first."""

    job: Job
    cells: tuple[Cell, ...]

    def __call__(self, status: Status) -> Iterator[BaseForecasts | CellEnd]:
        """Yield the base forecasts, or what went wrong with each cell."""
        _add_files(self.job)
        try:
            yield prepare(self.cells, self.job.run_context, status)
        except OmpbError as error:
            yield from ((cell, str(error)) for cell in self.cells)


@dataclass(frozen=True, slots=True, eq=False)  # each is itself, whatever it holds
class Follow:
    """Cells that differ in their split alone: the method learns once, then follows each stream."""

    job: Job
    cells: tuple[Cell, ...]
    base: BaseForecasts

    def __call__(self, status: Status) -> Iterator[CellEnd]:
        """Yield what went wrong with each cell, or None once its result is in the store."""
        _add_files(self.job)
        status(f"{self.cells[0].method} learns from the source")
        try:
            prepared = _PreparedMethod.of(self.cells[0], self.base, self.job.run_context)
        except OmpbError as error:
            yield from ((cell, str(error)) for cell in self.cells)
            return
        for cell in self.cells:
            status(str(cell))
            yield cell, self._problem(prepared, cell)

    def _problem(self, prepared: _PreparedMethod, cell: Cell) -> str | None:
        try:
            self.job.run_context.store.write(_result(prepared, cell, self.base, self.job))
        except OmpbError as error:
            return str(error)
        return None


def _add_files(job: Job) -> None:
    """Make this process know what was added; nothing happens a second time."""
    for file in job.run_context.added:
        add_file(file)


@dataclass(frozen=True, slots=True)
class _PreparedMethod:
    """A method that has learned from the source and seen no stream, and its law, ready to be copied."""

    pickled: bytes
    seconds: float  # that it took

    @classmethod
    def of(cls, cell: Cell, base: BaseForecasts, run_context: RunContext) -> _PreparedMethod:
        """What the source teaches the method of a cell."""
        data = load(cell.dataset, run_context.folder)
        task = Task(
            **{**vars(conditions(data, cell)), "source": Scaler.fit(data.source).standardise(data.source)},
            source_base=np.load(base.files[SOURCE], mmap_mode="r"),
            seed=cell.seed,
            network=base.network,
            device=run_context.device,
            shelf=run_context.store.backbones,
        )
        began = perf_counter()
        with _blaming_method(cell):
            method = make(cell.method, task)
        seconds = perf_counter() - began
        try:
            return cls(pickle.dumps((method, OwnErrors.start(task))), seconds)
        except (pickle.PicklingError, AttributeError, TypeError) as error:  # all three are what pickle raises
            raise OptionError(
                f"the method {cell.method!r} cannot be copied for one stream after the other: {error}. Define its "
                "class, and the functions it holds, at the top of a module, so that it can be pickled."
            ) from error

    def copy(self) -> tuple[Method, OwnErrors]:
        """For one stream."""
        method, law = pickle.loads(self.pickled)
        return method, law


def _result(prepared: _PreparedMethod, cell: Cell, base: BaseForecasts, job: Job) -> Result:
    """Follow the stream of a cell and score it.

    A method whose forecasts are finite at first, and then no longer or beyond `LARGEST`, has diverged: its errors are
    infinite, and it has no other scores. If the first is not finite, that is a mistake, and raises `NotFiniteError`.
    """
    run_context = job.run_context
    data = load(cell.dataset, run_context.folder)
    rows = Scaler.fit(data.source).standardise(data.stream(cell.split, cell.horizon))
    rows.flags.writeable = False
    outcomes = sliding(rows[data.context :], cell.horizon)
    stream_base = np.load(base.files[cell.split], mmap_mode="r")
    method, law = prepared.copy()
    clock = Clock(cell.protocol, cell.horizon, data.context - 1)
    online, scores, log, has_diverged = 0.0, RunningScores(), StepLog(len(stream_base)), False
    with _blaming_method(cell):
        shown = snapshots(rows, rows, stream_base, clock, data.context)
        for snapshot, outcome in zip(shown, outcomes, strict=True):
            began = perf_counter()
            prediction = as_prediction(method.step(snapshot))
            online += perf_counter() - began
            has_diverged = scores.windows > 0 and not (np.abs(prediction.mean) < LARGEST).all()  # nor if NaN
            if has_diverged:
                break
            prediction = law.around(prediction, snapshot)
            log.add(snapshot, prediction, outcome, scores.add(prediction, outcome))
    if run_context.per_step:
        run_context.store.write_steps(cell, log.arrays())
    said = settings_record(method)
    return Result(
        cell=cell,
        metrics={
            **(dict(LOST) if has_diverged else {**scores.metrics(), **log.means()}),
            BARE: math.fsum(map(mae, stream_base, outcomes)) / len(outcomes),
        },
        facts={WINDOWS: len(outcomes), **_facts({**base.description, **said})},
        settings={
            "context": data.context,
            "season": data.season,
            "backbone": base.description,
            "method": said,
            "added": added_code(cell),
        },
        versions=versions("ompb", "numpy", "torch") | {"python": platform.python_version()},
        device=run_context.device,
        commit=job.commit,
        timing={"offline_seconds": prepared.seconds, SECONDS: online / scores.windows},
        trained_on=base.description.get("training", {}).get("device"),
    )


def _facts(said: Mapping[str, Any]) -> dict[str, int]:
    """Those among settings; how many forecasts were scored is for nobody else to say."""
    return {name: said[name] for name in FACTS if name != WINDOWS and isinstance(said.get(name), int)}


def _blaming_method(cell: Cell) -> AbstractContextManager[None]:
    return blaming(f"the method {cell.method!r}", outside=method_code(cell.method) is not None)


def conditions(data: BenchmarkData, cell: Cell) -> Conditions:
    """What a method of a cell has to work under."""
    return Conditions(
        source=data.source,
        context=data.context,
        horizon=cell.horizon,
        season=data.season,
        protocol=cell.protocol,
        trainable=is_network(cell.backbone),
        continues=cell.split == ID,
    )


def added_code(cell: Cell) -> dict[str, str]:
    """Versions of what a cell runs that is not of this package."""
    codes = {"backbone": backbone_code(cell.backbone), "method": method_code(cell.method)}
    return {part: code for part, code in codes.items() if code is not None}
