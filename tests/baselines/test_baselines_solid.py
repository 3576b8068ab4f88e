"""SOLID against its formulas in plain NumPy, and its detector against laws that are known."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from baseline_world import CHANNELS, CONTEXT, HORIZON, SEASON, World, predictions

from ompb.baselines.network import trainable
from ompb.baselines.retrieval import Pool, SearchSettings
from ompb.baselines.solid import (
    Solid,
    SolidPlusPlus,
    SolidPlusPlusSettings,
    SolidSettings,
    one_linear_layer,
    reconditionor,
)
from ompb.bench.contract import Pair, Snapshot, Task, settings_record
from ompb.bench.methods import make, unfit
from ompb.errors import NotFiniteError, OptionError, TooShortError
from ompb.forecasters.torch import configure
from ompb.forecasters.torch.backbones import blank
from ompb.forecasters.torch.tcn import TCN
from ompb.types import Floats

RATE = 0.05
# Small enough for the ring to turn over and for the step to be seen; 0.25 of the season is a whole number of rows.
SMALL = SolidSettings(candidates=30, neighbours=3, phase_tolerance=0.25, rate=RATE)
DELAYS = {"honest": HORIZON, "full": HORIZON, "one-step": 1}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def with_season(task: Task, season: int | None) -> Task:
    return Task(**{**vars(task), "season": season})


def window_at(rows: Floats, origin: int) -> Floats:
    return rows[origin + 1 - CONTEXT : origin + 1]


def outcome_at(rows: Floats, origin: int) -> Floats:
    return rows[origin + 1 : origin + 1 + HORIZON]


def searched(rows: Floats, origin: int, delay: int, settings: SearchSettings, season: int) -> list[int]:
    """Origins of the neighbours, by a loop over every candidate."""
    newest = origin - delay
    found = []
    for candidate in range(max(CONTEXT - 1, newest - settings.candidates + 1), newest + 1):
        late = (origin - candidate) % season
        early = season - late
        allowed = settings.phase_tolerance * season
        if late <= allowed or (settings.two_sided and early <= allowed):
            distance = math.dist(window_at(rows, origin).ravel(), window_at(rows, candidate).ravel())
            found.append((distance, candidate))
    return [candidate for _, candidate in sorted(found)[: settings.neighbours]]


def by_hand(
    model: TCN, rows: Floats, origin: int, neighbours: list[int], rate: float, outcomes: Floats | None = None
) -> Floats:
    """The forecast after the step, with the gradient of a linear layer written out, in float64."""
    targets = np.array([outcome_at(rows, k) for k in neighbours]) if outcomes is None else outcomes
    windows = np.array([window_at(rows, k) for k in [*neighbours, origin]])
    with torch.no_grad():
        states = model.blocks(torch.tensor(windows).transpose(1, 2))[:, :, -1].numpy()
    weight, bias = (p.detach().numpy() for p in (model.head.weight, model.head.bias))
    weight_gradient, bias_gradient = np.zeros_like(weight), np.zeros_like(bias)
    for state, outcome in zip(states[:-1], targets.reshape(len(neighbours), -1), strict=True):
        known = ~np.isnan(outcome)
        errors = np.where(known, weight @ state + bias - np.nan_to_num(outcome), 0.0)
        slope = 2 * errors / known.sum()  # of this sample's mean squared error
        weight_gradient += np.outer(slope, state)
        bias_gradient += slope
    forecast = (weight - rate * weight_gradient) @ states[-1] + bias - rate * bias_gradient
    return np.asarray(forecast).reshape(HORIZON, CHANNELS)


def double(world: World) -> TCN:
    model = world.network_copy().model.double()
    assert isinstance(model, TCN)
    assert model.config.receptive_field >= CONTEXT  # so that blocks may be fed whole windows
    return model


@pytest.mark.parametrize("protocol", sorted(DELAYS))
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("season", [SEASON, None])
def test_every_forecast_is_the_formula(protocol: str, two_sided: bool, season: int | None, world: World) -> None:
    settings = dataclasses.replace(SMALL, two_sided=two_sided)
    solid, model = Solid.start(with_season(world.task(protocol), season), settings), double(world)
    adapted, few = 0, 0
    for snapshot in world.snapshots(protocol):
        mean = solid.step(snapshot).mean
        near = searched(world.stream, snapshot.origin, DELAYS[protocol], settings, season or 1)
        if not near:
            np.testing.assert_array_equal(mean, snapshot.base)
            continue
        wanted = by_hand(model, world.stream, snapshot.origin, near, RATE)
        np.testing.assert_allclose(mean, wanted, atol=2e-5)
        different = not np.allclose(wanted, snapshot.base, atol=1e-2)
        adapted, few = adapted + different, few + (different and len(near) < settings.neighbours)
    assert adapted > 40
    assert few > 0  # it learns from fewer than n, too


@pytest.mark.parametrize("protocol", ["honest", "one-step"])
def test_steps_that_are_kept_go_on_from_each_other(protocol: str, world: World) -> None:
    settings = dataclasses.replace(SMALL, keeps=True, rate=0.01)
    kept, twin = Solid.start(world.task(protocol), settings), double(world)
    forgetting = Solid.start(world.task(protocol), dataclasses.replace(settings, keeps=False))
    for snapshot in world.snapshots(protocol):
        near = searched(world.stream, snapshot.origin, DELAYS[protocol], settings, SEASON)
        if near:
            windows, outcomes = (
                torch.tensor(np.array([cut(world.stream, k) for k in near])) for cut in (window_at, outcome_at)
            )
            losses = ((twin(windows) - outcomes) ** 2).mean(dim=(1, 2))
            gradients = torch.autograd.grad(losses.sum(), [twin.head.weight, twin.head.bias])
            with torch.no_grad():
                for p, g in zip((twin.head.weight, twin.head.bias), gradients, strict=True):
                    p -= 0.01 * g
        with torch.no_grad():
            wanted = twin(torch.tensor(snapshot.window)[None])[0].numpy()
        mean = kept.step(snapshot).mean
        np.testing.assert_allclose(mean, wanted, atol=1e-4)
        other = forgetting.step(snapshot).mean
    assert not np.allclose(mean, other, atol=1e-2)


def test_of_two_heads_the_seasonal_one_is_adapted() -> None:
    names = {}
    for name in ("autoformer", "autoformer-canonical", "tcn"):
        model = blank(configure(name, context=CONTEXT, horizon=HORIZON, channels=CHANNELS))
        names[name] = list(one_linear_layer(model))
        assert sum(isinstance(model.get_submodule(n.split(".")[0]), torch.nn.Linear) for n in names[name]) == 2
    assert names["autoformer"] == ["seasonal_head.weight", "seasonal_head.bias"]
    assert names["autoformer-canonical"] == names["tcn"] == ["head.weight", "head.bias"]


def test_a_pool_of_a_stream_that_goes_on_holds_the_source(world: World) -> None:
    """Its windows are those of one long series, found by a search over all of it."""
    task = dataclasses.replace(world.task(), continues=True)
    pool = Pool.start(task, SearchSettings(candidates=30, neighbours=30, phase_tolerance=1.0))
    pool.fill(task)
    both, seam = np.concatenate([world.source, world.stream]), len(world.source)
    assert sorted(pool.origins.tolist()) == list(range(-HORIZON - 30, -HORIZON))
    for window, outcome, origin in zip(pool.windows, pool.outcomes, pool.origins, strict=True):
        np.testing.assert_array_equal(window, window_at(both, seam + origin))
        np.testing.assert_array_equal(outcome, outcome_at(both, seam + origin))


def test_history_is_for_streams_that_go_on(world: World) -> None:
    assert "does not go on" in str(unfit("solid+history", world.task()))
    task = dataclasses.replace(world.task(), continues=True)
    first = next(world.snapshots())
    assert not np.allclose(make("solid+history", task).step(first).mean, first.base, atol=1e-4)
    np.testing.assert_array_equal(make("solid", task).step(first).mean, first.base)


def test_missing_cells_are_left_out_of_each_sample(world: World) -> None:
    """Samples with unlike numbers of known cells weigh the same."""
    rows, model, present, near = world.stream.copy(), double(world), CONTEXT + 80, [CONTEXT, CONTEXT + 30, CONTEXT + 60]
    outcomes = np.array([outcome_at(rows, k) for k in near])
    outcomes[0, 1, 0] = outcomes[1, :3] = np.nan
    pairs = (torch.tensor(np.array(some)).float() for some in ([window_at(rows, k) for k in near], outcomes))
    stepped = Solid.start(world.task(), SMALL).stepped(*pairs)
    wanted = by_hand(model, rows, present, near, RATE, outcomes)
    with torch.no_grad():
        found = torch.func.functional_call(
            model, {name: p.double() for name, p in stepped.items()}, torch.tensor(window_at(rows, present))[None]
        )
    np.testing.assert_allclose(found[0].numpy(), wanted, atol=2e-5)
    whole = by_hand(model, rows, present, near, RATE)
    assert not np.allclose(wanted, whole, atol=1e-3)


def test_the_network_is_as_trained_after_every_forecast(world: World) -> None:
    solid = Solid.start(world.task(), SMALL)
    assert {name for name, p in solid.model.named_parameters() if p.requires_grad} == {"head.weight", "head.bias"}
    predictions(solid, world.snapshots())
    for name, trained in world.network_copy().model.state_dict().items():
        torch.testing.assert_close(solid.model.state_dict()[name], trained, rtol=0, atol=0)


@pytest.mark.parametrize("protocol", ["honest", "full"])
def test_no_later_row_is_learned_once_it_adapts(protocol: str, world: World) -> None:
    """The contract's check with settings under which adaptation starts before the rows are poisoned."""
    known = 60
    poisoned = world.stream.copy()
    poisoned[CONTEXT - 1 + known :] = 1e6
    clean, other = (
        predictions(Solid.start(world.task(protocol), SMALL), world.snapshots(protocol, rows, known))
        for rows in (world.stream, poisoned)
    )
    np.testing.assert_array_equal([p.mean for p in clean], [p.mean for p in other])
    assert not np.allclose(clean[-1].mean, world.base[known - 1], atol=1e-2)


