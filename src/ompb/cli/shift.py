"""``ompb shift``: how far apart the values of two tables are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ompb.cli import reading as about
from ompb.cli.console import progress, say, show_table
from ompb.floor.names import listed
from ompb.tables import common_channels, read_table, without_empty

OPTIONS = ("time", "id", "value", "target", "exclude", "missing", "timezone", "sep", "decimal")  # of each table
COLUMNS = {"ks": "KS", "wasserstein": "Wasserstein", "jensen_shannon": "Jensen-Shannon", "mmd": "RBF-MMD"}

HELP = """Measure how far apart two tables are, channel by channel.

A and B are text (CSV, TSV, also .gz) or Parquet, wide (a time column and one column for each channel) or long (one row
for each series and time). Channels that both have are compared. Options on how to read hold for both tables; what is
different in B, --b says: --b NAME=VALUE stands for --NAME VALUE, and --b NAME= takes the option back.

\b
KS              largest gap between the distribution functions, 0 to 1
Wasserstein     how far values must be moved on average, in the channel's units
Jensen-Shannon  divergence of the histograms, 0 to 0.693
RBF-MMD         kernel distance, 0 to 1.414

\b
Examples:
  ompb shift winter.csv summer.csv
  ompb shift miami.parquet atlanta.parquet --out figures/cities.svg
  ompb shift old.csv new.csv --timezone Europe/Berlin --b timezone=UTC --b time=when
"""


def shift(
    a: Annotated[Path, typer.Argument(metavar="A", help="First table.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Second table.")],
    out: Annotated[Path, typer.Option(help="Where to draw the densities: a .png or .svg file.")] = Path("shift.png"),
    time: about.Time = None,
    id: about.Id = None,
    value: about.Value = None,
    target: about.Target = None,
    exclude: about.Exclude = None,
    missing: about.Missing = None,
    timezone: about.Timezone = None,
    sep: about.Sep = None,
    decimal: about.Decimal = None,
    of_b: about.OfSecond = None,
) -> None:
    """Compare two tables on the screen and in a figure."""
    # Here, so that the other commands do not need what draws.
    from ompb.metrics.shift import shift_table
    from ompb.reports.shift_figure import shift_figure
    from ompb.reports.summary import three_decimals

    reading = about.reading_of(
        time, id, value, target, exclude, missing=missing, timezone=timezone, sep=sep, decimal=decimal
    )
    labels = (a.stem, b.stem) if a.stem != b.stem else (str(a), str(b))
    with progress("Comparing"):
        first = without_empty(read_table(a, reading, even=False))
        second = without_empty(read_table(b, about.of_second(reading, of_b or (), OPTIONS), even=False))
        channels = common_channels(first, second)
        distances = shift_table(first.select(channels).values, second.select(channels).values, channels)
        shift_figure(first, second, distances, out, labels)
    for label, table in zip(labels, (first, second), strict=True):
        for note in table.notes:
            say(f"{label}: {note}")
        if alone := [name for name in table.channels if name not in channels]:
            say(f"{label}: {listed(alone)} not compared, as the other table has no such channel.")
    means = distances.means()
    lines = [
        *((name, *(getattr(distances, key)[place] for key in COLUMNS)) for place, name in enumerate(channels)),
        ("mean", *(means[key] for key in COLUMNS)),
    ]
    texts = [(name, *map(three_decimals, numbers)) for name, *numbers in lines]
    show_table(f"{labels[0]} against {labels[1]}", ("channel", *COLUMNS.values()), texts, strong="mean")
    say(f"RBF-MMD over all channels together: {three_decimals(distances.mmd_joint)}")
    say(f"Figure: {out}")
