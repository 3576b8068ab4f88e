"""A recorded fleet: what a GPU records and plays, played here operation by operation, from the same places."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_fleets import (
    CHANNELS,
    CONTEXT,
    IDS,
    SEASON,
    SETTINGS,
    TICKS,
    arrays_in,
    calibrator,
    calibrators,
    fitted,
    followed,
    last_season,
    table,
)

import ompb
from ompb.core.counts import Count, along
from ompb.core.intervals import Conformal
from ompb.core.members.bias import Bias
from ompb.core.posterior import REFILL_EVERY
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import ForecasterError, OptionError
from ompb.live import compiling, library, recording
from ompb.live.lanes import leaves
from ompb.types import Floats

torch = pytest.importorskip("torch")
dispatching = pytest.importorskip("torch.utils._python_dispatch")


class Tape(dispatching.TorchDispatchMode):  # type: ignore[misc, name-defined]
    """Notes every operation with the arrays it reads and writes, as a recording does, and does them again."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, out))
        return out

    def replay(self) -> None:
        for func, args, kwargs, out in self.calls:
            if func._schema.is_mutable:
                func(*args, **kwargs)
            elif not is_view(out, args):
                for place, news in zip(tensors_in(out), tensors_in(func(*args, **kwargs)), strict=True):
                    place.copy_(news)

    @cached_property
    def made(self) -> list[Any]:
        """The arrays that are its own."""
        calls = ((out, args) for func, args, _, out in self.calls if not func._schema.is_mutable)
        return [tensor for out, args in calls if not is_view(out, args) for tensor in tensors_in(out)]


class Memory:
    """What tapes share: those played again write where later ones have left something. Without tapes it is closed."""

    def __init__(self) -> None:
        self.refs: list[weakref.ref[Tape]] = []

    def add(self, tape: Tape) -> None:
        if self.refs and not any(ref() for ref in self.refs):
            raise RuntimeError("all recordings in this memory are gone")
        self.refs.append(weakref.ref(tape))

    def spoil_behind(self, tape: Tape) -> None:
        tapes = [ref() for ref in self.refs]
        for later in tapes[tapes.index(tape) + 1 :]:
            if later is not None:
                torch._foreach_zero_(later.made)


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def is_view(out: Any, args: Any) -> bool:
    given = {tensor.untyped_storage().data_ptr() for tensor in tensors_in(args)}
    return any(tensor.numel() and tensor.untyped_storage().data_ptr() in given for tensor in tensors_in(out))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let processors record, and nothing be compiled; a number for each time that a recording is played."""
    plays: list[int] = []

    def captured(work: Callable[[], None], memory: Memory) -> Callable[[], None]:
        tape = Tape()
        memory.add(tape)
        with tape:
            work()

        def replay() -> None:
            plays.append(len(tape.calls))
            memory.spoil_behind(tape)
            tape.replay()

        return replay

    monkeypatch.setattr(recording, "captured", captured)
    monkeypatch.setattr(recording, "warmed", lambda work, _: work())
    monkeypatch.setattr(recording, "records", lambda _: True)
    monkeypatch.setattr(recording, "studio", lambda _: Memory())
    monkeypatch.setattr(compiling, "_program", lambda function: function)
    monkeypatch.setattr(library, "require_compiler", lambda _: None)
    return plays


def assert_alike(first: Any, second: Any) -> None:
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_number_that_moves_with_a_count_is_an_array_where_the_count_has_one() -> None:
    count = Count.of(7, torch.tensor(9))
    assert (count, count + 1, type(count + 1)) == (7, 8, int)
    assert (int(along(5, count)), along(5, 7)) == (7, 5)


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_a_recorded_fleet_is_the_plain_one(own: bool, played: list[int]) -> None:
    assert TICKS > 2 * REFILL_EVERY
    cals: Any = calibrators() if own else calibrator()
    plain = followed(ompb.Fleet(cals, last_season, IDS, device="cpu"))
    recorded = followed(ompb.Fleet(cals, last_season, IDS, device="cpu", compiled=True))
    for first, second in zip(plain, recorded, strict=True):
        assert_alike(first, second)
    assert len(played) > TICKS


@pytest.mark.parametrize(
    "options",
    [
        {"gate": "shared", "discounts": (0.99, 0.999)},
        {"gate": "open", "draws": 3, "guard": None},
        {"online": False, "members": ("backbone", "head"), "certificate": False},
        {"kind": "freedman", "disagreement": "normalised", "novelty": 0.0, "reread": 7, "ring": 5},
        {"patience": 0},
    ],
)
def test_every_form_of_a_step_is_recorded(options: dict[str, Any], played: list[int]) -> None:
    cal = fitted(**options)
    plain, recorded = (
        followed(ompb.Fleet(cal, last_season, IDS, device="cpu", compiled=compiled), 75) for compiled in (False, True)
    )
    for first, second in zip(plain, recorded, strict=True):
        assert_alike(first, second)
    assert len(played) > 40


class Seasonal(ompb.Forecaster):
    """The window once more, with quantiles around it if asked for; it fails if told to."""

    def __init__(self, horizon: int, quantiles: tuple[float, ...] = ()) -> None:
        self.horizon, self.quantiles, self.fails = horizon, quantiles, False

    def forecast(self, query: ompb.Query) -> Floats:
        if self.fails:
            raise ValueError("out of order")
        said = 0.7 * query.windows[:, np.arange(self.horizon) % SEASON] + 0.3 * query.windows[:, -1:]
        if not self.quantiles:
            return np.asarray(said)
        width = 1.0 + abs(query.windows - query.windows.mean(axis=1, keepdims=True)).mean(axis=(1, 2))
        return np.asarray(said[..., None] + width[:, None, None, None] * (np.asarray(self.quantiles) - 0.5))


def lived(fleet: ompb.Fleet, forecaster: Seasonal, ticks: int, start: Any = 0, step: Any = 1) -> Iterator[list[Floats]]:
    """All arrays of a fleet's forecasts, with series that join, leave, come back and come late, and steps that fail."""
    rng, every = np.random.default_rng(8), table(ticks, holes=0.03)
    for tick in range(ticks):
        at, rows = start + tick * step, np.resize(every[tick], (len(fleet.ids), CHANNELS))
        chance = rng.random() if tick > 2 * CONTEXT else 1.0
        if chance < 0.1:
            forecaster.fails = True
            with pytest.raises(ForecasterError):
                fleet.step(rows - 40, at=at)
            forecaster.fails = False
        elif chance < 0.2:
            late = int(rng.integers(1, CONTEXT))
            fleet.observe(at - late * step, dict.fromkeys(IDS[: rng.integers(1, 4)], every[tick - late, 0]))
        elif chance < 0.23:
            fleet.put("b", fleet.take("b"))
        if tick in (40, 70):
            fleet.add([f"joins at {tick}"])
        elif tick == 90:
            fleet.drop(IDS[3:])
        rows = np.resize(every[tick], (len(fleet.ids), CHANNELS))
        out = fleet.step(rows, at=at, base=None) if 0.3 < chance < 0.33 else fleet.step(rows, at=at)
        assert out is not None
        yield arrays_in(out.parts)


