"""The results of a study as files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ompb.backtest import Run
from ompb.errors import OptionError
from ompb.files import replacing
from ompb.reports.digits import rounded
from ompb.reports.folder import FILES, FORECASTS_CSV, SUMMARY, remove_older, require_room
from ompb.reports.html import html_report
from ompb.reports.summary import summary
from ompb.studies import Study
from ompb.tables import write_table

PAGES = (".html", ".htm")


def report(found: Run | Study, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write what was found as one HTML page, without scripts or links to elsewhere; returns its path.

    ``found`` is what `ompb.backtest` or `ompb.study` returned. The page's folder is made if need be.
    """
    page = Path(path)
    if page.suffix.lower() not in PAGES:
        raise OptionError(f"{str(page)!r} ends in {page.suffix!r}; name the page .html.")
    study = Study.of(found) if isinstance(found, Run) else found
    if title is not None:
        study = dataclasses.replace(study, title=title)
    _write(page, html_report(study))
    return page


def write_results(study: Study, folder: Path, *, csv: bool = False) -> dict[str, Path]:
    """Report, newest forecasts, all forecasts and summary in a folder; returns their paths by name.

    All forecasts are Parquet, and with ``csv`` CSV as well. Everything is made before the first file is written, so
    that a failure leaves none behind. Results of an older run go; see `ompb.reports.folder`.
    """
    page = html_report(study)
    forecasts = forecast_columns(study)
    newest = {name: column[forecasts["cutoff"] == forecasts["cutoff"].max()] for name, column in forecasts.items()}
    newest.pop("y")  # not known yet
    tables = {"Newest forecasts": ("newest.csv", newest), "All forecasts": ("forecasts.parquet", forecasts)}
    if csv:
        tables["All forecasts, CSV"] = (FORECASTS_CSV, forecasts)
    files = [SUMMARY, "report.html", *(name for name, _ in tables.values())]
    # the summary first: it says whose the other files are, even if they are written no more
    texts = {"Summary": (SUMMARY, summary_json(study, files)), "Report": ("report.html", page)}
    require_room(folder, files)
    remove_older(folder, kept=files)
    for name, text in texts.values():
        _write(folder / name, text)
    for name, columns in tables.values():
        write_table(folder / name, columns, study.clock)
    named = ("Report", *tables, "Summary")
    return {called: folder / (texts | tables)[called][0] for called in named}


def forecast_columns(study: Study) -> dict[str, NDArray[Any]]:
    """One line per channel, origin and lead: the columns of ``Run.frame``, in as many digits as mean something."""
    frame = study.run.frame("polars")
    return rounded({name: frame[name].to_numpy() for name in frame.columns}, study.run.scale)


def summary_json(study: Study, files: Sequence[str]) -> str:
    """Scores, settings, certificate, versions and the files written along as JSON."""
    return json.dumps({**summary(study), FILES: files}, indent=2, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    with replacing(path, parents=True) as part:
        part.write_text(text, encoding="utf-8")
