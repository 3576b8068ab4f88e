"""``ompb run``: the user's own table, with the built-in forecaster or with brought forecasts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ompb.cli import reading as about
from ompb.cli.console import progress, say, size_of
from ompb.cli.values import options_of, season_of, unseen_of
from ompb.studies import Studies, Study, study, study_each
from ompb.studies.parts import UNSEEN_SHARE
from ompb.tables import read_series
from ompb.tables.contents import name_of

HELP = """Follow your own table, row by row.

DATA is a text file (CSV, TSV, with any separator, also .gz) or Parquet; - reads standard input. It is wide (a time
column and one column of numbers for each channel) or long (one row for each series and time). Empty cells and NaN are
missing values; missing time stamps are inserted as missing rows. `ompb check DATA` says how it is understood.

The channels of a wide table are one system: one certificate, and each learns from all. The series of a long table stand
each by itself, with a certificate, warnings and scores of its own; they may begin and end at different times, and one
that is too short is left out and named. With --together they are the channels of one system.

The rows before --source-end are the source: the past that everything is learned from. The rows after it are the
target: they arrive one by one, and each gets a forecast of the next --horizon rows from the last --context rows. The
last context - 1 source rows fill the first window, so that the first target row already gets a forecast; nothing is
learned from them again, and results speak of forecasts issued at target rows only.

Without --forecasts, a linear (ridge) forecaster is trained on the first part of the source; the rest of it, --unseen,
is kept for the certificate.

With --forecasts you bring those of your own model, for source and target: columns unique_id (not needed for a single
channel), ds, cutoff (the last time known when the forecast was made) and y_hat, or the model's own name, as in the
tables of Nixtla's cross_validation. They may be made at some rows only, once a day say, and have more leads than
--horizon, which are then left out. Say with --unseen what your model was not trained on; otherwise the certificate is
marked in-sample.

Written to --out: report.html, newest.csv (the newest forecast of each channel or series), forecasts.parquet (all
forecasts, with outcomes and intervals), summary.json, of many series also series.csv (a line for each, with its
scores), and with --csv all forecasts in forecasts.csv as well. In CSV, a name that begins with =, +, -, @, a tab or a
carriage return gets a single quote before it, so that no spreadsheet takes it for a formula.

\b
Examples:
  ompb run load.csv --source-end 2024-03-01 --context 96 --horizon 24
  ompb run load.csv --source-end 2000 --context 96 --horizon 24 --season none
  ompb run meter.csv --source-end 2000 --context 96 --horizon 24 \\
      --target load --timezone Europe/Berlin --missing -999
  ompb run meters.csv --source-end 2024-03-01 --context 96 --horizon 24 --together
  ompb run load.csv --source-end 2000 --context 96 --horizon 24 \\
      --forecasts mine.parquet --model AutoETS --unseen 500 --option gate=shared
"""


def run(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Your table; - reads stdin.")],
    source_end: Annotated[
        str,
        typer.Option(
            metavar="DATE_OR_ROW",
            help="Where the target begins: a date, or how many source rows each series has; ompb check proposes one.",
        ),
    ],
    context: Annotated[int, typer.Option(min=1, help="Rows the forecaster looks back.")],
    horizon: Annotated[int, typer.Option(min=1, help="Rows it forecasts.")],
    season: Annotated[
        str, typer.Option(metavar="ROWS|auto|none", help="Rows in a season (24 for hourly data with daily rhythm).")
    ] = "auto",
    forecasts: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Your own model's forecasts, CSV or Parquet.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of --forecasts: the column that holds them.")
    ] = None,
    unseen: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS_OR_SHARE",
            help=f"End of the source the forecaster is not trained on: 500, or 0.25. [built-in: {UNSEEN_SHARE}]",
        ),
    ] = None,
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
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results; made if need be.")] = Path(
        "ompb-run"
    ),
    csv: Annotated[bool, typer.Option("--csv", help="Write all forecasts as CSV, too; it may be large.")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the calibrator (see ompb.Settings); may be repeated."),
    ] = None,
) -> None:
    """Follow the table, show the scores, and write the results."""
    # Here, so that the other commands do not need what draws.
    from ompb.cli.scores import show_studies, show_study
    from ompb.reports.files import write_results
    from ompb.reports.folder import room

    options, rows_in_season = options_of(option or []), season_of(season)
    reading = about.reading_of(time, id, value, target, exclude, future, missing, timezone, freq, sep, decimal)
    with room(out, csv=csv) as replaced:
        with progress("Reading") as bar:
            asked: dict[str, Any] = {
                "source_end": source_end,
                "context": context,
                "horizon": horizon,
                "season": rows_in_season,
                "forecasts": forecasts,
                "unseen": unseen_of(unseen),
                "column": model,
                "progress": bar.follow,
                **options,
            }
            tables = read_series(data, reading, together=together)
            followed: Study | Studies
            if len(tables) == 1:
                followed = study(next(iter(tables.values())), **asked)
            else:
                followed = study_each(tables, title=f"{name_of(data)}, followed by ompb", **asked)
        if isinstance(followed, Studies):
            show_studies(followed)
        else:
            show_study(followed)
        with progress("Drawing and writing"):
            written = write_results(followed, out, csv=csv)
        if replaced:
            say(replaced)
        for name, path in written.items():
            say(f"{name}: {path} ({size_of(path)})")
