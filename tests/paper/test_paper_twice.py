"""Which networks were trained twice, and which stand under two names."""

import pytest
from made_up import result

from ompb.forecasters.torch import recipe
from ompb.paper.analysis import Scope
from ompb.paper.beside import Measured
from ompb.paper.epochs import FIXED
from ompb.paper.grid import SHORT, Spot, paper_backbone, spots
from ompb.paper.twice import RECIPES, beside_gaps, same_recipe, trained_twice

PLACES = tuple(Spot("etth", "tcn", horizon, "id") for horizon in (24, 96, 336))


def test_recipes_are_those_by_which_networks_are_trained() -> None:
    every = {(spot.dataset, paper_backbone(spot.backbone)) for spot in spots(Scope(), SHORT)}
    as_trained = {key: str(recipe(*key).epochs) for key in every}
    assert {key: length for key, length in as_trained.items() if length in FIXED} == RECIPES
    assert same_recipe([Spot("weather-stand-in", name, 24, "id") for name in ("tcn", "autoformer")]) == [
        Spot("weather-stand-in", "tcn", 24, "id")
    ]


def test_one_network_under_two_names_is_not_trained_twice() -> None:
    results = [
        result("original", 0.5), result("original", 0.4, backbone="tcn@20"),
        result("original", 0.5, horizon=96), result("original", 0.50001, horizon=96, backbone="tcn@20"),
        result("original", 0.5, horizon=336), result("original", 0.1, horizon=336, backbone="tcn@5"),
    ]  # fmt: skip
    (one,) = trained_twice(PLACES, Measured.of(results))
    assert (one.spot, one.epochs, one.first, one.again) == (PLACES[0], "20", 0.5, 0.4)
    assert one.apart == pytest.approx(0.2)


def test_only_seeds_that_both_have_count() -> None:
    first = [result("original", value, seed=seed) for seed, value in enumerate((0.5, 9.0))]
    (one,) = trained_twice(PLACES, Measured.of([*first, result("original", 0.4, backbone="tcn@20")]))
    assert one.first == 0.5


def test_without_either_side_nothing_is_said() -> None:
    assert beside_gaps([], [0.1]) == []
