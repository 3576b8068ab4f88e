"""A table as blocks of windows with what the frozen forecaster says of them and what came after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ompb.inputs import Rows
from ompb.query import Answer, Forecaster, Query, ask, speaking
from ompb.scaler import Scaler
from ompb.types import Floats
from ompb.windows import Origins, fill_forward, outcomes_at, windows_at

# Windows handed to the forecaster at a time.
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Batch:
    """Origins with the newest rows (N, n, R), base forecasts and outcomes (N, n, H; NaN = missing), standardised."""

    origins: Origins  # (n,): so many rows, and one, were known
    rows: Floats
    base: Floats
    outcomes: Floats

    def __len__(self) -> int:
        return len(self.origins)

    @property
    def known(self) -> tuple[int, ...]:
        """How many rows were known at each origin."""
        return tuple((self.origins + 1).tolist())

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Batch:
        """Some of the n origins."""
        return Batch(self.origins[places], self.rows[:, places], self.base[:, places], self.outcomes[:, places])

    @classmethod
    def join(cls, batches: Sequence[Batch]) -> Batch:
        """Several batches as one."""
        parts = ([getattr(batch, name) for batch in batches] for name in ("rows", "base", "outcomes"))
        origins = np.concatenate([batch.origins for batch in batches])
        return cls(origins, *(np.concatenate(part, axis=1) for part in parts))

    def with_outcome(self) -> Batch:
        """The origins of which any outcome is known."""
        return self.take(np.asarray(np.isfinite(self.outcomes).any(axis=(0, 2))))


@dataclass(frozen=True, eq=False)
class Source:
    """A table, the covariates that were known ahead of it, and who forecasts it."""

    forecaster: Forecaster
    rows: Rows
    future: Floats | None  # (T + ..., K)
    scaler: Scaler
    context: int
    horizon: int
    remembers: int  # rows that members look back on, at least context

    @cached_property
    def filled(self) -> Floats:
        """The rows with missing cells filled, (T, C)."""
        return fill_forward(self.rows.values, self.scaler.centre)

    def origins(self, first: int, stop: int) -> Origins:
        """The rows first .. stop - 1 at which the forecaster speaks."""
        every = np.arange(first, max(first, stop))
        times = None if self.rows.times is None else self.rows.times[every]
        return every[speaking(self.forecaster, every, times)]

    def query(self, origins: Origins) -> Query:
        """What the forecaster is asked at these origins."""
        return Query(
            windows=windows_at(self.filled, origins, self.context),
            origins=origins,
            times=None if self.rows.times is None else self.rows.times[origins],
            future=None if self.future is None else outcomes_at(self.future, origins, self.horizon),
        )

    def answer(self, origins: Origins) -> Answer:
        """What it says, checked."""
        return ask(self.forecaster, self.query(origins), self.horizon, self.scaler, self.rows.names)

    @cached_property
    def _padded(self) -> Floats:
        """The filled rows after as many copies of the first as let every origin look back far enough."""
        return np.concatenate([np.repeat(self.filled[:1], self.remembers, axis=0), self.filled])

    def batches(self, origins: Origins) -> Iterator[Batch]:
        """Blocks of these origins, standardised."""
        for first in range(0, len(origins), BLOCK):
            part = origins[first : first + BLOCK]
            rows = windows_at(self._padded, part + self.remembers, self.remembers)
            outcomes = outcomes_at(self.rows.values, part, self.horizon)
            lanes = (self.scaler.standardise(values) for values in (rows, self.answer(part).base, outcomes))
            yield Batch(part, *(np.moveaxis(values, -1, 0).copy() for values in lanes))
