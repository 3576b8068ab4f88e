"""Runs cells: each one that is missing in the store, once, wherever an executor runs tasks, however often interrupted.

Cells share what they can: those that differ in split, protocol and method their backbone and base forecasts; those that
differ in their split alone their method, too, which learns from the source once and then follows each stream as a copy.
"""

from __future__ import annotations

import itertools
import subprocess
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ompb.bench.backbones import BaseForecasts, RunContext
from ompb.bench.executors import Died, Ended, Executor, Found, InTurn
from ompb.bench.methods import is_by_stream, method_names, unfit
from ompb.bench.protocols import Clock
from ompb.bench.ready import require_devices, require_weights
from ompb.bench.store import Cell
from ompb.bench.work import CellEnd, Follow, Job, Prepare, added_code, conditions
from ompb.datasets.benchmark import load
from ompb.datasets.splits import ID
from ompb.errors import OptionError
from ompb.floor import checks

ALL = "all"
TRIES = 2  # of a cell whose process dies
NAMED = 2  # cells that a sentence on failures names

Progress: TypeAlias = Callable[[int, int], None]
Log: TypeAlias = Callable[[str], None]
IsOver: TypeAlias = Callable[[], bool]


def never() -> bool:
    """Time is never over."""
    return False


class LeftOut(NamedTuple):
    """Why a cell is not run."""

    who: str  # it is the fault of: a method, a data set, or a part of one
    why: str


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a choice, and those left out because "all" met a method that does not fit, with the reason."""

    cells: tuple[Cell, ...]
    left_out: Mapping[Cell, LeftOut]

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
                        left_out[cell] = LeftOut(name, reason)
                    else:
                        raise OptionError(f"the cell {cell} cannot be run: {reason}.")
        return cls(tuple(cells), left_out)

    def told(self) -> list[str]:
        """A sentence for each reason to leave cells out."""
        by_reason: dict[str, dict[str, None]] = {}
        for who, why in self.left_out.values():
            by_reason.setdefault(why, {})[who] = None
        return [f"{', '.join(whose)} left out: {why}." for why, whose in by_reason.items()]


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did: cells there already, cells finished by it, and cells that failed, with the reason."""

    old: int
    asked: int  # of those that were not there
    new: list[Cell] = field(default_factory=list)
    diverged: list[Cell] = field(default_factory=list)  # of the new ones, those whose forecasts grew without end
    failed: dict[Cell, str] = field(default_factory=dict)

    def told(self) -> list[str]:
        """A sentence for what has diverged, and for each cause of failure."""
        by_cause: dict[str, list[Cell]] = {}
        for cell, problem in self.failed.items():
            by_cause.setdefault(problem, []).append(cell)
        lost = f"{_named(self.diverged)} diverged: forecasts grew without end, and so the error is infinite."
        return [lost] * bool(self.diverged) + [
            f"{_named(cells)} failed: {problem}" for problem, cells in by_cause.items()
        ]

    @property
    def left(self) -> int:
        """Cells that were not begun, or not ended, when the time was over."""
        return self.asked - len(self.new) - len(self.failed)


def _named(cells: Sequence[Cell]) -> str:
    """The first few, and how many more there are."""
    named = ", ".join(map(str, cells[:NAMED]))
    return named if len(cells) <= NAMED else f"{named} and {len(cells) - NAMED} more"


