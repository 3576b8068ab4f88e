"""Finished cells by place (a `Spot`) and method, and comparisons that never mix seeds.

A method is held against ``ompb`` on the seeds that both have run with: a mean of three seeds never stands beside a
single one. Cells of backbones and methods with options belong to analyses and are left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ompb.bench.protocols import HONEST
from ompb.bench.store import WINDOWS, Result
from ompb.paper.beside import shown
from ompb.paper.grid import INTERVALS_ONLY, OMPB, ORIGINAL, PUBLISHED, Spot
from ompb.paper.networks import Seeded, are_apart, bare_errors, diverged

MARK = " *"
ELSEWHERE = "What has a * is known to compare different networks of the same recipe."


@dataclass(frozen=True, slots=True)
class Beside:
    """Means of a method, and of ``ompb`` under the honest protocol, over the seeds that both have.

    A mean is infinite where a seed in it has diverged.
    """

    seeds: int  # how many
    value: float
    ours: float | None  # None where ompb has not run with any of its seeds
    elsewhere: bool = False  # whether the two stand on different networks with one of them

    @property
    def ratio(self) -> float | None:
        """The error of ``ompb`` relative to the method's: below 1 ``ompb`` is better.

        None if the method's is zero, or it has diverged; infinite if ``ompb`` has.
        """
        return None if self.ours is None or not self.value or math.isinf(self.value) else self.ours / self.value

    def shown_ratio(self, digits: int = 3) -> str:
        """The ratio as tables have it: marked where it is across networks, blank if there is none."""
        words = shown(self.ratio, digits=digits)
        return f"{words}{MARK}" if words and self.elsewhere else words


def across_networks(lines: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The note on the mark, where a line has it."""
    return (ELSEWHERE,) if any(word.endswith(MARK) for line in lines for word in line) else ()


@dataclass(frozen=True)
class Grid:
    """Results by seed, of each place, protocol and method."""

    cells: Mapping[tuple[Spot, str, str], Seeded]

    @classmethod
    def of(cls, results: Iterable[Result]) -> Grid:
        """The cells of plain backbones and methods."""
        cells: dict[tuple[Spot, str, str], dict[int, Result]] = {}
        for result in results:
            cell = result.cell
            if "@" not in cell.backbone and "[" not in cell.method:
                place = Spot(cell.dataset, cell.backbone, cell.horizon, cell.split)
                cells.setdefault((place, cell.protocol, cell.method), {})[cell.seed] = result
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

    def windows(self, place: Spot) -> set[int]:
        """How many forecasts of ``ompb`` were scored at a place, where results say so."""
        found = self.cells.get((place, HONEST, OMPB), {}).values()
        return {result.facts[WINDOWS] for result in found if WINDOWS in result.facts}

    def beside(self, place: Spot, method: str, metric: str = "mae", protocol: str = HONEST) -> Beside | None:
        """A method beside ``ompb``; None where it has not run."""
        found, ours = self._of_metric(place, protocol, method, metric), self._of_metric(place, HONEST, OMPB, metric)
        common = found.keys() & ours.keys()
        seeds = common or found.keys()
        if not seeds:
            return None
        mean = statistics.fmean(found[seed] for seed in seeds)
        our_mean = statistics.fmean(ours[seed] for seed in common) if common else None
        networks, our_networks = self.bare_errors(place, method, protocol), self.bare_errors(place, OMPB)
        told = common & networks.keys() & our_networks.keys()
        elsewhere = any(are_apart(networks[seed], our_networks[seed]) for seed in told)
        return Beside(len(seeds), mean, our_mean, elsewhere)

    def bare_errors(self, place: Spot, method: str, protocol: str = HONEST) -> dict[int, float]:
        """The MAE of the network that a method stands on, by seed, where it is known."""
        return bare_errors(self.cells.get((place, protocol, method), {}), *self._bare(place, protocol))

    def diverged(self, place: Spot, method: str, protocol: str = HONEST) -> set[int]:
        """The seeds with which a method has left the bare backbone far behind."""
        return diverged(self.cells.get((place, protocol, method), {}), *self._bare(place, protocol))

    def _bare(self, place: Spot, protocol: str) -> tuple[Seeded, Seeded]:
        """The bare backbone's cells: those of a protocol, and the honest ones, which are the same forecasts."""
        here, honest = (self.cells.get((place, under, ORIGINAL), {}) for under in (protocol, HONEST))
        return here, honest

    def _of_metric(self, place: Spot, protocol: str, method: str, metric: str) -> dict[int, float]:
        """By seed, of the cells that have it; infinite if diverged."""
        lost = self.diverged(place, method, protocol)
        found = self.cells.get((place, protocol, method), {})
        return {
            seed: math.inf if seed in lost else result.metrics[metric]
            for seed, result in found.items()
            if seed in lost or metric in result.metrics
        }


def is_published(method: str) -> bool:
    """Whether a method is somebody else's and forecasts."""
    return method in PUBLISHED and method not in INTERVALS_ONLY