def test_a_pair_without_any_known_cell_is_no_candidate(world: World) -> None:
    pool = Pool.start(world.task(), SMALL)
    pool.add(Pair(5, np.ones((CONTEXT, CHANNELS)), np.ones((HORIZON, CHANNELS)), np.full((HORIZON, CHANNELS), np.nan)))
    assert pool.added == 0


def test_full_ring_keeps_the_newest(world: World) -> None:
    pool = Pool.start(with_season(world.task(), None), SolidSettings(candidates=4, neighbours=4))
    for origin in range(11):
        shape = (HORIZON, CHANNELS)
        pool.add(Pair(origin, np.full((CONTEXT, CHANNELS), float(origin)), np.zeros(shape), np.full(shape, origin)))
    none = next(iter(world.snapshots())).labels
    present = Snapshot(20, np.zeros(CHANNELS), np.full((CONTEXT, CHANNELS), 8.9), np.zeros((HORIZON, CHANNELS)), none)
    retrieved = pool.retrieve(present)
    assert retrieved is not None
    windows, outcomes = retrieved
    assert windows[:, 0, 0].tolist() == outcomes[:, 0, 0].tolist() == [9, 8, 10, 7]


def test_solid_plus_plus_first_step_is_adams_and_stays(world: World) -> None:
    settings = SolidPlusPlusSettings(candidates=30, neighbours=3, phase_tolerance=0.25, rate=1e-3)
    method = SolidPlusPlus.start(world.task(), settings)
    twin = world.network_copy().model
    steps = 0
    for snapshot in world.snapshots():
        before = [p.detach().clone() for p in method.model.parameters()]
        mean = method.step(snapshot).mean
        near = searched(world.stream, snapshot.origin, HORIZON, settings, SEASON)
        if not near:
            assert all(torch.equal(p, q) for p, q in zip(method.model.parameters(), before, strict=True))
            np.testing.assert_allclose(mean, snapshot.base, atol=1e-5)
            continue
        steps += 1
        if steps == 1:
            windows, outcomes = (
                torch.tensor(np.array([cut(world.stream, k) for k in near]), dtype=torch.float32)
                for cut in (window_at, outcome_at)
            )
            ((twin(windows) - outcomes) ** 2).mean().backward()
            with torch.no_grad():
                for p in twin.parameters():
                    assert p.grad is not None
                    p.sub_(settings.rate * p.grad / (p.grad.abs() + 1e-8))  # Adam's moments cancel at first
            for p, q in zip(method.model.parameters(), twin.parameters(), strict=True):
                torch.testing.assert_close(p, q, rtol=0, atol=1e-5)
            with torch.no_grad():
                wanted = twin(torch.tensor(snapshot.window, dtype=torch.float32)[None])[0].numpy()
            np.testing.assert_allclose(mean, wanted, atol=1e-5)
    (state, *_) = method.optimiser.state.values()
    assert steps > 40
    assert int(state["step"]) == steps  # one optimiser for the whole stream
    assert len(method.optimiser.param_groups[0]["params"]) == len(trainable(world.network_copy().model))


