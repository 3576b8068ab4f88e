"""A small world for methods that adapt a network: a trained TCN, its source, and a stream whose level has moved."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ompb.bench.contract import Method, Prediction, Snapshot, Task, snapshots
from ompb.bench.methods import make
from ompb.bench.protocols import Clock
from ompb.datasets.synthetic import shifted_stream
from ompb.forecasters.torch import TrainedForecaster, TrainingConfig, configure, train
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, CHANNELS, STEPS = 24, 4, 12, 2, 90
ROWS = CONTEXT - 1 + STEPS + HORIZON


@dataclass(frozen=True, eq=False)
class World:
    """Everything standardised with the source."""

    source: Floats
    stream: Floats
    source_base: Floats
    base: Floats
    network: Path

    @classmethod
    def make(cls, folder: Path) -> "World":
        source, stream = series()
        mean, sd = source.mean(axis=0), source.std(axis=0)
        tcn = trained()
        tcn.save(folder / "tcn.safetensors")
        source_base, base = ((tcn(stretches(rows)) - mean) / sd for rows in (source, stream))
        source, stream = ((rows - mean) / sd for rows in (source, stream))
        return cls(source, stream, source_base, base, folder / "tcn.safetensors")

    def task(self, protocol: str = "honest", seed: int = 0) -> Task:
        """What a method is made from."""
        return Task(
            context=CONTEXT,
            horizon=HORIZON,
            season=SEASON,
            protocol=protocol,
            trainable=True,
            source=self.source,
            source_base=self.source_base,
            seed=seed,
            network=self.network,
        )

    def snapshots(
        self, protocol: str = "honest", stream: Floats | None = None, steps: int = STEPS
    ) -> Iterator[Snapshot]:
        """The first snapshots of a stream, by default the world's own."""
        rows = self.stream if stream is None else stream
        return snapshots(rows, rows, self.base[:steps], Clock(protocol, HORIZON, CONTEXT - 1), CONTEXT)

    def issue(
        self, name: str, protocol: str = "honest", stream: Floats | None = None, seed: int = 0
    ) -> list[Prediction]:
        """All that a method says of a stream."""
        return predictions(make(name, self.task(protocol, seed)), self.snapshots(protocol, stream))

    def network_copy(self) -> TrainedForecaster:
        """The forecaster."""
        return TrainedForecaster.load(self.network)


def series() -> tuple[Floats, Floats]:
    """The source and the stream, in units of their own."""
    return shifted_stream("level", seed=1, source_rows=400, target_rows=ROWS, channels=CHANNELS, season=SEASON)


@cache
def trained() -> TrainedForecaster:
    """The TCN, trained once for all that read its file."""
    config = configure("tcn", context=CONTEXT, horizon=HORIZON, channels=CHANNELS)
    return train(config, series()[0], TrainingConfig(epochs=3, batch=32, learning_rate=1e-3))


def predictions(method: Method, shown: Iterator[Snapshot]) -> list[Prediction]:
    """What a method says, step by step."""
    return [method.step(snapshot) for snapshot in shown]


def stretches(rows: Floats) -> Floats:
    """Every window (n, CONTEXT, C) whose outcome lies inside the rows."""
    windows = np.lib.stride_tricks.sliding_window_view(rows, CONTEXT, axis=0)[: len(rows) - CONTEXT - HORIZON + 1]
    return np.asarray(windows.transpose(0, 2, 1))
