"""``ompb shift``: how far apart the values of two tables are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ompb.cli.console import say, show_table
from ompb.datasets.tables import common_channels, read_table
from ompb.metrics.shift import ShiftTable, shift_table
from ompb.report.shift_figure import shift_figure
from ompb.report.summary import shown

COLUMNS = {"ks": "KS", "wasserstein": "Wasserstein", "jensen_shannon": "Jensen-Shannon", "mmd": "RBF-MMD"}

HELP = """Measure how far apart two tables are, channel by channel.

A and B are CSV or Parquet files, wide (a time column and one column per channel) or long (unique_id, ds, y). Channels
that both have are compared.

\b
KS              largest gap between the distribution functions, 0 to 1
Wasserstein     how far values must be moved on average, in the channel's units
Jensen-Shannon  divergence of the histograms, 0 to 0.693
RBF-MMD         kernel distance, 0 to 1.414

\b
Examples:
  ompb shift winter.csv summer.csv
  ompb shift miami.parquet atlanta.parquet --out figures/cities.svg
"""


def shift(
    a: Annotated[Path, typer.Argument(metavar="A", help="First table, CSV or Parquet.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Second table, CSV or Parquet.")],
    out: Annotated[Path, typer.Option(help="Where to draw the densities: a .png or .svg file.")] = Path("shift.png"),
    time: Annotated[str | None, typer.Option(help="Name of the time column, if it is not found by itself.")] = None,
) -> None:
    """Compare two tables on the screen and in a figure."""
    first, second = read_table(a, time), read_table(b, time)
    channels = common_channels(first, second)
    distances = shift_table(first.select(channels).values, second.select(channels).values, channels)
    labels = (a.stem, b.stem) if a.stem != b.stem else (str(a), str(b))
    shift_figure(first, second, distances, out, labels)
    show_table(f"{labels[0]} against {labels[1]}", ("channel", *COLUMNS.values()), _lines(distances), strong="mean")
    say(f"RBF-MMD over all channels together: {shown(distances.mmd_joint)}")
    say(f"Figure: {out}")


def _lines(distances: ShiftTable) -> list[tuple[str, ...]]:
    lines = [
        (channel, *(shown(float(getattr(distances, name)[place])) for name in COLUMNS))
        for place, channel in enumerate(distances.channels)
    ]
    means = distances.means()
    return [*lines, ("mean", *(shown(means[name]) for name in COLUMNS))]
