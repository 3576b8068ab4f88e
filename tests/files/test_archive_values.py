"""What is written is what is read, to the bit, in a file that others can open."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_world import Head, Member, Profile, World, assert_same, load, saved, world

from ompb import archive
from ompb.errors import FormatError
from ompb.types import Floats


@dataclass(frozen=True)
class Loose:
    """A class whose field holds whatever a test puts there."""

    part: Floats


@dataclass(frozen=True)
class Number:
    part: float


@pytest.mark.parametrize("certifier", [True, False])
def test_a_world_comes_back(tmp_path: Path, certifier: bool) -> None:
    before = world(certifier=certifier)
    after = load(saved(tmp_path, before))
    assert_same(after, before)
    assert after.state.gate.flags.writeable


def test_equal_values_give_equal_bytes(tmp_path: Path) -> None:
    first = saved(tmp_path).read_bytes()
    assert saved(tmp_path, load(saved(tmp_path))).read_bytes() == first
    assert saved(tmp_path, world(1)).read_bytes() != first


def test_fingerprints_tell_values_apart_that_are_written_otherwise() -> None:
    one = world()
    changed = [
        replace(one, horizon=4),
        replace(one, season=None),
        replace(one, note="x"),
        replace(one, names=("load", "x")),
        replace(one, members=one.members[::-1]),
        replace(one, free=one.free.reshape(2, 3, 0)),
        replace(one, free=one.free.astype(np.float32)),
        replace(one, state=dataclasses.replace(one.state, gate=one.state.gate + 1e-16)),
    ]
    found = [archive.fingerprint(value) for value in (one, *changed)]
    assert len(set(found)) == len(found)
    assert archive.fingerprint(world()) == found[0]
    assert len(found[0]) == 64


def test_the_safetensors_library_opens_it(tmp_path: Path) -> None:
    from safetensors import safe_open
    from safetensors.numpy import load_file

    path, expected = saved(tmp_path), world()
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["0"], expected.best.weights)
    np.testing.assert_array_equal(arrays["4"], expected.state.slim)
    np.testing.assert_array_equal(arrays["5"], expected.state.origins)
    np.testing.assert_array_equal(arrays["7"], expected.state.ring.filled)
    with safe_open(path, framework="pt") as opened:  # torch wants each array aligned
        assert opened.metadata().keys() == {"sha256", "ompb"}
        np.testing.assert_array_equal(opened.get_tensor("8").numpy(), expected.state.certifier)


def test_memory_layout_and_byte_order_do_not_matter(tmp_path: Path) -> None:
    values = np.arange(12.0).reshape(3, 4)
    contents = set()
    for part in (values, np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2], values.astype(">f8")):
        archive.write(tmp_path / "f", "loose", Loose(part))
        contents.add((tmp_path / "f").read_bytes())
        assert_same(archive.read(tmp_path / "f", "loose", Loose), Loose(values))
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("part", "expected"), [(np.float64(0.1), 0.1), (np.float32(0.5), 0.5), (np.int64(-3), -3), (-0.0, -0.0), (7, 7)]
)
def test_numbers_of_numpy_become_plain_ones(tmp_path: Path, part: Any, expected: float) -> None:
    archive.write(tmp_path / "f", "number", Number(part))
    assert_same(archive.read(tmp_path / "f", "number", Number).part, expected)


@pytest.mark.parametrize(
    "part",
    [{}, [1.0], b"x", 1j, {1.0}, np.zeros(2, np.int32), np.zeros(2, complex), np.asarray(["a"]), np.datetime64(1, "s")],
    ids=repr,
)
def test_what_cannot_be_saved_says_so(tmp_path: Path, part: Any) -> None:
    with pytest.raises(TypeError, match=r"part is .* which cannot be saved; use dataclasses"):
        archive.write(tmp_path / "f", "loose", Loose(part))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", [np.asarray([1.0, np.nan]), np.asarray([1, 2]), 3.0, None], ids=repr)
def test_a_value_that_could_not_be_read_is_not_written(tmp_path: Path, part: Any) -> None:
    archive.write(tmp_path / "f", "loose", Loose(np.zeros(2)))
    before = (tmp_path / "f").read_bytes()
    with pytest.raises(FormatError, match="this loose cannot be saved: part "):
        archive.write(tmp_path / "f", "loose", Loose(part))
    assert (tmp_path / "f").read_bytes() == before


def test_a_member_without_a_tag_cannot_be_named() -> None:
    @dataclass(frozen=True)
    class Weekly(Profile):
        pass

    with pytest.raises(TypeError, match=r"Weekly has no tag, which a file needs to name it; declare it with tag="):
        archive.fingerprint(Weekly(7))


def test_classes_added_later_are_found(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Later(Member, tag="later"):
        depth: int

    try:
        path = saved(tmp_path, replace(world(), members=(Later(3), Head(world().best.weights, 0.5))))
        assert load(path).members[0] == Later(3)
    finally:
        del Member.tags["later"]
    with pytest.raises(
        FormatError, match=r"members\[0\] is 'later'; expected: a Member, known: profile, head; import the module"
    ):
        load(path)


def test_many_threads_save_and_read_one_path(tmp_path: Path) -> None:
    path = saved(tmp_path)
    values = [world(seed) for seed in range(4)]
    expected = {archive.fingerprint(value) for value in values}
    failures: list[BaseException] = []

    def save(value: World) -> None:
        try:
            for _ in range(200):
                saved(tmp_path, value)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert archive.fingerprint(load(path)) in expected
    assert failures == []
    assert list(tmp_path.iterdir()) == [path]


def test_what_follows_from_the_fields_is_not_saved(tmp_path: Path) -> None:
    value = world()
    value.state.total = -1.0
    assert load(saved(tmp_path, value)).state.total == value.state.gate.sum()
