"""Compute, then commit: a call that is interrupted anywhere leaves the old stream or the new one, never one between."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from small_streams import CONTEXT, HORIZON, PATIENCE, SETTINGS, calibrator, fit, last_season, same, saved, target

import ompb
from ompb.core.posterior import REFILL_EVERY, Posterior, Recursion
from ompb.floor.turns import Mark
from ompb.types import Floats

PACKAGE = str(Path(ompb.__file__).parent)
# Once so many rows have passed, nothing of an interrupted call is left in any buffer: equal files are equal futures.
TURNED_OVER = HORIZON + PATIENCE + 6
Call = Callable[[ompb.Stream], Any]


def interrupted(call: Callable[[], Any], line: int) -> bool:
    """Whether the call came to its so manyth line, counted over all of the package, where an interrupt ended it."""
    left = line

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return on_line

    before = sys.gettrace()
    sys.settrace(on_line)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def hurt_everywhere(
    stream: ompb.Stream, call: Call, taken: Callable[[ompb.Stream], bool], rest: Floats, every: int = 1
) -> int:
    """Interrupt a call on copies of a stream, line by line, and follow each; returns how many lines the call has.

    Of those that are left alike to the last bit, in places that nothing reads, too, the first is followed.
    """
    never = copy.copy(stream)
    call(never)
    expected = [never.step(row) for row in rest]
    end, risk = saved(never), never.realised_risk()
    line, followed = 1, set[Any]()
    while interrupted(partial(call, hurt := copy.copy(stream)), line):
        hurt._turns.enter(Mark())  # nobody else is at work
        parts = hurt._cohort is stream._cohort, hurt._forecaster is stream._forecaster
        left = taken(hurt), parts, pickle.dumps(hurt._state)
        if left not in followed:
            if not taken(hurt):
                call(hurt)
            assert all(same(hurt.step(row), forecast) for row, forecast in zip(rest, expected, strict=True)), line
            assert (saved(hurt), hurt.realised_risk()) == (end, risk), line
            followed.add(left)
        line += every
    return line - 1


def rows_with_holes(count: int) -> Floats:
    rows = target()[:count].copy()
    rows[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    return rows


def stepped(rows: Floats, cal: ompb.Calibrator | None = None) -> ompb.Stream:
    stream = (cal or calibrator()).stream(last_season)
    for row in rows:
        stream.step(row)
    return stream


FIRST = CONTEXT - 1  # the first origin
MOMENTS = {
    "the source's word is put back, windows are read again, an outcome matures": FIRST + REFILL_EVERY,
    "the row after that": FIRST + REFILL_EVERY + 1,
}
assert REFILL_EVERY % SETTINGS["reread"] == 0
assert REFILL_EVERY % HORIZON == 0


@pytest.mark.parametrize("at", MOMENTS.values(), ids=MOMENTS)
def test_step(at: int) -> None:
    rows = rows_with_holes(at + 1 + TURNED_OVER)
    stream = stepped(rows[:at])
    lines = hurt_everywhere(stream, lambda s: s.step(rows[at]), lambda s: s.rows > at, rows[at + 1 :])
    assert lines > 150


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"certificate": False, "online": False}, {"discounts": (0.9, 0.99), "draws": 3}])
def test_step_with_other_options(options: dict[str, Any]) -> None:
    at = FIRST + 20
    rows = rows_with_holes(at + 1 + TURNED_OVER)
    stream = stepped(rows[:at], fit(**options))
    assert hurt_everywhere(stream, lambda s: s.step(rows[at]), lambda s: s.rows > at, rows[at + 1 :]) > 100


def test_step_over_a_gap_in_time() -> None:
    """Three rows at once: none or all of them."""
    times = np.arange(len(target()))
    cal = fit(times=np.arange(300))
    rows = rows_with_holes(200)
    stream = cal.stream(last_season)
    at = FIRST + REFILL_EVERY - 1
    for row, time in zip(rows[:at], times, strict=False):
        stream.step(row, at=time)
    rest = rows[at + 3 : at + 3 + TURNED_OVER]
    lines = hurt_everywhere(stream, lambda s: s.step(rows[at + 2], at=times[at + 2]), lambda s: s.rows > at, rest, 7)
    assert lines > 400


@pytest.mark.parametrize("age", [0, 1, PATIENCE, PATIENCE + 1])
def test_observe(age: int) -> None:
    """A late cell is learned or not; where it was, observing it again changes nothing."""
    count = FIRST + REFILL_EVERY + 2
    rows = rows_with_holes(count + TURNED_OVER)
    late = count - 1 - age
    rows[late] = np.nan
    stream = stepped(rows[:count])

    def observed(s: ompb.Stream) -> bool:
        return bool(np.isfinite(s._state.window.known[0, -1 - age]).all())

    lines = hurt_everywhere(stream, lambda s: s.observe(late, target()[late]), observed, rows[count:])
    assert lines > 30


def test_replace() -> None:
    """The old model or the new one, each with its own calibrator."""

    def nearer(windows: Floats) -> Floats:
        return last_season(windows)[:, :-1]

    rows, other = rows_with_holes(60 + TURNED_OVER), fit(nearer, horizon=HORIZON - 1)
    stream = stepped(rows[:60])
    lines = hurt_everywhere(stream, lambda s: s.replace(nearer, other), lambda s: s._cohort.cal is other, rows[60:], 3)
    assert lines > 400


def test_another_row_may_follow_an_interrupted_one() -> None:
    """What an interrupted call wrote to places that nothing reads is written anew by whatever comes next."""
    at = FIRST + REFILL_EVERY
    rows = rows_with_holes(at + 1 + TURNED_OVER)
    stream = stepped(rows[:at])
    for line in range(5, 250, 7):
        hurt, never = copy.deepcopy(stream), copy.deepcopy(stream)
        assert interrupted(partial(hurt.step, [50.0, -20.0]), line)
        assert hurt.rows == at
        assert all(same(hurt.step(row), never.step(row)) for row in rows[at:])
        assert saved(hurt) == saved(never)


def test_an_interrupt_in_the_forecaster_leaves_the_stream_as_it_was() -> None:
    stop = False

    def forecaster(windows: Floats) -> Floats:
        if stop:
            raise KeyboardInterrupt
        return last_season(windows)

    stream = calibrator().stream(forecaster)
    for row in target()[:40]:
        stream.step(row)
    before, stop = saved(stream), True
    with pytest.raises(KeyboardInterrupt):
        stream.step(target()[40])
    assert saved(stream) == before
    stop = False
    assert stream.step(target()[40]) is not None


def test_a_state_that_is_written_to_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The instrument has teeth."""
    absorb = Recursion.absorb

    def in_place(rules: Recursion, state: Posterior, row: int, residual: Floats, observed: Floats) -> Posterior:
        after = absorb(rules, state, row, residual, observed)
        state.mean[...] = after.mean
        return after

    monkeypatch.setattr(Recursion, "absorb", in_place)
    rows = rows_with_holes(60)
    stream = stepped(rows[:40])
    with pytest.raises(AssertionError):
        hurt_everywhere(stream, lambda s: s.step(rows[40]), lambda s: s.rows > 40, rows[41:])
