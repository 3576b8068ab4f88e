"""Which methods are run where: what is said to be far from the paper's rows is, by the committed results."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from ompb.bench.store import exported
from ompb.paper.analysis import Scope
from ompb.paper.grid import PRINTED, TUNED, Spot, paper_backbone, rivals
from ompb.paper.printed import accuracy

SCORES = Path(__file__).parents[2] / "results" / "scores"
FAR = 1.1


def ratios() -> dict[tuple[str, str, str], float]:
    """Our MAE over the paper's, of each printed method around each backbone of a data set, shown rows to come alike."""
    printed = {**accuracy("etth_all_split"), **accuracy("ili_results")}
    found = defaultdict(list)
    for one in exported(SCORES):
        cell, backbone = one.cell, paper_backbone(one.cell.backbone)
        key = cell.dataset, backbone, cell.method, cell.horizon, cell.split, "mae"
        if cell.method in PRINTED and cell.protocol == "one-step" and "@" not in cell.backbone and key in printed:
            found[cell.dataset, backbone, cell.method].append(one.metrics["mae"] / float(printed[key]))
    return {place: statistics.fmean(each) for place, each in found.items()}


def test_methods_have_a_rate_of_their_own_where_they_are_far_from_the_papers_rows() -> None:
    far = {place for place, ratio in ratios().items() if ratio > FAR}
    assert far, "the comparison has teeth"
    chosen = {(*place, method) for place, methods in TUNED.items() for method in methods}
    assert far <= chosen
    assert chosen <= far | {("etth", "autoformer", "proceed")}  # of which not every row is there


@pytest.mark.parametrize(
    ("spot", "tuned"),
    [
        (Spot("etth", "autoformer", 24, "ood"), {"solid+tuned", "proceed+tuned"}),
        (Spot("etth", "gpt4ts[gpt2-partial]", 24, "ood"), set()),
        (Spot("weather-stand-in", "tcn", 24, "ood_far"), set()),
    ],
)
def test_where_no_row_is_far_there_is_none(spot: Spot, tuned: set[str]) -> None:
    assert {name for name in rivals(Scope(), spot) if "+tuned" in name} == tuned
    assert set(PRINTED) <= set(rivals(Scope(), spot))
