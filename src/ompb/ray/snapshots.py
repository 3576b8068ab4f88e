"""The snapshots of a shard: a file for each tick at which it was saved, until a newer one is safe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ompb.floor.times import Stamp


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Files of one shard in a folder that all workers see."""

    folder: Path
    shard: int

    def path(self, tick: Stamp) -> Path:
        """The file of a tick."""
        return self.folder / f"shard-{self.shard:05}@{_number(tick)}.ompb"

    def newest(self, at_most: Stamp | None) -> Path | None:
        """The newest file whose tick is not beyond another; None if there is none.

        A state that is ahead of the results that are known would never give them again.
        """
        files = self._files()
        known = [] if at_most is None else [number for number in files if number <= _number(at_most)]
        return files[max(known)] if known else None

    def forget(self, safe: Stamp | None) -> None:
        """Remove the files older than the one to restore if all results up to a tick are safe."""
        files, kept = self._files(), self.newest(safe)
        for number in sorted(files):
            if kept is None or files[number] == kept:
                return
            files[number].unlink(missing_ok=True)

    def _files(self) -> dict[int, Path]:
        found = self.folder.glob(f"shard-{self.shard:05}@*.ompb")
        return {int(path.stem.partition("@")[2]): path for path in found}


def _number(tick: Stamp) -> int:
    """A whole number in the order of ticks; of a time, its microseconds."""
    return tick if isinstance(tick, int) else int(tick.astype("datetime64[us]").astype(np.int64))
