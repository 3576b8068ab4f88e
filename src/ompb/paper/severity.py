r"""How far the newest rows of a stream lie from the source, origin by origin: the paper's shift severity.

At an origin the newest `context` rows are compared with the source, both standardised with the source: KS, Wasserstein
and JS as means over channels, MMD over all channels jointly (see `ompb.metrics.shift`). It reads inputs only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ompb.datasets.benchmark import BenchmarkData
from ompb.metrics.shift import jensen_shannon, ks, mmd, wasserstein
from ompb.paper.drawing import picked
from ompb.paper.places import data_at_hand
from ompb.rows.scaler import Scaler
from ompb.types import Floats

SOURCE_ROWS = 500  # of the source, evenly spread, stand for all of it
ORIGINS = 200  # of a stream, evenly spread, are measured
MEASURES = {"ks": "KS", "wasserstein": "Wasserstein", "js": "JS", "rbf_mmd": "MMD"}  # and as tables show them

Distance: TypeAlias = Callable[[ArrayLike, ArrayLike], float]

_BY_CHANNEL: dict[str, Distance] = {"ks": ks, "wasserstein": wasserstein, "js": jensen_shannon}


@dataclass(frozen=True, slots=True, eq=False)
class Severity:
    """What was measured at some origins of a stream, in order."""

    origins: NDArray[np.int64]  # (n,)
    measures: Mapping[str, Floats]  # by the names of MEASURES, (n,)

    def at(self, origins: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[str, Floats]]:
        """Places among other origins that were measured, and what was measured there."""
        _, places, here = np.intersect1d(origins, self.origins, return_indices=True)
        return places, {name: values[here] for name, values in self.measures.items()}


def severity(source: Floats, rows: Floats, context: int) -> Severity:
    """Of a stream (T, C), from the first origin with a whole window on."""
    scaler = Scaler.fit(source)
    base = scaler.standardise(source)[picked(len(source), SOURCE_ROWS)]
    standardised = scaler.standardise(rows)
    origins = context - 1 + picked(len(rows) - context + 1, ORIGINS)
    windows = [standardised[origin + 1 - context : origin + 1] for origin in origins.tolist()]
    measures = {
        name: np.array([_mean_over_channels(distance, base, window) for window in windows])
        for name, distance in _BY_CHANNEL.items()
    }
    return Severity(origins, measures | {"rbf_mmd": np.array([mmd(base, window) for window in windows])})


def _mean_over_channels(distance: Distance, base: Floats, window: Floats) -> float:
    return float(np.mean([distance(base[:, c], window[:, c]) for c in range(base.shape[1])]))


@dataclass(frozen=True, slots=True)
class Severities:
    """Those of the streams of data sets, each measured when it is first asked for."""

    data: dict[str, BenchmarkData | str] = field(default_factory=dict)
    measured: dict[tuple[str, str], Severity] = field(default_factory=dict)

    def of(self, dataset: str, split: str) -> Severity | None:
        """Of one stream, as far as it is judged; None if the data is not at hand."""
        if dataset not in self.data:
            self.data[dataset] = data_at_hand(dataset)
        data = self.data[dataset]
        if isinstance(data, str):
            return None
        key = dataset, split
        if key not in self.measured:
            self.measured[key] = severity(data.source, data.stream(split, 1), data.context)
        return self.measured[key]

    @property
    def absent(self) -> tuple[str, ...]:
        """What was asked for and is not there, in words."""
        return tuple(data for data in self.data.values() if isinstance(data, str))
