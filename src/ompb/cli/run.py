"""``ompb run``: the user's own table, with the built-in forecaster or with brought forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ompb.cli.console import say, show_scores
from ompb.cli.study import Plan, carry_out, rows_of
from ompb.cli.values import options_of, season_of, unseen_rows
from ompb.datasets.demo import Phase
from ompb.datasets.tables import Table, read_forecasts, read_table, regular, split_row
from ompb.errors import ForecasterError
from ompb.forecasters import Recorded, Ridge
from ompb.report.files import write_forecasts, write_summary
from ompb.report.html import write_report
from ompb.report.summary import Study
from ompb.types import Floats, Forecaster

UNSEEN_SHARE = "0.25"  # of the source, on which the built-in forecaster is not trained

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

Written to --out: forecasts.csv (or .parquet), summary.json and report.html.

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
    """Read, split, learn, follow, and write the results."""
    options, rows_in_season = options_of(option or []), season_of(season)
    table, inserted = regular(read_table(data, time))
    source_rows = split_row(table, source_end)
    say(f"{data}: {len(table.values)} rows of {len(table.channels)} channels, {inserted} missing time stamps inserted.")
    if forecasts is None:
        parts = _built_in(table, source_rows, unseen or UNSEEN_SHARE, context, horizon)
    else:
        parts = _brought(table, source_rows, unseen, context, horizon, forecasts)
    out.mkdir(parents=True, exist_ok=True)
    study = carry_out(
        Plan(
            title=f"{data.name}, followed by ompb",
            source=rows_of(table, parts.source),
            stream=rows_of(table, parts.stream),
            on_source=parts.on_source,
            on_stream=parts.on_stream,
            phases=(Phase("target", context - 1, parts.stream.stop - parts.stream.start),),
            context=context,
            horizon=horizon,
            season=rows_in_season,
            unseen=parts.unseen,
            options=options,
            facts={"data": data.name, **parts.facts(table, context)},
        )
    )
    say(
        f"Source: {_span(table, parts.source)}. Season: {study.calibrator.season or 'none'}. "
        f"Forecasts issued: {len(study.run.origins)}."
    )
    show_scores(study)
    _write(study, out, file_format)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Which rows of the table are learned from and which are streamed, and who forecasts them."""

    source: slice
    stream: slice  # with the context - 1 source rows that fill the first window
    on_source: Forecaster
    on_stream: Forecaster
    unseen: int | None
    forecaster: str  # in words

    def facts(self, table: Table, context: int) -> dict[str, str]:
        """For the report."""
        target = slice(self.stream.start + context - 1, self.stream.stop)
        return {
            "forecaster": self.forecaster,
            "source": _span(table, self.source),
            "target": _span(table, target),
            "not trained on": f"the last {self.unseen} source rows" if self.unseen else "not known",
        }


def _built_in(table: Table, source_rows: int, unseen: str, context: int, horizon: int) -> _Parts:
    kept = unseen_rows(unseen, source_rows)
    forecaster = Ridge.fit(table.values[: source_rows - kept], context, horizon)
    return _Parts(
        source=slice(0, source_rows),
        stream=slice(max(0, source_rows - context + 1), len(table.values)),
        on_source=forecaster,
        on_stream=forecaster,
        unseen=kept,
        forecaster=f"built-in ridge regression, trained on the first {source_rows - kept} rows, then frozen",
    )


def _brought(table: Table, source_rows: int, unseen: str | None, context: int, horizon: int, path: Path) -> _Parts:
    recorded = read_forecasts(path, table, horizon)
    first, last = _covered_origins(recorded, table, source_rows, horizon)
    source = slice(max(0, first - context + 1), source_rows)
    stream = slice(max(0, source_rows - context + 1), last + 1)
    if source.start:
        say(f"The forecasts begin at {table.times[first].item()}: the first {source.start} source rows are not used.")
    if stream.stop < len(table.values):
        unused = len(table.values) - stream.stop
        say(f"The forecasts end at {table.times[last].item()}: the last {unused} rows are not used.")
    return _Parts(
        source=source,
        stream=stream,
        on_source=Recorded(recorded[source]),
        on_stream=Recorded(recorded[stream]),
        unseen=None if unseen is None else unseen_rows(unseen, source_rows - source.start),
        forecaster=f"forecasts recorded in {path.name}",
    )


def _covered_origins(recorded: Floats, table: Table, source_rows: int, horizon: int) -> tuple[int, int]:
    """The first and the last origin with a complete forecast; there is no gap between them that matters."""
    complete = np.asarray(np.isfinite(recorded).all(axis=(1, 2)))
    covered = np.flatnonzero(complete)
    for part, found in (("source", covered < source_rows - horizon), ("target", covered >= source_rows)):
        if not found.any():
            raise ForecasterError(
                f"the forecasts have no cutoff in the {part} with all {horizon} leads of all channels; "
                "bring forecasts for source and target, or move --source-end."
            )
    first, last = int(covered[0]), int(covered[-1])
    needed = np.arange(first, last)
    # Outcomes of the last source origins lie in the target, so nobody asks for those forecasts.
    needed = needed[(needed < source_rows - horizon) | (needed >= source_rows)]
    missing = needed[~complete[needed]]
    if len(missing):
        raise ForecasterError(
            f"the forecasts of cutoff {table.times[missing[0]].item()} are missing or incomplete (and those of "
            f"{len(missing) - 1} later cutoffs); every row needs all {horizon} leads of all channels."
        )
    return first, last


def _span(table: Table, rows: slice) -> str:
    first, last = table.times[rows.start].item(), table.times[rows.stop - 1].item()
    return f"{rows.stop - rows.start} rows, {first} to {last}"


def _write(study: Study, out: Path, file_format: Format) -> None:
    forecasts = out / f"forecasts.{file_format.value}"
    write_forecasts(study, forecasts)
    write_summary(study, out / "summary.json")
    write_report(study, out / "report.html")
    say(f"Forecasts: {forecasts}")
    say(f"Summary: {out / 'summary.json'}")
    say(f"Report: {out / 'report.html'}")
