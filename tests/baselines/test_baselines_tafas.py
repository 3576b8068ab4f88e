"""TAFAS and PETSA against their formulas, written once more in loops."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from baseline_world import CHANNELS, CONTEXT, HORIZON, SEASON, STEPS, World, predictions

from ompb.baselines.tafas import (
    BlockAdaptation,
    GatedCalibration,
    LowRankCalibration,
    PetsaSettings,
    TafasSettings,
    dominant_period,
    petsa_loss,
)
from ompb.bench.contract import Snapshot, snapshots
from ompb.bench.protocols import Clock
from ompb.errors import OptionError
from ompb.forecasters.torch.training import own_random_state
from ompb.testing.method import task_of
from ompb.types import Floats


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def sines(rows: int, *waves: tuple[float, float]) -> Floats:
    """One channel for each amplitude and number of waves, around a level of its own."""
    time = np.arange(rows)
    return np.stack([7 * c + a * np.sin(2 * np.pi * k * time / rows) for c, (a, k) in enumerate(waves)], axis=1)


@pytest.mark.parametrize(
    ("waves", "period"),
    [([(1, 4)], 24), ([(2, 4), (1, 8)], 24), ([(1, 4), (2, 8)], 12), ([(1, 5)], 19), ([(1, 1)], 96), ([(0, 3)], 30)],
)
def test_the_period_is_that_of_the_strongest_channel(waves: list[tuple[float, float]], period: int) -> None:
    assert dominant_period(sines(96, *waves), flat=30) == period


def scrambled(module: Any) -> Any:
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return module


def slope(loss: Any) -> None:
    """Differentiate."""
    loss.backward()


def numbers(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("module", [GatedCalibration(5, 3, 0.01), LowRankCalibration(5, 3, 2, 0.01)])
def test_a_calibration_starts_as_the_identity_but_can_learn(module: Any) -> None:
    x = numbers(4, 5, 3)
    assert torch.equal(module(x), x)
    (module(x) ** 2).sum().backward()
    assert any(parameter.grad.abs().max() > 0 for parameter in module.parameters())


def test_gated_calibration_is_its_formula() -> None:
    module, x = scrambled(GatedCalibration(5, 3, 0.01)), numbers(4, 5, 3)
    weight, shift, gate = module.weight, module.shift, module.gate
    assert sum(parameter.numel() for parameter in module.parameters()) == 3 * 5 * 5 + 5 * 3 + 3
    for n in range(4):
        for c in range(3):
            expected = x[n, :, c] + torch.tanh(gate[c]) * (weight[c].T @ x[n, :, c] + shift[:, c])
            torch.testing.assert_close(module(x)[n, :, c], expected)


def test_low_rank_calibration_is_its_formula() -> None:
    module, x = scrambled(LowRankCalibration(5, 3, 2, 0.01)), numbers(4, 5, 3)
    shared, own, shift, gate = module.shared, module.own, module.shift, module.gate
    assert sum(parameter.numel() for parameter in module.parameters()) == 5 * 2 + 2 * 5 * 3 + 5 * 3 + 3
    for n in range(4):
        for c in range(3):
            expected = x[n, :, c] + (shared @ own[:, :, c]).T @ torch.tanh(gate[c] * x[n, :, c]) + shift[:, c]
            torch.testing.assert_close(module(x)[n, :, c], expected)


def test_the_shared_factor_starts_within_one_over_the_root_of_the_rank() -> None:
    with own_random_state(0, torch.device("cpu")):
        shared = LowRankCalibration(400, 3, 16, 0.01).shared.detach()
    assert 0.245 < shared.abs().max() <= 0.25  # 1 / sqrt(16)
    assert shared.std() == pytest.approx(0.25 / math.sqrt(3), rel=0.02)  # uniform


def looped_petsa_loss(forecast: Floats, true: Floats, delta: float, weight: float) -> float:
    gaps = np.abs(forecast - true).ravel()
    huber = np.mean([gap**2 / 2 if gap <= delta else delta * (gap - delta / 2) for gap in gaps])
    frequency, level = [], []
    rows = forecast.shape[1]
    for n in range(len(forecast)):
        for c in range(forecast.shape[2]):
            p, q = forecast[n, :, c], true[n, :, c]
            for k in range(rows // 2 + 1):
                turn = np.exp(-2j * np.pi * k * np.arange(rows) / rows)
                frequency.append(abs(((p - q) * turn).sum()))
            level.append(abs(p.mean() - q.mean()))
    pearson = np.corrcoef(forecast.ravel(), true.ravel())[0, 1]
    return float(huber + weight * np.mean(frequency) - pearson + np.mean(level))


@pytest.mark.parametrize("rows", [1, 6, 7])
def test_petsa_loss_is_its_formula(rows: int) -> None:
    forecast, outcome = numbers(3, rows, 2).double(), numbers(3, rows, 2, seed=1).double()
    expected = looped_petsa_loss(forecast.numpy(), outcome.numpy(), 0.5, 0.1)
    assert float(petsa_loss(forecast, outcome, 0.5, 0.1)) == pytest.approx(expected, rel=1e-9)


def test_petsa_loss_learns_nothing_from_missing_cells() -> None:
    forecast, outcome = numbers(1, 6, 2).double().requires_grad_(), numbers(1, 6, 2, seed=1).double()
    outcome[0, 2, 0] = math.nan
    slope(petsa_loss(forecast, outcome, 0.5, 0.1))
    known = [row for row in range(6) if row != 2]
    huber = torch.nn.functional.huber_loss  # channel 0 is left with Huber's part, and channel 1 has the rest alone
    cells = torch.cat([forecast[0, known, 0], forecast[0, :, 1]]), torch.cat([outcome[0, known, 0], outcome[0, :, 1]])
    alone = petsa_loss(forecast[..., 1:], outcome[..., 1:], 0.5, 0.1)
    expected = alone - huber(forecast[..., 1:], outcome[..., 1:], delta=0.5) + huber(*cells, delta=0.5)
    assert petsa_loss(forecast, outcome, 0.5, 0.1).item() == pytest.approx(expected.item())
    assert forecast.grad[0, 2, 0] == 0
    assert (forecast.grad[0, known, 0] != 0).all()


def test_petsa_loss_of_nothing_moves_nothing() -> None:
    forecast = numbers(1, 4, 2).requires_grad_()
    slope(petsa_loss(forecast, torch.full((1, 4, 2), math.nan), 0.5, 0.1))
    assert (forecast.grad == 0).all()


def test_petsa_loss_of_a_single_cell_has_a_finite_slope() -> None:
    forecast = torch.ones(1, 1, 1, requires_grad=True)
    slope(petsa_loss(forecast, torch.zeros(1, 1, 1), 0.5, 0.1))
    assert forecast.grad is not None
    assert torch.isfinite(forecast.grad).all()


# A stream of period 2 (blocks of 3 windows) under a forecaster of 6 leads, to see the output calibration alone.
LONG, SHORT = 6, 8


def zigzag(rows: int) -> Floats:
    return np.asarray((-1.0) ** np.arange(rows)[:, None] * [1.0, 2.0] + np.linspace(0, 0.1, rows)[:, None])


def zigzag_snapshots(protocol: str, stream: Floats, base: Floats) -> Iterator[Snapshot]:
    return snapshots(stream, stream, base, Clock(protocol, LONG, SHORT - 1), SHORT)


def output_only(settings: TafasSettings) -> BlockAdaptation:
    task = task_of(np.zeros((20, 2)), np.zeros((7, LONG, 2)), SHORT, trainable=True)
    return BlockAdaptation.start(task, settings)


def test_the_partial_step_is_adam_on_the_known_leads_alone() -> None:
    stream, base = zigzag(30), np.random.default_rng(0).normal(size=(16, LONG, 2))
    method = output_only(TafasSettings(calibrates_input=False))
    issued = predictions(method, zigzag_snapshots("honest", stream, base[:3]))
    for k in range(2):  # nothing is learned before the end of the block
        np.testing.assert_allclose(issued[k].mean, base[k], rtol=1e-6)
    error = base[0, :2] - stream[SHORT : SHORT + 2]  # the first window's leads that the block's end knows
    gradient = np.zeros((2, LONG, LONG))
    for c in range(2):
        for i in range(LONG):
            for o in range(2):
                gradient[c, i, o] = 2 / 4 * math.tanh(0.01) * error[o, c] * base[0, i, c]
    calibration: Any = method.model.output
    np.testing.assert_allclose(calibration.weight.detach(), -1e-3 * gradient / (np.abs(gradient) + 1e-8), rtol=1e-3)
    assert (calibration.weight[:, :, 2:] == 0).all()
    assert (calibration.shift[2:] == 0).all()
    assert (calibration.shift[:2] != 0).all()
    moved = calibration(torch.as_tensor(base[2][None], dtype=torch.float32))[0].detach()
    np.testing.assert_allclose(issued[2].mean, moved, rtol=1e-6)  # the last window of the block has the step already


class Recording(BlockAdaptation):
    """Writes down what is learned."""

    def _descend(self, windows: Any, base: Any, outcomes: Floats) -> None:
        self.__dict__.setdefault("seen", []).append((np.stack(windows), np.stack(base), outcomes.copy()))
        super()._descend(windows, base, outcomes)


@pytest.mark.parametrize(
    ("protocol", "ends"), [("honest", [8, 11, 14]), ("full", [8, 11, 14]), ("one-step", [5, 8, 11, 14])]
)
def test_blocks_are_learned_whole_once_they_are_complete(protocol: str, ends: list[int]) -> None:
    stream, base = zigzag(40), np.random.default_rng(0).normal(size=(16, LONG, 2))
    method = output_only(TafasSettings(calibrates_input=False))
    method.__class__ = Recording
    learned: list[tuple[int, Any]] = []
    for place, snapshot in enumerate(zigzag_snapshots(protocol, stream, base)):
        method.step(snapshot)
        learned += [(place, seen) for seen in method.__dict__.pop("seen", [])]
    whole = [(place, seen) for place, seen in learned if len(seen[0]) == 3]
    partial = [(place, seen) for place, seen in learned if len(seen[0]) == 1]
    assert [place for place, _ in partial] == [2, 5, 8, 11, 14]
    assert [place for place, _ in whole] == ends
    for place, (windows, said_first, outcomes) in partial:
        first = place - 2
        np.testing.assert_array_equal(windows[0], stream[first : first + SHORT])
        np.testing.assert_array_equal(said_first[0], base[first])
        np.testing.assert_array_equal(outcomes[0], stream[first + SHORT : first + SHORT + 2])
    for block, (_, (windows, said_of_block, outcomes)) in enumerate(whole):
        for i in range(3):
            k = 3 * block + i
            np.testing.assert_array_equal(windows[i], stream[k : k + SHORT])
            np.testing.assert_array_equal(said_of_block[i], base[k])
            np.testing.assert_array_equal(outcomes[i], stream[k + SHORT : k + SHORT + LONG])


@pytest.mark.parametrize("settings", [TafasSettings(), PetsaSettings(rank=3), TafasSettings(periods=2, steps=2)])
@pytest.mark.parametrize("protocol", ["honest", "full"])
def test_it_is_the_block_algorithm_with_forecasts_at_their_origins(
    settings: TafasSettings, protocol: str, world: World
) -> None:
    task = world.task(protocol)
    issued = predictions(BlockAdaptation.start(task, settings), world.snapshots(protocol))
    model = BlockAdaptation.start(task, settings).model
    adam = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=settings.rate)
    stream, base = (torch.as_tensor(values, dtype=torch.float32) for values in (world.stream, world.base))

    def descend(first: int, last: int, leads: int) -> None:
        windows = torch.stack([stream[k : k + CONTEXT] for k in range(first, last + 1)])
        outcomes = torch.stack([stream[k + CONTEXT : k + CONTEXT + leads] for k in range(first, last + 1)])
        for _ in range(settings.steps):
            adam.zero_grad()
            slope(settings.loss(model(windows, base[first : last + 1])[:, :leads], outcomes))
            adam.step()

    first = 0
    waiting: list[tuple[int, int]] = []
    expected = []
    while first < STEPS:
        last = first + settings.periods * SEASON
        for now in range(first, min(last + 1, STEPS)):
            if now == last:
                for start, end in [block for block in waiting if block[1] + HORIZON <= now]:
                    descend(start, end, HORIZON)
                    waiting.remove((start, end))
                descend(first, first, min(last - first, HORIZON))
            with torch.no_grad():
                expected.append(model(stream[None, now : now + CONTEXT], base[None, now])[0].numpy())
        waiting.append((first, last))
        first = last + 1
    np.testing.assert_allclose([prediction.mean for prediction in issued], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", [TafasSettings(), PetsaSettings()])
def test_the_forecaster_stays_frozen_and_both_calibrations_learn(settings: TafasSettings, world: World) -> None:
    method = BlockAdaptation.start(world.task(), settings)
    before = {name: value.clone() for name, value in method.model.state_dict().items()}
    predictions(method, world.snapshots())
    frozen = {f"forecaster.1.{name}" for name in world.network_copy().model.state_dict()}
    assert frozen < before.keys()
    for name, value in method.model.state_dict().items():
        assert torch.equal(value, before[name]) == (name in frozen), name


def test_petsa_learns_fewer_parameters(world: World) -> None:
    def count(settings: TafasSettings) -> int:
        adam = BlockAdaptation.start(world.task(), settings).optimiser
        return sum(parameter.numel() for group in adam.param_groups for parameter in group["params"])

    rank, sizes = 2, (CONTEXT, HORIZON)
    assert count(TafasSettings()) == sum(CHANNELS * t * t + CHANNELS * t + CHANNELS for t in sizes)
    low = sum(t * rank + rank * t * CHANNELS + t * CHANNELS + CHANNELS for t in sizes)
    assert count(PetsaSettings(rank=rank)) == low < count(TafasSettings())


def test_only_the_shared_factor_of_petsa_is_random(world: World) -> None:
    one, same, other = (
        BlockAdaptation.start(world.task(seed=s), PetsaSettings()).model.state_dict() for s in (0, 0, 1)
    )
    for name, value in one.items():
        assert torch.equal(value, same[name])
        assert torch.equal(value, other[name]) != name.endswith("shared")


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": 0},
        {"periods": 0},
        {"flat_period": 0},
        {"rate": 0.0},
        {"weight_decay": -1.0},
        {"rank": 0},
        {"huber_delta": 0.0},
    ],
)
def test_settings_that_cannot_be_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(bad))):
        PetsaSettings(**bad)
