"""ETTh: oil temperature and load of two electricity transformers, hourly from July 2016 to June 2018.

The first 80 % of ETTh1 are the source (13,936 of 17,420 rows) and the rest the stream "id". ETTh2 is the stream "ood";
the paper judges its first rows only, July to November 2016.
"""

from __future__ import annotations

from pathlib import Path

from ompb.datasets.public import PublicSet, read_hourly
from ompb.datasets.splits import BenchmarkData, hourly_sites
from ompb.tables import Table

CHANNELS = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")


def _read(path: Path) -> Table:
    return read_hourly(path, "date", CHANNELS)


def _build(first: Table, second: Table) -> BenchmarkData:
    return hourly_sites("etth", 80, first, {"ood": second})


ETTH = PublicSet(
    name="etth",
    patterns=("ETTh1.csv", "ETTh2.csv"),
    origin="the ETDataset repository of zhouhaoyi on GitHub (folder ETT-small)",
    read=_read,
    build=_build,
)
