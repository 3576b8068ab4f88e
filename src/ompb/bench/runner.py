"""Runs cells: each one that is missing in the store, once, in any number of processes, however often interrupted.

Cells share what they can: those that differ in split, protocol and method their backbone and base forecasts; those that
differ in their split alone their method, too, which learns from the source once and then follows each stream as a copy.
"""

from __future__ import annotations

import itertools
import os
import pickle
import platform
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from ompb import checks
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
from ompb.bench.contract import Conditions, Method, Task, settings_record, snapshots
from ompb.bench.law import OwnErrors
from ompb.bench.methods import make, method_code, method_names, unfit
from ompb.bench.protocols import Clock
from ompb.bench.scores import RunningScores
from ompb.bench.steps import StepLog
from ompb.bench.store import SECONDS, Cell, Result
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.datasets.splits import ID
from ompb.errors import OmpbError, OptionError
from ompb.scaler import Scaler

ALL = "all"

Progress: TypeAlias = Callable[[int, int], None]
Log: TypeAlias = Callable[[str], None]
_Ended: TypeAlias = tuple[Cell, str | None]  # and what went wrong, if anything


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a choice, and those left out because "all" met a method that does not fit, with the reason."""

    cells: tuple[Cell, ...]
    left_out: Mapping[Cell, str]

    @classmethod
    def of(
        cls,
        datasets: Sequence[str],
        backbones: Sequence[str],
        horizons: Sequence[int] = (),
        splits: Sequence[str] = (ALL,),
        protocols: Sequence[str] = ("honest",),
        methods: Sequence[str] = (ALL,),
        seeds: Sequence[int] = (0,),
        folder: Path | None = None,
    ) -> Grid:
        """Every combination, checked; without horizons those of the paper. A method named that does not fit raises."""
        cells, left_out = [], {}
        names = method_names() if ALL in methods else tuple(methods)
        for dataset in datasets:
            data = load(dataset, folder)
            places = tuple(data.streams) if ALL in splits else tuple(splits)
            lengths = tuple(horizons) or data.horizons
            for backbone, horizon, split in itertools.product(backbones, lengths, places):
                data.stream(split, horizon)  # raises if there is no such split or no window in it
                for protocol, name, seed in itertools.product(protocols, names, seeds):
                    Clock(protocol, horizon)  # raises if there is no such protocol
                    checks.seed("seed", seed)
                    cell = Cell(dataset, backbone, horizon, split, protocol, name, seed)
                    reason = unfit(name, conditions(data, cell))
                    if reason is None:
                        cells.append(cell)
                    elif ALL in methods:
                        left_out[cell] = reason
                    else:
                        raise OptionError(f"the cell {cell} cannot be run: {reason}.")
        return cls(tuple(cells), left_out)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did: cells there already, cells finished by it, and cells that failed, with the reason."""

    old: int
    new: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)


def run(
    cells: Iterable[Cell],
    run_context: RunContext,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    log: Log | None = None,
    status: Status | None = None,
) -> Report:
    """Run every cell that the store lacks, or has from another version of a method or forecaster that was added.

    A cell that fails with an error of this package, or of code that was added, does not stop the others. ``progress``
    is called with (cells done, cells in all), ``log`` with a line per event, ``status``, if it is this process that
    works, with what is being done.
    """
    checks.count("jobs", jobs)
    wanted = list(dict.fromkeys(cells))
    missing = [cell for cell in wanted if not _finished(cell, run_context)]
    run_context.store.sweep()
    report = Report(old=len(wanted) - len(missing))
    job = _Job(run_context, _commit())
    ends = _in_turn(missing, job, status or _silent) if jobs == 1 else _in_processes(missing, job, jobs)
    for done, (cell, problem) in enumerate(ends, start=1):
        if problem is None:
            report.new.append(cell)
        else:
            report.failed[cell] = problem
        if log is not None:
            log(f"{cell}: {problem or 'finished'}")
        if progress is not None:
            progress(done, len(missing))
    return report


def _finished(cell: Cell, run_context: RunContext) -> bool:
    found = run_context.store.read(cell)
    if found is None or found.settings.get("added", {}) != _added_code(cell):
        return False
    return not run_context.per_step or run_context.store.steps(cell) is not None


def _added_code(cell: Cell) -> dict[str, str]:
    """Versions of what a cell runs that is not of this package."""
    codes = {"backbone": backbone_code(cell.backbone), "method": method_code(cell.method)}
    return {part: code for part, code in codes.items() if code is not None}


def _silent(doing: str) -> None:
    """Keep what is being done to oneself."""


def _in_turn(cells: Sequence[Cell], job: _Job, status: Status) -> Iterator[_Ended]:
    """Cells as they end: first the base forecasts that some of them share, then these cells."""
    for group in _sharing_base(cells):
        base, problem = job.prepare(group, status)
        if base is None:
            yield from ((cell, problem) for cell in group)
            continue
        for splits in _sharing_method(group):
            yield from job.run(splits, base, status)


def _in_processes(cells: Sequence[Cell], job: _Job, jobs: int) -> Iterator[_Ended]:
    """The same, several at once."""
    # Processes are started afresh: a copy of one in which torch has run may hang.
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_start_worker, initargs=job.run_context.added
    )
    try:
        preparing = {pool.submit(job.prepare, group): group for group in _sharing_base(cells)}
        running: set[Future[list[_Ended]]] = set()
        while preparing or running:
            waiting: list[Future[Any]] = [*preparing, *running]
            ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready & running:
                running.remove(future)
                yield from future.result()
            for future in ready & preparing.keys():
                group = preparing.pop(future)
                base, problem = future.result()
                if base is None:
                    yield from ((cell, problem) for cell in group)
                else:
                    running |= {pool.submit(job.run_all, splits, base) for splits in _sharing_method(group)}
    finally:
        pool.shutdown(cancel_futures=True)


