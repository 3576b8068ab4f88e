"""A fleet in one file: ids, the newest tick, and the state of each group of series."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import deepcopy
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.archive.tree import check_alike
from ompb.calibrator import Calibrator
from ompb.errors import FormatError
from ompb.fleet.groups import Group, cohort_of, moved
from ompb.floor.files import PathLike
from ompb.floor.shapes import Apart, Shape
from ompb.live.cohort import CohortState
from ompb.live.library import HOST, Library
from ompb.live.ticks import Ticks


class Now(NamedTuple):
    """All that changes in a fleet; it is taken in one assignment."""

    ids: tuple[str, ...]
    groups: tuple[Group, ...]
    ticks: Ticks

    @property
    def calibrators(self) -> list[Calibrator]:
        """Of each series."""
        by_place = {place: cal for g in self.groups for place, cal in zip(g.places, g.calibrators, strict=True)}
        return [by_place[place] for place in range(len(self.ids))]

    def copy(self) -> Now:
        """The same in buffers of its own."""
        groups = (Group.of(group.cohort, deepcopy(group.state), group.places) for group in self.groups)
        return self._replace(groups=tuple(groups))


class SavedGroup(NamedTuple):
    """Series that share a clock, and their places in the fleet."""

    places: Annotated[NDArray[np.int64], Shape("S", dtype="int64", least=0)]
    state: CohortState


class FleetState(NamedTuple):
    """All that a file says of a fleet."""

    ids: tuple[str, ...]
    ticks: int  # closed so far
    timed: bool  # whether ticks are times
    dated: bool  # whether these are dates
    newest: Annotated[NDArray[np.int64], Shape("1", dtype="int64")]  # tick, if there is one
    groups: tuple[Annotated[SavedGroup, Apart()], ...]


def owner(ids: Sequence[str], calibrators: Sequence[Calibrator]) -> str:
    """What stands for the calibrators of each series: the fingerprint of the one that all share, or of all by id.

    Whether they came as one or by id makes no difference.
    """
    each = [cal.fingerprint for cal in calibrators]
    if len(set(each)) == 1:
        return each[0]
    return hashlib.sha256(repr(sorted(zip(ids, each, strict=True))).encode()).hexdigest()


def saved(now: Now) -> FleetState:
    """A fleet as its file has it."""
    stamp = now.ticks.newest
    return FleetState(
        ids=now.ids,
        ticks=now.ticks.closed,
        timed=now.ticks.timed,
        dated=isinstance(stamp, np.datetime64),
        newest=np.asarray([0 if stamp is None else stamp]).astype(np.int64),
        groups=tuple(SavedGroup(group.places, moved(group.state, _host_of(group))) for group in now.groups),
    )


def loaded(path: PathLike, state: FleetState, calibrators: Sequence[Calibrator], library: Library) -> Now:
    """The fleet of a file. Raises `FormatError` if it says something that no fleet of these calibrators can be."""
    places = np.concatenate([group.places for group in state.groups]) if state.groups else np.zeros(0)
    if not np.array_equal(np.sort(places), np.arange(len(state.ids))):
        raise FormatError(f"{path} does not say where each of its {len(state.ids)} series is; write it again.")
    groups = []
    for one in state.groups:
        cohort = cohort_of([calibrators[place] for place in one.places], library)
        held = moved(one.state, library)
        try:
            check_alike(moved(held, _host_like(library)), moved(cohort.start(), _host_like(library)))
        except FormatError as error:
            raise FormatError(f"{path} is not a readable ompb file ({error}); write it again with save().") from error
        groups.append(Group.of(cohort, held, one.places))
    tick = int(state.newest[0])
    stamp = np.datetime64(tick, "us") if state.dated else tick
    return Now(state.ids, tuple(groups), Ticks(state.ticks, stamp if state.ticks or state.timed else None, state.timed))


def _host_of(group: Group) -> Library:
    return _host_like(group.cohort.library)


def _host_like(library: Library) -> Library:
    """NumPy with the same type of numbers."""
    return HOST if library.dtype == HOST.dtype else Library(None, library.dtype)
