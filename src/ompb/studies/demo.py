"""The study behind ``ompb demo``: data made on the spot, three phases of which the first brings no shift."""

from __future__ import annotations

from ompb.datasets.demo import demo_series
from ompb.studies.at_once import Progress
from ompb.studies.follow import study
from ompb.studies.result import Study
from ompb.tables import Table

CONTEXT, HORIZON, SEASON = 96, 24, 24  # four days to see, one to forecast


def demo_study(seed: int = 0, progress: Progress | None = None) -> Study:
    """Follow the demo series with the built-in forecaster; another seed makes another series."""
    series = demo_series(seed)
    return study(
        Table(series.values, series.times, series.channels, "time"),
        source_end=series.source_rows,
        context=CONTEXT,
        horizon=HORIZON,
        season=SEASON,
        phases={phase.name: phase.first for phase in series.phases},
        title="Demo: five feeders, three phases",
        facts={"data": f"made up, hourly, seed {seed}"},
        progress=progress,
    )
