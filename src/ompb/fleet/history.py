"""Rows known of the series of a fleet before its first tick: what they fill, and where they let the clock begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ompb.calibrator import Calibrator
from ompb.errors import ShapeError, TimeOrderError
from ompb.fleet.groups import Group
from ompb.floor.times import shown
from ompb.live.placing import require_grid
from ompb.live.ticks import Ticks
from ompb.rows.inputs import Rows, as_rows_of, as_series, floats
from ompb.seam.by_id import called, places_of, some_of
from ompb.seam.sources import calling


def as_histories(history: Any, times: Any, ids: Sequence[str], cal: Calibrator) -> dict[int, Rows]:
    """The rows of series by their places, from an array (S, T, C), a mapping by id or a long frame.

    They have times only where the calibrator has, too.
    """
    require_grid(times, cal.grid)
    tables = (
        _by_place(history, ids) if isinstance(history, np.ndarray | list | tuple) else as_series(history, "history")
    )
    shared = times is not None and not isinstance(times, Mapping)
    when = dict.fromkeys(tables, times) if shared else some_of("times", times, tables)
    known = {}
    for place, (one, own) in zip(places_of(tables, ids, "history"), tables.items(), strict=True):
        with calling(called(one)):
            rows = as_rows_of(own, "history", cal.names, when[one], cal.grid)
        known[place] = rows if cal.grid is not None else replace(rows, times=None)
    return known


def clock_after(known: Mapping[int, Rows], ids: Sequence[str]) -> Ticks:
    """The clock of series that know these rows: their newest is the tick before the first one, if they have times."""
    ends = {place: None if rows.times is None else rows.times[-1] for place, rows in known.items()}
    first, *others = ends
    for other in others:
        if ends[other] != ends[first]:
            one, another = (f"that of {ids[place]!r} {_told(ends[place])}" for place in (first, other))
            raise TimeOrderError(
                f"histories end at different times: {one}, and {another}; the series of a fleet share a clock. Bring "
                "all of them up to the same time, with rows of NaN where some are missing."
            )
    return Ticks() if ends[first] is None else Ticks.behind(ends[first])


def with_history(groups: Sequence[Group], known: Mapping[int, Rows]) -> tuple[Group, ...]:
    """The groups once some of their series know rows; those that know as many stay together."""
    after = []
    for group in groups:
        lengths = np.asarray([len(known[place].values) if place in known else 0 for place in group.places.tolist()])
        for length in np.unique(lengths):
            part = group if (lengths == length).all() else group.part(np.flatnonzero(lengths == length))
            after.append(_with_rows(part, known) if length else part)
    return tuple(after)


def _with_rows(group: Group, known: Mapping[int, Rows]) -> Group:
    own = [known[place] for place in group.places.tolist()]
    values = np.stack([rows.values for rows in own])
    return group._replace(state=group.cohort.remembering(group.state, values, own[0].times))


def _by_place(history: Any, ids: Sequence[str]) -> dict[str, Any]:
    array = floats(history, "history")
    if array.ndim != 3 or len(array) != len(ids):
        raise ShapeError(
            f"history has shape {array.shape}; accepted: ({len(ids)}, rows, channels), a table for each series, or a "
            "mapping by id."
        )
    return dict(zip(ids, array, strict=True))


def _told(end: Any) -> str:
    return "has none" if end is None else f"ends at {shown(end)}"