@pytest.mark.parametrize(
    ("horizon", "quantiles", "is_timed", "options"),
    [
        (REFILL_EVERY + 6, (), False, {"reread": 32, "ring": 8}),
        (5, (0.1, 0.5, 0.9), True, {"reread": 9, "ring": 12, "uniform": True, "patience": 11}),
    ],
    ids=["long", "quantiles"],
)
def test_a_recorded_fleet_lives_as_the_plain_one(
    horizon: int, quantiles: tuple[float, ...], is_timed: bool, options: dict[str, Any], played: list[int]
) -> None:
    source = shifted_stream("level", 10, 300, 40, CHANNELS, SEASON)[0]
    start, step = (np.datetime64("2024-03-01", "us"), np.timedelta64(1, "h")) if is_timed else (0, 1)
    times = np.datetime64("2024-01-01", "us") + np.arange(len(source)) * step if is_timed else None
    forecaster = Seasonal(horizon, quantiles)
    form = {**SETTINGS, **options, "context": CONTEXT, "horizon": horizon, "season": SEASON, "times": times}
    cal = ompb.Calibrator.fit(forecaster, source, **form)
    plain, recorded = (
        lived(ompb.Fleet(cal, forecaster, IDS, device="cpu", compiled=compiled), forecaster, 110, start, step)
        for compiled in (False, True)
    )
    for first, second in zip(plain, recorded, strict=True):
        for one, other in zip(first, second, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert len(played) > 100


def test_what_went_out_stays_as_it_was(played: list[int]) -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=True)
    outs, kept = [], []
    absurd = table(TICKS)[:90].copy()
    absurd[np.arange(90), np.arange(90) % len(IDS)] = 1e9  # of each tick one row is hidden
    for tick, rows in enumerate(absurd):
        out = fleet.step(rows, at=tick)
        assert out is not None
        outs.append(out)
        kept.append([array.copy() for array in arrays_in(out.parts)])
    assert played
    for out, before in zip(outs, kept, strict=True):
        for one, other in zip(arrays_in(out.parts), before, strict=True):
            np.testing.assert_array_equal(one, other)


def test_rows_that_were_handed_in_stay_as_they_were(played: list[int]) -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=True)
    given = [torch.tensor(rows) for rows in table(TICKS)[:60]]
    before = [rows.clone() for rows in given]
    for tick, rows in enumerate(given):
        fleet.step(rows, at=tick)
    assert played
    assert all(torch.equal(one.nan_to_num(), other.nan_to_num()) for one, other in zip(given, before, strict=True))


