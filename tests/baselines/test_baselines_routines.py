"""What methods do at every step can be recorded on a GPU: nothing in it waits for the device."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from baseline_world import World
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ompb.bench.methods import make
from ompb.forecasters.torch.routine import Routine

WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "unique2"}


class NoWaiting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises where the host would have to know a number that the device has made."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.__name__.partition(".")[0]
        by_mask = name in ("index", "index_put", "index_put_") and any(
            place is not None and place.dtype == torch.bool for place in args[1]
        )
        if name in WAITING or by_mask:
            pytest.fail(f"{function.__name__} waits for the device")
        return function(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize(
    "name",
    ["gd", "er", "der++", "solid", "solid-continual", "solid++", "proceed[concept=4,bottleneck=2,epochs=1]", "onenet",
     "dsof", "ompb-paper", "ompb-paper-last-layer", "ompb-paper-lora"],
)  # fmt: skip
def test_no_step_waits_for_the_device(name: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    played: set[str] = set()

    def call(routine: Routine[Any], *inputs: Tensor) -> Any:
        played.add(_name(routine.work))
        with NoWaiting():  # type: ignore[no-untyped-call]
            return routine.work(*inputs)

    monkeypatch.setattr(Routine, "__call__", call)
    method = make(name, world.task())
    played.clear()  # of the offline stage
    for snapshot in world.snapshots(steps=40):
        method.step(snapshot)
    assert played


def _name(work: Callable[..., Any]) -> str:
    while hasattr(work, "func"):  # of a partial
        work = work.func
    return getattr(work, "__qualname__", str(work))


def test_waiting_is_noticed() -> None:
    values = torch.tensor([1.0, 0.0])
    for wait in (lambda: values[0].item(), lambda: values[values > 0], lambda: bool(values[0] > 0)):
        with NoWaiting(), pytest.raises(pytest.fail.Exception):  # type: ignore[no-untyped-call]
            wait()
