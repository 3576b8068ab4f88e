"""The head and a part of the backbone: where nothing has moved yet, all is as with a frozen one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view

from ompb.errors import NotFiniteError, ShapeError, StaleRowError
from ompb.forecasters.torch import TrainedForecaster, TrainingConfig, backbone, configure, train
from ompb.forecasters.torch.low_rank import add_low_rank
from ompb.gradient import GradientHead, OnlineAdaptedHead, PaperPreset

torch.set_num_threads(1)

CONTEXT, HORIZON, CHANNELS = 12, 4, 2
SMALL: dict[str, dict[str, Any]] = {
    "tcn": {"width": 8},
    "autoformer": {"width": 8, "heads": 2, "hidden": 16},
    "autoformer-canonical": {"width": 8, "heads": 2, "hidden": 16},
    "gpt4ts": {"patch": 6, "stride": 3, "width": 8, "heads": 2, "positions": 16, "weights": "random"},
}
PRESET = PaperPreset(epochs=3, batch=64, replay=40, ring=8, steps=2)


class World:
    """A trained network in standardised units, its source windows with outcomes, and a head fitted on them."""

    def __init__(self) -> None:
        rng, time = np.random.default_rng(0), np.arange(220.0)[:, None]
        rows = np.sin(2 * np.pi * time / np.array([12.0, 8.0])) + 0.3 * rng.standard_normal((220, CHANNELS))
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        config = configure("tcn", context=CONTEXT, horizon=HORIZON, channels=CHANNELS, width=8)
        self.trained = train(config, rows, TrainingConfig(epochs=4, batch=32, learning_rate=1e-2))
        stretches = sliding_window_view(rows, CONTEXT + HORIZON, axis=0).transpose(0, 2, 1)
        self.windows, self.outcomes = stretches[:, :CONTEXT], stretches[:, CONTEXT:]
        self.base = self.trained(self.windows)
        self.source = GradientHead.fit(self.base, self.outcomes, PRESET)

    def adapted(self, source: GradientHead | None = None, rank: int | None = None) -> OnlineAdaptedHead:
        """The last layer beside the head, or adapters of a rank."""
        source, network = source or self.source, copied(self.trained)
        parameters = [*network.last_layer.values()] if rank is None else add_low_rank(network.model, rank)
        return OnlineAdaptedHead(source, network.model, parameters, self.windows[source.places.numpy()])


def copied(trained: TrainedForecaster) -> TrainedForecaster:
    model = type(trained.model)(trained.model.config)
    model.load_state_dict(trained.model.state_dict())
    return replace(trained, model=model)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_places_are_those_of_the_replay_windows(world: World) -> None:
    np.testing.assert_array_equal(
        world.source.outcomes.permute(1, 2, 0).numpy(), world.outcomes[world.source.places.numpy()].astype(np.float32)
    )


@pytest.mark.parametrize("rank", [None, 2])
def test_it_starts_as_the_frozen_one(world: World, rank: int | None) -> None:
    """Forecasts and every term of the loss, which come here from windows, there from cached forecasts and sums."""
    adapted, frozen = world.adapted(rank=rank), world.source.start()
    for window, base in zip(world.windows[:12], world.base, strict=False):  # more than the ring holds
        for one, other in zip(adapted.forecast(window), frozen.forecast(base), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    terms = adapted.learn(world.windows[0], world.outcomes[0] + 1), frozen.learn(world.base[0], world.outcomes[0] + 1)
    for term, twin in zip(*terms, strict=True):
        assert term.item() == pytest.approx(twin.item(), rel=1e-4, abs=1e-5)


def test_the_head_follows_the_frozen_one_where_the_backbone_hardly_moves(world: World) -> None:
    """Steps of 1e-7 leave the backbone where it is in single precision, and move the head's zeros alike."""
    source = replace(world.source, settings=replace(PRESET, online_rate=1e-7))
    adapted, frozen = world.adapted(source), source.start()
    for window, base, outcome in zip(world.windows[:20], world.base, world.outcomes + 1, strict=False):
        adapted.forecast(window)
        frozen.forecast(base)
        adapted.learn(window, outcome)
        frozen.learn(base, outcome)
    assert adapted.gate == pytest.approx(frozen.gate, rel=1e-6)
    np.testing.assert_allclose(adapted.forecast(world.windows[30])[0], frozen.forecast(world.base[30])[0], atol=1e-4)


