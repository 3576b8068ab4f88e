import math
from pathlib import Path

import numpy as np
import pytest
from baseline_world import HORIZON, World

from ompb.bench.contract import Prediction, settings_record
from ompb.bench.methods import make
from ompb.errors import OptionError


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    pytest.importorskip("torch")
    return World.make(Path(tmp_path_factory.mktemp("paper")))


def predictions(world: World, name: str, protocol: str = "full", steps: int = 10) -> list[Prediction]:
    method = make(name, world.task(protocol))
    return [method.step(snapshot) for snapshot in world.snapshots(protocol, steps=steps)]


def test_options_of_the_name_reach_the_preset(world: World) -> None:
    record = settings_record(make("ompb-paper[draws=3,gated=False,steps=0]", world.task()))
    assert (record["draws"], record["gated"], record["steps"], record["seed"]) == (3, False, 0, 0)
    for wrong in ("gate=1", "seed=1"):
        with pytest.raises(
            OptionError, match=r"unknown option '(gate|seed)' of ompb-paper; accepted: batch, certified"
        ):
            make(f"ompb-paper[{wrong}]", world.task())


def test_without_steps_outcomes_change_nothing(world: World) -> None:
    still, moving = (predictions(world, name) for name in ("ompb-paper[steps=0]", "ompb-paper"))
    for place in range(HORIZON):
        np.testing.assert_array_equal(still[place].mean, moving[place].mean)  # no outcome is complete yet
    assert not np.allclose(still[-1].mean, moving[-1].mean)


def test_signals_are_the_terms_of_the_bound(world: World) -> None:
    said = [dict(prediction.signals) for prediction in predictions(world, "ompb-paper")]
    assert all(math.isnan(value) for signals in said[:HORIZON] for value in signals.values())
    for signals in said[HORIZON:]:
        terms = signals["source_risk"] + signals["gamma"] + 0.5 * signals["disagreement"]
        assert signals["value"] == pytest.approx(terms, rel=1e-5)
