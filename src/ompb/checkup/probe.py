"""What a forecaster is asked in a check: windows of the source, spread over it and over the phases of its season."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from ompb.errors import TooShortError
from ompb.offline.fitting import season_of
from ompb.rows.inputs import as_future, as_rows
from ompb.rows.scaler import Scaler
from ompb.rows.windows import Origins, outcomes_at
from ompb.seam.query import AnyForecaster, Forecaster, Query, as_forecaster, ask
from ompb.seam.sources import Source
from ompb.types import Floats

FEW = 8  # windows asked about again and again
FEWEST = 24  # windows from which a shape, or an order, that is not there is told from chance
GOLDEN = (5**0.5 - 1) / 2  # steps of this share of the whole meet every part and every phase of it evenly
# Answers that differ by less are the same: the rounding of a network in float32, in source standard deviations and
# in shares of the value.
SAME_DEVIATIONS, SAME_SHARE = 1e-4, 1e-5


@dataclass(frozen=True, eq=False)
class Probe:
    """A forecaster, a source and the origins it is asked at."""

    source: Source
    origins: Origins
    season: int | None

    @classmethod
    def of(
        cls,
        candidate: AnyForecaster,
        table: Any,
        context: int,
        horizon: int,
        times: Any,
        future: Any,
        season: Any,
        windows: int,
    ) -> Probe:
        """Every origin has its window and its outcome within the source."""
        forecaster = as_forecaster(candidate)
        rows = as_rows(table, "source", times)
        covariates = None if future is None else as_future(future, len(rows.values), "future")
        source = Source(forecaster, rows, covariates, Scaler.fit(rows.values), context, horizon)
        spoken = source.origins(context - 1, len(rows.values) - horizon)
        if len(spoken) < 2:
            raise TooShortError(
                f"the source has {len(rows.values)} rows and {len(spoken)} windows of {context} with {horizon} rows "
                "after them at which the forecaster speaks; two are needed. Pass a longer source."
            )
        return cls(source, _spread(spoken, windows), season_of(season, rows.values))

    @property
    def forecaster(self) -> Forecaster:
        """The one that is asked."""
        return self.source.forecaster

    @property
    def scale(self) -> Floats:
        """Standard deviations of the source, (C,)."""
        return self.source.scaler.scale

    @cached_property
    def few(self) -> Query:
        """A handful of questions."""
        return self.source.query(self.origins[:FEW])

    @cached_property
    def answered(self) -> Floats:
        """What it says of them, (n, H, C) or (n, H, C, Q)."""
        return self.ask(self.few)

    @cached_property
    def _timed(self) -> tuple[Floats, float]:
        start = perf_counter()
        said = self.source.answer(self.origins).base
        return said, perf_counter() - start

    @property
    def forecasts(self) -> Floats:
        """What it says at all origins, quantiles left out, standardised: (n, H, C)."""
        return self.source.scaler.standardise(self._timed[0])

    @property
    def seconds(self) -> float:
        """How long that took."""
        return max(self._timed[1], 1e-9)

    @cached_property
    def windows(self) -> Floats:
        """The windows it was asked about, standardised: (n, context, C)."""
        return self.source.scaler.standardise(self.source.query(self.origins).windows)

    @cached_property
    def outcomes(self) -> Floats:
        """What came after, standardised, NaN where missing: (n, H, C)."""
        rows = outcomes_at(self.source.rows.values, self.origins, self.source.horizon)
        return self.source.scaler.standardise(rows)

    def ask(self, query: Query) -> Floats:
        """An answer that is a forecast, (n, H, C) or (n, H, C, Q)."""
        said = ask(self.forecaster, query, self.source.horizon, self.source.scaler, self.source.rows.names)
        return said.base if said.quantiles is None else said.quantiles

    def apart(self, one: Floats, other: Floats) -> float:
        """How far two answers are apart at most, in source standard deviations; 0 if they are the same."""
        return float(self.apart_in(one, other).max())

    def apart_in(self, one: Floats, other: Floats) -> Floats:
        """The same in each channel, (C,)."""
        scale = self.scale if one.ndim == 3 else self.scale[:, None]
        distance = np.abs(one - other)
        far = np.where(distance <= SAME_DEVIATIONS * scale + SAME_SHARE * np.abs(one), 0.0, distance / scale)
        return np.asarray(far.max(axis=tuple(axis for axis in range(one.ndim) if axis != 2)))


def part(query: Query, places: slice) -> Query:
    """Some of the questions."""
    times, future = (None if of is None else of[places] for of in (query.times, query.future))
    return Query(query.windows[places], query.origins[places], times, future)


def _spread(spoken: Origins, windows: int) -> Origins:
    """At most so many of the origins, in an order of which every beginning is spread evenly."""
    if len(spoken) <= windows:
        places = np.argsort((np.arange(len(spoken)) * GOLDEN) % 1)
    else:
        places = np.unique(((np.arange(windows) * GOLDEN % 1) * len(spoken)).astype(np.int64))
        places = places[np.argsort((np.arange(len(places)) * GOLDEN) % 1)]
    return np.asarray(spoken[places])
