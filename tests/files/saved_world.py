"""Classes to save, as rich as those of the package: nested, tagged, optional, with every type and dtype there is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgeries import Opened
from ompb import archive
from ompb.errors import OptionError
from ompb.floor.shapes import Dim, Shape, Tagged

CHANNELS, LEADS, FEATURES = 2, 3, 4


class Taste(StrEnum):
    SWEET = "sweet"
    SOUR = "sour"


class Member(Tagged):
    """A family."""


@dataclass(frozen=True, slots=True)
class Profile(Member, tag="profile"):
    season: int


@dataclass(frozen=True, slots=True)
class Head(Member, tag="head"):
    weights: Annotated[Any, Shape("C H F")]
    discount: float


class Ring(NamedTuple):
    rows: Annotated[Any, Shape("? C", nan=True)]
    filled: Annotated[Any, Shape("?", dtype="bool")]
    newest: int | None


@dataclass(frozen=True)
class Options:
    anchor: float
    mode: Literal["mix", "closed"]
    taste: Taste
    levels: tuple[float, ...]
    span: tuple[int, float]
    certificate: bool

    def __post_init__(self) -> None:
        if not 0 < self.anchor < 1e6:
            raise OptionError(f"anchor = {self.anchor} is out of range")


@dataclass
class State:
    rows: int
    gate: Annotated[Any, Shape("C", positive=True)]
    slim: Annotated[Any, Shape("C F+H", dtype="float32")]
    origins: Annotated[Any, Shape("3", dtype="int64")]
    ring: Ring
    certifier: Annotated[Any, Shape("C C")] | None
    total: float = field(init=False)

    def __post_init__(self) -> None:
        self.total = float(self.gate.sum())


@dataclass(frozen=True)
class World:
    horizon: Annotated[int, Dim("H")]
    names: Annotated[tuple[str, ...], Dim("C")]
    season: int | None
    options: Options
    members: tuple[Member, ...]
    best: Head
    free: NDArray[np.float64]
    state: State
    note: str


def world(seed: int = 0, *, certifier: bool = True) -> World:
    rng = np.random.default_rng(seed)
    head = Head(rng.normal(size=(CHANNELS, LEADS, FEATURES)), 0.99)
    rows = rng.normal(size=(6, CHANNELS))
    rows[2, 1] = np.nan
    state = State(
        rows=17,
        gate=rng.uniform(0.1, 1, CHANNELS),
        slim=rng.normal(size=(CHANNELS, FEATURES + LEADS)).astype(np.float32),
        origins=np.asarray([-1, 5, 2**40]),
        ring=Ring(rows, np.asarray([True, False, True]), None),
        certifier=rng.normal(size=(CHANNELS, CHANNELS)) if certifier else None,
    )
    return World(
        horizon=LEADS,
        names=("load", "wärme \ud800"),
        season=24,
        options=Options(800.5, "mix", Taste.SOUR, (0.5, 0.9), (3, -0.0), True),
        members=(Profile(24), head, Profile(168)),
        best=head,
        free=rng.normal(size=(2, 0, 3)),
        state=state,
        note="",
    )


def saved(folder: Path, value: Any = None) -> Path:
    path = folder / "world.ompb"
    archive.write(path, "world", world() if value is None else value)
    return path


def load(path: Path, like: World | None = None, at_most: int | None = None) -> World:
    return archive.read(path, "world", World, like=like, at_most=at_most)


def forged(path: Path, change: Callable[[Opened], object]) -> Path:
    """The file, once what it says has been changed and its checksum made right again."""
    opened = Opened.of(path.read_bytes())
    change(opened)
    path.write_bytes(opened.sealed())
    return path


def assert_same(found: Any, expected: Any) -> None:
    """Equal to the bit, of the same types, throughout."""
    assert type(found) is type(expected)
    if isinstance(found, np.ndarray):
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    elif dataclasses.is_dataclass(found):
        for part in dataclasses.fields(found):
            assert_same(getattr(found, part.name), getattr(expected, part.name))
    elif isinstance(found, tuple):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            assert_same(left, right)
    else:
        assert repr(found) == repr(expected)
