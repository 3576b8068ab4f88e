"""The results of a run as files for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from ompb.datasets.tables import write_table
from ompb.datasets.times import with_future
from ompb.report.summary import Study, summary


def write_forecasts(study: Study, path: Path) -> None:
    """One line per channel, origin and lead, to CSV or Parquet by suffix.

    The columns are those of ``Run.frame``, with the time of the outcome (ds) added and the cutoff as a time.
    """
    frame: pl.DataFrame = study.run.frame("polars")
    stamps = with_future(study.times, study.calibrator.horizon)
    cutoff, lead = frame["cutoff"].to_numpy(), frame["lead"].to_numpy()
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    times = {"unique_id": columns.pop("unique_id"), "ds": stamps[cutoff + lead], "cutoff": stamps[cutoff]}
    write_table(path, {**times, **{name: values for name, values in columns.items() if name != "cutoff"}})


def write_summary(study: Study, path: Path) -> None:
    """Scores, settings, certificate and versions as JSON."""
    path.write_text(json.dumps(summary(study), indent=2, allow_nan=False) + "\n", encoding="utf-8")
