"""Finished cells by place (a `Spot`) and method, and comparisons that never mix seeds.

A method is held against ``ompb`` on the seeds that both have run with: a mean of three seeds never stands beside a
single one. Cells of backbones and methods with options belong to analyses and are left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ompb.bench.protocols import HONEST
from ompb.bench.store import WINDOWS, Result
from ompb.paper.grid import INTERVALS_ONLY, OMPB, PUBLISHED, Spot


@dataclass(frozen=True, slots=True)
class Beside:
    """Means of a method, and of ``ompb`` under the honest protocol, over the seeds that both have."""

    seeds: int  # how many
    value: float
    ours: float | None  # None where ompb has not run with any of its seeds

    @property
    def ratio(self) -> float | None:
        """The error of ``ompb`` relative to the method's: below 1 ``ompb`` is better; None if that is zero."""
        return None if self.ours is None or not self.value else self.ours / self.value


@dataclass(frozen=True)
class Grid:
    """Metrics, and how many forecasts were scored, by seed, of each place, protocol and method."""

    cells: Mapping[tuple[Spot, str, str], Mapping[int, Mapping[str, float]]]

    @classmethod
    def of(cls, results: Iterable[Result]) -> Grid:
        """The cells of plain backbones and methods."""
        cells: dict[tuple[Spot, str, str], dict[int, Mapping[str, float]]] = {}
        for result in results:
            cell = result.cell
            if "@" not in cell.backbone and "[" not in cell.method:
                place = Spot(cell.dataset, cell.backbone, cell.horizon, cell.split)
                windows = {WINDOWS: result.facts[WINDOWS]} if WINDOWS in result.facts else {}
                cells.setdefault((place, cell.protocol, cell.method), {})[cell.seed] = {**result.metrics, **windows}
        return cls(cells)

    def of_dataset(self, dataset: str) -> Grid:
        """The part of one data set."""
        return Grid({key: found for key, found in self.cells.items() if key[0].dataset == dataset})

    def of_backbone(self, backbone: str) -> Grid:
        """The part of one backbone."""
        return Grid({key: found for key, found in self.cells.items() if key[0].backbone == backbone})

    @property
    def datasets(self) -> list[str]:
        """In order of their names."""
        return sorted({place.dataset for place, _, _ in self.cells})

    @property
    def places(self) -> list[Spot]:
        """In order."""
        return sorted({place for place, _, _ in self.cells})

    def methods(self, place: Spot, protocol: str = HONEST) -> list[str]:
        """Those that have run at a place, by name."""
        return sorted(method for at, under, method in self.cells if (at, under) == (place, protocol))

    def windows(self, place: Spot) -> str:
        """How many forecasts of ``ompb`` were scored at a place, where results say so."""
        found = self.cells.get((place, HONEST, OMPB), {}).values()
        return " or ".join(
            str(count) for count in sorted({metrics[WINDOWS] for metrics in found if WINDOWS in metrics})
        )

    def beside(self, place: Spot, method: str, metric: str = "mae", protocol: str = HONEST) -> Beside | None:
        """A method beside ``ompb``; None where it has not run."""
        found = self.cells.get((place, protocol, method), {})
        ours = self.cells.get((place, HONEST, OMPB), {})
        common = sorted(found.keys() & ours.keys())
        seeds = common or sorted(found)
        if not seeds:
            return None
        mean = statistics.fmean(found[seed][metric] for seed in seeds)
        return Beside(len(seeds), mean, statistics.fmean(ours[seed][metric] for seed in common) if common else None)


def is_published(method: str) -> bool:
    """Whether a method is somebody else's and forecasts."""
    return method in PUBLISHED and method not in INTERVALS_ONLY
