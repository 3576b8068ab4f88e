"""`check_method`: our own light methods pass it, and each fault is found in a toy that has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ompb.bench.contract import Prediction, Snapshot, Task
from ompb.bench.methods import unfit
from ompb.testing import MethodWorld, check_method
from ompb.types import Floats

LIGHT = ("original", "profile", "last", "bias", "copy", "ompb", "elf", "aci", "dtaci")


@pytest.mark.parametrize("protocol", ["honest", "full", "one-step", "delay=2"])
@pytest.mark.parametrize("name", LIGHT)
def test_our_own_methods_pass(name: str, protocol: str) -> None:
    world = MethodWorld.small(protocol)
    if name == "ompb" and protocol != "honest":  # the live head learns from rows only
        assert unfit(name, world.task) is not None
        return
    check_method(name, world)


@dataclass
class Toy:
    """The base forecast and the newest residual; subclasses have one fault each."""

    task: Task
    settings: dict[str, Any] = field(default_factory=dict)
    residual: Any = 0.0

    def step(self, snapshot: Snapshot) -> Prediction:
        for residual in snapshot.labels.residual:
            self.residual += 0.1 * (float(np.nan_to_num(residual).mean()) - self.residual)
        return Prediction(snapshot.base + self.residual)


class OutOfShape(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base[:, :1])


class NoSpread(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base, np.zeros_like(snapshot.base))


class OtherLevels(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        level = 0.9 if snapshot.origin % 2 else 0.5
        return Prediction(snapshot.base, intervals={level: (snapshot.base - 1, snapshot.base + 1)})


class Beyond(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base, intervals={90: (snapshot.base - 1, snapshot.base + 1)})


class Upside(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base, intervals={0.5: (snapshot.base + 1, snapshot.base - 1)})


class Moody(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base, signals={"even": 1.0} if snapshot.origin % 2 else {})


class Global(Toy):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.residual = float(np.random.normal())  # noqa: NPY002  # which is the fault

    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base + self.residual)


class Writer(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        snapshot.window[:] = 0.0
        return Prediction(snapshot.base.copy())


class RowWriter(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        snapshot.row[:] = 0.0
        return Prediction(snapshot.base.copy())


class SourceWriter(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        self.task.source[0] = 0.0
        return Prediction(snapshot.base.copy())


class Rewriter(Toy):
    """One buffer for all that it says."""

    def step(self, snapshot: Snapshot) -> Prediction:
        if isinstance(self.residual, float):
            self.residual = np.empty_like(snapshot.base)
        self.residual[:] = snapshot.base
        return Prediction(self.residual)


class Unpicklable(Toy):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.rule = lambda base: base


class Forgetful(Toy):
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "residual": 0.0}


class Peeking(Toy):
    """Sees the rows to come through the array that its row is a view of."""

    def step(self, snapshot: Snapshot) -> Prediction:
        stream: Floats = np.asarray(snapshot.row.base)
        return Prediction(snapshot.base + stream[min(snapshot.origin + 1, len(stream) - 1)])


class Fragile(Toy):
    def step(self, snapshot: Snapshot) -> Prediction:
        for residual in snapshot.labels.residual:
            self.residual = self.residual + residual.mean()
        return Prediction(snapshot.base + self.residual)


class NoSettings(Toy):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.settings = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("toy", "words"),
    [
        (OutOfShape, "the mean has shape"),
        (NoSpread, "sd must be positive"),
        (OtherLevels, "other levels than at step 0"),
        (Beyond, "by level inside"),
        (Upside, "ends before it begins"),
        (Moody, "signals have other names"),
        (Global, "draw from task.seed alone"),
        (Writer, "writes into its window"),
        (RowWriter, "writes into rows of the stream"),
        (SourceWriter, "writes into the source"),
        (Rewriter, "changes forecasts that it has issued"),
        (Unpicklable, "cannot be pickled"),
        (Forgetful, "pickled copy goes on in another way"),
        (Peeking, "depend on rows that were not known"),
        (Fragile, "missing cell of an earlier row"),
        (NoSettings, "is no method"),
    ],
)
def test_each_fault_is_found(toy: type[Toy], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_method(toy)


def test_without_a_fault_the_toy_passes() -> None:
    check_method(Toy)
