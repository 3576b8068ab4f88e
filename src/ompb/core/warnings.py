r"""Warnings: the stream is not what it was. Some signals, each held against its own record.

level: the mean of its newest season, less its running mean, :math:`\sqrt{\overline{(l_c - \bar l_c)^2}}`

errors: a running sum (CUSUM) of first-lead errors e in issued standard deviations,
:math:`\sqrt s,\; s \leftarrow \max(0, s + \min(\overline{e_c^2 - 2}, 10))`

inputs: the whitened features of the newest window, :math:`\overline{\ln |T \phi_c|^2}`

novelty: how far base forecast and memory are apart, :math:`\overline{\ln r_c}`

Means are over the channels c of a series. All but `errors` speak before any outcome is known. What is usual is learned
from the end of the source and then from the stream's own last rows (`ompb.core.record`); a signal gives a warning where
its value is one that a calm stream shows less often than once in `rows` rows. A warning stays until a block of rows has
passed without another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, at_least, at_most, contiguous, dot, has_none, namespace, over_series, tiny, zeros
from ompb.core.counts import Form
from ompb.core.expected import GAUSSIAN
from ompb.core.fusing import fused
from ompb.core.record import BLOCK, Record, line_of
from ompb.floor.shapes import LARGEST, Shape

# Least scale of a signal's law: in source standard deviations, in issued ones, and in log units.
LEAST = {"level": 0.01, "errors": 0.1, "inputs": 0.02, "novelty": 0.02}
# Mean squared error above which the sum of errors rises, and what it rises by at most: one absurd row is no change.
DRIFT, MOST = 2.0, 10.0
# Rows over which what is usual of a level or of inputs is a mean.
MEMORY = 250
# Rows of the mean level where no season fits into the window.
SPAN = 24
NEVER = -1


@dataclass(frozen=True)
class WarningOptions:
    """Of the warnings."""

    rows: float = 1500.0  # a signal of a calm stream gives a warning once in so many rows


class SourceSignals(NamedTuple):
    """What is usual on the source."""

    record: Record  # of its last rows
    levels: Annotated[Array, Shape("N 2")]  # the lowest and the highest level of each lane
    span: int  # rows of a level

    @classmethod
    def of(cls, windows: Array, counts: Array, span: int, signals: int) -> SourceSignals:
        """From those windows (N, n, L) of S series that ``counts`` (S, n), before any record."""
        xp, series = namespace(windows), int(counts.shape[0])
        levels = xp.mean(windows[..., -span:], axis=-1)
        among = xp.repeat(counts, windows.shape[0] // series, axis=0)
        least, most = (xp.where(among, levels, beyond) for beyond in (LARGEST, -LARGEST))
        ends = xp.stack([xp.min(least, axis=1), xp.max(most, axis=1)], axis=-1)
        return cls(Record.empty(windows, series, signals), ends, span)


class WarningState(NamedTuple):
    """What signals did, and the warnings in force, for S series of N lanes in all."""

    record: Record
    line: Annotated[Array, Shape("S signals")]  # above it there is a warning
    usual: Annotated[Array, Shape("N signals")]  # running means of what the lanes show; of `errors` there is none
    erring: Annotated[Array, Shape("S", least=0)]  # the sum of errors
    since: Annotated[Array, Shape("S signals", dtype="int64")]  # the row of a warning's first alarm
    newest: Annotated[Array, Shape("S signals", dtype="int64")]  # the row of its newest one; NEVER for none
    peak: Annotated[Array, Shape("S signals")]  # z of its strongest
    parts: Annotated[Array, Shape("N signals")]  # what each lane had to do with that one
    calm: bool  # no warning is in force
    started: bool  # a window was seen

    def with_erring(self, erring: Array) -> WarningState:
        """The same with another sum of errors."""
        return WarningState(self.record, self.line, self.usual, erring, *self[4:])


class Shown(NamedTuple):
    """What signals did at a row, and the warnings in force after it."""

    signals: Array  # (S, signals)
    usual: Array  # as in `WarningState`, like all below
    since: Array
    newest: Array
    peak: Array
    parts: Array
    calm: bool


class InForce(NamedTuple):
    """A warning of one series."""

    signal: str
    since: int  # row
    newest: int  # row
    excess: float  # z
    parts: Array  # what each of its lanes has to do with it: (C,)


@dataclass(frozen=True)
class Warnings:
    """The signals of S series of C lanes each."""

    source: SourceSignals
    channels: int
    sees_inputs: bool  # whitened features are handed in
    sees_novelty: bool  # r is handed in
    options: WarningOptions

    @property
    def names(self) -> tuple[str, ...]:
        """Of the signals."""
        return signal_names(self.sees_inputs, self.sees_novelty)

    @cached_property
    def least(self) -> Array:
        """Of each signal's scale, (signals,)."""
        like = self.source.levels
        return namespace(like).asarray([LEAST[name] for name in self.names], dtype=like.dtype, device=like.device)

    @cached_property
    def excess(self) -> float:
        """The z above which there is a warning."""
        return line_of(self.options.rows)

    @cached_property
    def newest_rows(self) -> Array:
        """Weights of the level, (span,)."""
        return _shares(self.source.levels, self.source.span)

    @cached_property
    def each_channel(self) -> Array:
        """Weights of a mean over channels, (C,)."""
        return _shares(self.source.levels, self.channels)

    def start(self) -> WarningState:
        """No row of the stream yet."""
        xp, like, record = namespace(self.source.levels), self.source.levels, self.source.record
        lanes, signals = like.shape[0], len(self.names)
        series = lanes // self.channels
        since, newest = (xp.full((series, signals), NEVER, dtype=xp.int64, device=like.device) for _ in range(2))
        return WarningState(
            record=record._replace(location=contiguous(record.location), scale=contiguous(record.scale)),
            line=record.line(self.excess),
            usual=zeros(like, lanes, signals),
            erring=zeros(like, series),
            since=since,
            newest=newest,
            peak=zeros(like, series, signals),
            parts=zeros(like, lanes, signals),
            calm=True,
            started=False,
        )

    def risen(self, erring: Array, error: Array, observed: Array) -> Array:
        """The sum of errors (S,) once first-lead errors (N,) in issued standard deviations are known.

        They are 0 but where ``observed`` (N,) is 1. A sum in time order takes no error that comes late.
        """
        rise = dot((error * error - DRIFT * observed).reshape((-1, self.channels)), self.each_channel)
        return at_least(erring + at_most(rise, MOST), 0.0)

    def issue(
        self,
        state: WarningState,
        row: int,
        windows: Array,
        whitened: Array | None,
        novelty: Array | None,
        ratio: Array,
    ) -> WarningState:
        """Once the windows (N, L) of the newest row are known, with their features (N, F) and r (N,).

        ``ratio`` (N,), how late errors compare with issued standard deviations, tells which lanes `errors` is about.
        """
        shown = self._shown(state, row, windows[:, -self.source.span :], whitened, novelty, ratio)
        record = state.record.with_row(row, shown.signals, self.least)
        line = record.line(self.excess) if record.is_news else state.line
        return WarningState(record, line, shown.usual, state.erring, *shown[2:], True)

    def form(self, state: WarningState, row: int) -> Form | None:
        """Of a row that is issued from; None for the first one."""
        return state.record.form(row) if state.started else None

    @fused
    def _shown(
        self,
        state: WarningState,
        row: int,
        newest: Array,
        whitened: Array | None,
        novelty: Array | None,
        ratio: Array,
    ) -> Shown:
        """What a row shows, by the newest rows (N, span) that make a level."""
        xp = namespace(newest)
        lanes = zeros(newest, *state.usual.shape)  # what each shows, by signal
        lanes[:, 0] = dot(newest, self.newest_rows)
        if whitened is not None:
            lanes[:, 2] = dot(whitened, whitened)
        if novelty is not None:
            lanes[:, -1] = novelty
        # of no novelty at all, too; one feature is 1, so inputs are never all zero
        lanes[:, 2:] = xp.log(lanes[:, 2:] + tiny(lanes))
        usual = state.usual if state.started else self._first_usual(lanes)
        off = lanes - usual
        lanes[:, 0] = off[:, 0] ** 2
        signals = over_series(lanes, self.channels)  # nobody needs the lanes any more
        signals[:, 1] = state.erring
        signals[:, :2] = xp.sqrt(signals[:, :2])
        usual = usual + off / MEMORY
        above = signals > state.line
        if has_none(above) and state.calm:
            return Shown(signals, usual, *state[4:-1])
        off[:, 0] = xp.abs(off[:, 0])
        off[:, 1] = at_least((ratio / GAUSSIAN) ** 2 - 1, 0.0)  # mean square beyond that of errors as issued
        return Shown(signals, usual, *self._warned(state, row, state.record.excess(signals), above, off))

    def in_force(self, state: WarningState, row: int, series: int = 0) -> list[InForce]:
        """The warnings of one series at a row, strongest first."""
        if state.calm:
            return []
        lanes = slice(series * self.channels, (series + 1) * self.channels)
        found = [
            InForce(name, int(state.since[series, g]), newest, float(state.peak[series, g]), state.parts[lanes, g])
            for g, name in enumerate(self.names)
            if (newest := int(state.newest[series, g])) != NEVER and row - newest <= BLOCK
        ]
        return sorted(found, key=lambda one: -one.excess)

    def _first_usual(self, lanes: Array) -> Array:
        """What is usual when the first window is seen: a level that the source has had is as usual as any."""
        xp = namespace(lanes)
        usual = xp.asarray(lanes, copy=True)
        usual[:, 0] = xp.minimum(xp.maximum(lanes[:, 0], self.source.levels[:, 0]), self.source.levels[:, 1])
        return usual

    def _warned(
        self, state: WarningState, row: int, excess: Array, above: Array, parts: Array
    ) -> tuple[Array, Array, Array, Array, bool]:
        """The warnings in force once some signals (S, signals) lie above their line, or did so lately."""
        xp = namespace(excess)
        going_on = (state.newest != NEVER) & (row - state.newest <= BLOCK)
        stronger = above & (~going_on | (excess > state.peak))
        return (
            xp.where(above & ~going_on, row, state.since),
            xp.where(above, row, state.newest),
            xp.where(stronger, excess, state.peak),
            xp.where(xp.repeat(stronger, self.channels, axis=0), parts, state.parts),
            has_none(going_on | above),
        )


def _shares(like: Array, count: int) -> Array:
    """Weights of a mean, (count,)."""
    return namespace(like).full((count,), 1 / count, dtype=like.dtype, device=like.device)


def signal_names(sees_inputs: bool, sees_novelty: bool) -> tuple[str, ...]:
    """In the order of their places."""
    return ("level", "errors") + ("inputs",) * sees_inputs + ("novelty",) * sees_novelty


def level_span(season: int | None, context: int) -> int:
    """Rows of the level: a season, or `SPAN` where none fits into the window."""
    return season if season is not None and season <= context else min(SPAN, context)
