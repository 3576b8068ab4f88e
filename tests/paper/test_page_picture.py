"""The picture of how ours stands has the numbers of the table beside it."""

import math
import statistics

import pytest
from made_up import line, result

from ompb.bench.store import Result
from ompb.paper.page.compared import Grid
from ompb.paper.page.picture import picture
from ompb.paper.page.standing import against_each_kind

MAES = {24: 0.9, 48: 0.3, 96: 1.2}  # of ours, by horizon


def cells(dataset: str) -> list[Result]:
    """The bare backbone has an error of one everywhere, the paper's method of two, and it has diverged at 24 rows."""
    ours = [result("ompb", mae, dataset=dataset, horizon=horizon) for horizon, mae in MAES.items()]
    bare = [result("original", 1.0, dataset=dataset, horizon=horizon) for horizon in MAES]
    paper = [result("ompb-paper", 2.0 if horizon > 24 else 1e9, dataset=dataset, horizon=horizon) for horizon in MAES]
    return [*ours, *bare, *paper]


def test_ratios_are_in_order_each_in_the_middle_of_its_share() -> None:
    grid = Grid.of(cells("etth"))
    (panel,) = picture(grid).panels
    by_kind = {curve.name: curve for curve in panel.curves}
    assert by_kind["bare backbone"].y == (0.3, 0.9, 1.2)
    assert by_kind["bare backbone"].x == pytest.approx((100 / 6, 50.0, 500 / 6), abs=0.01)
    assert by_kind["paper's method"].y == (0.15, 0.6)  # nothing is relative to what has diverged
    table = against_each_kind(grid)
    for kind, curve in by_kind.items():
        ratios = [ratio for ratio in curve.y if ratio is not None]
        places, median, largest, _ = line(table, kind)
        assert (len(ratios), statistics.median(ratios), max(ratios)) == (int(places), float(median), float(largest))


def test_a_data_set_has_a_panel_if_a_rival_has_run_there() -> None:
    made = picture(Grid.of([*cells("etth"), *cells("ili"), result("ompb", 1.0, dataset="weather-stand-in")]))
    assert [panel.title for panel in made.panels] == ["etth", "ili"]
    assert picture(Grid.of([result("ompb", 1.0)])).panels == ()


def test_where_ours_has_diverged_there_is_a_gap() -> None:
    lost = [result("original", 1.0, split="ood"), result("ompb", 1e9, split="ood")]
    (panel,) = picture(Grid.of([*cells("etth"), *lost])).panels
    assert next(curve.y for curve in panel.curves if curve.name == "bare backbone") == (0.3, 0.9, 1.2, None)
    assert not any(math.isinf(y) for curve in panel.curves for y in curve.y if y is not None)