@pytest.mark.parametrize(
    ("season", "candidates", "neighbours", "factor", "kept"),
    [(24, 1000, 10, 20, 2e-3), (None, 1000, 10, 20, 2e-3), (52, 200, 3, 2, 5e-3)],
    ids=["hourly", "no season", "weekly"],
)
def test_settings_are_the_published_ones(
    season: int | None, candidates: int, neighbours: int, factor: float, kept: float, world: World
) -> None:
    """The rate is a multiple of that of the network, which was trained at 1e-3."""
    task = with_season(world.task(), season)
    search = {"candidates": candidates, "neighbours": neighbours, "phase_tolerance": 0.1, "two_sided": False}
    names = ("solid", "solid++", "solid-continual", "solid[factor=5]", "solid[rate=0.04]")
    solid, plus_plus, continual, weather, quick = (settings_record(make(name, task)) for name in names)
    assert solid == {**search, "factor": factor, "rate": pytest.approx(factor * 1e-3), "keeps": False}
    assert plus_plus == {**search, "rate": 1e-5}
    assert continual == {**search, "factor": pytest.approx(kept / 1e-3), "rate": kept, "keeps": True}
    assert (weather["factor"], weather["rate"]) == (5, pytest.approx(5e-3))
    assert (quick["factor"], quick["rate"]) == (pytest.approx(40), 0.04)


