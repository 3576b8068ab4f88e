"""The folders that commands of the benchmark are told of, and what is said of a wrong one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ompb.bench.store import MADE, SCORES
from ompb.datasets.public import VARIABLE
from ompb.errors import OptionError

STORE, RESULTS = Path("results/store"), Path("results")
Place = Annotated[Path, typer.Option("--store", metavar="DIR", file_okay=False, help="Folder of the results.")]
Results = Annotated[
    Path, typer.Option("--results", metavar="DIR", file_okay=False, help="Folder with exported cells and findings.")
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        file_okay=False,
        help="Where the data files are; by default the folder OMPB_DATA names, else data.",
    ),
]


def require_results(folder: Path) -> None:
    """Raise unless cells were exported there."""
    if not ((folder / SCORES).is_dir() and (folder / MADE).is_file()):
        raise OptionError(
            f"{folder} has no exported results ({SCORES} and {MADE}); run in the clone, where they are in {RESULTS}, "
            "name their folder with --results DIR, or write one with `ompb bench export`."
        )


def require_tables_alone(folder: Path) -> None:
    """Raise if a folder that is to hold tables of cells holds anything else."""
    others = sorted(path.name for path in folder.glob("[!.]*") if path.suffix != ".csv") if folder.is_dir() else []
    if others:
        raise OptionError(f"{folder} has {others[0]}, which is no table of cells; name a folder for these alone.")


@contextmanager
def data_in(folder: Path | None) -> Iterator[None]:
    """Within it, analyses find their data in a folder: those that are made from data ask where `VARIABLE` says."""
    before = os.environ.get(VARIABLE)
    if folder is not None:
        os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        elif folder is not None:
            del os.environ[VARIABLE]
