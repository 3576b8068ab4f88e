import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.bench import methods
from ompb.bench.contract import (
    SCORED_LEVELS,
    Conditions,
    Method,
    Prediction,
    Snapshot,
    Task,
    settings_record,
    snapshots,
)
from ompb.bench.methods import BIAS_RATE, lacking, make, method, method_names, unfit
from ompb.bench.protocols import Clock
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import OptionError
from ompb.floor import registry
from ompb.testing.method import task_of as made_task
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, ROWS = 24, 4, 12, 60
PROTOCOLS = ("honest", "full", "delay=2", "one-step")
NAMES = ("original", "profile", "last", "bias", "copy", "ompb", "ompb+history", "ompb-paper")
FROM_ROWS = ("ompb", "ompb+history")  # those that learn from rows only


def stretches(rows: Floats) -> Floats:
    """Every window (n, CONTEXT, C) whose outcome lies inside the rows."""
    windows = np.lib.stride_tricks.sliding_window_view(rows, CONTEXT, axis=0)[: len(rows) - CONTEXT - HORIZON + 1]
    return np.asarray(windows.transpose(0, 2, 1))


@pytest.fixture(scope="module")
def world() -> SimpleNamespace:
    source, stream = shifted_stream("level", seed=1, source_rows=400, target_rows=ROWS, channels=2, season=SEASON)
    forecaster = ompb.Ridge.fit(source, CONTEXT, HORIZON)
    world = SimpleNamespace(
        source=source,
        forecaster=forecaster,
        source_base=forecaster(stretches(source)),
        stream=stream,
        base=forecaster(stretches(stream)),
    )
    world.clean = cache(lambda name, protocol: issue(name, world, protocol, stream, world.base))
    return world


def task_of(world: SimpleNamespace, protocol: str, continues: bool = True) -> Task:
    return made_task(world.source, world.source_base, CONTEXT, season=SEASON, protocol=protocol, continues=continues)


def snapshots_of(stream: Floats, base: Floats, protocol: str) -> Iterable[Snapshot]:
    return snapshots(stream, stream, base, Clock(protocol, HORIZON, CONTEXT - 1), CONTEXT)


def issue(name: str, world: SimpleNamespace, protocol: str, stream: Floats, base: Floats) -> list[Prediction]:
    entrant = make(name, task_of(world, protocol))
    return [entrant.step(snapshot) for snapshot in snapshots_of(stream, base, protocol)]


def applicable(protocols: Iterable[str]) -> list[tuple[str, str]]:
    return [(n, p) for n in NAMES for p in protocols if n not in FROM_ROWS or p == "honest"]


def test_the_built_in_methods() -> None:
    assert set(NAMES) <= set(method_names())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_snapshots_show_rows_windows_and_labels(world: SimpleNamespace, protocol: str) -> None:
    clock = Clock(protocol, HORIZON, CONTEXT - 1)
    origins = []
    for snapshot in snapshots_of(world.stream, world.base, protocol):
        t = snapshot.origin
        origins.append(t)
        np.testing.assert_array_equal(snapshot.row, world.stream[t])
        np.testing.assert_array_equal(snapshot.window, world.stream[t - CONTEXT + 1 : t + 1])
        np.testing.assert_allclose(snapshot.base, world.forecaster(snapshot.window[None])[0], rtol=1e-12)
        shown, labels = clock.revealed(t), snapshot.labels
        assert len(labels) == len(shown.leads)
        for place, (origin, lead) in enumerate(zip(*shown, strict=True)):
            assert (labels.origins[place], labels.leads[place]) == (origin, lead - 1)
            np.testing.assert_array_equal(labels.values[place], world.stream[origin + lead])
            np.testing.assert_array_equal(labels.base[place], world.base[origin - CONTEXT + 1, lead - 1])
    assert origins == list(range(CONTEXT - 1, ROWS - HORIZON))


@pytest.mark.parametrize(("name", "protocol"), applicable(("honest", "full")))
@pytest.mark.parametrize("poison", [np.nan, 1e6])
@pytest.mark.parametrize("last_known", [CONTEXT, 44])
def test_nothing_issued_depends_on_later_rows(
    name: str, protocol: str, poison: float, last_known: int, world: SimpleNamespace
) -> None:
    if name == "ompb-paper":
        pytest.importorskip("torch")
    known = last_known - CONTEXT + 2  # forecasts issued up to then
    poisoned, base = world.stream.copy(), world.base.copy()
    poisoned[last_known + 1 :], base[known:] = poison, poison
    clean = world.clean(name, protocol)[:known]
    found = issue(name, world, protocol, poisoned, base[:known])
    assert len(found) == known
    for one, other in zip(clean, found, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)
        assert (one.sd is None) == (other.sd is None)
        if one.sd is not None:
            np.testing.assert_array_equal(one.sd, other.sd)
        for level, ends in (one.intervals or {}).items():
            np.testing.assert_array_equal(ends, (other.intervals or {})[level])


