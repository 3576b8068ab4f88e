"""The series of a fleet in groups that share a clock, and whose calibrators have one shape.

Such series that began together, and had forecasts at the same rows, are one group, which is stepped at once. One that
joins later, or is left out of a forecast, is a group of its own from then on, together with all that share its fate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator
from ompb.core.arrays import Array, is_rising
from ompb.core.counts import Form
from ompb.core.fusing import calling
from ompb.core.guard import GuardState
from ompb.fleet.forecast import Parts
from ompb.fleet.parts import parts_of
from ompb.floor.times import Stamp
from ompb.live.cohort import Cohort, CohortState, Entered, Learned
from ompb.live.lanes import UnlikeError, joined, mapped, taken
from ompb.live.library import Library
from ompb.live.likeness import shape_of
from ompb.live.recording import Move, Recorder, Values
from ompb.live.window import Window
from ompb.seam.query import Answer

Places = NDArray[np.int64]


class Group(NamedTuple):
    """Series that share a clock."""

    cohort: Cohort
    state: CohortState
    places: Places  # of its series among the fleet's
    recorder: Recorder | None  # of its own

    @classmethod
    def fresh(cls, calibrators: Sequence[Calibrator], library: Library, places: Places) -> Group:
        """Series that have seen no row, with calibrators of one shape."""
        cohort = cohort_of(calibrators, library)
        return cls.of(cohort, cohort.start(), places)

    @classmethod
    def of(cls, cohort: Cohort, state: CohortState, places: Places) -> Group:
        """Series in that state."""
        return cls(cohort, state, places, cohort.library.recorder())

    def rows(self, values: Array) -> Array:
        """Those of a fleet's rows (S, ...) that are its own."""
        if len(self.places) == len(values) and is_rising(self.places):
            return values
        return values[self.places]

    def enter(self, values: Array) -> Entered:
        """Its part of a fleet's rows (S, C) has come."""

        def believe(row: int, guard: GuardState, window: Window, values: Array) -> tuple[None, Entered]:
            return None, self.cohort.believe(row, guard, window, values)

        guard, window = self.state.online.guard, self.state.window
        form = self.cohort.online.guard.form(guard, self.state.rows)
        _, entered = self._moved(believe, form, (guard, window), (self.rows(values)[:, None],))
        return cast(Entered, entered)

    def leave(self, entered: Entered, stamp: Stamp | None, answer: Answer | None) -> tuple[Parts, Group]:
        """What goes out with a row, and the group after it."""
        cohort, state = self.cohort, self.state
        known = min(state.known + 1, cohort.cal.remembers)

        def learn(row: int, before: Learned, entered: Entered, answer: Answer | None) -> tuple[Parts, Learned]:
            issued, learned = cohort.learn(row, known, before, entered, answer)
            return parts_of(cohort, row, entered, answer, issued, learned.online.warnings), learned

        form = None if answer is None else cohort.form(state)
        parts, learned = self._moved(learn, form, (Learned(state.online, state.hidden), entered), (answer,))
        return parts, self._replace(state=cohort.after(state, stamp, answer is not None, entered.window, learned))

    def _moved(self, move: Move, form: Form | None, kept: Values, news: Values) -> tuple[Any, Any]:
        """A move, compiled and recorded once there is a forecast and all rows that are remembered are known.

        What comes before is of other forms, and over before it would be compiled.
        """
        state, remembered = self.state, self.cohort.cal.remembers
        if self.recorder is None or state.online.guard.origin is None or state.known < remembered:
            return move(state.rows, *kept, *news)
        with calling(self.cohort.library.caller):
            return self.recorder(move, form, state.rows, kept, news)

    @property
    def calibrators(self) -> list[Calibrator]:
        """Of each series."""
        every = self.cohort.calibrators
        return list(every) * self.cohort.series if self.cohort.is_shared else list(every)

    def part(self, chosen: Places) -> Group:
        """Some of its series, by their number in the group, with buffers of their own."""
        state = taken(self.state, self.cohort.series, chosen)
        return Group.of(self.cohort.part(chosen.tolist()), state, self.places[chosen])

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
            taken_over.append(Group.of(cohort, cohort.taking_over(part.state), part.places))
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
        return Group.of(cohort, state, np.concatenate([self.places, other.places]))


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
