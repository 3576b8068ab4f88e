"""OneNet's weights and its online step against loops and formulas by hand."""

import dataclasses
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from baseline_world import CHANNELS, CONTEXT, HORIZON, STEPS, World, predictions

from ompb.baselines.fsnet import FSNetSettings
from ompb.baselines.network import known_mse
from ompb.baselines.onenet import OneNet, OneNetSettings, Weights, channel_mse, mixture
from ompb.bench.contract import Pair, Snapshot, settings_record, snapshots
from ompb.bench.methods import make
from ompb.bench.protocols import Clock
from ompb.errors import OptionError
from ompb.forecasters.torch.training import own_random_state
from ompb.types import Floats

RATE = 3e-4  # large enough to be seen
QUICK = OneNetSettings(rate=RATE, fsnet=FSNetSettings(width=8, representation=16, blocks=8, controller=8, epochs=2))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def weights(**options: Any) -> Weights:
    with own_random_state(0, torch.device("cpu")):
        made = Weights(HORIZON, CHANNELS, OneNetSettings(**options), torch.device("cpu"))
    made.network.eval()
    return made


def triples(count: int, seed: int = 0) -> list[tuple[Floats, Floats, Floats]]:
    """Forecasts of both branches and outcomes, the second branch being the better one in the first channel."""
    draws = np.random.default_rng(seed)
    outcomes = draws.standard_normal((count, HORIZON, CHANNELS))
    worse, better = (outcomes + scale * draws.standard_normal(outcomes.shape) for scale in (1.5, 0.5))
    worse[..., 1], better[..., 1] = better[..., 1], worse[..., 1].copy()
    return list(zip(worse, better, outcomes, strict=True))


def single(*arrays: Floats) -> list[Any]:
    return [torch.as_tensor(array, dtype=torch.float32)[None] for array in arrays]


def test_the_mixture_under_a_logit_of_zero_is_the_mean() -> None:
    first, second, _ = single(*triples(1)[0])
    torch.testing.assert_close(mixture(first, second, torch.zeros(CHANNELS)), (first + second) / 2)
    torch.testing.assert_close(weights().mix(first, second), (first + second) / 2)


def test_the_mixture_weighs_each_channel_by_itself() -> None:
    first, second, _ = single(*triples(1)[0])
    found = mixture(first, second, torch.tensor([100.0, -100.0]))
    torch.testing.assert_close(found[..., 0], first[..., 0])
    torch.testing.assert_close(found[..., 1], second[..., 1])


def test_exponentiated_weights_follow_their_formula() -> None:
    found = weights(long_term="exponentiated")
    share = np.full((2, CHANNELS), 0.5)
    for number, (first, second, outcome) in enumerate(triples(12)):
        if number == 3:
            outcome[1, 0] = np.nan
        if number == 5:
            outcome[:, 1] = np.nan  # nothing is known of this channel: its weights stay
        found.learn(*single(first, second, outcome))
        for c in range(CHANNELS):
            known = [h for h in range(HORIZON) if not np.isnan(outcome[h, c])]
            for i, forecast in enumerate((first, second)):
                loss = np.mean([(forecast[h, c] - outcome[h, c]) ** 2 for h in known]) if known else 0.0
                share[i, c] *= np.exp(-0.5 * loss)
            share[:, c] /= share[:, c].sum()
        np.testing.assert_allclose(torch.sigmoid(found.long).detach(), share[0], rtol=1e-4)
    assert share[0, 0] < 0.1
    assert share[0, 1] > 0.9


def test_exponentiated_weights_survive_a_huge_loss() -> None:
    found = weights(long_term="exponentiated")
    first, second, outcome = triples(1)[0]
    found.learn(*single(first + 1e4, second, outcome))
    assert torch.isfinite(found.long).all()
    one, other = single(first, second)
    torch.testing.assert_close(mixture(one, other, found.long), other)


def test_long_term_logits_take_steps_of_adam_on_their_own_mixture() -> None:
    found = weights()
    logit, mean, square = (np.zeros(CHANNELS) for _ in range(3))
    for number, (first, second, outcome) in enumerate(triples(20), start=1):
        if number == 8:  # the stream starts: weights are given up, what the optimiser knows is not
            found.start()
            logit = np.zeros(CHANNELS)
            assert not found.short.any()
        found.learn(*single(first, second, outcome))
        share = 1 / (1 + np.exp(-logit))
        error = share * first + (1 - share) * second - outcome
        gradient = (2 * error * (first - second) * share * (1 - share)).sum(axis=0) / error.size
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        logit = logit - 1e-3 * (mean / (1 - 0.9**number)) / (np.sqrt(square / (1 - 0.999**number)) + 1e-8)
        np.testing.assert_allclose(found.long.detach(), logit, atol=2e-6)
    assert logit[0] < 0 < logit[1]


