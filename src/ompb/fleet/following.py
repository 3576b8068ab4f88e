"""Series of one shape followed over all their rows at once, and what was issued as arrays over time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator
from ompb.core.certificate.certifier import Reading
from ompb.core.certificate.realised import Judged
from ompb.errors import ForecasterError
from ompb.fleet.forecast import FleetCertificate, FleetWarnings
from ompb.live.cohort import Cohort, CohortState
from ompb.live.lanes import taken
from ompb.live.outgoing import InUnits, alerts_of, in_units
from ompb.rows.windows import Origins
from ompb.seam.query import Answer, quantiles_of
from ompb.seam.sources import BLOCK, Source, answers
from ompb.types import Alert, Certificate, Floats


class Followed(NamedTuple):
    """What n forecasts said of S series of T rows."""

    origins: Origins  # (n,)
    units: InUnits  # each (n, S, ...)
    certificate: FleetCertificate | None  # each term (n, S)
    last: Reading | None  # of the newest forecast, (S,)
    hidden: NDArray[np.bool_]  # cells that were not believed: (T, S, C)
    alerts: list[list[tuple[Alert, ...]]]  # those in force at each forecast, by series
    realised: Judged  # each (S,)

    def last_certificate(self, calibrator: Calibrator, series: int) -> Certificate | None:
        """That of a series' newest forecast, whole."""
        if self.last is None:
            return None
        source = taken(self.last.source, len(self.alerts), [series])
        return calibrator.certificate(Reading(source, self.last.target_disagreement[series : series + 1]))


def follow(
    calibrators: tuple[Calibrator, ...],
    sources: tuple[Source, ...],
    values: Floats,
    spoken: Origins,
    told: Callable[[int], None],
) -> Followed:
    """Step through rows (T, S, C) of series that have one shape; base forecasts are asked for in blocks.

    ``calibrators`` are those of each series, or one for all; ``sources`` their rows without what is never believed;
    ``told`` hears of so many rows more.
    """
    cohort = Cohort(calibrators, len(sources))
    asked = _Prefetched(sources, spoken)
    hidden = np.zeros(values.shape, dtype=bool)
    state, readings, units = cohort.start(), [], []
    alerts: list[list[tuple[Alert, ...]]] = [[] for _ in sources]
    speaks = np.isin(np.arange(len(values)), spoken)
    for row in range(len(values)):
        entered = cohort.enter(state, values[row, :, None])
        answer = asked.at(row, entered.window.filled) if speaks[row] and cohort.is_ready(state) else None
        issued, state = cohort.leave(state, entered, None, answer)
        if entered.hidden is not None:
            hidden[row] = entered.hidden[:, 0]
        if issued is not None and answer is not None:
            units.append(in_units(cohort, answer.base, issued))
            readings.append(issued.certificate)
            _note(alerts, cohort, state, sources)
        told(len(sources))
    certificates = [FleetCertificate.of(reading) for reading in readings if reading is not None]
    return Followed(
        origins=spoken,
        units=InUnits(*(None if part[0] is None else np.stack(part) for part in zip(*units, strict=True))),
        certificate=FleetCertificate(*map(np.stack, zip(*certificates, strict=True))) if certificates else None,
        last=readings[-1],
        hidden=hidden,
        alerts=alerts,
        realised=cohort.online.realised.bound(state.online.realised, cohort.cal.settings.delta),
    )


def _note(
    alerts: list[list[tuple[Alert, ...]]], cohort: Cohort, state: CohortState, sources: tuple[Source, ...]
) -> None:
    """Add the warnings in force at the newest row to those of each series."""
    row, warnings = state.rows - 1, state.online.warnings
    in_force = np.zeros(len(alerts), dtype=bool) if warnings.calm else FleetWarnings.of(warnings, row).in_force.any(1)
    for series, (found, loud) in enumerate(zip(alerts, in_force.tolist(), strict=True)):
        cal = cohort.calibrators[0 if cohort.is_shared else series]
        times = sources[series].rows.times
        stamp = None if times is None or cal.grid is None else times[row]
        found.append(alerts_of(cal, state.online, row, stamp, series) if loud else ())


@dataclass(eq=False)
class _Prefetched:
    """Asks for many windows at once, as they will be if every cell is believed, and for others one by one."""

    sources: tuple[Source, ...]
    spoken: Origins

    def __post_init__(self) -> None:
        self._filled = np.stack([source.filled for source in self.sources])  # as they will be: (S, T, C)
        self._block = np.empty(0, dtype=np.int64)  # origins asked about
        self._said: Floats = np.empty(0)  # what was said there, (n, S, H, C), or (n, S, H, C, Q)
        self._is_said: NDArray[np.bool_] = np.empty(0, dtype=bool)  # of which series, (S,): asking may have failed

    def at(self, row: int, rows: Floats) -> Answer:
        """What is said of each series, (S, H, C), whose newest rows are these (S, L or more, C)."""
        context = self.sources[0].context
        if not self._block.size or row > self._block[-1]:
            self._fetch(row)
        windows = rows[:, -context:]
        as_thought = (self._filled[:, row + 1 - context : row + 1] == windows).all(axis=(1, 2)) & self._is_said
        said = self._said[np.searchsorted(self._block, row)]
        if not as_thought.all():
            said = said.copy()
            for series in np.flatnonzero(~as_thought).tolist():
                said[series] = self.sources[series].answer_to(windows[series], row).of(0)
        quantiles = quantiles_of(self.sources[0].forecaster)
        if not quantiles:
            return Answer(said, None)
        return Answer(np.ascontiguousarray(said[..., quantiles.index(0.5)]), said)

    def _fetch(self, row: int) -> None:
        """Ask about the next origins."""
        first = np.searchsorted(self.spoken, row)
        self._block = self.spoken[first : first + BLOCK]
        try:
            found: list[Answer | None] = [*answers(self.sources, self._block)]
        except ForecasterError:  # perhaps at a window that the stream never comes to: whoever can, answers in blocks
            found = [_answer(source, self._block) for source in self.sources]
        source = self.sources[0]
        shape: tuple[int, ...] = (source.horizon, len(source.rows.names))
        if quantiles := quantiles_of(source.forecaster):
            shape = (*shape, len(quantiles))
        self._said = np.full((len(self._block), len(found), *shape), np.nan)
        self._is_said = np.asarray([one is not None for one in found])
        for place, one in enumerate(found):
            if one is not None:
                self._said[:, place] = one.base if one.quantiles is None else one.quantiles


def _answer(source: Source, origins: Origins) -> Answer | None:
    with suppress(ForecasterError):
        return source.answer(origins)
    return None
