"""Shards of a fleet on the workers of a cluster: each row learned once, each result given once, whoever dies."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ompb.calibrator import Calibrator
from ompb.floor import checks
from ompb.floor.extras import extra
from ompb.floor.times import Stamp, as_stamp
from ompb.ray.hand import AHEAD, Hand
from ompb.ray.log import Block, Log, Reader, Sink
from ompb.ray.part import summary
from ompb.ray.snapshots import Snapshots
from ompb.ray.worker import Calibrators, Pick, Shard, Worker, earliest, is_after
from ompb.seam.by_id import as_ids, for_each
from ompb.seam.query import AnyForecaster

with extra("ray", needed_by="ompb.ray"):
    import ray

ROWS_A_CALL = 20_000  # of a worker: a call costs about a millisecond, these rows a hundred


def shards(
    calibrators: Calibrators,
    forecaster: AnyForecaster,
    ids: Sequence[str],
    *,
    size: int = 300,
    folder: str | PathLike[str] = "snapshots",
    every: int = 500,
    workers: int | None = None,
    pick: Pick = summary,
    device: str | None = None,
    dtype: str | None = None,
    batched: bool = True,
) -> Shards:
    """A fleet in shards of ``size`` series, on as many workers as the cluster has processors, or as asked for.

    Each shard is saved in ``folder``, which all machines must see, after every so many ticks. ``pick`` makes of the
    `FleetForecast` of a shard what goes to the sink, by default a `Part`; it runs in the worker, and what it returns is
    its own: no array that the fleet goes on with. The rest are options of `ompb.Fleet`; a worker whose ``device`` is a
    GPU asks for one.
    """
    names, options = as_ids(ids), {"device": device, "dtype": dtype, "batched": batched}
    size, every = checks.count("size", size), checks.count("every", every)
    place = Path(folder).absolute()
    parts = [names[first : first + size] for first in range(0, len(names), size)]
    made = [
        Shard(part, _of(calibrators, part), forecaster, Snapshots(place, number), options)
        for number, part in enumerate(parts)
    ]
    count = None if workers is None else checks.count("workers", workers)
    return Shards(names, tuple(made), every, count, pick)


def _of(calibrators: Calibrators, ids: Sequence[str]) -> Calibrators:
    return calibrators if isinstance(calibrators, Calibrator) else for_each("calibrators", calibrators, ids)


@dataclass(frozen=True, slots=True)
class Shards:
    """What `shards` makes: `run` follows a log."""

    ids: tuple[str, ...]
    shards: tuple[Shard, ...]
    every: int
    workers: int | None
    pick: Pick

    def run(self, log: Log, sink: Sink) -> Iterator[tuple[Stamp, list[Any]]]:
        """Follow a log behind what the sink holds: each tick with its results, one a shard, once the sink has them.

        Workers begin with their newest snapshots that are not ahead of the sink, and read the log from there; so does
        one that takes the place of another that died. If this process dies, run it again.
        """
        for shard in self.shards:
            shard.snapshots.folder.mkdir(parents=True, exist_ok=True)
        known = _newest(sink)
        workers = [Worker(share, self.every, self.pick) for share in self._shares()]
        ticks_a_call = max(1, ROWS_A_CALL // max(worker.series for worker in workers))
        reader = Reader(log, self.ids, self._names(), ticks_a_call)
        hands = [Hand(worker, reader, known) for worker in workers]
        try:
            starts = [hand.ready() for hand in hands]
            under_way: deque[Block] = deque()
            for block in reader.blocks(earliest(starts)):
                if block is not None:
                    for hand in hands:
                        hand.send(block, _newest(sink))
                    under_way.append(block)
                while len(under_way) > (AHEAD if block is not None else 0):
                    yield from _deliver(under_way.popleft(), hands, known, sink)
            for block in under_way:
                yield from _deliver(block, hands, known, sink)
        finally:
            for hand in hands:
                hand.dismiss()

    def _shares(self) -> list[tuple[Shard, ...]]:
        """Shards of each worker: as equal as can be, in order."""
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        processors: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        count = min(self.workers or max(1, int(processors.get("CPU", 1))), len(self.shards))
        bounds = [number * len(self.shards) // count for number in range(count + 1)]
        return [self.shards[first:last] for first, last in itertools.pairwise(bounds)]

    def _names(self) -> tuple[str, ...]:
        """Of the channels, which are alike for all series."""
        calibrators = self.shards[0].calibrators
        one = calibrators if isinstance(calibrators, Calibrator) else calibrators[self.ids[0]]
        return one.names


def _newest(sink: Sink) -> Stamp | None:
    last = sink.last
    return None if last is None else as_stamp(last, "sink.last")


def _deliver(block: Block, hands: Sequence[Hand], known: Stamp | None, sink: Sink) -> Iterator[tuple[Stamp, list[Any]]]:
    """Ticks of a block that were not known, with the results of all shards."""
    found = [results for hand in hands for results in hand.take()]
    new = [tick for tick in block.ticks if is_after(tick, known)]
    for at, *parts in zip(new, *found, strict=True):
        sink.write(at, parts)
        yield at, parts
