"""Tables as blocks of windows with what the frozen forecaster says of them and what came after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from ompb.errors import ForecasterError, OmpbError
from ompb.rows.inputs import Rows
from ompb.rows.scaler import Scaler
from ompb.rows.windows import Origins, fill_forward, outcomes_at, windows_at
from ompb.seam.query import Answer, Forecaster, Query, ask, speaking
from ompb.types import Floats

_One = TypeVar("_One")

# Windows of a series handed to the forecaster at a time, and of several series together.
BLOCK, ASKED = 256, 2048


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

    def at(self, origins: Origins) -> Batch:
        """Those of the origins that are among these."""
        places = np.flatnonzero(np.isin(self.origins, origins))
        parts = (np.take(part, places, axis=1) for part in (self.rows, self.base, self.outcomes))
        return Batch(self.origins[places], *parts)


@dataclass(frozen=True, eq=False)
class Source:
    """A table, the covariates that were known ahead of it, and who forecasts it."""

    forecaster: Forecaster
    rows: Rows
    future: Floats | None  # (T + ..., K)
    scaler: Scaler
    context: int
    horizon: int
    called: str = ""  # what an error says first, where there are other series

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
        return self._asked(self.query(origins))

    def answer_to(self, window: Floats, origin: int) -> Answer:
        """What it says of a window (context, C) that has come otherwise than the table has it."""
        query = self.query(np.asarray([origin]))
        return self._asked(replace(query, windows=window[None]))

    def _asked(self, query: Query) -> Answer:
        with calling(self.called):
            return ask(self.forecaster, query, self.horizon, self.scaler, self.rows.names)


@dataclass(frozen=True, eq=False)
class Sources:
    """Tables of S series that are of one shape, and at whose origins the forecaster speaks alike.

    Its lanes are N = S C, series after series.
    """

    each: tuple[Source, ...]

    @property
    def first(self) -> Source:
        """One of them: they are alike."""
        return self.each[0]

    @property
    def channels(self) -> int:
        """C."""
        return len(self.first.rows.names)

    def __len__(self) -> int:
        return len(self.each)

    def take(self, places: Sequence[int]) -> Sources:
        """Some of the series."""
        return Sources(tuple(self.each[place] for place in places))

    @cached_property
    def filled(self) -> Floats:
        """The rows with missing cells filled, standardised: (S, C, T)."""
        return self._lanes([source.filled for source in self.each])

    @cached_property
    def measured(self) -> Floats:
        """The rows as they are, NaN where missing, standardised: (S, C, T)."""
        return self._lanes([source.rows.values for source in self.each])

    def batches(self, origins: Origins, reach: int) -> Iterator[Batch]:
        """Blocks of these origins with the newest ``reach`` rows, standardised."""
        for part, base in self.bases(origins):
            yield self.batch(part, base, reach)

    def batch_at(self, origins: Origins, reach: int) -> Batch:
        """All of these origins as one block."""
        nothing = np.empty((len(self) * self.channels, 0, self.first.horizon))
        return self.batch(origins, np.concatenate([nothing, *(base for _, base in self.bases(origins))], axis=1), reach)

    def batch(self, origins: Origins, base: Floats, reach: int) -> Batch:
        """These origins with what was said there (N, n, H), and with the newest ``reach`` rows."""
        ahead = origins[:, None] + np.arange(1, self.first.horizon + 1)
        measured = self.measured.reshape(-1, self.measured.shape[-1])
        rows = np.take(self.before(reach), origins[:, None] + np.arange(1, 1 + reach), axis=1)
        return Batch(origins, rows, base, np.take(measured, ahead, axis=1))

    def before(self, reach: int) -> Floats:
        """Filled rows (N, reach + T), of which the newest of row t are t + 1 .. t + reach.

        Before the first row there are as many copies of it as let every row look back far enough.
        """
        filled = self.filled.reshape(-1, self.filled.shape[-1])
        return np.concatenate([np.repeat(filled[:, :1], reach, axis=1), filled], axis=1)

    def bases(self, origins: Origins) -> Iterator[tuple[Origins, Floats]]:
        """Blocks of these origins, and base forecasts (N, n, H) at them, standardised."""
        for first in range(0, len(origins), BLOCK):
            part = origins[first : first + BLOCK]
            yield part, self._base(part)

    def _lanes(self, tables: list[Floats]) -> Floats:
        """Tables (T, C), standardised, with time as the last axis: (S, C, T)."""
        pairs = zip(self.each, tables, strict=True)
        return np.stack([np.ascontiguousarray(source.scaler.standardise(rows).T) for source, rows in pairs])

    def _base(self, origins: Origins) -> Floats:
        """Base forecasts (N, n, H), standardised."""
        pairs = zip(self.each, answers(self.each, origins), strict=True)
        lanes = [np.moveaxis(source.scaler.standardise(answer.base), -1, 0) for source, answer in pairs]
        return np.concatenate([np.ascontiguousarray(one) for one in lanes])


def in_parts(series: Sequence[_One], at_once: int) -> Iterator[Sequence[_One]]:
    """So many of them at a time, at least one.

    >>> list(in_parts(range(5), 2))
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    at_once = max(at_once, 1)
    for first in range(0, len(series), at_once):
        yield series[first : first + at_once]


@contextmanager
def calling(who: str) -> Iterator[None]:
    """Errors raised within say first which series they are about, where ``who`` is not empty."""
    try:
        yield
    except OmpbError as error:
        if not who:
            raise
        raise type(error)(f"{who}{error}") from error


def answers(sources: Sequence[Source], origins: Origins) -> list[Answer]:
    """What is said of each of some series; a forecaster that they share is asked about several of them at once."""
    share = len({id(source.forecaster) for source in sources}) == 1
    parts = in_parts(sources, ASKED // max(len(origins), 1) if share else 1)
    return [answer for part in parts for answer in _answers(part, origins)]


def _answers(sources: Sequence[Source], origins: Origins) -> list[Answer]:
    """The same of some that are asked about together; one by one where that fails, to tell whose fault it is."""
    first, count = sources[0], len(origins)
    if len(sources) == 1:
        return [first.answer(origins)]
    centre, scale = (
        np.repeat([getattr(source.scaler, name) for source in sources], count, axis=0)[:, None]
        for name in ("centre", "scale")
    )
    query = Query.join([source.query(origins) for source in sources])
    try:
        base, quantiles = ask(first.forecaster, query, first.horizon, Scaler(centre, scale), first.rows.names)
    except ForecasterError:
        return [source.answer(origins) for source in sources]
    parts = [slice(place * count, (place + 1) * count) for place in range(len(sources))]
    return [Answer(base[part], None if quantiles is None else quantiles[part]) for part in parts]
