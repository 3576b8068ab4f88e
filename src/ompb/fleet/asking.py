"""One question a tick: the windows of all groups of a fleet, asked together, and the answers given to each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.fleet.groups import Group
from ompb.floor.times import Stamp
from ompb.live.asking import ASK, Asker, chosen
from ompb.live.cohort import Entered
from ompb.live.library import Library
from ompb.rows.scaler import Scaler
from ompb.seam.by_id import called
from ompb.seam.query import Answer, Query
from ompb.types import Floats

Answered = tuple[list[Group], list[Answer | None]]


def answered(
    ids: Sequence[str],
    groups: Sequence[Group],
    entered: Sequence[Entered],
    asker: Asker,
    stamp: Stamp | None,
    future: Floats | None,
    base: Any,
) -> Answered:
    """The groups, split where some of their series have no base forecast, with what is said of each, or None.

    ``base`` is `ASK`, None, base forecasts (S, H, C) of all series with NaN for those that have none, or an array of
    torch on another device, which is taken as it is. An error about one of the series names its id.
    """
    library, ready = groups[0].cohort.library, [group.cohort.is_ready(group.state) for group in groups]
    if base is None or not any(ready):
        return list(groups), [None] * len(groups)
    if library.is_afar(base):
        own = [_own(asker, library.array(group.rows(base))) for group in groups]
        return list(groups), [one if is_ready else None for one, is_ready in zip(own, ready, strict=True)]
    query = _query(groups, entered, asker.calibrator.context, stamp, future)
    spoken = np.zeros(len(query.origins), dtype=bool)
    for group, is_ready in zip(groups, ready, strict=True):
        spoken[group.places] = is_ready
    if base is not ASK:
        spoken &= ~np.isnan(base).reshape(len(base), -1).all(axis=1)
    spoken[spoken] = asker.spoken(_some(query, spoken), base)
    if not spoken.any():
        return list(groups), [None] * len(groups)
    given = base if base is ASK else base[spoken]
    asked = np.flatnonzero(spoken)
    answer = asker.answer(_some(query, spoken), given, _scaler(groups, spoken), lambda place: called(ids[asked[place]]))
    parted = [part for group in groups for part in group.split(spoken[group.places])]
    number = np.cumsum(spoken) - 1  # of each series in the answer
    return parted, [
        _part(answer, number[group.places], library) if spoken[group.places[0]] else None for group in parted
    ]


def _query(
    groups: Sequence[Group], entered: Sequence[Entered], context: int, stamp: Stamp | None, future: Floats | None
) -> Query:
    """About the newest windows of all series, in the order of the fleet."""
    series = sum(group.cohort.series for group in groups)
    windows, origins = np.empty((series, context, groups[0].cohort.cal.channels)), np.empty(series, dtype=np.int64)
    for group, one in zip(groups, entered, strict=True):
        windows[group.places] = group.cohort.library.host(one.window.filled[:, -context:])
        origins[group.places] = group.state.rows
    return Query(windows, origins, None if stamp is None else np.full(series, stamp), future)


def _scaler(groups: Sequence[Group], spoken: NDArray[np.bool_]) -> Scaler:
    """Of the series that are spoken of."""
    first = groups[0].cohort.cal
    if all(group.cohort.is_shared and group.cohort.cal is first for group in groups):
        return first.scaler
    centre, scale = (np.empty((len(spoken), 1, first.channels)) for _ in range(2))
    for group in groups:
        centre[group.places], scale[group.places] = group.cohort.on_host.centre, group.cohort.on_host.scale
    return Scaler(centre[spoken], scale[spoken])


def _some(query: Query, places: NDArray[np.bool_]) -> Query:
    return query if places.all() else chosen(query, places)


def _part(answer: Answer, numbers: NDArray[np.int64], library: Library) -> Answer:
    """What was said of some series, in their library."""
    quantiles = None if answer.quantiles is None else library.array(answer.quantiles[numbers])
    return Answer(library.array(answer.base[numbers]), quantiles)


def _own(asker: Asker, said: Any) -> Answer:
    """An answer that nobody checks."""
    quantiles = asker.calibrator.quantiles
    return Answer(said[..., quantiles.index(0.5)], said) if quantiles else Answer(said, None)
