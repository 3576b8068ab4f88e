"""Online gradient descent and replay against Adam written by hand, and the reservoir against its promise."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from baseline_world import CONTEXT, HORIZON, World, predictions

from ompb.baselines.replay import DER_PLUS_PLUS, ER, GD, Experience, Replay, ReplaySettings, Reservoir
from ompb.bench.contract import settings_record, snapshots
from ompb.bench.methods import make
from ompb.bench.protocols import Clock
from ompb.errors import OptionError
from ompb.types import Floats

RATE = 1e-3  # large enough to be seen in a forecast
STEPS = 28
DELAYS = {"honest": HORIZON, "one-step": 1}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def masked_mse(forecast: Any, outcome: Any) -> Any:
    known = ~torch.isnan(outcome)
    return ((forecast[known] - outcome[known]) ** 2).mean()


@dataclass
class Twin:
    """A learner in float64 whose Adam is written out, and which replays all that it has seen."""

    model: Any
    label_weight: float = 0.0
    output_weight: float = 0.0
    steps: int = 0
    first: list[Any] = field(default_factory=list)
    second: list[Any] = field(default_factory=list)
    seen: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def learn(self, window: Floats, outcome: Floats) -> None:
        x, y = torch.tensor(window)[None], torch.tensor(outcome)[None]
        now = self.model(x)
        loss = masked_mse(now, y)
        if self.seen:
            windows, outcomes, outputs = (torch.cat(parts) for parts in zip(*self.seen, strict=True))
            loss = loss + self.label_weight * masked_mse(self.model(windows), outcomes)
            loss = loss + self.output_weight * ((self.model(windows) - outputs) ** 2).mean()
        self.adam(torch.autograd.grad(loss, list(self.model.parameters())))
        self.seen.append((x, y, now.detach()))

    def adam(self, gradients: Any) -> None:
        self.steps += 1
        self.first = self.first or [torch.zeros_like(g) for g in gradients]
        self.second = self.second or [torch.zeros_like(g) for g in gradients]
        for place, (p, g) in enumerate(zip(self.model.parameters(), gradients, strict=True)):
            self.first[place] = 0.9 * self.first[place] + 0.1 * g
            self.second[place] = 0.999 * self.second[place] + 0.001 * g**2
            mean, square = self.first[place] / (1 - 0.9**self.steps), self.second[place] / (1 - 0.999**self.steps)
            p.data -= RATE * mean / (square.sqrt() + 1e-8)

    def forecast(self, window: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(self.model(torch.tensor(window)[None])[0].numpy())


def assert_twins(method: Replay, twin: Twin, world: World, protocol: str, rows: Floats) -> None:
    shown = snapshots(rows, world.stream, world.base[:STEPS], Clock(protocol, HORIZON, CONTEXT - 1), CONTEXT)
    for snapshot in shown:
        known = snapshot.origin - DELAYS[protocol]
        if known >= CONTEXT - 1:
            outcome = rows[known + 1 : known + 1 + HORIZON]
            if not np.isnan(outcome).all():
                twin.learn(world.stream[known + 1 - CONTEXT : known + 1], outcome)
        np.testing.assert_allclose(method.step(snapshot).mean, twin.forecast(snapshot.window), atol=2e-4)
    assert not np.allclose(twin.forecast(snapshot.window), snapshot.base, atol=0.05)


@pytest.mark.parametrize("protocol", ["honest", "one-step"])
@pytest.mark.parametrize(
    ("label_weight", "output_weight"), [(0, 0), (0.2, 0), (0, 0.2), (3, 5)], ids=["gd", "er", "der++", "both"]
)
def test_every_step_is_adams(protocol: str, label_weight: float, output_weight: float, world: World) -> None:
    settings = ReplaySettings(RATE, label_weight, output_weight, capacity=100, drawn=100)  # all that there is
    twin = Twin(world.network_copy().model.double(), label_weight, output_weight)
    assert_twins(Replay.start(world.task(protocol), settings), twin, world, protocol, world.stream)


def test_missing_cells_are_never_learned(world: World) -> None:
    rows = world.stream.copy()
    rows[CONTEXT + 5, 0] = np.nan
    rows[CONTEXT + 10 : CONTEXT + 10 + HORIZON + 2] = np.nan  # whole outcomes
    twin = Twin(world.network_copy().model.double(), 0.2, 0.2)
    method = Replay.start(world.task(), ReplaySettings(RATE, 0.2, 0.2, capacity=100, drawn=100))
    assert_twins(method, twin, world, "honest", rows)
    assert method.memory.offered == twin.steps < STEPS - HORIZON


def first_weights(world: World, settings: ReplaySettings, steps: int) -> list[Any]:
    method = Replay.start(world.task(), settings)
    predictions(method, world.snapshots(steps=steps))
    return list(method.model.parameters())


def test_first_step_of_gd_moves_by_the_published_rate(world: World) -> None:
    """Adam's first step is rate * g / (|g| + 1e-8), whatever the size of the gradient."""
    model = world.network_copy().model
    window, outcome = world.stream[:CONTEXT], world.stream[CONTEXT : CONTEXT + HORIZON]
    x, y = (torch.tensor(values, dtype=torch.float32)[None] for values in (window, outcome))
    gradients = torch.autograd.grad(((model(x) - y) ** 2).mean(), list(model.parameters()))
    found = first_weights(world, GD, HORIZON + 1)
    for p, g, q in zip(model.parameters(), gradients, found, strict=True):
        torch.testing.assert_close(p - 1e-5 * g / (g.abs() + 1e-8), q, rtol=0, atol=1e-7)


