"""The rehearsal that chooses a rate, against choices that are known beforehand."""

import dataclasses
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from baseline_world import CHANNELS, CONTEXT, HORIZON, World, predictions, stretches

from ompb.baselines import tuned as module
from ompb.baselines.tuned import LEVELS, Rehearsal, Tuned, tuned
from ompb.bench.contract import Prediction, Snapshot, Task, settings_record
from ompb.bench.methods import make
from ompb.errors import OptionError, TooShortError
from ompb.types import Floats


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


@dataclass
class Bias:
    """The base forecast plus a running mean of errors: a slow one is the better the quieter the stream is."""

    rate: float
    bias: Floats
    offset: float = 0.0
    steps: int = 0

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"rate": self.rate, "offset": self.offset}

    def set_rate(self, rate: float) -> None:
        self.rate = rate

    def step(self, snapshot: Snapshot) -> Prediction:
        self.steps += 1
        labels = snapshot.labels
        self.bias[labels.leads] += self.rate * (labels.residual - self.bias[labels.leads])
        return Prediction(snapshot.base + self.bias + self.offset)


def bias(task: Task, options: Mapping[str, Any]) -> Bias:
    return Bias(options.get("rate", 0.01), np.zeros((task.horizon, CHANNELS)), options.get("offset", 0.0))


def chosen(world: World, rates: list[float], **options: Any) -> Tuned:
    return tuned(world.task(), bias, "rate", lambda _: rates, options)


