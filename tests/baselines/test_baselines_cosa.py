"""COSA as published against a twin in torch, whose gradients and whose Adam are torch's own."""

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from baseline_world import CHANNELS, CONTEXT, HORIZON, World, predictions

from ompb.baselines.cosa import Cosa, CosaSettings
from ompb.bench.contract import settings_record, snapshots
from ompb.bench.methods import make, unfit
from ompb.bench.protocols import Clock
from ompb.errors import OptionError
from ompb.types import Floats

SMALL = CosaSettings(block=10, context_blocks=3)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


class Twin:
    """The method once more, on whole blocks."""

    def __init__(self, weights: Floats) -> None:
        self.weight = torch.tensor(weights[..., :-1], requires_grad=True)  # (C, H, H + K)
        self.shift = torch.zeros(CHANNELS, HORIZON, dtype=torch.float64, requires_grad=True)
        self.gate = torch.zeros(CHANNELS, dtype=torch.float64, requires_grad=True)
        self.parameters = [self.weight, self.shift, self.gate]
        self.adam = torch.optim.Adam(self.parameters, weight_decay=1e-4)
        self.levels: list[float] = []
        self.clipped = self.factors = 0

    def context(self) -> list[float]:
        return [*self.levels[::-1], 0.0, 0.0, 0.0][:3]

    def forecast(self, base: Any, context: Any) -> Any:
        """Of base forecasts (n, H, C) and contexts (n, 3): (n, H, C)."""
        shared = context[:, None, :].expand(-1, CHANNELS, -1)  # (n, C, 3)
        seen = torch.cat([base.transpose(1, 2), shared], dim=2)  # (n, C, H + 3)
        mixed = torch.einsum("cho,nco->nch", self.weight, seen) + self.shift
        return base + (torch.tanh(self.gate)[:, None] * mixed).transpose(1, 2)

    def learn(self, base: Any, context: Any, outcome: Any) -> None:
        losses: list[float] = []
        factor, falls = 1.0, 0
        for step in range(3):
            known = ~torch.isnan(outcome)
            loss = ((self.forecast(base, context) - outcome)[known] ** 2).mean()
            loss = loss + 1e-4 * sum((p**2).sum() for p in self.parameters)
            self.adam.zero_grad()
            loss.backward()
            norm = math.sqrt(sum(float((p.grad**2).sum()) for p in self.parameters if p.grad is not None))
            bound = max(0.05, min(0.5, loss.item()))
            self.clipped += norm > bound
            for p in self.parameters:
                assert p.grad is not None
                p.grad *= min(1.0, bound / norm)
            losses.append(loss.item())
            if step:
                falls = falls + 1 if losses[-1] < losses[-2] else 0
                factor *= 0.5 if losses[-1] > losses[-2] else 1.1 if falls == 2 else 1.0
            self.factors += factor != 1
            cosine = 1e-4 + 9e-4 * (1 + math.cos(math.pi * step / 3)) / 2
            self.adam.param_groups[0]["lr"] = min(max(factor * cosine, 1e-4), 5e-3)
            self.adam.step()
        self.levels.append(float(outcome[~torch.isnan(outcome)].mean()))


@pytest.mark.parametrize("protocol", ["honest", "full", "one-step"])
def test_the_stream_is_three_steps_of_adam_on_each_block(protocol: str, world: World) -> None:
    method = Cosa.start(world.task(protocol), SMALL)
    twin = Twin(method.head.weights)
    delay = 1 if protocol == "one-step" else HORIZON
    contexts: list[list[float]] = []
    for place, prediction in enumerate(predictions(method, world.snapshots(protocol))):
        complete = place - delay + 1
        if complete > 0 and complete % 10 == 0:
            origins = range(complete - 10, complete)
            outcome = np.array([world.stream[k + CONTEXT : k + CONTEXT + HORIZON] for k in origins])
            arrays = world.base[origins.start : origins.stop], contexts[origins.start :][:10], outcome
            twin.learn(*(torch.tensor(np.array(part), dtype=torch.float64) for part in arrays))
        contexts.append(twin.context())
        with torch.no_grad():
            base = torch.tensor(np.array(world.base[place : place + 1]), dtype=torch.float64)
            expected = twin.forecast(base, torch.tensor([contexts[-1]], dtype=torch.float64))[0].numpy()
        np.testing.assert_allclose(prediction.mean, expected, rtol=1e-7, atol=1e-9)
    assert len(twin.levels) == 8
    assert twin.clipped > 0
    assert twin.factors > 0
    assert not np.allclose(expected, world.base[-1], atol=1e-4)


