"""COSA's head and its longer descent against their formulas, in loops, and the gradient against differences."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from baseline_world import CHANNELS, CONTEXT, HORIZON, World, predictions

from ompb.baselines.cosa_head import Head, Objective, head_inputs
from ompb.baselines.cosa_tuned import CosaTuned, CosaTunedSettings, Rates, burst, clipped, recent_levels
from ompb.bench.methods import unfit
from ompb.errors import OptionError
from ompb.types import Floats


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def looped_levels(rows: Floats, blocks: int, block: int) -> Floats:
    levels = np.zeros((blocks, rows.shape[1]))
    for k in range(blocks):
        for c in range(rows.shape[1]):
            stop = len(rows) - (blocks - 1 - k) * block
            known = [rows[i, c] for i in range(max(stop - block, 0), max(stop, 0)) if not math.isnan(rows[i, c])]
            levels[k, c] = sum(known) / len(known) if known else 0.0
    return levels


@pytest.mark.parametrize("rows", [1, 4, 7, 12, 20])
def test_the_context_is_the_means_of_the_newest_blocks(rows: int) -> None:
    values = np.random.default_rng(0).normal(size=(rows, 2))
    values[-1, 0] = np.nan
    np.testing.assert_allclose(recent_levels(values, 3, 4), looped_levels(values, 3, 4))


def random_head(channels: int, horizon: int, blocks: int) -> Head:
    rng = np.random.default_rng(1)
    return Head(rng.normal(size=(channels, horizon, horizon + blocks + 1)), rng.normal(size=channels))


def random_objective(pairs: int = 6, penalty: float = 0.3) -> Objective:
    rng = np.random.default_rng(2)
    inputs = np.stack([head_inputs(rng.normal(size=(4, 3)), rng.normal(size=(2, 3))) for _ in range(pairs)], axis=-1)
    outcome = rng.normal(size=(3, 4, pairs))
    outcome[0, 1, 2] = outcome[2, :, 0] = np.nan
    return Objective(inputs, outcome, penalty)


def test_the_forecast_is_its_formula() -> None:
    rng = np.random.default_rng(0)
    head, base, context = random_head(3, 4, 2), rng.normal(size=(4, 3)), rng.normal(size=(2, 3))
    found = head.corrected(head_inputs(base, context)[:, :, None])[:, :, 0]
    for c in range(3):
        weight, shift = head.weights[c, :, :-1], head.weights[c, :, -1]
        seen = np.concatenate([base[:, c], context[:, c]])
        np.testing.assert_allclose(found[c], base[:, c] + math.tanh(head.gate[c]) * (weight @ seen + shift))


def test_the_objective_is_its_formula() -> None:
    objective, head = random_objective(), random_head(3, 4, 2)
    forecast = head.corrected(objective.inputs)
    for c in range(3):
        squares = [
            (forecast[c, h, n] - objective.outcome[c, h, n]) ** 2
            for h in range(4)
            for n in range(6)
            if not math.isnan(objective.outcome[c, h, n])
        ]
        size = (head.weights[c] ** 2).sum() + head.gate[c] ** 2
        assert objective(head)[0][c] == pytest.approx(sum(squares) / len(squares) + 0.3 * size)


def test_the_gradient_is_that_of_the_objective() -> None:
    objective, head, step = random_objective(), random_head(3, 4, 2), 1e-6
    gradient = objective(head)[1]
    for c in range(3):
        for place in np.ndindex(head.weights.shape[1:]):
            ends = [Head(head.weights.copy(), head.gate) for _ in range(2)]
            ends[0].weights[c, *place] -= step
            ends[1].weights[c, *place] += step
            low, high = (objective(end)[0][c] for end in ends)
            assert gradient.weights[c, *place] == pytest.approx((high - low) / (2 * step), rel=1e-5, abs=1e-7)
        ends = [Head(head.weights, head.gate + sign * step * (np.arange(3) == c)) for sign in (-1, 1)]
        low, high = (objective(end)[0][c] for end in ends)
        assert gradient.gate[c] == pytest.approx((high - low) / (2 * step), rel=1e-5, abs=1e-7)


def test_a_channel_of_which_nothing_is_known_is_only_penalised() -> None:
    objective, head = random_objective(), random_head(3, 4, 2)
    objective.outcome[1] = np.nan
    loss, gradient = objective(head)
    assert loss[1] == pytest.approx(0.3 * ((head.weights[1] ** 2).sum() + head.gate[1] ** 2))
    np.testing.assert_allclose(gradient.weights[1], 0.6 * head.weights[1])


def test_clipping_shortens_long_gradients_only() -> None:
    gradient = random_head(3, 4, 2)
    lengths = np.sqrt((gradient.weights**2).sum(axis=(1, 2)) + gradient.gate**2)
    found = clipped(gradient, lengths * [0.5, 2.0, 1.0])
    np.testing.assert_allclose(found.gate, gradient.gate * [0.5, 1.0, 1.0])
    np.testing.assert_allclose(found.weights[0], gradient.weights[0] * 0.5)
    np.testing.assert_allclose(found.weights[1:], gradient.weights[1:])
    still = clipped(Head(np.zeros((1, 2, 3)), np.zeros(1)), np.ones(1))
    assert (still.weights == 0).all()


def test_rates_follow_the_cosine_and_what_losses_do() -> None:
    config = CosaTunedSettings(steps=10, rate_max=0.1, rate_min=0.01, steady=2)
    rates = Rates.start(config, 3)

    def cosine(step: int) -> float:
        return 0.01 + 0.045 * (1 + math.cos(math.pi * step / 10))

    np.testing.assert_allclose(rates.at(0), 0.1)
    np.testing.assert_allclose(rates.at(10), 0.01)
    rates.observe(np.full(3, np.nan))  # there was no loss before the first
    np.testing.assert_allclose(rates.at(5), cosine(5))
    rates.observe(np.array([1.0, -1.0, 0.0]))
    np.testing.assert_allclose(rates.at(5), np.array([0.5, 1.0, 1.0]) * cosine(5))
    rates.observe(np.array([-1.0, -1.0, -1.0]))  # steady in the second only
    np.testing.assert_allclose(rates.at(5), np.array([0.5, 1.1, 1.0]) * cosine(5))
    np.testing.assert_allclose(rates.at(0)[1], 0.1)  # never above the largest
    rates.observe(np.array([-1.0, 1.0, -1.0]))
    rates.observe(np.array([-1.0, -1.0, -1.0]))  # in the second the count has started again
    np.testing.assert_allclose(rates.at(5), np.array([0.5 * 1.1**2, 1.1 * 0.5, 1.1**2]) * cosine(5))
    for _ in range(9):
        rates.observe(np.ones(3))
    np.testing.assert_allclose(rates.at(5), 0.01)  # nor below the smallest


def start_head() -> Head:
    return Head(np.zeros((3, 4, 7)), np.full(3, 0.3))


@pytest.mark.parametrize("clip", [1e-3, 100.0])
def test_two_steps_are_the_gradient_steps_of_the_schedule(clip: float) -> None:
    config, objective, head = (
        CosaTunedSettings(steps=2, rate_max=0.02, clip=clip),
        random_objective(penalty=1e-3),
        start_head(),
    )
    # Losses below make max(c, loss) bind for the small c: the outcomes are scaled so that gradients are longer.
    objective = replace(
        objective, inputs=10 * objective.inputs, outcome=0.1 * objective.outcome + 10 * objective.inputs[:, :4]
    )
    expected = [head.weights.copy(), head.gate.copy()]
    bound = False
    for step in range(2):
        loss, gradient = objective(Head(*expected))
        rate = config.rate_min + (config.rate_max - config.rate_min) * (1 + math.cos(math.pi * step / 2)) / 2
        for c in range(3):
            length = math.sqrt((gradient.weights[c] ** 2).sum() + gradient.gate[c] ** 2)
            shrink = min(1.0, max(clip, loss[c]) / length)
            bound |= shrink < 1
            expected[0][c] -= rate * shrink * gradient.weights[c]
            expected[1][c] -= rate * shrink * gradient.gate[c]
    found = burst(head, objective, config)
    assert bound == (clip < 1)
    np.testing.assert_allclose(found.weights, expected[0])
    np.testing.assert_allclose(found.gate, expected[1])


@pytest.mark.parametrize("rate", [1e-3, 0.02, 10.0])
def test_a_burst_never_makes_the_loss_larger_and_leaves_its_start_alone(rate: float) -> None:
    objective, head = random_objective(), start_head()
    before = objective(head)[0]
    after = objective(burst(head, objective, CosaTunedSettings(rate_max=rate)))[0]
    assert (after <= before).all()
    assert (head.weights == 0).all()
    if rate < 1:
        assert (after < before).all()


def test_channels_do_not_touch_each_other() -> None:
    objective, config = random_objective(), CosaTunedSettings(rate_max=0.2)
    together = burst(start_head(), objective, config)
    for c in range(3):
        one = replace(objective, inputs=objective.inputs[c : c + 1], outcome=objective.outcome[c : c + 1])
        alone = burst(Head(np.zeros((1, 4, 7)), np.full(1, 0.3)), one, config)
        np.testing.assert_allclose(alone.weights[0], together.weights[c], rtol=1e-9, atol=1e-12)


class Counting(Objective):
    """Counts how often it is asked."""

    def __call__(self, head: Head) -> tuple[Floats, Head]:
        self.__dict__["asked"] = self.__dict__.get("asked", 0) + 1
        return super().__call__(head)


def test_a_burst_stops_once_it_gets_no_better() -> None:
    plain = random_objective()
    perfect = Counting(plain.inputs, plain.inputs[:, :4].copy(), 0.0)
    burst(start_head(), perfect, CosaTunedSettings(patience=4))
    assert perfect.__dict__["asked"] == 5  # the start, and four that are no better
    moving = Counting(plain.inputs, plain.outcome, 0.0)
    burst(start_head(), moving, CosaTunedSettings(rate_max=1e-2, steps=12, patience=4))
    assert moving.__dict__["asked"] == 13


@pytest.mark.parametrize("protocol", ["honest", "full", "one-step"])
def test_the_stream_is_bursts_on_complete_pairs(protocol: str, world: World) -> None:
    config = CosaTunedSettings(block=10, context_blocks=3)
    issued = predictions(CosaTuned.start(world.task(protocol), config), world.snapshots(protocol))
    head = Head(np.zeros((CHANNELS, HORIZON, HORIZON + 4)), np.full(CHANNELS, 0.3))
    delay = 1 if protocol == "one-step" else HORIZON
    inputs: list[Floats] = []
    for place, prediction in enumerate(issued):
        complete = place - delay + 1
        if complete > 0 and complete % 10 == 0:
            origins = range(complete - 10, complete)
            outcome = [world.stream[k + CONTEXT : k + CONTEXT + HORIZON].T for k in origins]
            seen = np.stack([inputs[k] for k in origins], axis=-1)
            head = burst(head, Objective(seen, np.stack(outcome, axis=-1), config.penalty), config)
        inputs.append(head_inputs(world.base[place], looped_levels(world.stream[: place + CONTEXT], 3, 10)))
        np.testing.assert_allclose(prediction.mean, head.corrected(inputs[-1][:, :, None])[:, :, 0].T, rtol=1e-9)


def test_it_removes_most_of_a_moved_level(world: World) -> None:
    issued = predictions(CosaTuned.start(world.task(), CosaTunedSettings(block=12)), world.snapshots())
    late = range(60, len(issued))
    outcome = np.stack([world.stream[k + CONTEXT : k + CONTEXT + HORIZON] for k in late])
    gains = np.mean((np.stack([issued[k].mean for k in late]) - outcome) ** 2) / np.mean(
        (world.base[60:] - outcome) ** 2
    )
    assert gains < 0.5


def test_it_needs_no_network(world: World) -> None:
    assert unfit("cosa-tuned", replace(world.task(), trainable=False, network=None)) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"block": 0},
        {"context_blocks": 0},
        {"steps": 0},
        {"patience": 0},
        {"steady": 0},
        {"rate_min": 0.0},
        {"rate_max": 1e-9},
    ],
)
def test_settings_that_cannot_be_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(bad))):
        CosaTunedSettings(**bad)
