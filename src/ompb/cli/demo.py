"""``ompb demo``: the whole story on data made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ompb.cli.console import say, show_scores
from ompb.cli.study import Plan, carry_out, rows_of
from ompb.datasets.demo import PHASE_DAYS, SOURCE_DAYS, Demo, Phase, demo_series
from ompb.datasets.tables import Table
from ompb.forecasters import Ridge
from ompb.report.figures import require_png, write_picture
from ompb.report.html import write_report

CONTEXT, HORIZON, SEASON = 96, 24, 24  # four days to see, one to forecast
TRAINED_SHARE = 0.75  # of the source; the rest is for the certificate
TRAINED_DAYS = round(TRAINED_SHARE * SOURCE_DAYS)

HELP = f"""Show on made-up data what ompb does. No data needed, a few seconds.

Five electricity feeders, hour by hour. A linear forecaster is trained on {TRAINED_DAYS} days and then frozen;
{SOURCE_DAYS - TRAINED_DAYS} more days, which it never saw, are kept for the certificate. Then new days arrive row by
row: {PHASE_DAYS} as before, {PHASE_DAYS} with more customers (covariate shift), {PHASE_DAYS} with a new tariff (concept
shift). The screen shows the scores of each phase; the report shows the pictures.

\b
Examples:
  ompb demo
  ompb demo --seed 7 --out demo-7
  ompb demo --picture docs/report.png
"""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html; made if need be.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed makes another series.")] = 0,
    picture: Annotated[
        Path | None, typer.Option(help="Also write the rolling error and the certificate as one PNG.")
    ] = None,
) -> None:
    """Make the demo series, follow it, and write the report."""
    if picture is not None:
        require_png(picture)
    out.mkdir(parents=True, exist_ok=True)
    study = carry_out(_plan(demo_series(seed), seed))
    show_scores(study)
    report = out / "report.html"
    write_report(study, report)
    say(f"Report: {report}")
    if picture is not None:
        write_picture(study, picture)
        say(f"Picture: {picture}")


def _plan(series: Demo, seed: int) -> Plan:
    table = Table(series.values, series.times, series.channels, "time")
    trained = round(TRAINED_SHARE * series.source_rows)
    forecaster = Ridge.fit(series.values[:trained], CONTEXT, HORIZON)
    first = series.source_rows - CONTEXT + 1
    return Plan(
        title="Demo: five feeders, three phases",
        source=rows_of(table, slice(series.source_rows)),
        stream=rows_of(table, slice(first, None)),
        on_source=forecaster,
        on_stream=forecaster,
        phases=tuple(Phase(phase.name, phase.first - first, phase.stop - first) for phase in series.phases),
        context=CONTEXT,
        horizon=HORIZON,
        season=SEASON,
        unseen=series.source_rows - trained,
        options={},
        facts={
            "data": f"made up, hourly, seed {seed}",
            "forecaster": f"ridge regression, trained on the first {trained} source rows, then frozen",
            "source": f"{series.source_rows} rows",
            "target": f"{len(series.values) - series.source_rows} rows",
        },
    )
