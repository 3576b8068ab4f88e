"""The one way every command learns from a source and follows a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from ompb.backtest import backtest
from ompb.bench.compare import run_references
from ompb.calibrator import Calibrator
from ompb.cli.console import progress
from ompb.datasets.demo import Phase
from ompb.datasets.tables import Table
from ompb.report.summary import Study
from ompb.types import Forecaster


@dataclass(frozen=True, eq=False)
class Plan:
    """What to learn from and what to follow. Phases count the rows of ``stream``."""

    title: str
    source: Table
    stream: Table  # the last context - 1 source rows, which only fill the first window, and then the target
    on_source: Forecaster
    on_stream: Forecaster
    phases: tuple[Phase, ...]
    context: int
    horizon: int
    season: int | Literal["auto"] | None
    unseen: int | None
    options: Mapping[str, Any]
    facts: Mapping[str, str]


def carry_out(plan: Plan) -> Study:
    """Learn, follow, and let the references follow too."""
    with progress("Learning from the source") as tick:
        calibrator = Calibrator.fit(
            plan.on_source,
            pl.DataFrame(plan.source.values, schema=list(plan.source.channels), orient="row"),
            context=plan.context,
            horizon=plan.horizon,
            season=plan.season,
            unseen=plan.unseen,
            progress=tick,
            **plan.options,
        )
    rows = plan.stream.values
    with progress("Following the target") as tick:
        run = backtest(calibrator, plan.on_stream, rows, progress=tick)
    references = run_references(calibrator, run, rows, calibrator.season)
    return Study(plan.title, calibrator, run, rows, plan.stream.times, plan.phases, references, plan.facts)


def rows_of(table: Table, rows: slice) -> Table:
    """The table's rows in that slice."""
    return Table(table.values[rows], table.times[rows], table.channels, table.time_name)
