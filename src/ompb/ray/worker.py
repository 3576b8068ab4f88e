"""What a worker does: some shards, each a fleet with snapshots; it follows ticks and restores what it had saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ompb.calibrator import Calibrator
from ompb.errors import FormatError
from ompb.fleet.fleet import Fleet
from ompb.fleet.forecast import FleetForecast
from ompb.floor.times import Stamp
from ompb.ray.log import Block
from ompb.ray.snapshots import Snapshots
from ompb.seam.query import AnyForecaster

Calibrators: TypeAlias = Calibrator | Mapping[str, Calibrator]
Pick: TypeAlias = Callable[[FleetForecast], Any]


@dataclass(frozen=True, slots=True)
class Shard:
    """What a fleet of some series is made of, and where it is saved."""

    ids: tuple[str, ...]
    calibrators: Calibrators
    forecaster: AnyForecaster
    snapshots: Snapshots
    options: Mapping[str, Any]  # of `Fleet`: device, dtype, batched

    def restore(self, at_most: Stamp | None) -> Fleet:
        """The fleet as it was saved last, but not beyond a tick; a new one if there is none."""
        path = self.snapshots.newest(at_most)
        if path is None:
            return Fleet(self.calibrators, self.forecaster, self.ids, **self.options)
        fleet = Fleet.load(path, self.calibrators, self.forecaster, **self.options)
        if fleet.ids != self.ids:
            raise FormatError(
                f"{path} holds other series than this shard; keep the ids, their order and the size of shards, or name "
                "another folder."
            )
        return fleet


@dataclass(slots=True, repr=False)
class Worker:
    """Some shards, followed one after the other; saved after every so many ticks."""

    shards: Sequence[Shard]
    every: int
    pick: Pick
    _fleets: list[Fleet] = field(default_factory=list, init=False)

    @property
    def series(self) -> int:
        """How many there are in all shards."""
        return sum(len(shard.ids) for shard in self.shards)

    def restore(self, at_most: Stamp | None) -> Stamp | None:
        """The tick behind which rows are needed, None for all; results up to ``at_most`` are known."""
        self._fleets = [shard.restore(at_most) for shard in self.shards]
        return earliest([fleet.newest for fleet in self._fleets])

    def follow(self, block: Block, known: Stamp | None, safe: Stamp | None) -> list[list[Any]]:
        """Learn the rows of a block; for each shard, the results of its ticks that are not known.

        A shard of a few hundred series fits into a processor's cache: each does all ticks before the next one begins.
        """
        found, first = [], 0
        for shard, fleet in zip(self.shards, self._fleets, strict=True):
            part = block.of(slice(first, first + len(shard.ids)))
            found.append(self._follow(shard, fleet, part, known, safe))
            first += len(shard.ids)
        return found

    def _follow(self, shard: Shard, fleet: Fleet, block: Block, known: Stamp | None, safe: Stamp | None) -> list[Any]:
        results = []
        for tick, rows, late in zip(block.ticks, block.rows, block.late, strict=True):
            if is_after(tick, fleet.newest):
                for at, cells in late:
                    fleet.observe(at, cells)
                forecast = fleet.step(rows, at=tick)
                assert forecast is not None  # a new tick
                if is_after(tick, known):
                    results.append(self.pick(forecast))
                if fleet.ticks % self.every == 0:
                    fleet.save(shard.snapshots.path(tick))
                    shard.snapshots.forget(safe)
        return results


def is_after(tick: Stamp, other: Stamp | None) -> bool:
    """Whether a tick lies behind another, of which there may be none."""
    return other is None or bool(tick > other)


def earliest(ticks: Sequence[Stamp | None]) -> Stamp | None:
    """The one behind which rows are needed if all are to have theirs."""
    return None if None in ticks else min(ticks)  # type: ignore[type-var]  # all are of one kind
