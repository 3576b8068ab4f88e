"""Routines: on a CPU the work itself; on a GPU a recording for each form, after a few calls. The GPU is played here."""

import copy
import itertools
import pickle
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

import pytest
import torch
from torch import Tensor

from ompb.forecasters.torch import routine
from ompb.forecasters.torch.routine import WARM_UP, Routine
from ompb.gradient.settings import PaperPreset


@dataclass(eq=False)
class Sum:
    """Work that changes a tensor in place."""

    total: Tensor = field(default_factory=lambda: torch.zeros(2))
    factor: float = 1.0

    def __post_init__(self) -> None:
        self.add = Routine(self._add)

    def _add(self, values: Tensor) -> Tensor:
        self.total += self.factor * values
        return self.total.clone()


def test_on_a_cpu_it_is_the_work_itself() -> None:
    one = Sum()
    for _ in range(WARM_UP + 3):
        found = one.add(torch.ones(2))
    assert found.tolist() == one.total.tolist() == [WARM_UP + 3.0] * 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_works_on_its_own_tensors(copied: Any) -> None:
    one = Sum()
    one.add(torch.ones(2))
    other = copied(one)
    other.add(torch.ones(2))
    assert one.total.tolist() == [1.0, 1.0]
    assert other.total.tolist() == [2.0, 2.0]


@dataclass
class Device:
    """Stands in for a GPU: what was done, in order."""

    done: list[str] = field(default_factory=list)

    def call(self, work: Any, inputs: Any) -> Any:
        self.done.append("call")
        return work(*inputs)

    def record(self, *_: Any) -> "Device":
        self.done.append("record")
        return self

    def play(self, _: Any) -> None:
        self.done.append("play")


class There(NamedTuple):
    """A tensor on that device, as far as a routine looks at it."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    is_cuda: bool = True


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(routine._Recording, "of", made.record)
    monkeypatch.setattr(routine, "_on_another_stream", made.call)
    return made


def test_on_a_gpu_each_form_is_recorded_once_and_then_played(device: Device) -> None:
    work: Routine[None] = Routine(lambda *_: None)
    for _ in range(WARM_UP + 2):
        work(There((2, 3)))  # type: ignore[arg-type]
    assert device.done == ["call"] * WARM_UP + ["record", "play", "play"]
    for other in (There((4, 3)), There((2, 3), torch.float64)):
        device.done.clear()
        for _ in range(WARM_UP + 1):
            work(other)  # type: ignore[arg-type]
        assert device.done == ["call"] * WARM_UP + ["record", "play"]
    device.done.clear()
    work(There((2, 3)))  # type: ignore[arg-type]
    assert device.done == ["play"]


def test_forms_that_pass_are_not_recorded(device: Device) -> None:
    """Those of the paper's head while its ring of windows fills: each comes once for every step on an outcome."""
    work: Routine[None] = Routine(lambda *_: None)
    for seen in range(PaperPreset().ring):
        for _ in range(PaperPreset().steps):
            work(There((seen, 3)))  # type: ignore[arg-type]
    assert set(device.done) == {"call"}


class FakeStream:
    """A stream that counts how many of them there are, and what each waited for."""

    made: ClassVar[list["FakeStream"]] = []

    def __init__(self, *_: Any) -> None:
        self.made.append(self)
        self.awaited: list[FakeStream] = []

    def wait_stream(self, other: "FakeStream") -> None:
        self.awaited.append(other)


def test_calls_that_are_not_recorded_share_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stream keeps what it has freed to itself: with many, memory would be held many times over."""
    main = FakeStream()
    FakeStream.made.clear()
    monkeypatch.setattr(routine, "_other_stream", cache(routine._other_stream.__wrapped__))
    monkeypatch.setattr(torch.cuda, "Stream", FakeStream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: main)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    works: list[Routine[None]] = [Routine(lambda *_: None), Routine(lambda *_: None)]
    for work, size in itertools.product(works, range(3)):
        work(There((size,)))  # type: ignore[arg-type]
    (other,) = FakeStream.made
    assert other.awaited == [main] * 6
    assert main.awaited == [other] * 6


def test_what_is_forgotten_or_copied_is_recorded_anew(device: Device) -> None:
    work: Routine[None] = Routine(print)
    for _ in range(WARM_UP + 1):
        work(There((2,)))  # type: ignore[arg-type]
    for again in (copy.deepcopy(work), pickle.loads(pickle.dumps(work))):
        device.done.clear()
        again(There((2,)))  # type: ignore[arg-type]
        assert device.done == ["call"]
    device.done.clear()
    work.forget()
    work(There((2,)))  # type: ignore[arg-type]
    assert device.done == ["call"]


class Both(NamedTuple):
    """Two tensors by name."""

    first: Tensor
    second: Tensor


def test_what_a_recording_gives_is_left_alone_by_the_next() -> None:
    kept = torch.zeros(1)
    for result in (kept, (kept, kept), Both(kept, kept)):
        found = routine._copied(result)
        assert type(found) is type(result)
        kept += 1
        assert all(float(part) == float(kept) - 1 for part in ([found] if isinstance(found, Tensor) else found))
    assert routine._copied(None) is None
