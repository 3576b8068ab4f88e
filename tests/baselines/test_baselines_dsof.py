"""DSOF against twins that are trained by hand."""

import copy
import dataclasses
import itertools

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from baseline_world import CHANNELS, CONTEXT, HORIZON, World, predictions
from torch import Tensor, nn
from torch.optim import AdamW

from ompb.baselines import dsof as module
from ompb.baselines.dsof import Dsof, DsofSettings, Student
from ompb.baselines.network import source_pairs
from ompb.bench.contract import Snapshot
from ompb.errors import OptionError, TooShortError

QUICK = DsofSettings(epochs=1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def single(values: np.ndarray) -> Tensor:
    return torch.as_tensor(np.array(values), dtype=torch.float32)


def parameters(model: nn.Module) -> list[np.ndarray]:
    return [parameter.detach().numpy().copy() for parameter in model.parameters()]


def test_the_student_starts_by_adding_nothing_and_is_linear_per_channel() -> None:
    torch.manual_seed(0)
    student = Student(CONTEXT, HORIZON, 16)
    window, forecast = torch.randn(2, CONTEXT, CHANNELS), torch.randn(2, HORIZON, CHANNELS)
    assert not student(window, forecast).any()
    first, second, third = (layer for layer in student.stack if isinstance(layer, nn.Linear))
    nn.init.normal_(third.weight)
    one = student(window, forecast)
    window[..., 1] += 1.0  # another channel cannot reach the first
    np.testing.assert_array_equal(one[..., 0].detach(), student(window, forecast)[..., 0].detach())
    both = torch.cat([window[0, :, 0], forecast[0, :, 0]])
    by_hand = third.weight @ (second.weight @ (first.weight @ both + first.bias) + second.bias) + third.bias
    np.testing.assert_allclose(student(window, forecast)[0, :, 0].detach(), by_hand.detach(), atol=1e-5)


@pytest.mark.parametrize("protocol", ["honest", "full"])
@pytest.mark.parametrize("steps_back", [(1,), (2, 1), (3,)])
def test_fast_stream_trains_the_student_alone_on_known_rows_and_pseudo_labels(
    protocol: str, steps_back: tuple[int, ...], world: World
) -> None:
    """A twin of the student is trained by hand; no slow step happens in the first 20 snapshots."""
    options = DsofSettings(epochs=1, steps_back=steps_back)
    made = Dsof.start(world.task(protocol), options)
    teacher, student = world.network_copy().model, copy.deepcopy(made.student)
    before = parameters(made.teacher)
    optimiser = AdamW(student.parameters(), lr=options.fast_rate, amsgrad=True)
    shown = list(world.snapshots(protocol))[:20]
    for step, snapshot in enumerate(shown):
        for back in steps_back:
            if back <= step:
                fast_twin(teacher, student, optimiser, shown[step - back], snapshot, back, world)
        with torch.no_grad():
            window = single(snapshot.window)[None]
            expected = teacher(window) + student(window, teacher(window))
        np.testing.assert_allclose(made.step(snapshot).mean, expected[0].numpy(), atol=2e-5)
    for one, other in zip(before, parameters(made.teacher), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(parameter.grad is None for parameter in made.teacher.parameters())


def fast_twin(
    teacher: nn.Module, student: Student, optimiser: AdamW, old: Snapshot, new: Snapshot, back: int, world: World
) -> None:
    with torch.no_grad():
        past, newest = (teacher(single(snapshot.window)[None])[0] for snapshot in (old, new))
    forecast = past + student(single(old.window)[None], past[None])[0]
    loss = torch.zeros(())
    for lead in range(1, HORIZON + 1):
        target = single(world.stream[old.origin + lead]) if lead <= back else newest[lead - back - 1]
        weight = 1.0 if lead < back else 0.9 ** (lead - back)
        loss = loss + weight * ((forecast[lead - 1] - target) ** 2).sum() / (HORIZON * CHANNELS)
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def test_a_missing_cell_is_no_target(world: World) -> None:
    """Whatever stands in a missing cell's place, the student's gradient is that of the other cells."""
    first, second = list(world.snapshots())[:2]
    row = second.row.copy()
    row[0] = np.nan
    made = Dsof.start(world.task(), QUICK)
    teacher, student = copy.deepcopy(made.teacher), copy.deepcopy(made.student)
    made.step(first)
    made.step(Snapshot(second.origin, row, second.window, second.base, first.labels))
    with torch.no_grad():
        past, newest = (teacher(single(snapshot.window)[None])[0] for snapshot in (first, second))
    target = torch.cat([single(row)[None], newest[:-1]])
    forecast = past + student(single(first.window)[None], past[None])[0]
    weights = (0.9 ** torch.arange(HORIZON))[:, None].expand(-1, CHANNELS)
    known = ~torch.isnan(target)
    loss = (weights[known] * (forecast[known] - target[known]) ** 2).mean()
    for expected, parameter in zip(
        torch.autograd.grad(loss, list(student.parameters())), made.student.parameters(), strict=True
    ):
        np.testing.assert_allclose(np.asarray(parameter.grad), expected, atol=1e-6)


def test_slow_stream_trains_each_on_its_own_loss(world: World) -> None:
    made = Dsof.start(world.task(), QUICK)
    teacher, student = copy.deepcopy(made.teacher), copy.deepcopy(made.student)
    ours = AdamW(teacher.parameters(), lr=9.2e-5, amsgrad=True), AdamW(student.parameters(), lr=8.4e-4, amsgrad=True)
    windows, outcomes = (single(part[:8]) for part in source_pairs(world.task()))
    for _ in range(3):
        made.slow(windows, outcomes)
        ((teacher_said := teacher(windows)) - outcomes).square().mean().backward()
        frozen = teacher_said.detach()
        (frozen + student(windows, frozen) - outcomes).square().mean().backward()
        for optimiser in ours:
            optimiser.step()
            optimiser.zero_grad()
    for one, other in ((made.teacher, teacher), (made.student, student)):
        for a, b in zip(parameters(one), parameters(other), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-7)


def test_memory_is_first_in_first_out_and_the_teacher_waits_for_a_batch(world: World) -> None:
    made = Dsof.start(world.task(), DsofSettings(epochs=1, memory=10, batch=8))
    start, shown = parameters(made.teacher), list(world.snapshots())
    predictions(made, iter(shown[: HORIZON + 7]))  # seven outcomes are complete
    for a, b in zip(start, parameters(made.teacher), strict=True):
        np.testing.assert_array_equal(a, b)
    predictions(made, iter(shown[HORIZON + 7 : 40]))
    assert any(not np.array_equal(a, b) for a, b in zip(start, parameters(made.teacher), strict=True))
    newest = shown[39].origin - HORIZON
    assert [pair.origin for pair in made.memory] == list(range(newest - 9, newest + 1))


def held_out_mse(world: World, student: Student, share: float) -> float:
    count = len(world.source_base)
    last = slice(count - int(share * count), count)
    windows, outcomes = (single(part[last]) for part in source_pairs(world.task()))
    base = single(world.source_base[last])
    with torch.no_grad():
        return float((base + student(windows, base) - outcomes).square().mean())


def test_offline_training_keeps_the_best_epoch_and_is_never_worse_than_the_backbone(world: World) -> None:
    untrained = Dsof.start(world.task(), DsofSettings(epochs=0)).student
    bare = held_out_mse(world, untrained, 0.2)
    trained = held_out_mse(world, Dsof.start(world.task(), DsofSettings(epochs=5)).student, 0.2)
    assert trained < bare  # three epochs leave the backbone something to learn
    wild = held_out_mse(world, Dsof.start(world.task(), DsofSettings(epochs=5, student_offline_rate=50.0)).student, 0.2)
    assert wild <= bare + 1e-6  # every epoch was bad: the start is kept


def test_the_student_has_a_rate_of_its_own_offline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step of Adam moves a weight whose gradient is not tiny by the rate, whatever the loss."""
    falling = itertools.count(0, -1)
    monkeypatch.setattr(module, "_held_out_loss", lambda *_: float(next(falling)))  # so that the last epoch is kept
    one_step = DsofSettings(epochs=1, batch=300)
    before, after = (
        Dsof.start(world.task(), dataclasses.replace(one_step, epochs=epochs)).student for epochs in (0, 1)
    )
    one, other = (dict(student.named_parameters())["stack.2.bias"] for student in (before, after))
    moved = (other - one).abs()  # from 0, so that there is no weight decay
    torch.testing.assert_close(moved, torch.full_like(moved, 6.0e-3), rtol=1e-3, atol=0)
    assert Dsof.start(world.task(), one_step).student_optimiser.param_groups[0]["lr"] == 8.4e-4


def test_without_offline_training_it_starts_as_the_backbone(world: World) -> None:
    made = Dsof.start(world.task(), DsofSettings(epochs=0))
    np.testing.assert_allclose(made.step(next(world.snapshots())).mean, world.base[0], atol=1e-5)


def test_global_randomness_is_left_alone(world: World) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    predictions(Dsof.start(world.task(), QUICK), iter(list(world.snapshots())[:40]))
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"teacher_rate": 0.0},
        {"discount": 0.0},
        {"width": 0},
        {"batch": 301},
        {"held_out": 1.0},
        {"steps_back": (0,)},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        DsofSettings(**wrong)  # type: ignore[arg-type]


def test_what_does_not_fit_the_task_is_refused(world: World) -> None:
    with pytest.raises(OptionError, match="horizon"):
        Dsof.start(world.task(), DsofSettings(steps_back=(HORIZON + 1,)))
    with pytest.raises(TooShortError, match="source windows"):
        Dsof.start(world.task(), DsofSettings(held_out=0.999))
