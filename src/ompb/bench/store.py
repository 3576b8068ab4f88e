"""Where results live: one small JSON file per finished cell, written whole or not at all."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import FormatError, OptionError
from ompb.floor.files import replacing, sweep

BARE = "bare_mae"  # the metric that tells on which network a cell stands: the base forecasts' own error
LOST: Mapping[str, float] = {"mae": math.inf, "mse": math.inf}  # the metrics of a method that has diverged
SECONDS = "seconds_per_step"  # the timing that is exported beside the metrics
WINDOWS = "windows"  # the fact that every cell has: how many forecasts were scored
# Whole numbers that tables show: beside the first, how many weights of the backbone learn, at which epoch its training
# stopped by itself, and how often it was trained again. A method, or a backbone, says them among its settings.
FACTS = (WINDOWS, "trainable", "stopped_at", "retrainings")
SCORES = "scores"  # the folder of exported cells, among results: a table for each data set
MADE = "made.csv"  # beside that folder: what made them
MAKER = ("commit", "device", "versions", "trained_on")
METRIC_DIGITS = 6  # one backbone trained twice on a GPU differs in the fifth
TIMING_DIGITS = 3  # which other work on the machine changes anyway
COMMIT = 12  # digits of a commit that are exported: enough to find it


Maker: TypeAlias = tuple[str, ...]  # a word for each of `MAKER`
Steps: TypeAlias = Mapping[str, NDArray[Any]]  # see `ompb.bench.steps`


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One number's worth of benchmark: who corrects what, where, and who was shown what."""

    dataset: str
    backbone: str  # as tables name it: "gpt4ts[random]" says where its weights come from
    horizon: int
    split: str
    protocol: str
    method: str
    seed: int

    def __str__(self) -> str:
        return " ".join(str(value) for value in dataclasses.astuple(self))


CELL_FIELDS = tuple(field.name for field in dataclasses.fields(Cell))


@dataclass(frozen=True, slots=True)
class Result:
    """A finished cell. Two runs of it differ in ``timing`` only."""

    cell: Cell
    metrics: Mapping[str, float]
    facts: Mapping[str, int]  # those of `FACTS` that it has
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    device: str
    commit: str | None
    timing: Mapping[str, float]
    trained_on: str | None = None  # the device of its network's training; None: it has none, or nobody knows

    @property
    def has_diverged(self) -> bool:
        """Whether forecasts grew without end."""
        return math.isinf(self.metrics["mae"])


@dataclass(frozen=True, slots=True)
class Store:
    """A directory of results, and of what is kept to make more: trained backbones and their base forecasts."""

    folder: Path

    @property
    def base(self) -> Path:
        """The folder of base forecasts."""
        return self.folder / "base"

    @property
    def backbones(self) -> Path:
        """The folder of trained backbones."""
        return self.folder / "backbones"

    def read(self, cell: Cell) -> Result | None:
        """The result of a cell; None if it is not finished, or its file was cut short."""
        try:
            return _result(json.loads(self._path(cell).read_text(encoding="utf-8")))
        except (FileNotFoundError, FormatError, ValueError):
            return None

    def write(self, result: Result) -> None:
        """Put a result where `read` finds it. Infinite errors are written as Python's JSON has them."""
        text = json.dumps(dataclasses.asdict(result), indent=1)
        with replacing(self._path(result.cell), parents=True) as part:
            part.write_text(text + "\n", encoding="utf-8")

    def write_steps(self, cell: Cell, steps: Steps) -> None:
        """Keep what a cell did step by step, in the folder "steps"."""
        with replacing(self._path(cell, "steps", "npz"), parents=True) as part, part.open("wb") as file:
            np.savez_compressed(file, **steps)  # type: ignore[arg-type]  # names are not those of its options

    def steps(self, cell: Cell) -> Steps | None:
        """What `write_steps` kept; None if there is nothing."""
        if not self.has_steps(cell):
            return None
        with np.load(self._path(cell, "steps", "npz")) as file:
            return {name: file[name] for name in file.files}

    def has_steps(self, cell: Cell) -> bool:
        """Whether `write_steps` kept anything of a cell."""
        return self._path(cell, "steps", "npz").exists()

    def sweep(self) -> None:
        """Remove what runs that were killed long ago had half written."""
        for folder in self.folder.glob("*/"):
            sweep(folder)

    def _path(self, cell: Cell, folder: str = "cells", kind: str = "json") -> Path:
        words = [str(value) for value in dataclasses.astuple(cell)]
        if any("/" in word or word.startswith(".") for word in words):
            raise OptionError(f"the cell {cell} cannot be a file name; use names without a slash.")
        return self.folder / folder / f"{','.join(words)}.{kind}"


def collect(store: Store) -> list[Result]:
    """Every finished cell, in order. Raises `FormatError` for a file that is not one."""
    results = []
    for path in (store.folder / "cells").glob("[!.]*.json"):
        try:
            results.append(_result(json.loads(path.read_text(encoding="utf-8"))))
        except ValueError as error:
            raise FormatError(
                f"{path} is not a readable result ({error}); delete it and run its cell again."
            ) from error
    return sorted(results, key=lambda result: result.cell)


