"""What every baseline must keep to, whatever it does."""

import dataclasses
import pickle
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice, pairwise

import numpy as np
import pytest

pytest.importorskip("torch")

from baseline_world import CONTEXT, HORIZON, World, predictions

from ompb.baselines.network import source_pairs
from ompb.bench.contract import Prediction, Snapshot, snapshots
from ompb.bench.methods import make, method_names, unfit
from ompb.bench.protocols import Clock
from ompb.errors import OptionError

BASELINES = (
    "solid",
    "solid-continual",
    "solid++",
    "onenet",
    "proceed",
    "gd",
    "er",
    "der++",
    "tafas",
    "petsa",
    "cosa",
    "cosa-tuned",
    "dsof",
    "elf",
    "aci",
    "dtaci",
)
STARTS_AS_BACKBONE = {*BASELINES} - {"onenet", "proceed", "dsof", "elf"}
# Other rates of the same methods, and a start with more candidates: found by name, tested beside the originals.
VARIANTS = ("solid+history", "solid+tuned", "onenet-fsnet-rate", "onenet+tuned", "proceed+tuned")
PROTOCOLS = ("honest", "full", "one-step")
STEPS, HALF = 60, 30  # all of them learn from the fifteenth on at the latest
# With smaller networks of their own, trained for one epoch, and blocks of which several end within a few steps: what is
# asked here does not depend on their size.
SMALL = {
    "cosa": "cosa[block=12]",
    "cosa-tuned": "cosa-tuned[block=12]",
    "onenet": 'onenet[fsnet={"width": 8, "representation": 16, "blocks": 8, "controller": 8, "epochs": 1}]',
    "proceed": "proceed[concept=4,bottleneck=2,epochs=1]",
}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


@dataclasses.dataclass(frozen=True)
class Followed:
    """All that a method said of the world's own stream, and the method as it was after the first half of the steps.

    One that is to see another end of the stream goes on from there, and need not be made and taught again.
    """

    issued: list[Prediction]
    halfway: bytes

    def go_on(self, shown: Iterable[Snapshot]) -> list[Prediction]:
        """What a copy of the method says of the snapshots, of which it has been shown the first half."""
        return predictions(pickle.loads(self.halfway), islice(shown, HALF, None))


@cache
def followed(world: World, name: str, protocol: str) -> Followed:
    method = make(SMALL.get(name, name), world.task(protocol))
    shown = world.snapshots(protocol, steps=STEPS)
    first = predictions(method, islice(shown, HALF))
    halfway = pickle.dumps(method)
    return Followed(first + predictions(method, shown), halfway)


def clean(world: World, name: str, protocol: str) -> list[Prediction]:
    return followed(world, name, protocol).issued


def assert_same(one: Prediction, other: Prediction) -> None:
    np.testing.assert_array_equal(one.mean, other.mean)
    assert (one.sd is None, one.intervals is None) == (other.sd is None, other.intervals is None)
    if one.sd is not None:
        np.testing.assert_array_equal(one.sd, other.sd)
    for level, ends in (one.intervals or {}).items():
        np.testing.assert_array_equal(ends, (other.intervals or {})[level])


def able(name: str, protocol: str, world: World) -> None:
    reason = unfit(name, world.task(protocol))
    if reason is not None:
        assert protocol == "one-step", f"{name} must run under {protocol}, but {reason}"
        pytest.skip(reason)


def test_every_baseline_is_found_by_its_entry_point(world: World) -> None:
    assert {*BASELINES, *VARIANTS} <= set(method_names())
    for name in VARIANTS:
        unfit(name, world.task())  # its module is there, and enters it


