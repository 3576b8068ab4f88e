"""A file with a right checksum and wrong content is refused, and the message names the field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from saved_world import Profile, Ring, World, assert_same, forged, load, saved, world

from forgeries import RAW, Opened
from ompb import archive
from ompb.errors import FormatError
from ompb.floor.shapes import Dim, Shape

WRONG: tuple[tuple[str, Any, str], ...] = (
    ("horizon", -5, "horizon is -5; expected: a whole number from 0"),
    ("horizon", 2.0, "horizon is 2.0; expected: a whole number"),
    ("horizon", True, "horizon is True; expected: a whole number"),
    ("horizon", "abc", "horizon is 'abc'; expected: a whole number"),
    ("horizon", None, "horizon is None; expected: a whole number"),
    ("horizon", 10**30, "expected: a whole number from 0 to 9223372036854775807"),
    ("horizon", 4, r"axis 1 of members\[1\].weights has size 3; expected: H with H = 4"),
    ("names", ["a"], r"axis 0 of members\[1\].weights has size 2; expected: C with C = 1"),
    ("names", "ab", "names is 'ab'; expected: a list"),
    ("names", ["a", 5], r"names\[1\] is 5; expected: text"),
    ("season", "24", "season is '24'; expected: a whole number"),
    ("options", None, "options is None; expected: the fields anchor, mode"),
    ("options", {"anchor": 1.0}, r"options is \['anchor'\]; expected: the fields anchor, mode, .* of Options"),
    ("options.anchor", True, "options.anchor is True; expected: a finite number"),
    ("options.anchor", 10**400, "options.anchor is .*; expected: a finite number"),
    ("options.anchor", -1.0, "options is no Options: anchor = -1.0 is out of range"),
    ("options.mode", "bogus", "options.mode is 'bogus'; expected: one of 'mix', 'closed'"),
    ("options.mode", ["mix"], r"options.mode is \['mix'\]; expected: one of"),
    ("options.taste", "salty", "options.taste is 'salty'; expected: one of 'sweet', 'sour'"),
    ("options.span", [3], r"options.span is \[3\]; expected: 2 items"),
    ("options.span", [3.5, 3], r"options.span\[0\] is 3.5"),
    ("options.certificate", 1, "options.certificate is 1; expected: True or False"),
    ("members", [{"is": "bogus"}], r"members\[0\] is 'bogus'; expected: a Member, known: profile, head; import the"),
    ("members", [{"season": 3}], r"members\[0\] is None; expected: a Member"),
    ("members", [{"is": ["profile"], "season": 3}], r"members\[0\] is \['profile'\]"),
    ("members", [{"is": "profile", "season": 3, "x": 1}], r"members\[0\] is \['season', 'x'\]; expected: the fields"),
    ("best", {"is": "profile", "season": 3}, "best is 'profile'; expected: a Head"),
    ("state.rows", -1, "state.rows is -1"),
    ("state.gate", None, "state.gate is None; expected: the array 3 of 9"),
    ("state.gate", {"array": 4}, "state.gate is {'array': 4}; expected: the array 3 of 9"),
    ("state.gate", {"array": -1}, "state.gate is {'array': -1}"),
    ("state.certifier", None, "it has 9 arrays; expected: 8"),
    ("state.ring", [], r"state.ring is \[\]; expected: the fields rows, filled, newest of Ring"),
    ("state.total", 1.0, "state is .*; expected: the fields"),
    ("note", 5, "note is 5; expected: text"),
)


def putting(place: str, node: Any) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        *above, last = place.split(".")
        holder = opened.said["tree"]
        for name in above:
            holder = holder[name]
        holder[last] = node

    return change


@pytest.mark.parametrize(("place", "node", "message"), WRONG, ids=[f"{place}={node!r:.20}" for place, node, _ in WRONG])
def test_wrong_content(tmp_path: Path, place: str, node: Any, message: str) -> None:
    path = forged(saved(tmp_path), putting(place, node))
    with pytest.raises(FormatError, match=message):
        load(path)


@pytest.mark.parametrize("raw", ["1e999", "-1e999"])
def test_numbers_that_no_float_holds(tmp_path: Path, raw: str) -> None:
    def change(opened: Opened) -> None:
        putting("options.anchor", RAW)(opened)
        opened.raw = raw

    with pytest.raises(FormatError, match=r"options.anchor is -?inf; expected: a finite number"):
        load(forged(saved(tmp_path), change))


def test_a_field_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected: the fields horizon, names"):
        load(forged(saved(tmp_path), lambda opened: opened.said["tree"].pop("note")))


def test_an_array_too_many(tmp_path: Path) -> None:
    def change(opened: Opened) -> None:
        end = len(opened.body)
        opened.entries["9"] = {"dtype": "BOOL", "shape": [1], "data_offsets": [end, end + 1]}
        opened.body += b"\0"

    with pytest.raises(FormatError, match="it has 10 arrays; expected: 9"):
        load(forged(saved(tmp_path), change))


def holding(**parts: Any) -> World:
    """A world whose state holds something else, which is not checked until it is written."""
    value = world()
    for name, part in parts.items():
        setattr(value.state, name, part)
    return value


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"gate": np.asarray([1.0, np.nan])}, r"state.gate holds nan at \(1,\); expected: positive numbers"),
        ({"gate": np.asarray([1.0, 0.0])}, r"state.gate holds 0.0 at \(1,\); expected: positive numbers"),
        ({"gate": np.asarray([1.0, 1e200])}, r"state.gate holds 1e\+200 at \(1,\); .* numbers, -1e\+110 to 1e\+110"),
        ({"gate": np.ones(3)}, "axis 0 of state.gate has size 3; expected: C with C = 2"),
        ({"gate": np.ones((2, 1))}, r"state.gate is an array of float64 \(2, 1\); expected: \(C\)"),
        ({"gate": np.ones(2, np.float32)}, r"state.gate is an array of float32 \(2,\); expected: float64"),
        ({"slim": np.ones((2, 8), np.float32)}, r"axis 1 of state.slim has size 8; expected: F\+H with F = 4, H = 3"),
        ({"slim": np.full((2, 7), np.inf, np.float32)}, r"state.slim holds inf at \(0, 0\); expected: finite numbers"),
        ({"origins": np.asarray([1, 2])}, "axis 0 of state.origins has size 2; expected: 3"),
        ({"origins": np.ones(3)}, "state.origins is an array of float64"),
        ({"ring": Ring(np.full((6, 2), -np.inf), np.asarray([True]), None)}, "holds -inf at .* finite numbers or NaN"),
        ({"ring": Ring(np.zeros((6, 2)), np.asarray([1]), None)}, "state.ring.filled is an array of int64"),
        ({"certifier": np.zeros((2, 3))}, "axis 1 of state.certifier has size 3; expected: C with C = 2"),
    ],
)
def test_wrong_arrays(tmp_path: Path, parts: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match=message):
        saved(tmp_path, holding(**parts))
    with monkeypatch.context() as careless:  # as another program writes it
        careless.setattr(archive, "decode", lambda *_: None)
        path = saved(tmp_path, holding(**parts))
    with pytest.raises(FormatError, match=message):
        load(path)


def test_like_accepts_other_numbers_and_words(tmp_path: Path) -> None:
    value = replace(world(), note="a word more", season=None)
    value.state.rows = 2**60
    assert_same(load(saved(tmp_path, value), like=world(5)), value)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (
            replace(world(), free=np.zeros((2, 1, 3))),
            r"free is an array of float64 \(2, 0, 3\); expected: .*\(2, 1, 3\)",
        ),
        (replace(world(), members=world().members[:2]), "members is a tuple of 3; expected: a tuple of 2"),
        (replace(world(), members=(Profile(24),) * 3), r"members\[1\] is a Head; expected: a Profile"),
        (world(certifier=False), r"state.certifier is an array of float64 \(2, 2\); expected: a single value"),
    ],
)
def test_like_refuses_other_forms(tmp_path: Path, like: World, message: str) -> None:
    path = saved(tmp_path)
    with pytest.raises(FormatError, match=message):
        load(path, like=like)


def test_like_bounds_the_length(tmp_path: Path) -> None:
    path = saved(tmp_path, replace(world(), note="x" * 100_000))
    with pytest.raises(FormatError, match=r"more than the .* that such a file can have"):
        load(path, like=world())


@dataclass
class Plain:
    part: Any


@dataclass
class Choice:
    part: int | str


@dataclass
class TwoNames:
    part: Annotated[Any, Shape("A+B")]


@dataclass
class Sized:
    part: Annotated[str, Dim("A")]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Plain(np.zeros(2)), "part: a file cannot be checked against typing.Any; annotate an array with its Shape"),
        (Choice(3), "part: a file cannot tell .* apart; use X | None"),
        (TwoNames(np.zeros(2)), r"axis 0 of part: of the sizes A\+B, A and B have not been met before"),
        (Sized("x"), "part: only an int and a tuple have a size, not 'x'"),
    ],
)
def test_mistakes_of_the_programmer(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        archive.write(tmp_path / "f", "value", value)
    assert list(tmp_path.iterdir()) == []


@dataclass
class Solved:
    first: Annotated[Any, Shape("A")]
    both: Annotated[Any, Shape("A+B+1")]
    second: Annotated[int, Dim("B")]


def test_a_sum_gives_the_size_that_is_left(tmp_path: Path) -> None:
    archive.write(tmp_path / "f", "solved", Solved(np.zeros(2), np.zeros(6), 3))
    with pytest.raises(FormatError, match="second has size 4; expected: B with B = 3"):
        archive.write(tmp_path / "f", "solved", Solved(np.zeros(2), np.zeros(6), 4))
    with pytest.raises(FormatError, match=r"axis 0 of both has size 2; expected: A\+B\+1 with A = 2"):
        archive.write(tmp_path / "f", "solved", Solved(np.zeros(2), np.zeros(2), 0))
