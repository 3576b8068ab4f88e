"""Training again every so many rows: on what, when, and with which head around it."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from baseline_world import CHANNELS, CONTEXT, HORIZON, SEASON, STEPS, World, predictions

import ompb
import ompb.baselines.retrain as module
from ompb.baselines.retrain import (
    OnEitherSide,
    Renewal,
    RetrainedUnderHead,
    retrain,
    retrain_warm,
    retrain_with_head,
)
from ompb.bench.contract import Method, Prediction, Snapshot, settings_record, snapshots
from ompb.bench.methods import make, unfit
from ompb.bench.protocols import Clock
from ompb.errors import OptionError
from ompb.forecasters.torch import TrainedForecaster, train_again
from ompb.types import Floats

EVERY, KNOWN = 32, 12  # rows, origins
FIRST = EVERY - CONTEXT  # the place of the first origin that sees a network trained again
FACTORIES: dict[str, Callable[..., Method]] = {
    "retrain": retrain,
    "retrain-warm": retrain_warm,
    "retrain+ompb": retrain_with_head,
}
EACH = pytest.mark.parametrize("name", list(FACTORIES))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def issue(name: str, world: World, shown: Iterator[Snapshot] | None = None) -> list[Prediction]:
    return predictions(FACTORIES[name](world.task(), every=EVERY), shown or world.snapshots(steps=KNOWN))


@cache
def clean(name: str, world: World) -> list[Prediction]:
    return issue(name, world)


@pytest.fixture
def lessons(monkeypatch: pytest.MonkeyPatch) -> list[Floats]:
    """The rows of every training."""
    seen: list[Floats] = []

    def watched(forecaster: TrainedForecaster, source: Floats, **how: Any) -> TrainedForecaster:
        seen.append(np.array(source))
        return train_again(forecaster, source, **how)

    monkeypatch.setattr(module, "train_again", watched)
    return seen


@EACH
def test_it_learns_all_that_is_known_and_nothing_else(name: str, world: World, lessons: list[Floats]) -> None:
    issue(name, world, world.snapshots(steps=2 * EVERY - CONTEXT + 3))
    assert len(lessons) == 2
    for count, rows in enumerate(lessons, start=1):
        stream = world.stream[: count * EVERY]
        np.testing.assert_array_equal(rows, np.concatenate([world.source, [[np.nan] * CHANNELS], stream]))


def test_a_stream_that_goes_on_where_the_source_ends_has_no_seam(world: World, lessons: list[Floats]) -> None:
    method = retrain(replace(world.task(), continues=True), every=EVERY)
    predictions(method, world.snapshots(steps=EVERY - CONTEXT + 2))
    (rows,) = lessons
    np.testing.assert_array_equal(rows, np.concatenate([world.source, world.stream[:EVERY]]))


def test_the_head_of_a_stream_that_goes_on_is_fitted_on_all_rows_as_one(world: World) -> None:
    method = retrain_with_head(replace(world.task(), continues=True), every=EVERY)
    assert isinstance(method, RetrainedUnderHead)
    issued = predictions(method, world.snapshots(steps=FIRST + 2))
    known, network = np.concatenate([world.source, world.stream[:EVERY]]), method.renewal.forecaster
    calibrator = ompb.Calibrator.fit(network, known, context=CONTEXT, horizon=HORIZON, season=SEASON)
    stream = calibrator.stream(network, history=world.stream[: EVERY - 1])
    for place, row in enumerate(world.stream[EVERY - 1 : EVERY + 1], start=FIRST):
        expected = stream.step(row)
        assert expected is not None
        np.testing.assert_allclose(issued[place].mean, expected.mean, atol=1e-9)


@pytest.mark.parametrize("name", ["retrain", "retrain-warm"])
def test_a_network_on_the_shelf_is_the_one_that_training_ends_in(
    name: str, world: World, lessons: list[Floats], tmp_path: Path
) -> None:
    """Taken by whoever trains on the same rows from the same start, and by nobody else; to the bit."""
    shown = list(world.snapshots(steps=2 * EVERY - CONTEXT + 2))
    task = replace(world.task(), shelf=tmp_path)
    alone = predictions(FACTORIES[name](world.task(), every=EVERY), iter(shown))
    first = predictions(FACTORIES[name](task, every=EVERY), iter(shown))
    trained = len(lessons)
    again = predictions(FACTORIES[name](task, every=EVERY), iter(shown))
    assert (trained, len(lessons)) == (4, 4)  # two alone, two of the first, none after it
    for one, other, third in zip(alone, first, again, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.mean, third.mean)
    predictions(FACTORIES[name](replace(task, continues=True), every=EVERY), iter(shown[:KNOWN]))
    assert len(lessons) == 5
    assert not list(tmp_path.glob("*.checkpoint"))


def test_the_head_takes_its_network_from_the_shelf(world: World, lessons: list[Floats], tmp_path: Path) -> None:
    task = replace(world.task(), shelf=tmp_path)
    issue_of = [predictions(FACTORIES[name](task, every=EVERY), world.snapshots(steps=KNOWN)) for name in FACTORIES]
    assert len(lessons) == 2  # from scratch once, and from the present weights
    assert len(issue_of) == len(FACTORIES)


@EACH
def test_nothing_issued_depends_on_later_rows(name: str, world: World) -> None:
    stream = world.stream.copy()
    stream[CONTEXT - 1 + KNOWN :] = np.nan  # the row after the last origin that is asked for
    poisoned = issue(name, world, world.snapshots(stream=stream, steps=KNOWN))
    for one, other in zip(clean(name, world), poisoned, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)


@EACH
@pytest.mark.parametrize("steps", [FIRST - 1, FIRST + 2])
def test_a_pickled_copy_goes_on_as_if_nothing_had_been(name: str, steps: int, world: World) -> None:
    method, shown = FACTORIES[name](world.task(), every=EVERY), list(world.snapshots(steps=KNOWN))
    issued = predictions(method, iter(shown[:steps]))
    issued += predictions(pickle.loads(pickle.dumps(method)), iter(shown[steps:]))
    for one, other in zip(clean(name, world), issued, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)


def test_training_on_nothing_new_gives_the_backbone_back(world: World) -> None:
    """Rows that are all missing teach nothing, so the source alone is learned, by the same recipe and seed."""
    missing = np.full_like(world.stream, np.nan)
    clock = Clock("honest", HORIZON, CONTEXT - 1)
    shown = list(snapshots(missing, world.stream, world.base[:KNOWN], clock, CONTEXT))
    shown[0] = replace(shown[0], window=missing[:CONTEXT])
    issued = issue("retrain", world, iter(shown))
    np.testing.assert_allclose([one.mean for one in issued], world.base[:KNOWN], atol=1e-5)
    warm = issue("retrain-warm", world, iter(shown))
    np.testing.assert_allclose(warm[FIRST - 1].mean, world.base[FIRST - 1], atol=1e-5)
    assert not np.allclose(warm[FIRST].mean, world.base[FIRST], atol=1e-3)


@pytest.mark.parametrize("name", ["retrain", "retrain-warm"])
def test_it_is_the_backbone_until_it_is_time_and_better_after_a_shift(name: str, world: World) -> None:
    issued = np.stack([one.mean for one in issue(name, world, world.snapshots())])
    np.testing.assert_array_equal(issued[:FIRST], world.base[:FIRST])
    outcomes = np.stack([world.stream[place : place + HORIZON] for place in range(CONTEXT, CONTEXT + STEPS)])
    errors = [np.abs(told - outcomes)[FIRST:].mean() for told in (world.base, issued)]
    assert errors[1] < 0.9 * errors[0]


def test_until_it_is_time_the_head_is_ompb_and_then_one_fitted_on_all_rows(world: World) -> None:
    method = retrain_with_head(world.task())
    assert isinstance(method, RetrainedUnderHead)
    method.renewal.every = EVERY
    issued = predictions(method, world.snapshots(steps=FIRST + 4))
    alone = predictions(make("ompb", world.task()), world.snapshots(steps=FIRST + 4))
    for one, other in zip(issued[:FIRST], alone, strict=False):
        np.testing.assert_array_equal(one.mean, other.mean)
    network, known = method.renewal.forecaster, np.concatenate([world.source, [[np.nan] * 2], world.stream[:EVERY]])
    calibrator = ompb.Calibrator.fit(
        OnEitherSide(network, len(world.source)), known, context=CONTEXT, horizon=HORIZON, season=SEASON
    )
    stream = calibrator.stream(network, history=world.stream[: EVERY - 1])
    for place, row in enumerate(world.stream[EVERY - 1 : EVERY + 3], start=FIRST):
        expected = stream.step(row)
        assert expected is not None
        np.testing.assert_allclose(issued[place].mean, expected.mean, atol=1e-9)
        np.testing.assert_allclose(np.asarray(issued[place].sd), expected.sd, atol=1e-9)
        own = issued[place].intervals
        assert own
        assert all((lower <= upper).all() for lower, upper in own.values())


def test_at_the_seam_the_network_is_silent(world: World) -> None:
    """By brute force: an origin whose window or outcome holds the seam is never asked for."""
    seam = 50
    said = OnEitherSide(world.network_copy(), seam).speaks_at(np.arange(CONTEXT - 1, 120), None)
    touched = [seam in range(origin - CONTEXT + 1, origin + HORIZON + 1) for origin in range(CONTEXT - 1, 120)]
    np.testing.assert_array_equal(said, ~np.array(touched))


def test_settings_count_the_trainings(world: World) -> None:
    method = FACTORIES["retrain-warm"](world.task(), every=EVERY)
    assert settings_record(method)["retrainings"] == 0
    predictions(method, world.snapshots(steps=KNOWN))
    settings = settings_record(method)
    assert (settings["every"], settings["warm"]) == (EVERY, True)
    assert settings["retrainings"] == 1
    assert settings["training"]["epochs"] == 3
    under_head = settings_record(retrain_with_head(world.task()))
    assert under_head["head"] == settings_record(make("ompb", world.task()))


@pytest.mark.parametrize(("season", "every"), [(12, 500), (None, 500), (CONTEXT, 500), (52, 52)])
def test_by_default_a_season_that_is_longer_than_a_window(season: int | None, every: int, world: World) -> None:
    assert Renewal.start(replace(world.task(), season=season), None, warm=False).every == every


def test_what_cannot_be_trained_again_is_refused(world: World) -> None:
    for name in FACTORIES:
        assert unfit(name, world.task()) is None
        assert "this forecaster is none" in str(unfit(name, replace(world.task(), trainable=False)))
        assert "the protocol must be 'honest', not 'one-step'" in str(unfit(name, world.task("one-step")))
    with pytest.raises(OptionError, match="every = 0"):
        FACTORIES["retrain"](world.task(), every=0)
    with pytest.raises(OptionError, match="brings no network"):
        retrain(replace(world.task(), network=None))
