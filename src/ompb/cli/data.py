"""``ompb data``: which of the benchmark's data sets are there, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ompb.cli.console import say, show_table
from ompb.cli.folders import DataFolder
from ompb.datasets.benchmark import NAMES, BenchmarkData, public_set
from ompb.datasets.public import PublicSet, data_folder
from ompb.tables import Table

GROUP_HELP = "Public data sets of the benchmark."
HELP = f"""Check the files of the benchmark's data sets and count their windows.

NAME is one or more of {", ".join(NAMES)}. Without a name every set is checked that is there, and the others are listed;
with a name, a missing file is an error.

\b
Examples:
  ompb data check
  ompb data check etth ili --folder downloads
"""

app = typer.Typer(help=GROUP_HELP, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("check", help=HELP)
def check(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Data sets; all by default.")] = None,
    folder: DataFolder = None,
) -> None:
    """Show files and window counts of every set asked for."""
    place = data_folder(folder)
    for public in [public_set(name) for name in names or NAMES]:
        missing = public.missing(place)
        if missing and not names:
            say(f"\n{public.name}: {', '.join(missing)} not in {place}; to be had from {public.origin}.")
        else:
            _show(public, place)


def _show(public: PublicSet, place: Path) -> None:
    tables = public.tables(place)
    data = public.build(*tables.values())
    files = [_file_line(path, table) for path, table in tables.items()]
    show_table(f"{data.name}: files", ("file", "shape", "time", "values", "missing"), files)
    show_table(f"{data.name}: windows", ("horizon", "source", *data.streams), _window_lines(data))


def _file_line(path: Path, table: Table) -> tuple[str, ...]:
    rows, channels = table.values.shape
    first, last = (str(table.times[row]).partition("T")[0] for row in (0, -1))
    least, largest = np.nanmin(table.values), np.nanmax(table.values)
    missing = np.isnan(table.values).mean()
    return path.name, f"{rows} x {channels}", f"{first} to {last}", f"{least:g} to {largest:g}", f"{missing:.2%}"


def _window_lines(data: BenchmarkData) -> list[tuple[str, ...]]:
    return [(f"{horizon}", *(f"{count}" for count in data.counts(horizon).values())) for horizon in data.horizons]