@pytest.mark.parametrize("rank", [None, 2])
def test_only_what_is_adapted_moves_and_it_lowers_the_loss(world: World, rank: int | None) -> None:
    network = copied(world.trained)
    kept = {name: tensor.clone() for name, tensor in network.model.state_dict().items()}
    parameters = [*network.last_layer.values()] if rank is None else add_low_rank(network.model, rank)
    online = OnlineAdaptedHead(world.source, network.model, parameters, world.windows[world.source.places.numpy()])
    online.forecast(world.windows[0])
    errors = [online.learn(world.windows[0], world.outcomes[0] + 2).supervised.item() for _ in range(20)]
    assert errors[-1] < 0.7 * errors[0]
    now = {name.replace("head.layer.", "head."): tensor for name, tensor in network.model.state_dict().items()}
    moved = {name for name, tensor in kept.items() if not torch.equal(tensor, now[name])}
    assert moved == (set() if rank else {"head.weight", "head.bias"})
    assert all(parameter.abs().sum() > 0 for parameter in parameters)


def test_the_gradient_of_the_backbone_is_that_of_the_whole_loss(world: World) -> None:
    """Adam's first step is the rate against the sign of the slope: the sign of finite differences of the loss."""
    source = replace(world.source, settings=replace(PRESET, steps=1, disagreement_scale=1e3))
    network = copied(world.trained)
    bias = network.last_layer["head.bias"]
    before = bias.detach().clone()

    def loss(shift: float, place: int) -> float:
        other = copied(world.trained)
        with torch.no_grad():
            other.last_layer["head.bias"][place] += shift
        online = OnlineAdaptedHead(source, other.model, [], world.windows[source.places.numpy()])
        online.forecast(world.windows[0])
        return online.learn(world.windows[0], world.outcomes[0] - 3).loss.item()

    online = OnlineAdaptedHead(source, network.model, [bias], world.windows[source.places.numpy()])
    online.forecast(world.windows[0])
    online.learn(world.windows[0], world.outcomes[0] - 3)
    step = (bias.detach() - before).numpy()
    np.testing.assert_allclose(np.abs(step), PRESET.online_rate, rtol=1e-3)
    slopes = [loss(0.1, place) - loss(-0.1, place) for place in range(HORIZON * CHANNELS)]
    np.testing.assert_array_equal(np.sign(step), -np.sign(slopes))


@pytest.mark.parametrize("name", list(SMALL))
def test_every_backbone_can_be_adapted(name: str, world: World) -> None:
    """After one outcome each part has a slope: B moves from zero, and A with the second step, once B is not zero."""
    model = backbone(name, CONTEXT, HORIZON, CHANNELS, **SMALL[name]).eval()
    with torch.no_grad():
        base = model(torch.from_numpy(np.array(world.windows, dtype=np.float32))).numpy()
    source = GradientHead.fit(base, world.outcomes, replace(PRESET, epochs=0))
    parameters = add_low_rank(model, rank=1)
    before = [parameter.detach().clone() for parameter in parameters]
    online = OnlineAdaptedHead(source, model, parameters, world.windows[source.places.numpy()])
    mean, _ = online.forecast(world.windows[5])
    np.testing.assert_allclose(mean, base[5], atol=1e-5)
    online.learn(world.windows[5], world.outcomes[5])
    assert not any(torch.equal(*pair) for pair in zip(before, parameters, strict=True))


def test_bad_arrays_are_named(world: World) -> None:
    network = copied(world.trained)
    with pytest.raises(ShapeError, match=r"replay has shape \(3, 12, 2\); pass the replay windows, \(40, 12, 2\)"):
        OnlineAdaptedHead(world.source, network.model, [], world.windows[:3])
    online = world.adapted()
    with pytest.raises(ShapeError, match=r"window has shape \(4, 2\); pass \(context, C\) = \(12, 2\)"):
        online.forecast(world.outcomes[0])
    with pytest.raises(StaleRowError, match="before any forecast"):
        online.learn(world.windows[0], world.outcomes[0])
    with pytest.raises(NotFiniteError, match="window is missing or infinite"):
        online.forecast(np.full_like(world.windows[0], np.nan))