def test_the_canary_sings_under_a_leaky_protocol(world: SimpleNamespace) -> None:
    poisoned = world.stream.copy()
    poisoned[41:] = 1e6
    clean = issue("copy", world, "one-step", world.stream, world.base[:18])
    found = issue("copy", world, "one-step", poisoned, world.base[:18])
    assert not np.array_equal(clean[17].mean, found[17].mean)


@pytest.mark.parametrize(("name", "protocol"), applicable(PROTOCOLS))
def test_methods_change_neither_their_input_nor_what_they_issued(
    name: str, protocol: str, world: SimpleNamespace
) -> None:
    if name == "ompb-paper":
        pytest.importorskip("torch")
    stream, base = world.stream.copy(), world.base[:8].copy()
    entrant = make(name, task_of(world, protocol))
    issued, copies = [], []
    for snapshot in snapshots_of(stream, base, protocol):
        issued.append(entrant.step(snapshot).mean)
        copies.append(issued[-1].copy())
    np.testing.assert_array_equal(issued, copies)
    np.testing.assert_array_equal(stream, world.stream)
    np.testing.assert_array_equal(base, world.base[:8])
    assert np.shape(issued) == (8, HORIZON, 2)


@pytest.mark.parametrize(("name", "protocol"), applicable(("honest", "full")))
def test_a_pickled_copy_goes_on_as_if_nothing_had_been(name: str, protocol: str, world: SimpleNamespace) -> None:
    if name == "ompb-paper":
        pytest.importorskip("torch")
    entrant = make(name, task_of(world, protocol))
    shown = list(snapshots_of(world.stream, world.base, protocol))
    for snapshot in shown[:15]:
        entrant.step(snapshot)
    copy = pickle.loads(pickle.dumps(entrant))
    for one, snapshot in zip(world.clean(name, protocol)[15:], shown[15:], strict=True):
        np.testing.assert_array_equal(one.mean, copy.step(snapshot).mean)


def test_trivial_methods_equal_their_double_loop_twins(world: SimpleNamespace) -> None:
    """Under honest, with missing cells: each (origin, lead, channel) by itself."""
    rows = world.stream.copy()
    rows[[CONTEXT + 3, CONTEXT + 4, CONTEXT + 9], [0, 1, 1]] = np.nan
    base, first = world.base, CONTEXT - 1
    issued = {name: issue(name, world, "honest", rows, base) for name in ("original", "last", "bias", "copy")}
    bias = np.zeros((HORIZON, 2))
    for place in range(len(base)):
        t, copied = first + place, base[place].copy()
        for h, c in np.ndindex(HORIZON, 2):
            spoken = place - h - 1 >= 0
            if spoken and not np.isnan(rows[t, c]):
                bias[h, c] += BIAS_RATE * (rows[t, c] - base[place - h - 1, h, c] - bias[h, c])
            whole = place - HORIZON
            if whole >= 0 and not np.isnan(rows[first + whole + h + 1, c]):
                copied[h, c] += rows[first + whole + h + 1, c] - base[whole, h, c]
        np.testing.assert_allclose(issued["bias"][place].mean, base[place] + bias)
        np.testing.assert_allclose(issued["copy"][place].mean, copied)
        np.testing.assert_array_equal(issued["original"][place].mean, base[place])
        np.testing.assert_array_equal(issued["last"][place].mean, [rows[t]] * HORIZON)


@pytest.mark.parametrize(("protocol", "delay"), [("full", HORIZON), ("delay=2", 2), ("one-step", 1)])
def test_bias_and_copy_equal_their_twins_on_whole_outcomes(protocol: str, delay: int, world: SimpleNamespace) -> None:
    outcomes = np.stack([world.stream[k + CONTEXT : k + CONTEXT + HORIZON] for k in range(len(world.base))])
    residuals = outcomes - world.base
    copied = [prediction.mean for prediction in world.clean("copy", protocol)]
    biased = [prediction.mean for prediction in world.clean("bias", protocol)]
    bias = np.zeros((HORIZON, 2))
    for place, base in enumerate(world.base):
        newest = place - delay
        if newest >= 0:
            bias += 0.05 * (residuals[newest] - bias)
        np.testing.assert_allclose(copied[place], base + (residuals[newest] if newest >= 0 else 0), rtol=1e-12)
        np.testing.assert_allclose(biased[place], base + bias, rtol=1e-12)


