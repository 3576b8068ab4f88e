"""Where the diagnostics look: the data, horizons and splits of the paper's, and the cells there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ompb.bench.named import Named
from ompb.bench.protocols import HONEST
from ompb.bench.store import Cell
from ompb.datasets.splits import ID
from ompb.paper.analysis import Scope

OMPB, ORIGINAL, TCN = "ompb", "original", "tcn"
WEATHER = "weather-stand-in"
HORIZONS: Mapping[str, tuple[int, ...]] = {"etth": (24, 96), "ili": (24, 48), WEATHER: (24, 96)}
SPLITS: Mapping[str, tuple[str, ...]] = {
    "etth": (ID, "ood"),
    "ili": (ID, "ood"),
    WEATHER: (ID, "ood_near", "ood_far"),
}
SEEDS = (0, 1, 2)
IN_PAPER = {WEATHER: "weather"}  # data the paper has under another name, from another place


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stream and the forecaster that is corrected on it."""

    dataset: str
    backbone: str
    horizon: int
    split: str

    def cell(self, method: str = OMPB, seed: int = 0) -> Cell:
        """What a method does here, shown labels as they mature."""
        return Cell(self.dataset, self.backbone, self.horizon, self.split, HONEST, method, seed)

    @property
    def words(self) -> tuple[str, str, str, str]:
        """As a table's keys."""
        return self.dataset, self.backbone, str(self.horizon), self.split


def ompb(**options: Any) -> str:
    """The name of our method with options.

    >>> ompb(kind="iid", unseen=0.25)
    'ompb[kind="iid",unseen=0.25]'
    """
    return str(Named(OMPB, options))


def places(scope: Scope, backbone: str = TCN) -> list[Place]:
    """Every stream at the horizons of the diagnostics; ETTh at 24 rows if the scope is quick."""
    if scope.quick:
        return [Place("etth", backbone, 24, split) for split in SPLITS["etth"]]
    return [
        Place(dataset, backbone, horizon, split)
        for dataset, horizons in HORIZONS.items()
        for horizon in horizons
        for split in SPLITS[dataset]
    ]


def seeds(scope: Scope) -> tuple[int, ...]:
    """Those of our method."""
    return SEEDS[:1] if scope.quick else SEEDS


def in_paper(dataset: str) -> str:
    """The paper's name of the data."""
    return IN_PAPER.get(dataset, dataset)