def test_the_context_is_one_number_a_block_for_all_channels_newest_first(world: World) -> None:
    method = Cosa.start(world.task(), SMALL)
    predictions(method, world.snapshots())
    blocks = [
        np.mean([world.stream[k + CONTEXT : k + CONTEXT + HORIZON] for k in range(10 * b, 10 * b + 10)])
        for b in range(8)
    ]
    np.testing.assert_allclose(method.levels, blocks[:-4:-1])
    newest = method.inputs[max(method.inputs)]  # (C, H + K + 1)
    np.testing.assert_allclose(newest[:, HORIZON:-1], [list(method.levels)] * CHANNELS)


def test_it_starts_closed_with_small_random_weights(world: World) -> None:
    one, same, other = (Cosa.start(world.task(seed=seed), CosaSettings()).head for seed in (0, 0, 1))
    bound = 0.1 * math.sqrt(6 / (HORIZON + HORIZON + 10))  # Xavier's, of gain 0.1
    found = np.abs(one.weights[..., :-1])
    assert 0.9 * bound < found.max() <= bound
    assert found.mean() == pytest.approx(bound / 2, rel=0.2)  # uniform
    assert (one.weights[..., -1] == 0).all()
    assert (one.gate == 0).all()
    np.testing.assert_array_equal(one.weights, same.weights)
    assert not np.array_equal(one.weights, other.weights)


def test_adam_is_kept_from_block_to_block_and_through_a_copy(world: World) -> None:
    method = Cosa.start(world.task(), SMALL)
    predictions(method, world.snapshots())
    assert method.adam.steps == 3 * 8
    assert pickle.loads(pickle.dumps(method)).adam.steps == 3 * 8


def test_a_block_of_which_nothing_is_known_teaches_nothing(world: World) -> None:
    rows = np.full_like(world.stream, np.nan)
    method = Cosa.start(world.task(), SMALL)
    start = method.head.weights.copy()
    for snapshot in snapshots(rows, world.stream, world.base, Clock("honest", HORIZON, CONTEXT - 1), CONTEXT):
        np.testing.assert_allclose(method.step(snapshot).mean, snapshot.base)
    np.testing.assert_array_equal(method.head.weights, start)
    assert list(method.levels) == [0.0] * 3


def test_rates_stay_within_their_bounds() -> None:
    rising, falling = [float(k) for k in range(20)], [float(-k) for k in range(60)]
    assert CosaSettings().rate_at(1, rising) == 1e-4
    assert CosaSettings().rate_at(0, falling) == 5e-3
    assert CosaSettings().rate_at(0, [3.0]) == pytest.approx(1e-3)


def test_settings_are_the_published_ones(world: World) -> None:
    recorded = settings_record(make("cosa", world.task()))
    published = {"block": 48, "context_blocks": 10, "steps": 3, "rate": 1e-3, "weight_decay": 1e-4, "penalty": 1e-4}
    assert {name: recorded[name] for name in published} == published
    assert settings_record(make("cosa[steps=5]", world.task()))["steps"] == 5


def test_it_needs_no_network(world: World) -> None:
    assert unfit("cosa", dataclasses.replace(world.task(), trainable=False, network=None)) is None


@pytest.mark.parametrize("bad", [{"block": 0}, {"steps": 0}, {"rate": 0.1}, {"penalty": -1.0}, {"gain": 0.0}])
def test_settings_that_cannot_be_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(bad))):
        CosaSettings(**bad)
