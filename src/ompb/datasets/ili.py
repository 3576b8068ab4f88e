"""ILI: visits to doctors for influenza-like illness in the United States, weekly (CDC ILINet, national).

The first 80 % of the weeks of 2009 to 2020 are the source, the rest of them the stream "id"; 2021 onwards is the stream
"ood", of which the paper judges the first rows.

*Missing cells* (X) take the mean of what is known of their column in the source, 0 if nothing is: as in the paper's
experiments, whose windows must be complete. It matters for the ages: CDC stopped AGE 25-64 and began AGE 25-49 and AGE
50-64 in week 40 of 2009, so that AGE 25-64 is one constant from there on.

The paper's 443 training and 108 test windows follow from no split of this kind; see ``BenchmarkData.counts`` for ours.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ompb.datasets.public import PublicSet, numbers, read_columns, require_increasing
from ompb.datasets.splits import ID, BenchmarkData, source_means
from ompb.errors import FormatError
from ompb.tables import Table
from ompb.types import Floats

CHANNELS = (
    "% WEIGHTED ILI",
    "%UNWEIGHTED ILI",
    "AGE 0-4",
    "AGE 25-49",
    "AGE 25-64",
    "AGE 5-24",
    "AGE 50-64",
    "AGE 65",
    "ILITOTAL",
    "NUM. OF PROVIDERS",
    "TOTAL PATIENTS",
)
SOURCE_YEARS = (2009, 2020)


def _read(path: Path) -> Table:
    """The weeks as they stand; a week's time is the integer year * 100 + week."""
    with path.open(encoding="utf-8", errors="replace") as file:
        is_title = "YEAR" not in file.readline()  # CDC puts a line of words above the header
    frame = read_columns(path, ("YEAR", "WEEK", *CHANNELS), title_lines=int(is_title))
    weeks = numbers(path, frame.select("YEAR", "WEEK"))
    if np.isnan(weeks).any():
        raise FormatError(f"{path.name} has a row without YEAR or WEEK; get the file again.")
    times = (weeks @ [100, 1]).astype(np.int64)
    require_increasing(times, path)
    return Table(numbers(path, frame.select(CHANNELS)), times, CHANNELS, "YEAR and WEEK")


def _build(table: Table) -> BenchmarkData:
    years = table.times // 100
    before = table.values[(years >= SOURCE_YEARS[0]) & (years <= SOURCE_YEARS[1])]
    after = table.values[years > SOURCE_YEARS[1]]
    cut = len(before) * 80 // 100
    means = source_means("ili", before[:cut])
    return BenchmarkData(
        name="ili",
        channels=CHANNELS,
        context=24,
        season=52,
        source=_filled(before[:cut], means),
        streams={ID: _filled(before[cut:], means), "ood": _filled(after, means)},
        horizons=(24, 48, 72),
    )


def _filled(rows: Floats, means: Floats) -> Floats:
    return np.where(np.isnan(rows), means, rows)


ILI = PublicSet(
    name="ili",
    patterns=("ILINet*.csv",),
    origin="CDC FluView Interactive (download of ILINet, national, all seasons)",
    read=_read,
    build=_build,
)