def _sharing_base(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Groups of cells that share their base forecasts."""
    return _alike(cells, lambda cell: (cell.dataset, cell.backbone, cell.horizon, cell.seed))


def _sharing_method(group: Sequence[Cell]) -> list[list[Cell]]:
    """Those of a group that differ in their split alone, and so share what the method learns from the source."""
    return _alike(group, lambda cell: (cell.protocol, cell.method))


def _alike(cells: Sequence[Cell], key: Callable[[Cell], tuple[object, ...]]) -> list[list[Cell]]:
    """Cells with the same key together, in the order of their first."""
    alike: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        alike.setdefault(key(cell), []).append(cell)
    return list(alike.values())


@dataclass(frozen=True, slots=True)
class _Job:
    """The work on a cell, in whatever process; an error of this package is an answer, any other is raised."""

    run_context: RunContext
    commit: str | None

    def prepare(self, group: Sequence[Cell], status: Status = _silent) -> tuple[BaseForecasts | None, str | None]:
        """The base forecasts of a group, or what went wrong."""
        try:
            return prepare(group, self.run_context, status), None
        except OmpbError as error:
            return None, str(error)

    def run(self, splits: Sequence[Cell], base: BaseForecasts, status: Status = _silent) -> Iterator[_Ended]:
        """Run cells that differ in their split alone; what went wrong with each, or None."""
        status(f"{splits[0].method} learns from the source")
        try:
            prepared = _PreparedMethod.of(splits[0], base, self.run_context)
        except OmpbError as error:
            yield from ((cell, str(error)) for cell in splits)
            return
        for cell in splits:
            yield cell, self._follow(prepared, cell, base, status)

    def run_all(self, splits: Sequence[Cell], base: BaseForecasts) -> list[_Ended]:
        """`run` for another process, which can only send back what is finished."""
        return list(self.run(splits, base))

    def _follow(self, prepared: _PreparedMethod, cell: Cell, base: BaseForecasts, status: Status) -> str | None:
        status(str(cell))
        try:
            self.run_context.store.write(_result(prepared, cell, base, self.run_context, self.commit))
        except OmpbError as error:
            return str(error)
        return None


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
            **vars(conditions(data, cell)),
            source=Scaler.fit(data.source).standardise(data.source),
            source_base=np.load(base.files[SOURCE], mmap_mode="r"),
            seed=cell.seed,
            network=base.network,
            device=run_context.device,
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


def _result(
    prepared: _PreparedMethod, cell: Cell, base: BaseForecasts, run_context: RunContext, commit: str | None
) -> Result:
    """Follow the stream of a cell and score it."""
    data = load(cell.dataset, run_context.folder)
    rows = Scaler.fit(data.source).standardise(data.stream(cell.split, cell.horizon))
    rows.flags.writeable = False
    stream_base = np.load(base.files[cell.split], mmap_mode="r")
    method, law = prepared.copy()
    clock = Clock(cell.protocol, cell.horizon, data.context - 1)
    online, scores, log = 0.0, RunningScores(), StepLog(len(stream_base))
    with _blaming_method(cell):
        for snapshot in snapshots(rows, rows, stream_base, clock, data.context):
            began = perf_counter()
            prediction = method.step(snapshot)
            online += perf_counter() - began
            prediction = law.around(prediction, snapshot)
            outcome = rows[snapshot.origin + 1 : snapshot.origin + 1 + cell.horizon]
            log.add(snapshot, prediction, outcome, scores.add(prediction, outcome))
    if run_context.per_step:
        run_context.store.write_steps(cell, log.arrays())
    return Result(
        cell=cell,
        metrics=scores.metrics(),
        settings={
            "context": data.context,
            "season": data.season,
            "windows": scores.windows,
            "backbone": base.description,
            "method": settings_record(method),
            "added": _added_code(cell),
        },
        versions=versions("ompb", "numpy", "torch") | {"python": platform.python_version()},
        device=run_context.device,
        commit=commit,
        timing={"offline_seconds": prepared.seconds, SECONDS: online / scores.windows},
    )


def _blaming_method(cell: Cell) -> AbstractContextManager[None]:
    return blaming(f"the method {cell.method!r}", outside=method_code(cell.method) is not None)


def conditions(data: BenchmarkData, cell: Cell) -> Conditions:
    """What a method of a cell has to work under."""
    return Conditions(
        context=data.context,
        horizon=cell.horizon,
        season=data.season,
        protocol=cell.protocol,
        trainable=is_network(cell.backbone),
        continues=cell.split == ID,
    )


def _start_worker(*added: Path) -> None:
    """Make a worker know what was added, and end with its parent: else, when that is killed, it would wait for ever."""
    for file in added:
        add_file(file)
    parent = parent_process()
    assert parent is not None  # a worker has one

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _commit() -> str | None:
    """The commit of a working copy this package runs from; None if it is installed in another way."""
    here = Path(__file__)
    command = ["git", "-C", str(here.parent)]
    try:
        subprocess.run([*command, "ls-files", "--error-unmatch", here.name], check=True, capture_output=True)
        head = subprocess.run([*command, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip()