def test_the_short_term_is_what_the_network_said_of_the_newest_pair_before_its_step() -> None:
    found = weights()
    found.long.data = torch.tensor([0.4, -1.0])
    first, second, outcome = single(*triples(1)[0])
    share = torch.sigmoid(torch.tensor([0.4, -1.0]))
    expected = torch.stack(
        [
            found.network(
                torch.cat([share[c] * first[0, :, c], (1 - share[c]) * second[0, :, c], outcome[0, :, c]])
            ).squeeze()
            for c in range(CHANNELS)
        ]
    ).detach()
    found.learn(first, second, outcome)
    torch.testing.assert_close(found.short, expected)
    torch.testing.assert_close(found.mix(first, second), mixture(first, second, found.long + expected))


def test_the_short_term_network_learns_whom_to_trust() -> None:
    found = weights()
    columns = zip(*triples(64), strict=True)
    first, second, outcome = (torch.as_tensor(np.array(column), dtype=torch.float32) for column in columns)
    for _ in range(150):
        found.learn(first, second, outcome)
    plain = known_mse(mixture(first, second, found.long), outcome)
    with torch.no_grad():
        short = short_terms(found, first, second, outcome)
    assert known_mse(mixture(first, second, found.long + short), outcome) < 0.7 * plain


def short_terms(found: Weights, first: Any, second: Any, outcome: Any) -> Any:
    share = torch.sigmoid(found.long)
    seen = torch.cat([share * first, (1 - share) * second, outcome], dim=1).transpose(1, 2)
    return found.network(seen)[..., 0]


def test_a_missing_cell_neither_teaches_nor_spoils() -> None:
    first, second, outcome = single(*triples(1)[0])
    holed, right = outcome.clone(), outcome.clone()
    holed[0, 2, 0] = torch.nan
    right[0, 2, 0] = ((first + second) / 2)[0, 2, 0]  # what stands in for it
    found, other = weights(), weights()
    other.network.load_state_dict(found.network.state_dict())
    for made, shown in ((found, holed), (other, right)):
        made.learn(first, second, shown)
    torch.testing.assert_close(found.short, other.short)
    assert all(torch.isfinite(parameter).all() for parameter in found.network.parameters())
    assert channel_mse(first, holed).isfinite().all()


def test_it_says_the_mean_of_its_branches_until_a_pair_is_complete(world: World) -> None:
    method = OneNet.start(world.task(), QUICK)
    fsnet = method.fsnet
    for place, snapshot in enumerate(world.snapshots(steps=HORIZON + 1)):
        with torch.no_grad():
            second = fsnet(torch.as_tensor(snapshot.window, dtype=torch.float32)[None])[0].numpy()
        found = method.step(snapshot).mean
        if place < HORIZON:
            np.testing.assert_allclose(found, (world.base[place] + second) / 2, atol=1e-5)
        else:
            assert not np.allclose(found, (world.base[place] + second) / 2, atol=1e-5)


def first_pair(world: World) -> tuple[OneNet, Pair]:
    """A method that is about to learn its first pair, and the pair."""
    shown = list(world.snapshots(steps=HORIZON + 1))
    method = OneNet.start(world.task(), QUICK)
    predictions(method, iter(shown[:HORIZON]))
    outcome = world.stream[CONTEXT : CONTEXT + HORIZON]
    return method, Pair(CONTEXT - 1, shown[0].window, shown[0].base, outcome)


def adam_step(gradient: Any, state: dict[str, Any]) -> Any:
    """The direction of one more step, from what the optimiser knows of those before."""
    number = int(state.get("step", 0)) + 1
    mean = 0.9 * state.get("exp_avg", 0.0) + 0.1 * gradient
    square = 0.999 * state.get("exp_avg_sq", 0.0) + 0.001 * gradient**2
    return mean / (1 - 0.9**number) / ((square / (1 - 0.999**number)).sqrt() + 1e-8)


def adamw(parameter: Any, gradient: Any, state: dict[str, Any]) -> Any:
    """A parameter after one more step, with AdamW's own decay of 0.01."""
    return (1 - RATE * 0.01) * parameter.detach() - RATE * adam_step(gradient, state)


def test_both_branches_take_a_step_of_adamw_on_their_own_error(world: World) -> None:
    method, pair = first_pair(world)
    window, outcome = single(pair.window, pair.outcome)
    expected = {}
    for name, optimiser in zip(("backbone", "fsnet"), method.optimisers, strict=True):
        model = getattr(method, name)
        parameters = list(model.parameters())
        gradients = torch.autograd.grad(known_mse(model(window), outcome), parameters)
        expected[name] = [adamw(p, g, optimiser.state.get(p, {})) for p, g in zip(parameters, gradients, strict=True)]
        assert bool(optimiser.state) is (name == "fsnet")  # what its training left; of the backbone's nothing is kept
    method.step(list(world.snapshots(steps=HORIZON + 1))[HORIZON])
    for name, wanted in expected.items():
        for found, parameter in zip(getattr(method, name).parameters(), wanted, strict=True):
            torch.testing.assert_close(found.detach(), parameter, rtol=1e-3, atol=2e-6)


