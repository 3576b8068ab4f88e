"""A fleet that follows a log in a file, its results in files, in workers that die as told (when run as a script)."""

import hashlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ompb
from ompb.fleet.fleet import Fleet
from ompb.fleet.forecast import FleetForecast
from ompb.ray import sharded
from ompb.types import Floats

SERIES, TICKS, SIZE, EVERY, CONTEXT, HORIZON = 10, 150, 3, 20, 12, 3
IDS = tuple(f"meter-{number}" for number in range(SERIES))


def rows(holes: bool = False) -> Floats:
    """(T, S, 1) of made-up meters, some of them missing."""
    chance = np.random.default_rng(1)
    hours = np.arange(TICKS)[:, None, None]
    values = 5 + np.sin(2 * np.pi * hours / 12 + np.arange(SERIES)[:, None]) + chance.normal(0, 0.2, (TICKS, SERIES, 1))
    return np.where(holes & (chance.random(values.shape) < 0.02), np.nan, values)


def calibrator(seed: int = 0) -> ompb.Calibrator:
    source = 5 + np.sin(2 * np.pi * np.arange(300) / 12) + np.random.default_rng(seed).normal(0, 0.2, 300)
    return ompb.Calibrator.fit(last_value, source[:, None], context=CONTEXT, horizon=HORIZON, season=12)


def last_value(windows: Floats) -> Floats:
    return np.repeat(windows[:, -1:], HORIZON, axis=1)


def picked(forecast: FleetForecast) -> Floats:
    """Forecasts and ends of their intervals, (s, 3, H, 1), NaN before the first."""
    return np.stack([forecast.mean, *forecast.interval(0.8)], axis=1)


def log(after: int | None) -> Iterator[tuple[Any, ...] | None]:
    """Ticks from 1000 on; rows that are missing come six ticks late, and now and then it would have to wait."""
    whole, seen = rows(), rows(holes=True)
    first = 0 if after is None else after - 999
    for place in range(first, TICKS):
        hole = np.isnan(seen[place - 6]) & (place >= 6)
        late = {994 + place: np.where(hole, whole[place - 6], np.nan)} if hole.any() else {}
        yield 1000 + place, seen[place], late
        if place % 70 == 69:
            yield None


@dataclass(frozen=True)
class Folder:
    """A sink: one file a tick. A tick that comes twice is a mistake."""

    place: Path

    @property
    def last(self) -> int | None:
        return max((int(file.stem) for file in self.place.glob("*.npy")), default=None)

    def write(self, at: int, parts: Sequence[Any]) -> None:
        part = self.place / "part"
        with part.open("wb") as file:
            np.save(file, np.concatenate(parts))
        os.link(part, self.place / f"{at}.npy")  # fails if it is there

    def digest(self) -> str:
        """Of all results; raises if one is missing."""
        contents = [np.load(self.place / f"{1000 + place}.npy").tobytes() for place in range(TICKS)]
        return hashlib.sha256(b"".join(contents)).hexdigest()


@dataclass
class Mortal:
    """The last value, from a worker that dies once: at a step, or before, during or after its second snapshot."""

    moment: str
    marker: Path

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Runs where it is sent."""
        self.__dict__.update(state)
        self.calls = self.saves = 0
        save, replace = Fleet.save, os.replace

        def deadly_save(this: Any, path: Any) -> None:
            self.saves += 1
            self.die("before")
            save(this, path)
            self.die("after")

        def deadly_replace(*paths: Any) -> None:
            self.die("during")
            replace(*paths)

        Fleet.save, os.replace = deadly_save, deadly_replace  # type: ignore[method-assign,assignment]

    def __call__(self, windows: Floats) -> Floats:
        self.calls += 1
        if self.calls == 77:
            self.die("step")
        return last_value(windows)

    def die(self, moment: str) -> None:
        if moment == self.moment and (moment == "step" or self.saves == 2) and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def follow(folder: Path, moment: str) -> str:
    """Follow the log, or what a run before this one left of it; the digest of all results."""
    sink = Folder(folder / "results")
    sink.place.mkdir(parents=True, exist_ok=True)
    sharded.ROWS_A_CALL = 10 * SIZE * 2  # blocks of ten ticks
    shards = ompb.ray.shards(
        calibrator(),
        Mortal(moment, folder / "died"),
        IDS,
        size=SIZE,
        folder=folder / "snapshots",
        every=EVERY,
        workers=2,
        pick=picked,
    )
    for at, _ in shards.run(log, sink):
        if at == 1090 and not (folder / "died").exists():
            kill_for_good(moment, folder / "died")
    return sink.digest()


def kill_for_good(moment: str, marker: Path) -> None:
    """This process, or those that hold the cluster together; all that this one can see it has started."""
    held = ("gcs_server", "raylet", "ray::Worker")
    victims = {"driver": [os.getpid()], "head": [process for name in held for process in running(name)]}
    for victim in victims.get(moment, ()):
        marker.touch()
        os.kill(victim, signal.SIGKILL)


def running(program: str) -> list[int]:
    """Processes of a program."""
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [number for number in found if Path(f"/proc/{number}/comm").read_text().startswith(program)]


if __name__ == "__main__":
    import ray

    ray.init(num_cpus=None if "RAY_ADDRESS" in os.environ else 2, log_to_driver=False)
    for moment in sys.argv[2:]:
        place = Path(sys.argv[1]) / moment
        print(moment, follow(place, moment), len(list((place / "snapshots").glob("shard-*"))), flush=True)