@pytest.mark.parametrize("name", [n for n in (*BASELINES, *VARIANTS) if n not in {"elf", "aci", "dtaci"}])
def test_an_option_that_there_is_not_is_refused_with_those_that_there_are(name: str, world: World) -> None:
    with pytest.raises(OptionError, match=r"'sped'; accepted: "):
        make(f"{name}[sped=1]", dataclasses.replace(world.task(), continues=True))


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("protocol", ["honest", "full"])
@pytest.mark.parametrize("poison", [np.nan, 1e6])
def test_nothing_issued_depends_on_later_rows(name: str, protocol: str, poison: float, world: World) -> None:
    known = HALF + 3 * HORIZON
    stream = world.stream.copy()
    stream[CONTEXT - 1 + known :] = poison  # the row after the last origin that is asked for
    found = followed(world, name, protocol).go_on(world.snapshots(protocol, stream, known))
    for one, other in zip(clean(world, name, protocol)[HALF:known], found, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_learns_and_stays_finite(name: str, protocol: str, world: World) -> None:
    able(name, protocol, world)
    issued = clean(world, name, protocol)
    assert len(issued) == STEPS
    assert all(np.isfinite(prediction.mean).all() for prediction in issued)
    assert all(prediction.mean.shape == (HORIZON, world.stream.shape[1]) for prediction in issued)
    if issued[0].intervals is None:
        assert any(not np.allclose(p.mean, b) for p, b in zip(issued, world.base[:STEPS], strict=True))
    else:
        widths = [upper - lower for lower, upper in (p.intervals[0.8] for p in issued if p.intervals)]
        assert any(not np.array_equal(one, other) for one, other in pairwise(widths))


@pytest.mark.parametrize("name", BASELINES)
def test_one_seed_one_result_and_input_untouched(name: str, world: World) -> None:
    stream, source = world.stream.copy(), world.source.copy()
    again = predictions(make(SMALL.get(name, name), world.task()), world.snapshots(steps=STEPS))
    copies = [prediction.mean.copy() for prediction in again]
    for one, other in zip(clean(world, name, "honest"), again, strict=True):
        assert_same(one, other)
    np.testing.assert_array_equal(stream, world.stream)
    np.testing.assert_array_equal(source, world.source)
    np.testing.assert_array_equal(copies, [prediction.mean for prediction in again])


@pytest.mark.parametrize("name", BASELINES)
def test_a_pickled_copy_goes_on_as_if_nothing_had_been(name: str, world: World) -> None:
    found = followed(world, name, "honest").go_on(world.snapshots(steps=STEPS))
    for one, other in zip(clean(world, name, "honest")[HALF:], found, strict=True):
        assert_same(one, other)


def with_holes(world: World, first: int, steps: int) -> Iterator[Snapshot]:
    """So many snapshots of a stream that has holes some rows behind the origin ``first``."""
    holes = world.stream.copy()
    holes[CONTEXT + first + 5, 0] = holes[CONTEXT + first + 9, :] = np.nan
    filled = world.stream  # windows have no holes: those are filled before a method sees them
    return snapshots(holes, filled, world.base[:steps], Clock("honest", HORIZON, CONTEXT - 1), CONTEXT)


@pytest.mark.parametrize("name", BASELINES)
def test_missing_cells_never_reach_a_forecast(name: str, world: World) -> None:
    """Neither where a method has learned already nor where it has not."""
    late = followed(world, name, "honest").go_on(with_holes(world, HALF, STEPS))
    early = predictions(make(SMALL.get(name, name), world.task()), with_holes(world, 0, HALF))
    assert (len(early), len(late)) == (HALF, STEPS - HALF)
    assert all(np.isfinite(prediction.mean).all() for prediction in (*early, *late))


@pytest.mark.parametrize("name", sorted(STARTS_AS_BACKBONE))
def test_it_starts_as_the_backbone(name: str, world: World) -> None:
    np.testing.assert_allclose(clean(world, name, "honest")[0].mean, world.base[0], atol=1e-5)


def test_pairs_of_the_source_are_views_in_time_order(world: World) -> None:
    task = world.task()
    windows, outcomes = source_pairs(task)
    assert len(windows) == len(outcomes) == len(task.source) - CONTEXT - HORIZON + 1
    for place in (0, 7, len(windows) - 1):
        np.testing.assert_array_equal(windows[place], task.source[place : place + CONTEXT])
        np.testing.assert_array_equal(outcomes[place], task.source[place + CONTEXT : place + CONTEXT + HORIZON])
    assert np.shares_memory(windows, task.source)
    assert np.shares_memory(outcomes, task.source)
