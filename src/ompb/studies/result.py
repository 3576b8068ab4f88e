"""What a study hands out: a finished run, the references beside it, and the phases it is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ompb.backtest import BARE, OMPB, Run
from ompb.bench.compare import run_references
from ompb.calibrator import Calibrator
from ompb.episodes import Episode
from ompb.floor.names import counted
from ompb.floor.times import Times
from ompb.rows.phases import Phase
from ompb.studies.scores import PhaseScores, score_phase
from ompb.tables import Clock
from ompb.types import Floats

# Episodes of warnings that a sentence tells of.
TOLD = 3


@dataclass(frozen=True, slots=True)
class HiddenCells:
    """Cells of one channel that were taken as missing because they could not be true."""

    channel: str
    cells: int
    first: str  # when
    last: str

    def __str__(self) -> str:
        when = f"at {self.first}" if self.first == self.last else f"from {self.first} to {self.last}"
        return f"{self.channel}: {self.cells}, {when}"


def disbelieved(cells: int, where: str) -> str:
    """A sentence on cells that could not be true.

    >>> disbelieved(1, "south: 1")
    '1 cell was too absurd to be believed and was taken as missing (south: 1).'
    """
    was = "was" if cells == 1 else "were"
    return f"{counted(cells, 'cell')} {was} too absurd to be believed and {was} taken as missing ({where})."


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """A finished run with all that a report says of it. Phases and times count the rows of the stream."""

    title: str
    run: Run
    phases: tuple[Phase, ...]  # one or more
    references: Mapping[str, Floats]  # other forecasts (n, H, C) of the same origins, by name
    facts: Mapping[str, str] = field(default_factory=dict)  # what else the reader should know: data, split, seed
    notes: tuple[str, ...] = ()  # what the reader should be told: rows that were inserted, or not used
    clock: Clock = field(default_factory=Clock)  # that the user's table tells its times by

    @classmethod
    def of(
        cls,
        run: Run,
        *,
        title: str = "A stream, followed by ompb",
        phases: Sequence[Phase] = (),
        facts: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
        clock: Clock | None = None,
    ) -> Study:
        """A run with trivial references beside it; without phases there is one, from the first forecast to the end."""
        whole = Phase("stream", int(run.origins[0]), len(run.rows))
        references = run_references(run)
        phases = tuple(phases) or (whole,)
        return cls(title, run, phases, references, facts or {}, tuple(notes), clock or Clock())

    def __repr__(self) -> str:
        count, horizon, channels = self.run.mean.shape
        phases = ", ".join(phase.name for phase in self.phases)
        size = f"{counted(count, 'forecast')} of {counted(horizon, 'lead')}, {counted(channels, 'channel')}"
        return f"Study({self.title!r}: {size}; phases: {phases})"

    @property
    def calibrator(self) -> Calibrator:
        """The one whose stream was followed."""
        return self.run.calibrator

    @property
    def rows(self) -> Floats:
        """What was streamed, (T, C)."""
        return self.run.rows

    @property
    def times(self) -> Times:
        """Of the rows, (T,): dates, or row numbers where there are none."""
        return self.run.stamps

    @property
    def forecasts(self) -> dict[str, Floats]:
        """Every forecast (n, H, C) by name: the bare one first, ours last."""
        return {BARE: self.run.base, **self.references, OMPB: self.run.mean}

    @property
    def smoothing(self) -> int:
        """Rows to average a curve over: a season, or a horizon where there is no season."""
        return self.run.smoothing

    def scores(self) -> dict[str, list[PhaseScores]]:
        """By phase: the bare forecaster first, then the references, ours last."""
        return {name: [*lines] for name, lines in self._scored.items()}

    @cached_property
    def _scored(self) -> dict[str, tuple[PhaseScores, ...]]:
        """Kept, since screen, page and summary all tell of them."""
        return {phase.name: tuple(score_phase(self.run, self.references, phase)) for phase in self.phases}

    def hidden(self) -> list[HiddenCells]:
        """Where cells were not believed, one entry for each channel that has some."""
        return list(self._hidden_by_channel())

    def hidden_sentence(self) -> str:
        """How many cells were not believed, and where; empty if all were."""
        channels = self.hidden()
        if not channels:
            return ""
        total = sum(channel.cells for channel in channels)
        return disbelieved(total, "; ".join(map(str, channels)))

    def strongest_episodes(self, most: int) -> list[Episode]:
        """At most so many episodes of warnings, in time order, told by the table's clock."""
        strongest = sorted(self.run.warnings, key=lambda one: -one.alerts[0].rows_between)[:most]
        return [self._by_the_wall(one) for one in sorted(strongest, key=lambda one: one.since)]

    def warnings_told(self) -> list[str]:
        """How many episodes of warnings there were, then the strongest few in time order, in sentences."""
        count = len(self.run.warnings)
        if not count:
            return ["No warnings."]
        head = "1 episode of warnings" if count == 1 else f"{count} episodes of warnings"
        return [f"{head}{f', the {TOLD} strongest' if count > TOLD else ''}:", *map(str, self.strongest_episodes(TOLD))]

    def _by_the_wall(self, episode: Episode) -> Episode:
        """With the times that the table's clock showed."""
        if not self.clock.known or self.clock.by_wall:
            return episode
        local = {alert.since: self.clock.local(self.times[[alert.since]])[0] for alert in episode.alerts}
        alerts = tuple(replace(alert, since_time=local[alert.since]) for alert in episode.alerts)
        return replace(episode, alerts=alerts)

    def _hidden_by_channel(self) -> Iterator[HiddenCells]:
        for name, cells in zip(self.run.names, self.run.hidden.T, strict=True):
            rows = np.flatnonzero(cells)
            if len(rows):
                first, last = (self.clock.shown(self.times[row]) for row in (rows[0], rows[-1]))
                yield HiddenCells(name, len(rows), first, last)
