"""``ompb demo``: the whole story on data made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ompb.cli.console import progress, say, size_of
from ompb.datasets.demo import PHASE_DAYS, SOURCE_DAYS
from ompb.floor.files import make_folder
from ompb.studies import demo_study
from ompb.studies.parts import UNSEEN_SHARE

TRAINED_DAYS = round((1 - UNSEEN_SHARE) * SOURCE_DAYS)

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
    # Here, so that the other commands do not need what draws.
    from ompb.cli.scores import show_scores
    from ompb.reports import report
    from ompb.reports.figures import require_png, write_picture

    if picture is not None:
        require_png(picture)
    make_folder(out)
    with progress("Making the series") as bar:
        study = demo_study(seed, bar.follow)
    show_scores(study)
    for sentence in study.warnings_told():
        say(sentence)
    with progress("Drawing"):
        page = report(study, out / "report.html")
        if picture is not None:
            write_picture(study, picture)
    say(f"Report: {page} ({size_of(page)})")
    if picture is not None:
        say(f"Picture: {picture}")
