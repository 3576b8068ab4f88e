"""The page of results, from hand-made cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ompb.bench.page import DIFFERENCES, results_page
from ompb.bench.standing import every_method, intervals
from ompb.bench.store import Cell, Result


def result(
    method: str,
    mae: float,
    split: str = "id",
    protocol: str = "honest",
    *,
    backbone: str = "tcn",
    seed: int = 0,
    metrics: Mapping[str, float] | None = None,
) -> Result:
    cell = Cell("etth", backbone, 24, split, protocol, method, seed)
    scores = {"mae": mae, "mse": mae**2, **(metrics or {})}
    return Result(cell, scores, {}, {"numpy": "2.0"}, "cpu", "0123456789ab", {})


RESULTS = [
    result("original", 1.0),
    result("bias", 0.7),
    result("ompb", 0.8),
    result("original", 1.0, "ood"),
    result("bias", 2.0, "ood"),
    result("ompb", 1.2, "ood"),
    result("copy", 0.1, protocol="one-step"),
]


def test_the_page_says_where_the_default_loses() -> None:
    page = results_page(RESULTS, None, "A word on the numbers.\n")
    assert "\nA word on the numbers.\n" in page
    assert "2 cells. Median MAE relative to the bare backbone: 1.000" in page
    assert "more than 1% worse: 1." in page
    assert "| bias | 2 | 50% |" in page
    assert "| etth tcn 24 id seed 0 | 0.8000 | bias 0.7000 |" in page
    assert "| etth tcn 24 ood seed 0 | 1.2000 | original 1.0000 |" in page
    assert "| 0123456789ab | cpu | numpy 2.0 | etth | 7 |" in page
    assert "one-step" in page


def lines_under(title: str, page: str) -> list[str]:
    """The lines of the table under a title, without its headings."""
    rest = page[page.index(f"### {title}\n") :].splitlines()[1:]
    until = next((n for n, line in enumerate(rest) if line.startswith("#")), len(rest))
    return [line for line in rest[:until] if line.startswith("|")][2:]


def test_methods_are_ranked_by_the_cells_they_have() -> None:
    page = every_method(
        [
            # places among four: ompb 0, elf 1/3, then a tie that shares (2 + 3) / 2 / 3
            result("original", 1.0),
            result("ompb", 0.5),
            result("elf", 0.8),
            result("copy", 1.00001),
            # among three: ompb 0, original 1/2, copy 1
            result("original", 2.0, "ood"),
            result("ompb", 1.8, "ood"),
            result("copy", 2.4, "ood"),
            # among two: original 0, ompb 1
            result("original", 1.0, backbone="autoformer"),
            result("ompb", 1.02, backbone="autoformer"),
            # no cells of the ranking: nothing to compare, no bare backbone, another protocol
            result("original", 1.0, seed=1),
            result("elf", 9.0, seed=2),
            result("elf", 0.1, "ood", protocol="one-step"),
        ]
    )
    assert lines_under("etth, tcn", page) == [
        "| ompb | 2 | 0.000 | 0.700 | 0 of 2 |  |",
        "| elf | 1 | 0.333 | 0.800 | 0 of 1 | 1 of 1 |",
        "| original | 2 | 0.667 | 1.000 | 0 of 2 | 2 of 2 |",
        "| copy | 2 | 0.917 | 1.100 | 1 of 2 | 2 of 2 |",
    ]
    assert lines_under("etth, autoformer", page) == [
        "| original | 1 | 0.000 | 1.000 | 0 of 1 | 0 of 1 |",
        "| ompb | 1 | 1.000 | 1.020 | 1 of 1 |  |",
    ]
    assert lines_under("All data sets and backbones", page) == [
        "| elf | 1 | 0.333 | 0.800 | 0 of 1 | 1 of 1 |",
        "| ompb | 3 | 0.333 | 0.807 | 1 of 3 |  |",
        "| original | 3 | 0.444 | 1.000 | 0 of 3 | 2 of 3 |",
        "| copy | 2 | 0.917 | 1.100 | 1 of 2 | 2 of 2 |",
    ]


def test_only_methods_that_forecast_are_ranked() -> None:
    bare = [result("original", 1.0), result("aci", 1.00001, metrics={"coverage80": 0.8})]
    assert every_method(bare) == ""
    lines = lines_under("etth, tcn", every_method([*bare, result("solid++", 1.0)]))  # no intervals: it does forecast
    assert [line.split()[1] for line in lines] == ["original", "solid++"]
    moved = [*bare, result("original", 1.0, "ood"), result("aci", 0.9, "ood", metrics={"coverage80": 0.8})]
    assert lines_under("etth, tcn", every_method(moved))[0] == "| aci | 2 | 0.250 | 0.950 | 0 of 2 |  |"


def test_intervals_are_means_over_cells() -> None:
    whole = {"width80": 2.0, "width95": 3.0, "ece": 0.1}
    page = intervals(
        [
            result("original", 1.0),
            result("ompb", 0.5, metrics={"coverage80": 0.7, "coverage95": 0.9, "crps": 0.4, **whole}),
            result("ompb", 0.5, "ood", metrics={"coverage80": 0.8, "coverage95": 1.0, "crps": 0.6, **whole}),
            result(
                "ompb", 0.5, protocol="one-step", metrics={"coverage80": 0.0, "coverage95": 0.0, "crps": 9.0, **whole}
            ),
            result("aci", 1.0, metrics={"coverage80": 0.75, "coverage95": 0.95, **whole}),
        ]
    )
    assert lines_under("etth", page) == [
        "| tcn | aci | 1 | 0.750 | 0.950 | 2.000 | 3.000 |  | 0.100 |",
        "| tcn | ompb | 2 | 0.750 | 0.950 | 2.000 | 3.000 | 0.500 | 0.100 |",
    ]
    assert intervals([result("original", 1.0)]) == ""


PAPER = """table,dataset,backbone,method,horizon,split,metric,value
etth_all_split,etth,tcn,original,24,id,mae,1.0
etth_all_split,etth,tcn,solid,24,id,mae,0.5
etth_all_split,etth,tcn,solid,24,id,mse,9.0
etth_all_split,etth,tcn,onenet,24,id,mae,0.5
etth_all_split,etth,tcn,proceed,24,id,mae,0.5
etth_all_split,etth,gpt4ts,ompb,24,id,mae,0.5
ili_results,ili,tcn,solid,24,id,mae,0.5
weather_all_split,weather,tcn,solid,24,id,mae,0.5
"""


def test_results_far_from_the_papers_are_listed(tmp_path: Path) -> None:
    (tmp_path / "accuracy.csv").write_text(PAPER)
    ours = [
        result("original", 0.9, protocol="one-step"),
        result("solid", 0.6, protocol="one-step"),
        result("solid", 0.8, protocol="one-step", seed=1),
        result("onenet", 0.55, protocol="one-step"),  # 10% more
        result("proceed", 0.42, protocol="one-step"),  # 16% less
        result("ompb-paper", 0.9, backbone="gpt4ts[random]"),
        result("ompb", 0.1, backbone="gpt4ts[random]"),
        result("solid", 0.9, "ood"),  # the paper has no such number
    ]
    page = results_page(ours, tmp_path)
    assert DIFFERENCES in page
    assert lines_under("etth, protocol one-step", page) == [
        "| tcn | 24 | id | proceed | 0.4200 | 0.5000 | 0.840 | 0.900 |",
        "| tcn | 24 | id | solid | 0.7000 | 0.5000 | 1.400 | 0.900 |",
    ]
    assert "2 of 3 lie more than 15% from the paper's MAE." in page
    assert lines_under("etth, protocol honest", page) == [
        "| gpt4ts[random] | 24 | id | ompb-paper | 0.9000 | 0.5000 | 1.800 |  |"
    ]
    assert "### ili, protocol" not in page


def test_without_the_papers_methods_there_are_no_differences(tmp_path: Path) -> None:
    (tmp_path / "accuracy.csv").write_text(PAPER)
    assert DIFFERENCES not in results_page([result("original", 5.0)], tmp_path)
    assert DIFFERENCES not in results_page([result("solid", 5.0)], None)


def test_the_sections_come_in_order(tmp_path: Path) -> None:
    (tmp_path / "accuracy.csv").write_text(PAPER)
    page = results_page(
        [*RESULTS, result("solid", 0.9), result("ompb", 0.7, seed=1, metrics={"coverage80": 0.8})], tmp_path
    )
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## `ompb` under the honest protocol",
        "## Every method under the honest protocol",
        "## Where the paper's baselines and ours differ",
        "## Intervals under the honest protocol",
        "## Every table",
    ]
