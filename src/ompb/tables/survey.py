"""What the series of a long table are, in plain words, and what would be done with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ompb.floor.names import counted, listed, rows_between, said_once
from ompb.rows.season import find_season
from ompb.tables.contents import name_of
from ompb.tables.daylight import skipped_hours
from ompb.tables.inspection import Inspection, propose, season_in_words, season_to_say, step_in_words
from ompb.tables.options import Reading
from ompb.tables.suspicion import TOLD, missing_codes, suspicions, taken_as_missing
from ompb.tables.table import Table, regular

FOLLOWED = "each series by itself; with --together they are channels of one system"


def survey(tables: Mapping[str, Table], path: str | Path, reading: Reading) -> Inspection:
    """Look at series that were read from ``path`` by ``reading``, each of which stands by itself."""
    whole = {name: regular(table) for name, table in tables.items()}
    full = {name: table for name, (table, _) in whole.items()}
    codes = {code for table in full.values() for code in missing_codes(table) if code not in reading.missing}
    believed = {name: taken_as_missing(table, codes) for name, table in full.items()}
    seasons = {name: find_season(table.values) for name, table in believed.items()}
    longest = max(full, key=lambda name: len(full[name].values))
    typical = Counter(seasons.values()).most_common(1)[0][0]
    future = full[longest].future
    facts = {
        "file": f"{name_of(path)}: {full[longest].kind}",
        "size": f"{len(tables)} series of {rows_between([len(table.values) for table in tables.values()])}",
        "series": listed(list(tables)),
        "followed": FOLLOWED,
        "times": _times(list(tables.values())),
        "gaps": _counted({name: inserted for name, (_, inserted) in whole.items()}, "time", " left out, missing rows"),
        "known ahead": "" if future is None else listed(future.names),
        "missing": _counted({name: int(np.isnan(table.values).sum()) for name, table in tables.items()}, "cell", ""),
        "season": _several([season_in_words(seasons[name], table) for name, table in full.items()]),
    }
    reading = replace(reading, missing=(*reading.missing, *sorted(codes)))
    further = season_to_say(believed[longest], typical) if len(set(seasons.values())) == 1 else []
    command = propose(believed[longest], typical, path, reading, further)
    suspicious = said_once(
        {name: (*suspicions(table), *skipped_hours(tables[name], table)) for name, table in full.items()}
    )
    more = (f"... and {len(suspicious) - TOLD} more like these.",) if len(suspicious) > TOLD else ()
    remarks = said_once({name: table.notes for name, table in tables.items()})
    shown = {key: text for key, text in facts.items() if text}
    return Inspection(shown, remarks, (*suspicious[:TOLD], *more), command)


def _times(tables: list[Table]) -> str:
    first = min(tables, key=lambda table: table.times[0])
    last = max(tables, key=lambda table: table.times[-1])
    steps = [step_in_words(table.grid) for table in tables if table.grid is not None]
    every = f", every {_several(steps)}" if steps else ""
    clock = f", clock: {first.clock}" if first.clock.known else ""
    return f"{first.time_name!r}, {first.shown(0)} to {last.shown(-1)}{every}{clock}"


def _several(words: list[str]) -> str:
    """What series have, and how many of them where they differ.

    >>> _several(["hour", "hour"]), _several(["hour", "day", "day"])
    ('hour', 'day (2 series), hour (1 series)')
    """
    found = Counter(words).most_common()
    return found[0][0] if len(found) == 1 else listed([f"{word} ({count} series)" for word, count in found])


def _counted(counts: Mapping[str, int], what: str, then: str) -> str:
    """How many things there are in all, and in which series.

    >>> _counted({"a": 0, "b": 2}, "cell", ""), _counted({"a": 0}, "cell", "")
    ('2 cells, in b (2)', 'none')
    """
    some = {name: count for name, count in counts.items() if count}
    where = listed([f"{name} ({count})" for name, count in some.items()])
    return f"{counted(sum(some.values()), what)}{then}, in {where}" if some else "none"