def test_copies_files_and_a_forecaster_that_fails_leave_a_recorded_fleet_alone(
    played: list[int], tmp_path: Path
) -> None:
    fails = False

    def forecaster(windows: Floats) -> Floats:
        if fails:
            raise ValueError("out of order")
        return last_season(windows)

    plain = ompb.Fleet(calibrator(), last_season, IDS, device="cpu")
    fleet = ompb.Fleet(calibrator(), forecaster, IDS, device="cpu", compiled=True)
    others: list[tuple[int, ompb.Fleet]] = []
    for tick, rows in enumerate(table(TICKS)[:140]):
        if tick % 10 == 9:
            fails = True
            with pytest.raises(ForecasterError):
                fleet.step(rows + 100, at=tick)
            fails = False
        if tick in (70, 121):
            fleet.save(tmp_path / "fleet.ompb")
            loaded = ompb.Fleet.load(tmp_path / "fleet.ompb", calibrator(), last_season, device="cpu")
            others += [(tick, copy.copy(fleet)), (tick, loaded)]
            others[-2][1].step(rows - 50, at=tick)  # goes its own way
        one, two = plain.step(rows, at=tick), fleet.step(rows, at=tick)
        assert one is not None
        assert two is not None
        assert_alike(arrays_in(one.parts), arrays_in(two.parts))
        for _, other in others[1::2]:
            out = other.step(rows, at=tick)
            assert out is not None
            assert_alike(arrays_in(out.parts), arrays_in(one.parts))
    assert played


def test_a_step_that_is_refused_leaves_every_array_of_the_state_as_it_was(played: list[int]) -> None:
    fails = False

    def forecaster(windows: Floats) -> Floats:
        if fails:
            raise ValueError("out of order")
        return last_season(windows)

    fleet = ompb.Fleet(calibrator(), forecaster, IDS, device="cpu", compiled=True)
    for tick, rows in enumerate(table(TICKS)[:56]):
        if tick >= 28:
            before = [copy.deepcopy(leaf) for leaf in leaves(fleet._now.groups[0].state)]
            fails = True
            with pytest.raises(ForecasterError):
                fleet.step(rows + 100, at=tick)
            fails = False
            for one, other in zip(leaves(fleet._now.groups[0].state), before, strict=True):
                np.testing.assert_array_equal(one, other)
        fleet.step(rows, at=tick)
    assert played


def test_what_cannot_be_recorded_is_told_and_changes_nothing(
    played: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> Any:
        raise RuntimeError(f"not permitted for {len(arguments)}")

    fleet = ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=True)
    monkeypatch.setattr(recording, "captured", fails)
    with pytest.raises(OptionError, match=r"cannot be recorded on 'cpu' \(not permitted for 2\)"):
        list(followed(fleet))
    before = fleet.ticks
    monkeypatch.setattr(recording, "records", lambda _: False)
    out = fleet.step(table(TICKS)[before], at=before)
    assert out is not None
    expected = list(followed(ompb.Fleet(calibrator(), last_season, IDS, device="cpu"), before + 1))[-1]
    assert_alike(arrays_in(out.parts), expected)
    assert not played


def test_recordings_do_not_pile_up(played: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LIMIT", 5)
    plain, recorded = (
        followed(ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=compiled), 70)
        for compiled in (False, True)
    )
    for first, second in zip(plain, recorded, strict=True):
        assert_alike(first, second)
    assert played


@pytest.mark.parametrize("part", [Bias, Conformal])
def test_a_part_that_does_not_say_which_rows_are_alike_keeps_them_from_being_recorded(
    part: type, played: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(part, "form")  # as in a part of somebody's own
    fleets = [ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=compiled) for compiled in (False, True)]
    for first, second in zip(*(followed(fleet, 50) for fleet in fleets), strict=True):
        assert_alike(first, second)
    recorder = fleets[1]._now.groups[0].recorder
    assert recorder is not None
    assert {turn.move for turn in recorder._recordings} == {"believe"}
    assert played


def test_forms_that_do_not_come_again_do_not_pile_up() -> None:
    def move(row: int, kept: int) -> tuple[int, int]:
        return row, kept

    recorder = recording.Recorder("cpu")
    for row in range(2 * recording.MOST_FORMS):
        assert recorder(move, row, row, (7,), ()) == (row, 7)
    assert len(recorder._seen) <= recording.MOST_FORMS


def test_a_large_fleet_is_not_recorded(played: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST", 1000)
    for _ in followed(ompb.Fleet(calibrator(), last_season, IDS, device="cpu", compiled=True), 60):
        pass
    assert not played
