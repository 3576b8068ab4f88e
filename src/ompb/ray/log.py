"""Where rows come from and results go: a log that can be read again, and a sink that knows what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from ompb.errors import InputError, TimeOrderError
from ompb.fleet.rows import as_tick_rows
from ompb.floor.times import Stamp, as_stamp
from ompb.seam.sources import calling
from ompb.types import Floats

Late: TypeAlias = tuple[tuple[Stamp, Floats], ...]


class Log(Protocol):
    """Rows in order, from any tick on, the same each time."""

    def __call__(self, after: Any) -> Iterable[tuple[Any, ...] | None]:
        """Ticks behind ``after``, all if that is None: (tick, rows), or (tick, rows, late).

        Rows are as `ompb.Fleet.step` takes them; late is a mapping by older tick of rows that came since the tick
        before. A log that has to wait for the next tick yields None first: then the results of what it has yielded are
        given before it is asked again.
        """


class Sink(Protocol):
    """Keeps results, one entry a tick."""

    @property
    def last(self) -> Any:
        """The newest tick that would still be there if this process died now; None if there is none."""

    def write(self, at: Any, parts: Sequence[Any]) -> None:
        """Keep the results of a tick, one part a shard. Ticks come in order, each once, from the one behind `last`."""


@dataclass(frozen=True, slots=True)
class Block:
    """Ticks that follow each other, with the rows (n, S, C) of their series and what came late before each."""

    ticks: tuple[Stamp, ...]
    rows: Floats
    late: tuple[Late, ...]

    @property
    def last(self) -> Stamp:
        """The newest tick."""
        return self.ticks[-1]

    def of(self, series: slice) -> Block:
        """The same ticks of some of the series, in memory of their own."""
        late = tuple(tuple((at, rows[series].copy()) for at, rows in cells) for cells in self.late)
        return Block(self.ticks, np.ascontiguousarray(self.rows[:, series]), late)


@dataclass(frozen=True)
class Reader:
    """Reads a log in blocks of up to ``size`` ticks, for series in this order with these channels."""

    log: Log
    ids: tuple[str, ...]
    names: tuple[str, ...]
    size: int

    def blocks(self, after: Stamp | None, upto: Stamp | None = None) -> Iterator[Block | None]:
        """Blocks behind a tick; None where the log would wait. With ``upto`` it ends there, and may not end before."""
        last, gathered = after, []
        for entry in self.log(after):
            if entry is not None:
                gathered.append(self._checked(last, *entry))
                last = gathered[-1][0]
            if gathered and (entry is None or len(gathered) == self.size or last == upto):
                yield _block(gathered)
                gathered = []
            if upto is not None and last == upto:
                return
            if entry is None:
                yield None
        if upto is not None:
            raise InputError(
                f"the log ends at tick {last}, and what came up to tick {upto} has been used before; a log must give "
                "the same rows each time it is read, at least those since the oldest snapshot."
            )
        if gathered:
            yield _block(gathered)

    def _checked(self, last: Stamp | None, tick: Any, rows: Any, late: Any = None) -> tuple[Stamp, Floats, Late]:
        at = as_stamp(tick, "tick")
        if last is not None and not at > last:
            raise TimeOrderError(f"tick {at} came behind tick {last} in the log; accepted: ticks in order, each once.")
        older = tuple((as_stamp(when, "late"), self._array(when, cells)) for when, cells in (late or {}).items())
        return at, self._array(tick, rows), older

    def _array(self, tick: Any, rows: Any) -> Floats:
        """Rows (S, C) in order."""
        with calling(f"tick {tick}: "):
            return np.asarray(as_tick_rows(rows, self.ids, self.names))


def _block(gathered: Sequence[tuple[Stamp, Floats, Late]]) -> Block:
    ticks, rows, late = zip(*gathered, strict=True)
    return Block(ticks, np.stack(rows), late)