def with_earlier(results: Sequence[Result], earlier: Iterable[Result]) -> list[Result]:
    """These, and those earlier ones whose cell is not among them, in order."""
    by_cell = {result.cell: result for result in (*earlier, *results)}
    return [by_cell[cell] for cell in sorted(by_cell)]


def export(store: Store, folder: Path, earlier: Sequence[Result] = ()) -> int:
    """Write every finished cell to a folder, a CSV for each data set and a line for each cell; returns how many.

    ``earlier`` ones that the store lacks are written, too; no other table is left there. A metric is a column, blank
    where a cell lacks it; the column ``made`` is the ``id`` of a line of `MADE`, beside the folder: what made them.
    """
    folder = folder.absolute()  # "." has no name of its own, beside which `MADE` could be
    results = with_earlier(collect(store), earlier)
    if not results:
        raise OptionError(f"there is no finished cell in {store.folder}; name another store, or run cells first.")
    if folder.is_file():
        raise OptionError(f"{folder} is a file; name a folder for the tables of cells.")
    there = set(folder.glob("*.csv"))
    strangers = sorted(path.name for path in there if not _has_cells(path))
    if strangers:
        raise OptionError(f"{folder} has {strangers[0]}, which is no table of cells; name a folder for these alone.")
    made = folder.with_name(MADE)
    makers = _numbered({_maker(result) for result in results}, made if earlier else None)
    metrics = sorted({name for result in results for name in result.metrics})

    def line(result: Result) -> tuple[object, ...]:
        return (
            *dataclasses.astuple(result.cell),
            *(result.facts.get(name, "") for name in FACTS),
            *(_digits(result.metrics.get(name), METRIC_DIGITS) for name in metrics),
            _digits(result.timing.get(SECONDS), TIMING_DIGITS),
            makers[_maker(result)],
        )

    _write_table(made, ("id", *MAKER), ((number, *maker) for maker, number in makers.items()))
    written = set()
    for dataset, same in itertools.groupby(results, key=lambda result: result.cell.dataset):
        written.add(folder / f"{dataset}.csv")
        _write_table(folder / f"{dataset}.csv", (*CELL_FIELDS, *FACTS, *metrics, SECONDS, "made"), map(line, same))
    for other in there - written:
        other.unlink()
    return len(results)


def _numbered(makers: Collection[Maker], path: Path | None) -> dict[Maker, int]:
    """An id for each, in order of ids: its own where a table has it, so that lines of cells that stay do not change."""
    lines = _read_table(path) if path and path.exists() else []
    known = {tuple(line[name] for name in MAKER): int(line["id"]) for line in lines}
    free = itertools.count(max(known.values(), default=-1) + 1)
    numbers = {maker: known[maker] if maker in known else next(free) for maker in sorted(makers)}
    return dict(sorted(numbers.items(), key=lambda item: item[1]))


def _maker(result: Result) -> Maker:
    """Commit, device, versions and the device of the network's training, as words."""
    versions = " ".join(f"{name}={number}" for name, number in sorted(result.versions.items()))
    return (result.commit or "")[:COMMIT], result.device, versions, result.trained_on or ""


def _digits(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _write_table(path: Path, headings: Iterable[str], lines: Iterable[Iterable[object]]) -> None:
    with replacing(path, parents=True) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows(lines)


def _has_cells(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().startswith(",".join(CELL_FIELDS).encode())


def exported(folder: Path) -> list[Result]:
    """Results as `export` wrote them, in order, without their settings. Raises `FormatError`."""
    try:
        makers = {line["id"]: _made_by(line) for line in _read_table(folder.with_name(MADE))}
        tables = [path for path in folder.iterdir() if path.suffix == ".csv"]
        results = [_exported(line, makers) for path in tables for line in _read_table(path)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{folder} has no tables of cells ({error}); write it with `ompb bench export`.") from error
    return sorted(results, key=lambda result: result.cell)


def _read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _made_by(line: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a result that its maker decides."""
    return {
        "commit": line["commit"] or None,
        "device": line["device"],
        "versions": dict(item.split("=") for item in line["versions"].split()),
        "trained_on": line["trained_on"] or None,
    }


def _exported(line: Mapping[str, str], makers: Mapping[str, Mapping[str, Any]]) -> Result:
    words = {name: line[name] for name in CELL_FIELDS}
    cell = Cell(**{**words, "horizon": int(words["horizon"]), "seed": int(words["seed"])})  # type: ignore[arg-type]
    others = (*CELL_FIELDS, *FACTS, "made")
    numbers = {name: float(word) for name, word in line.items() if word and name not in others}
    facts = {name: int(line[name]) for name in FACTS if line[name]}
    timing = {SECONDS: numbers.pop(SECONDS)} if SECONDS in numbers else {}
    return Result(cell, numbers, facts, settings={}, timing=timing, **makers[line["made"]])


def digest(*contents: bytes) -> str:
    """A name for contents: the same for the same, and for no others."""
    hashed = hashlib.sha256()
    for content in contents:
        hashed.update(content)
    return hashed.hexdigest()[:20]


def _result(tree: Any) -> Result:
    try:
        return Result(**{**tree, "cell": Cell(**tree["cell"])})
    except (KeyError, TypeError) as error:
        raise FormatError(f"a result has other fields than expected ({error}); run its cell again.") from error
