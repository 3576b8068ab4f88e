"""The results of a study as files."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from ompb.backtest import Run
from ompb.datasets.tables import write_table
from ompb.errors import OptionError
from ompb.files import replacing
from ompb.reports.html import html_report
from ompb.reports.summary import summary
from ompb.studies import Study

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


def write_results(study: Study, folder: Path, suffix: Literal["csv", "parquet"] = "csv") -> dict[str, Path]:
    """Forecasts, summary and report in a folder; returns their paths by name.

    All three are made before the first is written, so that a failure leaves none behind.
    """
    forecasts, texts = forecast_columns(study), {"summary.json": summary_json(study), "report.html": html_report(study)}
    paths = {"Forecasts": folder / f"forecasts.{suffix}"}
    write_table(paths["Forecasts"], forecasts)
    for name, text in texts.items():
        paths[Path(name).stem.capitalize()] = folder / name
        _write(folder / name, text)
    return paths


def forecast_columns(study: Study) -> dict[str, NDArray[Any]]:
    """One line per channel, origin and lead: the columns of ``Run.frame``."""
    frame = study.run.frame("polars")
    return {name: frame[name].to_numpy() for name in frame.columns}


def summary_json(study: Study) -> str:
    """Scores, settings, certificate and versions as JSON."""
    return json.dumps(summary(study), indent=2, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    with replacing(path, parents=True) as part:
        part.write_text(text, encoding="utf-8")
