"""The results of a study, or of many, as files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.backtest import Run
from ompb.errors import OptionError
from ompb.floor.files import replacing
from ompb.reports.digits import rounded
from ompb.reports.folder import (
    FILES,
    FORECASTS,
    FORECASTS_CSV,
    NEWEST,
    REPORT,
    SERIES,
    SUMMARY,
    remove_older,
    require_room,
)
from ompb.reports.html import html_report
from ompb.reports.many import EACH, series_columns, summary_of_many
from ompb.reports.overview import html_overview
from ompb.reports.summary import summary
from ompb.studies import Studies, Study
from ompb.tables import write_table

PAGES = (".html", ".htm")


Columns: TypeAlias = dict[str, NDArray[Any]]


def report(found: Run | Study | Studies, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write what was found as one HTML page, without scripts or links to elsewhere; returns its path.

    ``found`` is what `ompb.backtest`, `ompb.study` or `ompb.studies.study_each` returned. The page's folder is made if
    need be.
    """
    page = Path(path)
    if page.suffix.lower() not in PAGES:
        raise OptionError(f"{str(page)!r} ends in {page.suffix!r}; name the page .html.")
    study = Study.of(found) if isinstance(found, Run) else found
    if title is not None:
        study = dataclasses.replace(study, title=title)
    _write(page, html_overview(study) if isinstance(study, Studies) else html_report(study))
    return page


def write_results(found: Study | Studies, folder: Path, *, csv: bool = False) -> dict[str, Path]:
    """Report, newest forecasts, all forecasts and summary in a folder, of many series a line for each; returns paths.

    All forecasts are Parquet, and with ``csv`` CSV as well. Everything is made before the first file is written, so
    that a failure leaves none behind. Results of an older run go; see `ompb.reports.folder`.
    """
    tables: dict[str, tuple[str, Columns]] = {}
    if isinstance(found, Studies):
        page, tree, clock = html_overview(found), summary_of_many(found), found.first.clock
        parts = [forecast_columns(study, str(one)) for one, study in found.items()]
        tables["Series"] = (SERIES, series_columns(found))
    else:
        page, tree, clock = html_report(found), summary(found), found.clock
        parts = [forecast_columns(found)]
    tables["Newest forecasts"] = (NEWEST, _joined([_newest(part) for part in parts]))
    tables["All forecasts"] = (FORECASTS, _joined(parts))
    if csv:
        tables["All forecasts, CSV"] = (FORECASTS_CSV, tables["All forecasts"][1])
    files = [SUMMARY, REPORT, *(name for name, _ in tables.values())]
    text = as_json({**tree, FILES: files})
    require_room(folder, files)
    remove_older(folder, kept=files)
    _write(folder / SUMMARY, text)  # first: it says whose the other files are, even if they are written no more
    _write(folder / REPORT, page)
    for name, columns in tables.values():
        write_table(folder / name, columns, clock)
    written = {called: folder / name for called, (name, _) in tables.items()}
    return {"Report": folder / REPORT, **written, "Summary": folder / SUMMARY}


def forecast_columns(study: Study, series: str | None = None) -> Columns:
    """One line per channel, origin and lead: the columns of ``Run.frame``, in as many digits as mean something.

    One of many ``series`` is told by its own name, beside that of the channel if it has several.
    """
    columns = rounded(study.run.columns(), study.run.scale)
    names = list(study.run.names)
    if series is not None:
        names = [series] if len(names) == 1 else [f"{series}/{name}" for name in names]
    # as objects: else every line would hold as many letters as the longest name has
    columns["unique_id"] = np.repeat(np.asarray(names, dtype=object), len(columns["lead"]) // len(names))
    return columns


def as_json(tree: Mapping[str, Any]) -> str:
    """A summary as text to read: names in their own letters, and each of many series in a line of its own.

    >>> print(as_json({"title": "Zähler", "series": {"a": {"mae": 0.5}, "b": {"mae": 1}}}), end="")
    {
      "title": "Zähler",
      "series": {
        "a": {"mae": 0.5},
        "b": {"mae": 1}
      }
    }
    """
    dump = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    whole = dump({name: {} if name == EACH else value for name, value in tree.items()}, indent=2)
    lines = ",\n".join(f"    {dump(str(one))}: {dump(found)}" for one, found in tree.get(EACH, {}).items())
    # a quote inside a text has a backslash before it
    return whole.replace(f'\n  "{EACH}": {{}}', f'\n  "{EACH}": {{\n{lines}\n  }}', 1) + "\n"


def _newest(columns: Columns) -> Columns:
    """The newest forecast, without outcomes, which are not known yet."""
    newest = columns["cutoff"] == columns["cutoff"].max()
    return {name: column[newest] for name, column in columns.items() if name != "y"}


def _joined(parts: Sequence[Columns]) -> Columns:
    """The parts one after the other. They are emptied, so that no more than one column is there twice."""
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}


def _write(path: Path, text: str) -> None:
    with replacing(path, parents=True) as part:
        part.write_text(text, encoding="utf-8")
