"""The series of a fleet in groups that share a clock, and whose calibrators have one shape.

Such series that began together, and had forecasts at the same rows, are one group, which is stepped at once. One that
joins later, or is left out of a forecast, is a group of its own from then on, together with all that share its fate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator
from ompb.core.arrays import Array
from ompb.core.fusing import Caller, calling
from ompb.core.online import Issued
from ompb.floor.times import Stamp
from ompb.live.cohort import Cohort, CohortState, Entered, shape_of
from ompb.live.lanes import UnlikeError, joined, mapped, taken
from ompb.live.library import Library
from ompb.seam.query import Answer

Places = NDArray[np.int64]


class Group(NamedTuple):
    """Series that share a clock."""

    cohort: Cohort
    state: CohortState
    places: Places  # of its series among the fleet's

    @classmethod
    def fresh(cls, calibrators: Sequence[Calibrator], library: Library, places: Places) -> Group:
        """Series that have seen no row, with calibrators of one shape."""
        cohort = cohort_of(calibrators, library)
        return cls(cohort, cohort.start(), places)

    def rows(self, values: Array) -> Array:
        """Those of a fleet's rows (S, ...) that are its own."""
        if len(self.places) == len(values) and (np.diff(self.places) == 1).all():
            return values
        return values[self.places]

    def enter(self, values: Array) -> Entered:
        """Its part of a fleet's rows (S, C) has come."""
        with calling(self._caller):
            return self.cohort.enter(self.state, self.rows(values)[:, None])

    def leave(self, entered: Entered, stamp: Stamp | None, answer: Answer | None) -> tuple[Issued | None, Group]:
        """What is issued with a row, and the group after it."""
        with calling(self._caller):
            issued, state = self.cohort.leave(self.state, entered, stamp, answer)
        return issued, Group(self.cohort, state, self.places)

    @property
    def _caller(self) -> Caller | None:
        """Who calls what is fused; nobody until there is a forecast, and all rows that are remembered are known.

        What comes before is of other forms, and over before it would be compiled.
        """
        state, remembered = self.state, self.cohort.cal.remembers
        waits = state.online.guard.origin is None or state.known < remembered
        return None if waits else self.cohort.library.caller

    @property
    def calibrators(self) -> list[Calibrator]:
        """Of each series."""
        every = self.cohort.calibrators
        return list(every) * self.cohort.series if self.cohort.is_shared else list(every)

    def part(self, chosen: Places) -> Group:
        """Some of its series, by their number in the group, with buffers of their own."""
        state = taken(self.state, self.cohort.series, chosen)
        return Group(self.cohort.part(chosen.tolist()), state, self.places[chosen])

    def split(self, marked: NDArray[np.bool_]) -> list[Group]:
        """Those that are marked, and the others, where there are both."""
        if marked.all() or not marked.any():
            return [self]
        return [self.part(np.flatnonzero(marked)), self.part(np.flatnonzero(~marked))]

    def taken_over(self, calibrators: Sequence[Calibrator]) -> list[Group]:
        """The same series with another model, and these calibrators of each."""
        taken_over = []
        for chosen in alike(calibrators):
            part = self if len(chosen) == len(self.places) else self.part(chosen)
            cohort = cohort_of([calibrators[number] for number in chosen], self.cohort.library)
            taken_over.append(Group(cohort, cohort.taking_over(part.state), part.places))
        return taken_over

    def with_group(self, other: Group) -> Group | None:
        """Both as one, if they share a clock and a shape."""
        mine, others = self.cohort.cal, other.cohort.cal
        if mine is not others and shape_of(mine) != shape_of(others):
            return None
        try:
            state = joined([self.state, other.state])
        except UnlikeError:
            return None
        cohort = cohort_of(self.calibrators + other.calibrators, self.cohort.library)
        return Group(cohort, state, np.concatenate([self.places, other.places]))


def cohort_of(calibrators: Sequence[Calibrator], library: Library) -> Cohort:
    """The rules for series with these calibrators."""
    shared = all(cal is calibrators[0] for cal in calibrators)
    return Cohort(tuple(calibrators[:1] if shared else calibrators), len(calibrators), library)


def alike(calibrators: Sequence[Calibrator]) -> list[Places]:
    """The numbers of those that have one shape, shape after shape."""
    shapes = {id(cal): shape_of(cal) for cal in {id(cal): cal for cal in calibrators}.values()}
    found: dict[Any, list[int]] = {}
    for number, cal in enumerate(calibrators):
        found.setdefault(shapes[id(cal)], []).append(number)
    return [np.asarray(numbers, dtype=np.int64) for numbers in found.values()]


def with_fresh(
    groups: Sequence[Group], calibrators: Sequence[Calibrator], library: Library, first: int
) -> tuple[Group, ...]:
    """The groups with series that have seen no row, at the places from ``first`` on."""
    for numbers in alike(calibrators):
        new = Group.fresh([calibrators[number] for number in numbers], library, first + numbers)
        groups = with_joined(groups, new)
    return tuple(groups)


def with_joined(groups: Sequence[Group], new: Group) -> tuple[Group, ...]:
    """The groups with another one, in the first that shares its clock."""
    for number, group in enumerate(groups):
        both = group.with_group(new)
        if both is not None:
            return (*groups[:number], both, *groups[number + 1 :])
    return (*groups, new)


def without(groups: Sequence[Group], leaving: Places, closes_up: bool = True) -> tuple[Group, ...]:
    """The groups once the series at these places have left; the others move up, unless another one takes the place."""
    left = []
    for group in groups:
        stays = np.flatnonzero(~np.isin(group.places, leaving))
        if len(stays):
            rest = group if len(stays) == len(group.places) else group.part(stays)
            gone = (leaving[:, None] < rest.places).sum(axis=0) if closes_up else 0
            left.append(rest._replace(places=rest.places - gone))
    return tuple(left)


def moved(state: CohortState, library: Library) -> CohortState:
    """A state in another array library."""
    return mapped(library.array, state)