def test_another_training_rate_is_another_rate(world: World, tmp_path: Path) -> None:
    trained = world.network_copy()
    slower = dataclasses.replace(trained, training=dataclasses.replace(trained.training, learning_rate=2.5e-3))
    slower.save(tmp_path / "slower.safetensors")
    task = dataclasses.replace(world.task(), network=tmp_path / "slower.safetensors", season=52)
    assert settings_record(make("solid", task))["rate"] == pytest.approx(5e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": 5},
        {"neighbours": 0},
        {"phase_tolerance": 1.5},
        {"rate": 0.0},
        {"rate": math.nan},
        {"factor": 0.0},
    ],
    ids=str,
)
def test_unfit_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        SolidSettings(**wrong)  # type: ignore[arg-type]


def test_reconditionor_of_phases_that_share_no_bin_is_log_p() -> None:
    residuals = np.tile(np.arange(5.0), 30)[:, None, None] * np.ones((1, HORIZON, CHANNELS))
    assert reconditionor(residuals, season=5) == pytest.approx(math.log(5))


def test_reconditionor_by_the_definition() -> None:
    """Uneven groups, and missing cells: every histogram by a loop over bins."""
    random = np.random.default_rng(3)
    residuals = random.normal(size=(62, 3, 2)) * (1 + np.arange(62) % 4)[:, None, None]
    residuals[7, 1, 0] = residuals[20] = np.nan
    flat = residuals[~np.isnan(residuals)]
    edges = np.linspace(flat.min(), flat.max(), 11)

    def histogram(values: Floats) -> Floats:
        places = np.minimum(np.searchsorted(edges, values[~np.isnan(values)], side="right") - 1, 9)
        return np.array([np.mean(places == b) for b in range(10)])

    overall, total = histogram(residuals), 0.0
    for phase in range(4):
        group = histogram(residuals[phase::4])
        total += sum(g * math.log(g / q) for g, q in zip(group, overall, strict=True) if g > 0)
    assert reconditionor(residuals, season=4, bins=10) == pytest.approx(total / 4)


def test_reconditionor_tells_dependence_from_independence() -> None:
    random = np.random.default_rng(0)
    free = random.normal(size=(2400, 10))
    level = np.sin(2 * np.pi * np.arange(2400) / 24)[:, None]
    assert reconditionor(free, season=24) < 0.05 < reconditionor(free + 2 * level, season=24)


def test_reconditionor_refuses_what_it_cannot_count() -> None:
    with pytest.raises(TooShortError, match="3 windows"):
        reconditionor(np.zeros((3, 2)), season=4)
    with pytest.raises(NotFiniteError, match="infinite"):
        reconditionor([0.0, math.inf], season=2)
    with pytest.raises(OptionError, match="season"):
        reconditionor([0.0, 1.0], season=0)
