"""``ompb run``: the user's own table, with the built-in forecaster or with brought forecasts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ompb.cli.console import progress, say
from ompb.cli.values import options_of, season_of, unseen_of
from ompb.studies import study
from ompb.studies.parts import UNSEEN_SHARE

HELP = """Follow your own table, row by row.

DATA is a CSV or Parquet file, wide (a time column and one numeric column per channel) or long (unique_id, ds, y). Empty
cells and NaN are missing values; missing time stamps are inserted as missing rows.

The rows before --source-end are the source: the past that everything is learned from. The rows after it are the
target: they arrive one by one, and each gets a forecast of the next --horizon rows from the last --context rows. The
last context - 1 source rows fill the first window, so that the first target row already gets a forecast; nothing is
learned from them again, and results speak of forecasts issued at target rows only.

Without --forecasts, a linear (ridge) forecaster is trained on the first part of the source; the rest of it, --unseen,
is kept for the certificate.

With --forecasts you bring those of your own model, for source and target: columns unique_id (not needed for a single
channel), ds, cutoff (the last time known when the forecast was made) and y_hat, with all leads at every row. Say with
--unseen what your model was not trained on; otherwise the certificate is marked in-sample.

Written to --out: forecasts.csv (or .parquet), summary.json and report.html. In CSV, a channel whose name begins with
=, +, -, @, a tab or a carriage return gets a single quote before it, so that no spreadsheet takes it for a formula.

\b
Examples:
  ompb run load.csv --source-end 2024-03-01 --context 96 --horizon 24
  ompb run load.csv --source-end 2000 --context 96 --horizon 24 --season none
  ompb run load.csv --source-end 2000 --context 96 --horizon 24 \\
      --forecasts mine.parquet --unseen 500 --option gate=shared
"""


class Format(StrEnum):
    """Of the forecasts file."""

    csv = "csv"
    parquet = "parquet"


def run(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Your table, CSV or Parquet.")],
    source_end: Annotated[
        str, typer.Option(metavar="DATE_OR_ROW", help="Where the target begins: a date, or the number of source rows.")
    ],
    context: Annotated[int, typer.Option(min=1, help="Rows the forecaster looks back.")],
    horizon: Annotated[int, typer.Option(min=1, help="Rows it forecasts.")],
    season: Annotated[
        str, typer.Option(metavar="ROWS|auto|none", help="Rows in a season (24 for hourly data with daily rhythm).")
    ] = "auto",
    forecasts: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Your own model's forecasts, CSV or Parquet.")
    ] = None,
    unseen: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS_OR_SHARE",
            help=f"End of the source the forecaster is not trained on: 500, or 0.25. [built-in: {UNSEEN_SHARE}]",
        ),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The time column, if it is not found by itself.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results; made if need be.")] = Path(
        "ompb-run"
    ),
    file_format: Annotated[Format, typer.Option("--format", help="Of the forecasts file.")] = Format.csv,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the calibrator (see ompb.Settings); may be repeated."),
    ] = None,
) -> None:
    """Follow the table, show the scores, and write the results."""
    # Here, so that the other commands do not need what draws.
    from ompb.cli.scores import show_scores
    from ompb.reports.files import write_results

    options, rows_in_season = options_of(option or []), season_of(season)
    out.mkdir(parents=True, exist_ok=True)
    with progress("Reading") as bar:
        followed = study(
            data,
            source_end=source_end,
            context=context,
            horizon=horizon,
            season=rows_in_season,
            forecasts=forecasts,
            unseen=unseen_of(unseen),
            time=time,
            progress=bar.follow,
            **options,
        )
    for note in followed.notes:
        say(note)
    say(
        f"Source: {followed.facts['source']}. Season: {followed.calibrator.season or 'none'}. "
        f"Forecasts issued: {len(followed.run.origins)}."
    )
    show_scores(followed)
    if sentence := followed.hidden_sentence():
        say(sentence)
    for sentence in followed.warnings_told():
        say(sentence)
    for name, path in write_results(followed, out, file_format.value).items():
        say(f"{name}: {path}")
