"""Where the diagnostics look, and what their tables have in common."""

from __future__ import annotations

from collections.abc import Mapping

from ompb.bench.protocols import HONEST
from ompb.bench.store import Cell
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.datasets.public import data_folder
from ompb.errors import InputError
from ompb.paper import beside
from ompb.paper.analysis import Scope
from ompb.paper.grid import HEADLINE, OMPB, PAPERS_DATA, QUICK, SPLITS, STAND_IN, Spot
from ompb.paper.printed import Number

TCN = "tcn"
HORIZONS: Mapping[str, tuple[int, ...]] = {"etth": HEADLINE, "ili": (24, 48), STAND_IN: HEADLINE}
NOT_PAPERS = (
    "The weather is not the paper's: the same cities in other years and from other sensors, so that nothing is set "
    "against its numbers."
)


def places(scope: Scope, backbone: str = TCN) -> list[Spot]:
    """Every stream at the horizons of the diagnostics; ETTh at 24 rows if the scope is quick."""
    if scope.quick:
        return [Spot(QUICK[0], backbone, QUICK[2], split) for split in SPLITS[QUICK[0]]]
    return [
        Spot(dataset, backbone, horizon, split)
        for dataset, horizons in HORIZONS.items()
        for horizon in horizons
        for split in SPLITS[dataset]
    ]


def live(spot: Spot, method: str = OMPB, seed: int = 0) -> Cell:
    """What a method does there if labels are shown as they mature."""
    return spot.cell(HONEST, method, seed)


def keys_of(spot: Spot) -> tuple[str, str, str, str]:
    """As the keys of a table: data, backbone, H, split."""
    return spot.dataset, spot.backbone, str(spot.horizon), spot.split


def number(value: float | None, digits: int = 3) -> str:
    """As tables show it, blank if there is none."""
    return beside.shown(value, digits=digits)


def ratio(dataset: str, ours: float | None, printed: Number) -> str:
    """Ours by the paper's, blank on data that are not the paper's."""
    return beside.ratio(ours, printed) if dataset in PAPERS_DATA else ""


def difference(dataset: str, ours: float | None, printed: Number) -> str:
    """Ours less the paper's, blank on data that are not the paper's."""
    return "" if ours is None or dataset not in PAPERS_DATA else f"{ours - float(printed):+z.3f}"


def data_at_hand(dataset: str) -> BenchmarkData | str:
    """The data from the folder OMPB_DATA names, else from "data"; else why it is not there, in words."""
    try:
        return load(dataset)
    except (InputError, OSError) as error:
        return f"{dataset} was not found in the folder {data_folder(None).name!r} ({type(error).__name__})."
