"""A compiled fleet: the same forecasts, from a fixed number of programs."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_fleets import IDS, arrays_in, calibrator, calibrators, fitted, followed, last_season, table

import ompb
from ompb.errors import OptionError
from ompb.live import compiling

torch = pytest.importorskip("torch")
# torch's, as it imports its own compiler
compiles = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="no C++ compiler")


def programs() -> int:
    """That torch has made so far; a function that falls apart into several, or is left as it is, fails."""
    counters = torch._dynamo.utils.counters
    assert not counters["graph_break"]
    return int(counters["stats"]["unique_graphs"])


def only_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the part of the compiler that takes long, and its leave to fall back on Python."""

    @cache
    def traced(function: Any) -> Any:
        return torch.compile(function, backend="aot_eager", fullgraph=True)

    monkeypatch.setattr(compiling, "_program", traced)


@compiles
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_a_compiled_fleet_is_the_plain_one_and_makes_its_programs_once(own: bool) -> None:
    cals: Any = calibrators() if own else calibrator()
    host, plain, compiled = (
        followed(ompb.Fleet(cals, last_season, IDS, device=device, compiled=compiled))
        for device, compiled in ((None, False), ("cpu", False), ("cpu", True))
    )
    made = []
    for first, second, third in zip(host, plain, compiled, strict=True):
        for on_host, as_it_is, found in zip(first, second, third, strict=True):
            np.testing.assert_allclose(found, as_it_is, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(found, on_host, rtol=1e-9, atol=1e-9)
        made.append(programs())
    assert 0 < made[40] == made[-1]


@compiles
@needs_compiler
@pytest.mark.slow
def test_a_fleet_of_a_third_size_needs_no_new_program() -> None:
    made = []
    for size in (5, 4, 3, 2):
        fleet = ompb.Fleet(calibrator(), last_season, IDS[:size], device="cpu", compiled=True)
        for tick, rows in enumerate(table()[:45]):
            fleet.step(rows[:size], at=tick)
        made.append(programs())
    assert made[0] <= made[1] == made[2] == made[3]


@compiles
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"gate": "shared", "discounts": (0.99, 0.999)},
        {"gate": "open", "draws": 3, "guard": None},
        {"online": False, "members": ("backbone", "head"), "certificate": False},
        {"kind": "freedman", "disagreement": "normalised", "novelty": 0.0},
    ],
)
def test_every_form_of_a_step_is_traced_as_a_whole(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    only_traced(monkeypatch)
    cal = fitted(**options)
    plain, compiled = (
        followed(ompb.Fleet(cal, last_season, IDS, device="cpu", compiled=compiled), 50) for compiled in (False, True)
    )
    for first, second in zip(plain, compiled, strict=True):
        for as_it_is, found in zip(first, second, strict=True):
            np.testing.assert_allclose(found, as_it_is, rtol=1e-12, atol=1e-12)


@compiles
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["plain before", "compiled before"])
def test_a_fleet_is_saved_one_way_and_goes_on_the_other(
    compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_traced(monkeypatch)
    fleet = ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=compiled)
    for tick, rows in enumerate(table()[:60]):
        fleet.step(rows, at=tick)
    fleet.save(tmp_path / "fleet.ompb")
    other = ompb.Fleet.load(tmp_path / "fleet.ompb", calibrator(), last_season, device="cpu", compiled=not compiled)
    for tick, rows in enumerate(table()[60:], start=60):
        one, two = (each.step(rows, at=tick) for each in (fleet, other))
        assert one is not None
        assert two is not None
        for mine, others in zip(arrays_in(one.parts), arrays_in(two.parts), strict=True):
            np.testing.assert_allclose(mine, others, rtol=1e-12, atol=1e-12)


def test_numpy_compiles_nothing() -> None:
    with pytest.raises(OptionError, match="name a device of torch"):
        ompb.Fleet(calibrator(), last_season, IDS, compiled=True)


def test_a_compiler_that_is_not_here_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(function: Any) -> Any:
        raise RuntimeError(f"no g++ for {function.__name__}")

    compiling.require_compiler.cache_clear()
    monkeypatch.setattr(torch, "compile", fails)
    with pytest.raises(OptionError, match=r"cannot compile for 'cpu' here \(no g\+\+ for neg\)"):
        ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=True)