def test_weights_learn_from_what_the_branches_said_before_their_step(world: World) -> None:
    method, pair = first_pair(world)
    window, outcome = single(pair.window, pair.outcome)
    with torch.no_grad():
        first, second = method.backbone(window), method.fsnet(window)
        short = short_terms(method.weights, first, second, outcome)[0]
    logit = torch.zeros(CHANNELS, requires_grad=True)
    (gradient,) = torch.autograd.grad(known_mse(mixture(first, second, logit), outcome), [logit])
    step = adam_step(gradient, method.weights.long_optimiser.state[method.weights.long])
    method.step(list(world.snapshots(steps=HORIZON + 1))[HORIZON])
    torch.testing.assert_close(method.weights.short, short)
    torch.testing.assert_close(method.weights.long.detach(), -1e-3 * step)


def test_an_outcome_that_is_wholly_missing_changes_nothing(world: World) -> None:
    rows = world.stream.copy()
    rows[CONTEXT + 20 : CONTEXT + 20 + HORIZON + 2] = np.nan
    method = OneNet.start(world.task(), QUICK)
    still = 0
    for snapshot in snapshots(rows, world.stream, world.base, Clock("honest", HORIZON, CONTEXT - 1), CONTEXT):
        before = state(method)
        method.step(snapshot)
        if missing_pair(snapshot, rows):
            still += 1
            assert all(torch.equal(one, other) for one, other in zip(before, state(method), strict=True))
    assert still == 3


def state(method: OneNet) -> list[Any]:
    parts = [*method.backbone.parameters(), *method.fsnet.state_dict().values(), *method.weights.network.parameters()]
    return [part.detach().clone() for part in (*parts, method.weights.long, method.weights.short)]


def missing_pair(snapshot: Snapshot, rows: Floats) -> bool:
    return bool(np.isnan(rows[snapshot.origin - HORIZON + 1 : snapshot.origin + 1]).all())


def test_the_exponentiated_variant_runs_and_differs(world: World) -> None:
    settings = dataclasses.replace(QUICK, long_term="exponentiated")
    one, other = (predictions(OneNet.start(world.task(), s), world.snapshots()) for s in (QUICK, settings))
    assert len(other) == STEPS
    assert np.isfinite([p.mean for p in other]).all()
    assert not np.allclose(one[-1].mean, other[-1].mean)


def test_it_learns_a_level_that_has_moved(world: World) -> None:
    rows = np.lib.stride_tricks.sliding_window_view(world.stream[CONTEXT:], HORIZON, axis=0).transpose(0, 2, 1)
    issued = np.array([p.mean for p in predictions(OneNet.start(world.task(), OneNetSettings()), world.snapshots())])
    late = slice(STEPS // 2, STEPS)
    assert np.mean((issued - rows)[late] ** 2) < np.mean((world.base - rows)[late] ** 2)


def test_other_seeds_are_other_runs(world: World) -> None:
    one, other = (OneNet.start(world.task(seed=seed), QUICK) for seed in (0, 1))
    assert not torch.equal(one.fsnet.head.weight, other.fsnet.head.weight)


def test_the_published_rate_is_that_around_a_foreign_backbone(world: World) -> None:
    small = '[fsnet={"width": 8, "representation": 16, "blocks": 8, "controller": 8, "epochs": 1}]'
    for name, rate in (("onenet", 3e-6), ("onenet-fsnet-rate", 3e-4)):
        made = make(name + small, world.task())
        assert isinstance(made, OneNet)
        assert settings_record(made)["rate"] == rate
        assert {group["lr"] for optimiser in made.optimisers for group in optimiser.param_groups} == {rate}


def test_without_a_rate_it_goes_on_at_what_halving_left(world: World) -> None:
    settings = dataclasses.replace(QUICK, rate=None, fsnet=dataclasses.replace(QUICK.fsnet, epochs=3, patience=3))
    made = OneNet.start(world.task(), settings)
    assert made.rate == pytest.approx(1e-3 / 4)  # halved after the first and after the second epoch
    assert settings_record(made)["fsnet"]["halves"]


def test_settings_are_all_on_record(world: World) -> None:
    recorded = settings_record(OneNet.start(world.task(), QUICK))
    assert recorded["rate"] == RATE
    assert recorded["fsnet"]["slots"] == 32


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rate": 0.0}, "rate = 0.0"), ({"hidden": 0}, "hidden = 0"), ({"long_term": "sgd"}, "adam, exponentiated")],
)
def test_settings_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        OneNetSettings(**options)
