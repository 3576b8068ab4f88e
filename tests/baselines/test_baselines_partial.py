"""The paper's head with a part of the backbone learning beside it, as methods of the benchmark."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from baseline_world import CHANNELS, CONTEXT, HORIZON, World, predictions

from ompb.baselines.paper import ompb_paper
from ompb.baselines.partial import ompb_paper_last_layer, ompb_paper_lora
from ompb.bench.contract import Method, settings_record
from ompb.bench.methods import Factory, unfit
from ompb.errors import OptionError

WIDTH, OUTPUTS, KNOWN = 32, HORIZON * CHANNELS, 16
LORA: Callable[..., Method] = ompb_paper_lora  # with options
BOTH = pytest.mark.parametrize("factory", [ompb_paper_last_layer, ompb_paper_lora])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def test_rank_zero_is_the_frozen_backbone_to_the_bit(world: World) -> None:
    frozen, nothing = (
        predictions(method, world.snapshots(steps=KNOWN))
        for method in (ompb_paper(world.task()), LORA(world.task(), rank=0))
    )
    for one, other in zip(frozen, nothing, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(np.asarray(one.sd), np.asarray(other.sd))
    with pytest.raises(OptionError, match="rank = -1"):
        LORA(world.task(), rank=-1)


@BOTH
def test_it_starts_as_the_frozen_one_and_leaves_it(factory: Factory, world: World) -> None:
    adapted = predictions(factory(world.task()), world.snapshots(steps=KNOWN))
    frozen = predictions(ompb_paper(world.task()), world.snapshots(steps=KNOWN))
    for place in range(HORIZON + 1):  # the first outcome is complete with the row after
        close = np.allclose(adapted[place].mean, frozen[place].mean, atol=1e-5)
        assert close == (place < HORIZON)
    assert all(np.isfinite(one.mean).all() and (np.asarray(one.sd) > 0).all() for one in adapted)


@BOTH
def test_nothing_issued_depends_on_later_rows(factory: Factory, world: World) -> None:
    stream = world.stream.copy()
    stream[CONTEXT - 1 + KNOWN :] = np.nan  # the row after the last origin that is asked for
    clean = predictions(factory(world.task()), world.snapshots(steps=KNOWN))
    poisoned = predictions(factory(world.task()), world.snapshots(stream=stream, steps=KNOWN))
    np.testing.assert_array_equal([one.mean for one in clean], [one.mean for one in poisoned])


@BOTH
def test_a_pickled_copy_goes_on_as_if_nothing_had_been(factory: Factory, world: World) -> None:
    method, shown = factory(world.task()), list(world.snapshots(steps=KNOWN))
    predictions(method, iter(shown[:8]))
    copy = pickle.loads(pickle.dumps(method))
    rest = [predictions(one, iter(shown[8:])) for one in (method, copy)]
    for one, other in zip(*rest, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)


def test_settings_say_what_learns_beside_the_head(world: World) -> None:
    last_layer = settings_record(ompb_paper_last_layer(world.task()))
    low_rank = settings_record(ompb_paper_lora(world.task()))
    assert last_layer["trainable"] == (WIDTH + 1) * OUTPUTS
    assert low_rank["trainable"] == 4 * (WIDTH + OUTPUTS)
    assert settings_record(LORA(world.task(), rank=1))["trainable"] == WIDTH + OUTPUTS
    for settings in (last_layer, low_rank):  # single precision: the numbers and two moments of Adam
        assert settings["adapted_bytes"] == 12 * settings["trainable"]
        assert (settings["steps"], settings["online_rate"]) == (5, 5e-3)


def test_a_forecaster_that_is_no_network_is_refused(world: World) -> None:
    for name in ("ompb-paper-last-layer", "ompb-paper-lora"):
        assert unfit(name, world.task()) is None
        assert "this forecaster is none" in str(unfit(name, replace(world.task(), trainable=False)))
