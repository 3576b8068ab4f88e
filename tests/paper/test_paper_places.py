"""What the tables of the diagnostics have in common."""

from pathlib import Path

import pytest

from ompb.bench.store import Cell
from ompb.paper.analysis import Scope
from ompb.paper.grid import Spot
from ompb.paper.places import data_at_hand, difference, keys_of, live, number, places, ratio
from ompb.paper.printed import Number

SPOT = Spot("etth", "tcn", 24, "ood")


def test_a_quick_scope_has_the_two_streams_of_etth() -> None:
    assert places(Scope(quick=True)) == [Spot("etth", "tcn", 24, split) for split in ("id", "ood")]
    full = places(Scope(), "ridge")
    assert {spot.backbone for spot in full} == {"ridge"}
    assert {(spot.dataset, spot.horizon) for spot in full} == {
        (data, horizon)
        for data, horizons in (("etth", (24, 96)), ("ili", (24, 48)), ("weather-stand-in", (24, 96)))
        for horizon in horizons
    }


def test_a_live_cell_shows_labels_as_they_mature() -> None:
    assert live(SPOT, seed=2) == Cell("etth", "tcn", 24, "ood", "honest", "ompb", 2)
    assert keys_of(SPOT) == ("etth", "tcn", "24", "ood")


def test_there_is_no_ratio_and_no_difference_on_data_that_are_not_the_papers() -> None:
    assert ratio("etth", 3.0, Number("1.5")) == "2.000"
    assert ratio("weather-stand-in", 3.0, Number("1.5")) == ""
    assert [difference(data, 0.2, Number("0.5")) for data in ("ili", "weather-stand-in")] == ["-0.300", ""]
    assert [difference("etth", ours, Number("0.2")) for ours in (None, 0.2, 0.45)] == ["", "+0.000", "+0.250"]
    assert (number(None), number(-0.12345, 2)) == ("", "-0.12")


def test_data_that_is_not_there_is_said_so_without_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPB_DATA", str(tmp_path / "nowhere"))
    found = data_at_hand("etth")
    assert found == "etth was not found in the folder 'nowhere' (InputError)."