@pytest.mark.parametrize("name", FROM_ROWS)
def test_ompb_is_the_live_stream(name: str, world: SimpleNamespace) -> None:
    """With the source as its history under the name that says so, where nothing is said of the first rows either."""
    calibrator = ompb.Calibrator.fit(world.forecaster, world.source, context=CONTEXT, horizon=HORIZON, season=SEASON)
    with_history = name == "ompb+history"
    stream = calibrator.stream(world.forecaster, history=world.source if with_history else None)
    for row in world.stream[: CONTEXT - 1]:
        stream.step(row, base=None)
    live = [stream.step(row) for row in world.stream[CONTEXT - 1 : ROWS - HORIZON]]
    for forecast, prediction in zip(live, world.clean(name, "honest"), strict=True):
        assert forecast is not None
        assert prediction.sd is not None
        assert prediction.intervals is not None
        np.testing.assert_allclose(prediction.mean, forecast.mean, rtol=1e-9)
        np.testing.assert_allclose(prediction.sd, forecast.sd, rtol=1e-9)
        assert tuple(prediction.intervals) == SCORED_LEVELS
        np.testing.assert_allclose(prediction.intervals[0.8], forecast.interval(0.8), rtol=1e-9)


def test_a_copy_of_ompb_does_not_carry_the_forecasts_of_the_source(world: SimpleNamespace) -> None:
    mark = world.source_base[:3].tobytes()
    assert mark in pickle.dumps(world.source_base)
    assert mark not in pickle.dumps(make("ompb", task_of(world, "honest")))


@pytest.mark.parametrize("name", FROM_ROWS)
@pytest.mark.parametrize("protocol", ["full", "delay=2", "one-step"])
def test_ompb_refuses_whole_outcomes(protocol: str, name: str, world: SimpleNamespace) -> None:
    with pytest.raises(OptionError, match="learns from rows only"):
        make(name, task_of(world, protocol))


def test_the_source_is_history_only_of_a_stream_that_continues_it(world: SimpleNamespace) -> None:
    with pytest.raises(OptionError, match="does not go on where the source ends"):
        make("ompb+history", task_of(world, "honest", continues=False))
    # what it knows more than "ompb" shows in what it says first
    first = [world.clean(name, "honest")[0] for name in FROM_ROWS]
    assert not np.array_equal(first[0].mean, first[1].mean)


@pytest.mark.parametrize(("season", "reason"), [(None, "no season"), (CONTEXT + 1, "no whole season of 25")])
def test_profile_needs_a_season(season: int | None, reason: str) -> None:
    conditions = Conditions(
        source=np.zeros((2, 1)), context=CONTEXT, horizon=HORIZON, season=season, protocol="honest", trainable=False
    )
    assert reason in str(unfit("profile", conditions))


def test_an_unknown_name_and_a_second_entry_are_refused(world: SimpleNamespace) -> None:
    with pytest.raises(OptionError, match=r"no method 'magic'; accepted: original, "):
        make("magic", task_of(world, "honest"))
    with pytest.raises(OptionError, match="'copy' already"):
        method("copy")(lambda task: make("last", task))


def doubled(task: Task) -> Method:
    """What another package might bring."""
    return make("original", task)


def test_other_packages_bring_methods(monkeypatch: pytest.MonkeyPatch, world: SimpleNamespace) -> None:
    brought = EntryPoints([EntryPoint("doubled", f"{__name__}:doubled", "ompb.methods")])
    monkeypatch.setattr(registry, "entry_points", lambda **words: brought.select(**words))
    assert method_names()[-1] == "doubled"
    assert unfit("doubled", task_of(world, "full")) is None
    assert isinstance(make("doubled", task_of(world, "full")), type(make("original", task_of(world, "full"))))


def test_a_method_says_which_package_it_lacks(monkeypatch: pytest.MonkeyPatch, world: SimpleNamespace) -> None:
    brought = EntryPoints([EntryPoint("ghost", "a_package_nobody_has:ghost", "ompb.methods")])
    monkeypatch.setattr(registry, "entry_points", lambda **words: brought.select(**words))
    reason = "it needs the package a_package_nobody_has, which is not installed"
    assert lacking("ghost") == unfit("ghost", task_of(world, "full")) == reason
    assert lacking("ompb") is None
    assert unfit("ompb", task_of(world, "full")) is not None


@dataclass(frozen=True)
class Options:
    rate: float = 0.5


@pytest.mark.parametrize(("settings", "record"), [({"rate": 0.5}, {"rate": 0.5}), (Options(), {"rate": 0.5})])
def test_settings_are_recorded_by_name(settings: Any, record: dict[str, Any]) -> None:
    assert settings_record(SimpleNamespace(settings=settings, step=None)) == record


@pytest.mark.parametrize("settings", [None, 3, Options])
def test_settings_of_another_form_are_refused(
    settings: Any, world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(methods._METHODS.entered, "odd", lambda task: SimpleNamespace(step=len, settings=settings))  # noqa: ARG005
    with pytest.raises(OptionError, match="a mapping or a dataclass"):
        make("odd", task_of(world, "honest"))
