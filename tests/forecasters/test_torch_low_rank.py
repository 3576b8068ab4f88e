"""Low-rank adapters: the paper's counts, and the same forecasts as one merged matrix."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from ompb.errors import OptionError
from ompb.forecasters.torch import Backbone, backbone
from ompb.forecasters.torch.low_rank import LowRank, add_low_rank

torch.set_num_threads(1)

SMALL: dict[str, dict[str, Any]] = {
    "tcn": {"width": 8},
    "autoformer": {"width": 8, "heads": 2, "hidden": 16},
    "autoformer-canonical": {"width": 8, "heads": 2, "hidden": 16},
    "gpt4ts": {"width": 8, "heads": 2, "positions": 16, "weights": "random"},
}
EVERY = pytest.mark.parametrize("name", list(SMALL))


def small(name: str) -> Backbone:
    torch.manual_seed(0)
    return backbone(name, 24, 4, 2, **SMALL[name]).eval()


def numbers(parameters: Any) -> int:
    return sum(parameter.numel() for parameter in parameters)


@pytest.mark.parametrize(
    ("name", "sizes", "last_layer", "low_rank"),
    [
        ("tcn", (96, 96, 7), 22_176, 2_816),  # ETTh
        ("gpt4ts", (24, 48, 11), 110_640, 9_408),  # ILI
        ("autoformer", (96, 96, 6), 780, 8_192),  # weather
    ],
)
def test_counts_are_the_papers(name: str, sizes: tuple[int, int, int], last_layer: int, low_rank: int) -> None:
    options: dict[str, Any] = {"weights": "random", "blocks": 1} if name == "gpt4ts" else {}
    model = backbone(name, *sizes, **options)
    assert numbers(model.last_layer_parameters().values()) == last_layer
    before = numbers(model.parameters())
    added = add_low_rank(model, rank=4)
    assert numbers(added) == numbers(model.parameters()) - before == low_rank


@EVERY
def test_adapters_start_as_nothing(name: str) -> None:
    model, windows = small(name), torch.randn(3, 24, 2)
    before = model(windows)
    add_low_rank(model, rank=2)
    torch.testing.assert_close(model(windows), before, rtol=0, atol=0)


@EVERY
def test_forecasts_are_those_of_merged_weights(name: str) -> None:
    """W + B A in place of W, in a network without adapters."""
    merged, windows = small(name), torch.randn(3, 24, 2)
    model = copy.deepcopy(merged)
    before = model(windows)
    for parameter in add_low_rank(model, rank=2):
        nn.init.normal_(parameter, std=0.3)
    for place in merged.low_rank_layers():
        layer, adapter = merged.get_submodule(place), model.get_submodule(place)
        assert isinstance(layer, nn.Linear)
        assert isinstance(adapter, LowRank)
        with torch.no_grad():
            layer.weight += adapter.up @ adapter.down
    torch.testing.assert_close(model(windows), merged(windows), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(model(windows), before, atol=1e-2)


def test_the_seed_decides_and_the_callers_random_state_does_not() -> None:
    models = [small("tcn") for _ in range(3)]
    state = torch.get_rng_state()
    one, same, other = (
        add_low_rank(model, rank=2, seed=seed)[0] for model, seed in zip(models, (1, 1, 2), strict=True)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(state, torch.get_rng_state())


def test_a_rank_is_a_count() -> None:
    with pytest.raises(OptionError, match="rank = 0"):
        add_low_rank(small("tcn"), rank=0)
