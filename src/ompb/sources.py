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
    """Standardised windows (N, n, L), base forecasts (N, n, H) and outcomes (N, n, H; NaN = missing), lanes first."""

    windows: Floats
    base: Floats
    outcomes: Floats

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Batch:
        """Some of the n windows."""
        return Batch(self.windows[:, places], self.base[:, places], self.outcomes[:, places])

    @classmethod
    def join(cls, batches: Sequence[Batch]) -> Batch:
        """Several batches as one."""
        parts = ([getattr(batch, name) for batch in batches] for name in ("windows", "base", "outcomes"))
        return cls(*(np.concatenate(part, axis=1) for part in parts))

    def known(self) -> Batch:
        """The windows of which any outcome is known."""
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

    def batches(self, origins: Origins) -> Iterator[tuple[Origins, Batch]]:
        """Blocks of these origins, standardised."""
        for first in range(0, len(origins), BLOCK):
            part = origins[first : first + BLOCK]
            query = self.query(part)
            base = ask(self.forecaster, query, self.horizon, self.scaler, self.rows.names).base
            outcomes = outcomes_at(self.rows.values, part, self.horizon)
            lanes = (self.scaler.standardise(values) for values in (query.windows, base, outcomes))
            yield part, Batch(*(np.moveaxis(values, -1, 0).copy() for values in lanes))
