"""What a folder of results holds: exported cells, findings, notes and aims."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from ompb.bench.findings import Finding
from ompb.bench.store import SCORES, Result, exported
from ompb.errors import FormatError, OptionError
from ompb.paper.grid import Spot
from ompb.paper.page.compared import Grid


@dataclass(frozen=True, slots=True)
class Aim:
    """An error that was aimed at before the runs, as a mean over seeds."""

    place: Spot
    metric: str
    value: float


@dataclass(frozen=True)
class Material:
    """All that pages are made from."""

    results: tuple[Result, ...]
    grid: Grid
    findings: tuple[Finding, ...] = ()
    notes: str = ""
    aims: tuple[Aim, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Material:
        """The tables in scores/, made.csv, and what there is of findings, notes.md and aims.csv.

        Raises `FormatError` for a file that is not what its name says, `OptionError` where there is no cell.
        """
        results = tuple(exported(folder / SCORES))
        if not results:
            raise OptionError(f"there is no cell in {folder / SCORES}; run some, then `ompb bench export`.")
        notes = folder / "notes.md"
        return cls(
            results,
            Grid.of(results),
            tuple(Finding.read(path) for path in sorted((folder / "findings").glob("*.json"))),
            notes.read_text(encoding="utf-8") if notes.exists() else "",
            _aims(folder / "aims.csv"),
        )


def _aims(path: Path) -> tuple[Aim, ...]:
    if not path.exists():
        return ()
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(
                Aim(
                    Spot(line["dataset"], line["backbone"], int(line["horizon"]), line["split"]),
                    line["metric"],
                    float(line["aim"]),
                )
                for line in csv.DictReader(file)
            )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path} is not a table of aims ({error}); its columns are dataset, backbone, horizon, split, metric, aim."
        ) from error