def test_a_rehearsal_is_the_end_of_the_source_with_its_forecasts(world: World) -> None:
    task = world.task()
    found = Rehearsal.plain(task)
    origins = (len(world.source) - CONTEXT - HORIZON + 1) // 4
    assert len(found.base) == origins
    np.testing.assert_array_equal(found.rows, world.source[-(CONTEXT - 1 + origins + HORIZON) :])
    trained = world.network_copy()
    rows = trained.scaler.restore(found.rows)
    np.testing.assert_allclose(found.base, trained.scaler.standardise(trained(stretches(rows))), atol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_half_way_the_level_moves_and_the_network_sees_it(level: float, world: World) -> None:
    task = world.task()
    plain = Rehearsal.plain(task)
    moved = plain.moved(task, level)
    half = len(plain.base) // 2
    turn = CONTEXT - 1 + half
    np.testing.assert_array_equal(moved.rows[:turn], plain.rows[:turn])
    np.testing.assert_allclose(moved.rows[turn:], plain.rows[turn:] + level)
    trained = world.network_copy()
    rows = trained.scaler.restore(moved.rows)
    np.testing.assert_allclose(moved.base, trained.scaler.standardise(trained(stretches(rows))), atol=1e-5)
    np.testing.assert_array_equal(moved.base[:half], plain.base[:half])


@pytest.mark.parametrize("protocol", ["honest", "one-step"])
def test_the_error_is_that_of_the_stream_under_its_protocol(protocol: str, world: World) -> None:
    task = world.task(protocol)
    plain = Rehearsal.plain(task)
    value = plain.error(bias(task, {"rate": 0.3}), task)
    running, delay = np.zeros((HORIZON, CHANNELS)), HORIZON if protocol == "honest" else 1
    errors = []
    for place in range(len(plain.base)):
        outcomes = np.stack([plain.rows[CONTEXT + k : CONTEXT + k + HORIZON] for k in range(place + 1)])
        for lead in range(HORIZON):
            known = place - (lead + 1 if protocol == "honest" else delay)
            if known >= 0:
                running[lead] += 0.3 * (outcomes[known, lead] - plain.base[known, lead] - running[lead])
        errors.append(np.abs(plain.base[place] + running - outcomes[place]).mean())
    assert value == pytest.approx(np.mean(errors))


def test_the_rate_with_the_least_error_over_all_streams_is_taken_and_recorded(world: World) -> None:
    rates, task = [0.01, 1e-6, 0.3], world.task()
    plain = Rehearsal.plain(task)
    streams = [plain, *(plain.moved(task, level) for level in LEVELS)]
    errors = [np.mean([stream.error(bias(task, {"rate": rate}), task) for stream in streams]) for rate in rates]
    made = chosen(world, rates)
    recorded = settings_record(made)
    assert recorded["rate"] == rates[int(np.argmin(errors))] == 0.3  # a level that moves asks for a fast one
    assert list(recorded["rehearsed"]) == ["0.01", "1e-06", "0.3"]
    assert list(recorded["rehearsed"].values()) == pytest.approx(errors)


def test_the_method_of_the_stream_has_not_been_in_the_rehearsal(world: World) -> None:
    for rates in ([0.01], [0.01, 0.3]):  # the published one, and another
        made = chosen(world, rates)
        assert isinstance(made.chosen, Bias)
        assert made.chosen.steps == 0
        assert not made.chosen.bias.any()
        issued = predictions(made, world.snapshots())
        plain = predictions(bias(world.task(), {"rate": rates[-1]}), world.snapshots())
        np.testing.assert_array_equal([p.mean for p in issued], [p.mean for p in plain])


def test_a_rate_that_diverges_is_never_taken(world: World) -> None:
    with np.errstate(all="ignore"):
        made = chosen(world, [1e200, 0.01])
    assert settings_record(made)["rehearsed"]["1e+200"] is None
    assert settings_record(made)["rate"] == 0.01


def test_of_equals_the_first_is_taken_and_other_options_are_kept(world: World) -> None:
    made = chosen(world, [0.2, 0.2 + 1e-18], offset=0.5)
    assert settings_record(made)["offset"] == 0.5
    assert settings_record(made)["rate"] == 0.2


def test_the_rate_itself_cannot_be_given(world: World) -> None:
    with pytest.raises(OptionError, match="rate is what the rehearsal chooses"):
        make("solid+tuned[rate=0.1]", world.task())
    with pytest.raises(OptionError, match="online_rate is what the rehearsal chooses"):
        make("proceed+tuned[online_rate=0.1]", world.task())


@pytest.mark.parametrize(("most", "origins"), [(1, 4 * HORIZON), (30, 30), (10_000, 93)])
def test_a_rehearsal_lasts_four_horizons_or_more_and_a_quarter_of_the_source_at_most(
    most: int, origins: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ORIGINS", most)
    assert len(Rehearsal.plain(world.task()).base) == origins


def test_a_source_too_short_to_rehearse_on_is_told(world: World) -> None:
    known = 4 * HORIZON + 3
    short = dataclasses.replace(
        world.task(), source=world.source[: CONTEXT - 1 + known + HORIZON], source_base=world.source_base[:known]
    )
    with pytest.raises(TooShortError, match=f"{known} source windows"):
        tuned(short, bias, "rate", lambda _: [0.1], {})


def test_solid_is_rehearsed_around_its_own_rate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ORIGINS", 40)
    made = make("solid+tuned", world.task())
    recorded = settings_record(made)
    assert list(recorded["rehearsed"]) == ["0.02", "0.002", "0.2"]  # the network was trained at 1e-3
    finite = {rate: error for rate, error in recorded["rehearsed"].items() if error is not None}
    assert recorded["rate"] == pytest.approx(float(min(finite, key=lambda rate: finite[rate])))
    plain = make(f"solid[rate={recorded['rate']!r}]", world.task())
    copy = pickle.loads(pickle.dumps(made))
    issued, expected = (predictions(m, world.snapshots()) for m in (copy, plain))
    np.testing.assert_array_equal([p.mean for p in issued], [p.mean for p in expected])


SMALL_FSNET = '{"width": 8, "representation": 16, "blocks": 8, "controller": 8, "epochs": 1}'


@pytest.mark.parametrize(
    ("name", "options", "rate", "tried"),
    [
        ("onenet", f"fsnet={SMALL_FSNET}", "rate", ["3e-06", "3e-07", "3e-05"]),
        ("proceed", "concept=4,bottleneck=2,epochs=1", "online_rate", ["0.0003", "3e-05", "3e-06", "3e-07"]),
    ],
)
def test_onenet_and_proceed_at_the_chosen_rate_are_themselves(
    name: str, options: str, rate: str, tried: list[str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ORIGINS", 1)  # four horizons, then
    made = make(f"{name}+tuned[{options}]", world.task())
    recorded = settings_record(made)
    assert list(recorded["rehearsed"]) == tried
    assert f"{recorded[rate]:g}" == min(tried, key=lambda value: recorded["rehearsed"][value])
    plain = make(f"{name}[{options},{rate}={recorded[rate]!r}]", world.task())
    issued, expected = (predictions(m, world.snapshots(steps=20)) for m in (made, plain))
    np.testing.assert_array_equal([p.mean for p in issued], [p.mean for p in expected])
