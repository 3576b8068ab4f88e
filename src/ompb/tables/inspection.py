"""What a table is, in plain words, and what would be done with it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from ompb.floor.names import counted, listed
from ompb.floor.times import Grid
from ompb.rows.season import find_season
from ompb.tables.daylight import skipped_hours
from ompb.tables.options import Reading
from ompb.tables.suspicion import missing_codes, suspicions, taken_as_missing
from ompb.tables.table import Table, regular, without_empty
from ompb.types import Floats

SOURCE_SHARE = 0.75  # of the rows, in the command that is proposed
SEASONS_SEEN = 4  # by a window
WITHOUT_SEASON = 24, 12  # context and horizon that are proposed then
MOST = 192, 48  # of them
UNITS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The answers, by question, in the order in which they are shown; and the command to go on with."""

    facts: dict[str, str]
    remarks: tuple[str, ...]
    suspicious: tuple[str, ...]
    command: str  # empty if the table is too short for one


def inspect(table: Table, path: str | Path, reading: Reading, *, together: bool = False) -> Inspection:
    """Look at a table that was read from ``path`` by ``reading``, its series ``together`` if it is long."""
    table = without_empty(table)
    full, inserted = regular(table)
    codes = tuple(code for code in missing_codes(full) if code not in reading.missing)
    believed = without_empty(taken_as_missing(full, codes))
    season = find_season(believed.values)
    rows, channels = table.values.shape
    facts = {
        "file": f"{table.name}: {table.kind}",
        "size": f"{counted(rows, 'row')} of {counted(channels, 'channel')}",
        "times": _times(table),
        "gaps": _gaps(table, full, inserted),
        "targets": listed(table.channels),
        "followed": "as channels of one system" if together else "",
        "known ahead": "" if table.future is None else listed(table.future.names),
        "missing": _missing(table),
        "season": season_in_words(season, full),
    }
    reading = replace(reading, missing=(*reading.missing, *codes))
    further = [*(["--together"] if together else []), *season_to_say(believed, season)]
    command = propose(believed, season, path, reading, further)
    shown = {key: text for key, text in facts.items() if text}
    return Inspection(shown, table.notes, (*suspicions(full), *skipped_hours(table, full)), command)


def _times(table: Table) -> str:
    span = f"{table.time_name!r}, {table.shown(0)} to {table.shown(-1)}"
    step = f", every {step_in_words(table.grid)}" if table.grid is not None else ""
    clock = f", clock: {table.clock}" if table.clock.known else ""
    return f"{span}{step}{clock}"


def step_in_words(grid: Grid) -> str:
    """A step in words, after "every".

    >>> step_in_words(Grid(900_000_000, "us")), step_in_words(Grid(1, "month end")), step_in_words(Grid(5, "row"))
    ('15 minutes', 'month end', '5 (whole numbers)')
    """
    if grid.unit == "row":
        return f"{grid} (whole numbers)"
    return _span(grid.step) if grid.unit == "us" else str(grid).removeprefix("1 ")


def _span(microseconds: int) -> str:
    """A length of time in the largest unit that divides it.

    >>> _span(86_400_000_000), _span(1_500_000)
    ('day', '0:00:01.500000')
    """
    for name, unit in UNITS.items():
        count, rest = divmod(microseconds, unit)
        if not rest:
            return name if count == 1 else f"{count} {name}s"
    return str(timedelta(microseconds=microseconds))


def _gaps(table: Table, full: Table, inserted: int) -> str:
    if not inserted:
        return "none"
    absent = ~np.isin(full.times, table.times)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], absent, [False]]).astype(int)))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    longest = int(np.argmax(lengths))
    head = f"{counted(inserted, 'time')} left out, counted as missing rows"
    where = f"from {full.shown(int(starts[longest]))}"
    if len(starts) == 1:
        return f"{head}, {where}"
    return f"{head}, in {len(starts)} places; the longest gap is of {counted(int(lengths[longest]), 'row')} {where}"


def _missing(table: Table) -> str:
    counts = np.isnan(table.values).sum(axis=0)
    parts = [
        f"{name}: {counted(int(count), 'cell')} ({count / len(table.values):.1%})"
        for name, count in zip(table.channels, counts, strict=True)
        if count
    ]
    return listed(parts) if parts else "none"


def season_in_words(season: int | None, table: Table) -> str:
    """Rows in a season, and how long they last."""
    if season is None:
        return "none found"
    if table.grid is None or table.grid.unit != "us":
        return f"{season} rows"
    length = _span(season * table.grid.step)
    return f"{season} rows ({length if length[0].isdigit() else f'1 {length}'})"


def season_to_say(table: Table, season: int | None) -> list[str]:
    """The option that names a season which the rows that ``ompb run`` would learn from are too few to show.

    >>> rows = np.sin(2 * np.pi * np.arange(400)[:, None] / 100)
    >>> season_to_say(Table(rows, np.arange(400), ("a",), "row"), 100)
    ['--season', '100']
    """
    found = season is None or find_season(_learned(table)) == season
    return [] if found else ["--season", str(season)]


def _learned(table: Table) -> Floats:
    """The rows from which the proposed command would learn: three quarters of the source."""
    source = int(SOURCE_SHARE * len(table.values))
    return table.values[: source - source // 4]


def propose(table: Table, season: int | None, path: str | Path, reading: Reading, further: Sequence[str] = ()) -> str:
    """A command that ``ompb run`` would take, with three quarters of the rows as source."""
    source = int(SOURCE_SHARE * len(table.values))
    context, horizon = sizes(source, season, _longest(_learned(table)))
    if not horizon:
        return ""
    options = [text for field in fields(reading) for text in _option(field.name, getattr(reading, field.name))]
    place = str(source) if table.times.dtype.kind == "i" else table.shown(source)
    words = ["ompb", "run", str(path), *options, *further, "--source-end", place]
    return shlex.join([*words, "--context", str(context), "--horizon", str(horizon)])


def _longest(values: Floats) -> int:
    """Rows of the longest stretch in which some channel has no hole.

    >>> _longest(np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, 6.0], [4.0, 7.0]]))
    3
    """
    edge = np.ones((1, values.shape[1]), dtype=bool)
    holes = np.concatenate([edge, np.isnan(values), edge])
    return max(int(np.diff(np.flatnonzero(column)).max()) - 1 for column in holes.T)


def sizes(source: int, season: int | None, whole: int | None = None) -> tuple[int, int]:
    """Context and horizon to begin with: some seasons and one, or as much as a short source allows; zeros if nothing.

    A quarter of the source is kept for the certificate, and has to hold a window and its outcomes; so has a stretch of
    ``whole`` rows without a hole, from which the built-in forecaster learns.

    >>> sizes(10_000, 24), sizes(300, 24), sizes(10_000, 365), sizes(20, None), sizes(10_000, 24, 20)
    ((96, 24), (48, 12), (192, 48), (3, 1), (12, 3))
    """
    context, horizon = (SEASONS_SEEN * season, season) if season else WITHOUT_SEASON
    context, horizon = min(context, MOST[0]), min(horizon, MOST[1])
    room = source // 4 if whole is None else min(source // 4, whole)
    while horizon and room < context + horizon:
        context, horizon = context // 2, horizon // 2
    return (context, horizon) if horizon else (0, 0)


def _option(name: str, value: str | tuple[str, ...] | None) -> list[str]:
    values = () if value is None else (value,) if isinstance(value, str) else value
    return [text for one in values for text in (f"--{name}", one)]