def test_first_steps_of_all_are_gds_and_then_they_part(world: World) -> None:
    """Nothing is remembered at the first step; a forecast just stored has moved by the second."""
    for settings in (ER, DER_PLUS_PLUS):
        for steps, same in ((HORIZON + 1, True), (HORIZON + 2, False)):
            pairs = zip(first_weights(world, GD, steps), first_weights(world, settings, steps), strict=True)
            assert all(torch.equal(p, q) for p, q in pairs) is same


def numbered(number: float) -> Experience:
    return Experience(*(torch.tensor([[number]]) for _ in range(3)))


def held(reservoir: Reservoir) -> list[int]:
    return [int(experience.window) for experience in reservoir.held]


def test_everything_offered_is_held_with_the_same_probability() -> None:
    capacity, offered, repeats = 5, 30, 4000
    offers = [numbered(i) for i in range(offered)]
    counts = np.zeros(offered)
    for seed in range(repeats):
        reservoir = Reservoir(capacity, np.random.default_rng(seed))
        for experience in offers:
            reservoir.offer(experience)
        assert len(set(held(reservoir))) == capacity
        counts[held(reservoir)] += 1
    share = capacity / offered
    sd = math.sqrt(share * (1 - share) / repeats)
    assert np.abs(counts / repeats - share).max() < 4.5 * sd  # 30 shares: one in 5,000 sets of seeds is worse


def test_a_draw_has_no_doubles_and_every_one_its_chance() -> None:
    reservoir = Reservoir(10, np.random.default_rng(0))
    for i in range(10):
        reservoir.offer(numbered(i))
    counts = np.zeros(10)
    for _ in range(2000):
        drawn = reservoir.draw(4)
        assert torch.equal(drawn.window, drawn.outcome)
        places = drawn.window.flatten().int().tolist()
        assert len(set(places)) == 4
        counts[places] += 1
    assert np.abs(counts / 2000 - 0.4).max() < 4.5 * math.sqrt(0.24 / 2000)
    assert sorted(reservoir.draw(50).window.flatten().tolist()) == list(range(10))


@pytest.mark.parametrize(("settings", "size"), [(GD, 0), (ER, 20), (DER_PLUS_PLUS, 20)], ids=["gd", "er", "der++"])
def test_memory_is_bounded(settings: ReplaySettings, size: int, world: World) -> None:
    bounded = ReplaySettings(settings.rate, settings.label_weight, settings.output_weight, capacity=20)
    method = Replay.start(world.task(), bounded)
    predictions(method, world.snapshots())
    assert len(method.memory.held) == size
    for experience in method.memory.held:
        assert experience.output.untyped_storage().nbytes() == experience.output.nbytes  # no view of a whole pass


def test_settings_are_the_published_ones(world: World) -> None:
    rest = {"rate": 1e-5, "capacity": 500, "drawn": 8}
    for settings, label_weight, output_weight in ((GD, 0.0, 0.0), (ER, 0.2, 0.0), (DER_PLUS_PLUS, 0.0, 0.2)):
        found = settings_record(Replay.start(world.task(), settings))
        assert found == {**rest, "label_weight": label_weight, "output_weight": output_weight}


@pytest.mark.parametrize(
    ("protocol", "horizon", "rate"),
    [
        ("honest", 24, 1e-5),
        ("full", 96, 1e-5),
        ("one-step", 24, 1e-4),
        ("one-step", 48, 3e-4),
        ("delay=24", 24, 1e-5),
        ("delay=48", 96, 3e-4),
        ("one-step", 1, 1e-5),  # nothing is over sooner than one step
    ],
)
def test_rates_are_published_apart_for_protocols_that_leak(protocol: str, horizon: int, rate: float) -> None:
    for settings in (GD, ER, DER_PLUS_PLUS):
        found = settings.under(protocol, horizon)
        assert found.rate == rate
        assert (found.label_weight, found.output_weight) == (settings.label_weight, settings.output_weight)


@pytest.mark.parametrize("name", ["gd", "er", "der++"])
def test_the_protocol_of_the_task_decides_the_rate(name: str, world: World) -> None:
    found = {protocol: settings_record(make(name, world.task(protocol)))["rate"] for protocol in ("honest", "one-step")}
    assert found == {"honest": 1e-5, "one-step": 1e-4}
    assert settings_record(make(f"{name}[rate=0.5]", world.task("one-step")))["rate"] == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ReplaySettings(rate=0.0),
        lambda: ReplaySettings(label_weight=-0.1),
        lambda: ReplaySettings(output_weight=math.nan),
        lambda: ReplaySettings(capacity=0),
        lambda: ReplaySettings(drawn=0),
    ],
)
def test_unfit_settings_are_refused(wrong: Callable[[], ReplaySettings]) -> None:
    with pytest.raises(OptionError, match="accepted"):
        wrong()
