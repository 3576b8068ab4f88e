"""The benchmark's data by name, and any table in the same form."""

from __future__ import annotations

from pathlib import Path

from ompb.datasets.etth import ETTH
from ompb.datasets.ili import ILI
from ompb.datasets.public import PublicSet, data_folder
from ompb.datasets.splits import BenchmarkData, source_means, window_count
from ompb.datasets.weather import STAND_IN, WEATHER_5K
from ompb.errors import OptionError
from ompb.rows.windows import fill_forward
from ompb.tables import Reading, read_table, regular, split_row

__all__ = ["NAMES", "BenchmarkData", "from_table", "load", "public_set", "window_count"]

_SETS = {public.name: public for public in (ETTH, ILI, WEATHER_5K, STAND_IN)}
NAMES = tuple(_SETS)


def public_set(name: str) -> PublicSet:
    """The data set of that name: its files, their origin, and how to read them."""
    if name not in _SETS:
        raise OptionError(f"There is no data set {name!r}; accepted: {', '.join(NAMES)}.")
    return _SETS[name]


def load(name: str, folder: str | Path | None = None) -> BenchmarkData:
    """A public data set, from its files in ``folder``, else in the folder OMPB_DATA names, else in "data"."""
    public = public_set(name)
    return public.build(*public.tables(data_folder(folder)).values())


def from_table(
    path: str | Path, source_end: str, context: int, season: int | None, time: str | None = None
) -> BenchmarkData:
    """A table of your own: the rows up to ``source_end`` are the source, the later ones the stream "target".

    ``source_end`` is a number of rows or a date (see ``split_row``), ``time`` the name of the time column. A stamp left
    out counts as a row; a missing cell takes the last known value of its channel, else the source mean.
    """
    table, _ = regular(read_table(path, Reading(time=time)))
    cut = split_row(table, source_end)
    name = Path(path).stem
    rows = fill_forward(table.values, source_means(name, table.values[:cut]))
    if not window_count(cut, context, 1):
        raise OptionError(
            f"context = {context} does not fit into the {cut} source rows; lower it, or move source_end = {source_end}."
        )
    return BenchmarkData(
        name=name,
        channels=table.channels,
        context=context,
        season=season,
        source=rows[:cut],
        streams={"target": rows[cut:]},
    )
