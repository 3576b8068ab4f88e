"""Errors against the horizon: whose curves, over which seeds, and where the paper's own stand beside them."""

import pytest
from made_up import result, runs

from ompb.bench.findings import Curve, Panel
from ompb.bench.store import Result
from ompb.paper.analysis import Scope
from ompb.paper.beside import Measured
from ompb.paper.horizons import PAPER, by_horizon, drawn
from ompb.paper.main import reduce


def panels(*results: Result) -> dict[str, Panel]:
    figure = by_horizon("table", "etth", Measured.of(results), lambda _: None)
    return {panel.title: panel for panel in figure.panels}


def curves(panel: Panel) -> dict[str, Curve]:
    return {curve.name: curve for curve in panel.curves}


def test_means_are_over_the_seeds_that_all_have() -> None:
    def at(horizon: int, ours: tuple[float, ...], bare: tuple[float, ...]) -> list[Result]:
        every = (("ompb", ours), ("original", bare))
        return [result(name, mae, horizon=horizon, seed=seed) for name, maes in every for seed, mae in enumerate(maes)]

    (panel,) = panels(*at(24, (0.2, 0.4), (1.0, 2.0)), *at(96, (0.5, 9.0), (3.0,))).values()
    found = curves(panel)
    assert list(found) == ["ompb", "original"]
    assert found["ompb"].x == ("24", "96")
    assert found["ompb"].y == pytest.approx((0.3, 0.5))
    assert found["original"].y == pytest.approx((1.5, 3.0))


def test_a_panel_for_each_backbone_and_split_that_has_two_horizons() -> None:
    def both(**place: str) -> list[Result]:
        return [result("ompb", 0.1, horizon=horizon, **place) for horizon in (24, 48)]  # type: ignore[arg-type]

    single = result("ompb", 0.1, split="ood")
    assert list(panels(*both(), *both(backbone="autoformer"), single, *both(dataset="ili"))) == [
        "autoformer, id",
        "tcn, id",
    ]


def test_protocols_are_apart_and_what_has_diverged_leaves_a_gap() -> None:
    cells = [
        result("original", 1.0, horizon=horizon, protocol=under)
        for horizon in (24, 48, 96)
        for under in ("honest", "one-step")
    ]
    honest = [result("ompb-paper", mae, horizon=horizon) for horizon, mae in ((24, 0.5), (48, 1e9), (96, 0.7))]
    leaky = [result("ompb-paper", 0.1, horizon=horizon, protocol="one-step") for horizon in (24, 48, 96)]
    (panel,) = panels(*cells, *honest, *leaky).values()
    found = curves(panel)
    assert found["ompb-paper"].y == (0.5, None, 0.7)
    assert found["ompb-paper, one-step"].y == (0.1, 0.1, 0.1)


def test_where_a_window_holds_no_season_the_last_row_stands_for_the_profile() -> None:
    assert "profile" in drawn("etth")
    assert "last" not in drawn("etth")
    assert "last" in drawn("ili")
    assert "profile" not in drawn("ili")


def test_the_papers_own_numbers_stand_beside_ours_on_its_own_data() -> None:
    def figure(table: str, dataset: str) -> dict[str, Curve]:
        cells = [result("original", 0.5, horizon=horizon, dataset=dataset) for horizon in (24, 48)]
        (found,) = reduce(table, runs(cells), Scope(quick=True)).figures
        (panel,) = found.panels
        return curves(panel)

    assert figure("etth_all_split", "etth")[PAPER].y[0] == 0.3635
    assert PAPER not in figure("weather_all_split", "weather-stand-in")
    alone = [result("original", 0.5)]
    assert reduce("etth_all_split", runs(alone), Scope(quick=True)).figures == ()


def test_horizons_stand_in_their_order_whatever_the_first_curve_lacks() -> None:
    ours = [result("ompb", 0.1, horizon=horizon) for horizon in (48, 96)]
    bare = [result("original", 1.0, horizon=horizon) for horizon in (24, 48, 96)]
    (panel,) = panels(*ours, *bare).values()
    assert [(curve.x, curve.y) for curve in panel.curves] == [
        (("24", "48", "96"), (None, 0.1, 0.1)),
        (("24", "48", "96"), (1.0, 1.0, 1.0)),
    ]