def run(
    cells: Iterable[Cell],
    run_context: RunContext,
    *,
    executor: Executor | None = None,
    is_over: IsOver = never,
    progress: Progress | None = None,
    log: Log | None = None,
) -> Report:
    """Run every cell that the store lacks, or has from another version of a method or forecaster that was added.

    They are begun in their order, as far as they share nothing; once ``is_over`` nothing more is begun.

    A cell that fails with an error of this package, or of code that was added, does not stop the others; nor does one
    whose process dies, which is tried once more in another. A device that is not there, or GPT-2's weights, raise
    `OptionError` before anything is run here. Without an executor everything runs in this process.
    ``progress`` is called with (cells done, cells in all), ``log`` with a line per event.
    """
    wanted = list(dict.fromkeys(cells))
    missing = [cell for cell in wanted if not _finished(cell, run_context)]
    executor = executor or InTurn()
    if missing and executor.is_here:
        require_devices(run_context)
        require_weights(missing, run_context)
    run_context.store.sweep()
    report = Report(old=len(wanted) - len(missing), asked=len(missing))
    job = Job(run_context.absolute(), _commit())
    with closing(_ends(missing, job, executor, is_over)) as ends:  # whatever stops this ends the executor's work, too
        for done, (cell, problem) in enumerate(ends, start=1):
            if problem is None:
                report.new.append(cell)
            else:
                report.failed[cell] = problem
            if problem is None and _has_diverged(cell, run_context):
                report.diverged.append(cell)
            if log is not None:
                log(f"{cell}: {problem or 'finished'}")
            if progress is not None:
                progress(done, len(missing))
    return report


def _finished(cell: Cell, run_context: RunContext) -> bool:
    found = run_context.store.read(cell)
    if found is None or found.settings.get("added", {}) != added_code(cell):
        return False
    return not run_context.per_step or run_context.store.steps(cell) is not None


def _has_diverged(cell: Cell, run_context: RunContext) -> bool:
    found = run_context.store.read(cell)
    return found is not None and found.has_diverged


def _ends(cells: Sequence[Cell], job: Job, executor: Executor, is_over: IsOver) -> Generator[CellEnd]:
    """Cells as they end. Those whose base forecasts are there go before further base forecasts."""
    waiting: deque[Prepare | Follow] = deque(Prepare(job, group) for group in _sharing_base(cells))
    left: dict[Prepare | Follow, list[Cell]] = {}  # of the tasks at work, the cells that have not ended
    deaths: Counter[Cell] = Counter()
    with executor:
        while left or (waiting and not is_over()):
            while waiting and len(left) < executor.slots and not is_over():
                left[waiting[0]] = list(waiting[0].cells)
                executor.start(waiting.popleft())
            match executor.wait():
                case Found(task, BaseForecasts() as base):
                    left[task].clear()
                    waiting.extendleft(Follow(job, splits, base) for splits in reversed(_sharing_method(task.cells)))
                case Found(task, (cell, problem)):
                    left[task].remove(cell)
                    yield cell, problem
                case Ended(task):
                    del left[task]
                case Died(task, how):
                    rest = left.pop(task)
                    given_up, again = _after_death(task, rest, deaths)
                    yield from ((cell, f"its process died {TRIES} times (the last time: {how})") for cell in given_up)
                    if again:
                        waiting.appendleft(replace(task, cells=again))


def _after_death(
    task: Prepare | Follow, rest: Sequence[Cell], deaths: Counter[Cell]
) -> tuple[list[Cell], tuple[Cell, ...]]:
    """Of the cells that a task still had to do, those that are given up and those to try again."""
    blamed = rest if isinstance(task, Prepare) else rest[:1]  # the cell at work; who prepares works for all
    deaths.update(blamed)
    given_up = [cell for cell in blamed if deaths[cell] == TRIES]
    return given_up, tuple(cell for cell in rest if cell not in given_up)


def _sharing_base(cells: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """Groups of cells that share their base forecasts."""
    return _alike(cells, lambda cell: (cell.dataset, cell.backbone, cell.horizon, cell.seed))


def _sharing_method(group: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """Those of a group that differ in their split alone, and so share what the method learns from the source."""
    return _alike(group, lambda cell: (cell.protocol, cell.method, is_by_stream(cell.method) and cell.split == ID))


def _alike(cells: Sequence[Cell], key: Callable[[Cell], tuple[object, ...]]) -> list[tuple[Cell, ...]]:
    """Cells with the same key together, in the order of their first."""
    alike: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        alike.setdefault(key(cell), []).append(cell)
    return [tuple(group) for group in alike.values()]


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
