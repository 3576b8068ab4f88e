"""A worker as the driver sees it: it is sent blocks, gives results, and is replaced when it is gone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ompb.errors import WorkerError
from ompb.floor.extras import extra
from ompb.floor.names import unended
from ompb.floor.times import Stamp
from ompb.ray.log import Block, Reader
from ompb.ray.remote import GoneError, answer
from ompb.ray.worker import Worker, is_after

with extra("ray", needed_by="ompb.ray"):
    import ray

TRIES = 3  # deaths without a result in between
AHEAD = 2  # blocks under way while an older one is read again


class Hand:
    """A place for a worker, whoever fills it; results up to ``known`` are known."""

    def __init__(self, worker: Worker, reader: Reader, known: Stamp | None) -> None:
        self._worker = worker
        first = reader.ids.index(worker.shards[0].ids[0])
        self._series = slice(first, first + worker.series)
        self._reader = reader
        self._received = known  # the newest tick whose results are here
        self._known = known
        self._deaths = 0
        self._waiting: deque[tuple[Block, Stamp | None, Any]] = deque()
        self._engage()

    def ready(self) -> Stamp | None:
        """The tick behind which the worker needs rows."""
        try:
            tick: Stamp | None = answer(self._restored)
        except GoneError as error:
            self._replace(error)
            tick = self._received
        return tick

    def send(self, block: Block, safe: Stamp | None) -> None:
        """Ask for the results of a block."""
        part = block.of(self._series)
        self._waiting.append((part, safe, self._ask(part, self._known, safe)))

    def take(self) -> list[list[Any]]:
        """Results of the oldest block asked for: for each shard, those of its ticks that were not known."""
        while True:
            block, _, asked = self._waiting[0]
            try:
                found: list[list[Any]] = answer(asked)
            except GoneError as error:
                self._replace(error)
                continue
            self._waiting.popleft()
            self._received = block.last if is_after(block.last, self._received) else self._received
            self._deaths = 0
            return found

    def dismiss(self) -> None:
        """Let the worker go."""
        ray.kill(self._actor)

    def _engage(self) -> None:
        gpus = int(any(shard.options.get("device") not in (None, "cpu") for shard in self._worker.shards))
        actor: Any = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0)(Worker)
        self._actor: Any = actor.remote(self._worker.shards, self._worker.every, self._worker.pick)
        self._restored = self._actor.restore.remote(self._received)

    def _ask(self, block: Block, known: Stamp | None, safe: Stamp | None) -> Any:
        return self._actor.follow.remote(block, known, safe)

    def _replace(self, error: GoneError) -> None:
        """Engage another, bring it to the tick of the last results, and ask again for what was under way."""
        while True:
            self._deaths += 1
            if self._deaths == TRIES:
                raise WorkerError(
                    f"a worker died {TRIES} times in a row at the ticks behind {self._received}: {unended(error)}. "
                    "Look for what kills it: a forecaster that crashes, or memory."
                ) from error
            self.dismiss()
            self._engage()
            try:
                self._catch_up(answer(self._restored))
                break
            except GoneError as again:
                error = again
        self._waiting = deque((block, safe, self._ask(block, self._known, safe)) for block, safe, _ in self._waiting)

    def _catch_up(self, tick: Stamp | None) -> None:
        """Follow the log up to the last results, which are not asked for again."""
        under_way: deque[Any] = deque()
        for block in self._missed(tick):
            under_way.append(self._ask(block.of(self._series), self._received, None))
            if len(under_way) > AHEAD:
                answer(under_way.popleft())
        for asked in under_way:
            answer(asked)

    def _missed(self, tick: Stamp | None) -> Iterator[Block]:
        if self._received is None or tick == self._received:
            return
        yield from (block for block in self._reader.blocks(tick, upto=self._received) if block is not None)
