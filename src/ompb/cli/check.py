"""``ompb check``: what a table is, and what ``ompb run`` would do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ompb.cli import reading as about
from ompb.cli.console import progress, say
from ompb.tables import read_series
from ompb.tables.inspection import inspect
from ompb.tables.survey import survey

WIDTH = 11  # of the names of what was found

HELP = """Look at a table before you run it.

Says how FILE was understood: its separator and decimals, wide or long, the time column and its step, gaps, the columns
or series that would be forecast, together or each by itself, the season, and values that look wrong. Then proposes a
command. Nothing is written.

\b
Examples:
  ompb check load.csv
  ompb check sales.csv.gz --id shop --time day --value units
  ompb check meter.csv --timezone Europe/Berlin --missing -999
  zcat load.csv.gz | ompb check -
"""


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Text (CSV, TSV, also .gz) or Parquet; - reads stdin.")],
    time: about.Time = None,
    id: about.Id = None,
    value: about.Value = None,
    target: about.Target = None,
    exclude: about.Exclude = None,
    future: about.Future = None,
    together: about.Together = False,
    missing: about.Missing = None,
    timezone: about.Timezone = None,
    freq: about.Freq = None,
    sep: about.Sep = None,
    decimal: about.Decimal = None,
) -> None:
    """Read the table and tell about it."""
    reading = about.reading_of(time, id, value, target, exclude, future, missing, timezone, freq, sep, decimal)
    with progress("Reading"):
        tables = read_series(file, reading, together=together)
        if len(tables) == 1:
            found = inspect(next(iter(tables.values())), file, reading, together=together)
        else:
            found = survey(tables, file, reading)
    for name, text in found.facts.items():
        say(f"{name:<{WIDTH}} {text}")
    for heading, sentences in (("Done to it:", found.remarks), ("Look at:", found.suspicious)):
        if sentences:
            say(f"\n{heading}")
            for sentence in sentences:
                say(f"  {sentence}")
    if found.command:
        say("\nTo learn from the first three quarters and follow the rest, row by row:")
        say(f"  {found.command}")
    else:
        say("\nThe table is short, or has many holes: choose a small --context and --horizon, or bring more rows.")
