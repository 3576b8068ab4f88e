"""How far two trainings of one recipe lie apart, beside how far numbers of epochs do.

The main tables train each network for as many epochs as its recipe says; the table of epochs trains some for as many
again, with the same seed and other versions of the code or the libraries. What then differs is chance.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST
from ompb.paper.beside import SAME, Measured, Place
from ompb.paper.grid import ORIGINAL, STAND_IN, Spot, paper_backbone
from ompb.paper.places import keys_of, number

# Epochs of the recipes that the table of epochs has, too.
RECIPES: Mapping[tuple[str, str], str] = {
    ("etth", "tcn"): "20", ("etth", "autoformer"): "5", ("etth", "gpt4ts"): "20",
    ("ili", "tcn"): "100", ("ili", "autoformer"): "100", ("ili", "gpt4ts"): "100",
    (STAND_IN, "tcn"): "5",
}  # fmt: skip
CHANCE = "MAE of the bare backbone, of the same seeds. First: the network of the main tables. What differs is chance."


@dataclass(frozen=True, slots=True)
class Twice:
    """MAE of the bare backbone around two networks of one recipe and seed."""

    spot: Spot
    epochs: str
    first: float  # that of the main tables
    again: float

    @property
    def apart(self) -> float:
        """Relative to the first."""
        return abs(self.again / self.first - 1)


def same_recipe(spots: Iterable[Spot]) -> list[Spot]:
    """Those whose recipe is one of the table of epochs."""
    return [spot for spot in spots if _epochs(spot) is not None]


def trained_twice(spots: Iterable[Spot], measured: Measured) -> list[Twice]:
    """Where there are two networks, and not one under two names."""
    found = [_twice(spot, measured) for spot in spots]
    return [one for one in found if one is not None and one.apart > SAME]


def _epochs(spot: Spot) -> str | None:
    return RECIPES.get((spot.dataset, paper_backbone(spot.backbone)))


def _twice(spot: Spot, measured: Measured) -> Twice | None:
    epochs = _epochs(spot)
    first, again = (
        Place(there, HONEST, ORIGINAL) for there in (spot, replace(spot, backbone=f"{spot.backbone}@{epochs}"))
    )
    if epochs is None or not {first, again} <= measured.results.keys():
        return None
    seeds = measured.common_seeds((first, again))
    one, other = (measured.mean(place, "mae", seeds) for place in (first, again))
    return Twice(spot, epochs, one, other) if one and other else None


def twice_section(found: Sequence[Twice]) -> Section:
    """A line for each place."""
    lines = [
        (*keys_of(one.spot), one.epochs, number(one.first, 4), number(one.again, 4), f"{one.apart:.1%}")
        for one in found
    ]
    return Section(
        "One recipe trained twice",
        (CHANCE,),
        ("data", "backbone", "H", "split", "epochs", "first", "again", "apart"),
        tuple(lines),
        keys=5,
    )


def beside_gaps(found: Sequence[Twice], gaps: Sequence[float]) -> list[str]:
    """The difference between two trainings beside the gaps between the best and the second number of epochs."""
    if not found or not gaps:
        return []
    most = max(found, key=lambda one: one.apart)
    median = statistics.median(one.apart for one in found)
    where = f"{most.spot.dataset}, {most.spot.backbone}, {most.spot.split}, {most.spot.horizon} rows"
    closer = f"in {sum(gap < median for gap in gaps)} of them by less than {median:.1%}"
    return [
        f"Two trainings of one recipe and seed differ in MAE by {median:.1%} in the median of {len(found)} places and "
        f"by {most.apart:.1%} at most ({where}). The best number of epochs is ahead of the second by "
        f"{statistics.median(gaps):.1%} in the median of {len(gaps)} places, and {closer}."
    ]
