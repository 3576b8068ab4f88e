"""One stream, one call at a time: a second one raises BusyError and changes nothing."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_streams import HORIZON, PATIENCE, calibrator, last_season, same, saved, target, walked

import ompb
from ompb.errors import BusyError, ForecasterError, NotFiniteError
from ompb.floor.turns import copied
from ompb.types import Floats

ROWS = 120
LOOKED_AT = 50  # of the many that were kept


@contextmanager
def quick_switches() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def in_threads(work: list[Callable[[], None]]) -> None:
    """Run all of it at once; the first error of any thread is raised here."""
    failed: list[BaseException] = []
    start = threading.Barrier(len(work))

    def run(one: Callable[[], None]) -> None:
        start.wait()
        try:
            one()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    with quick_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def test_two_threads_cannot_step_one_stream_at_once() -> None:
    """Every call is taken whole or refused: the state is that of the rows taken, in some order."""
    stream = walked(target()[:20])
    taken: list[tuple[int, Floats]] = []
    refused = [0, 0]

    def feed(who: int) -> None:
        for row in target()[20:ROWS] + who:
            while True:
                try:
                    forecast = stream.step(row)
                except BusyError:
                    refused[who] += 1
                    continue
                assert forecast is not None
                taken.append((forecast.origin, row))
                break

    in_threads([lambda: feed(0), lambda: feed(1)])
    assert sum(refused) > 0
    assert stream.rows == 20 + len(taken) == 20 + 2 * (ROWS - 20)
    taken.sort(key=lambda one: one[0])
    assert [origin for origin, _ in taken] == list(range(20, stream.rows))
    twin = walked(target()[:20])
    for _, row in taken:
        twin.step(row)
    assert saved(stream) == saved(twin)


def test_eight_threads_with_streams_of_their_own() -> None:
    streams = [calibrator().stream(last_season) for _ in range(8)]

    def feed(stream: ompb.Stream) -> None:
        for at, row in enumerate(target()[:ROWS]):
            stream.step(row)
            stream.observe(at, row)

    in_threads([lambda stream=stream: feed(stream) for stream in streams])  # type: ignore[misc]
    assert len({saved(stream) for stream in streams}) == 1
    alone = calibrator().stream(last_season)
    feed(alone)
    assert saved(alone) == saved(streams[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.step(target()[0]),
        lambda stream: stream.observe(39, target()[39]),
        lambda stream: stream.step(target()[0], base=None),
    ],
    ids=["step", "observe", "step without base"],
)
def test_a_forecaster_must_not_call_its_own_stream(call: Callable[[ompb.Stream], Any]) -> None:
    meddling = False

    def forecaster(windows: Floats) -> Floats:
        if meddling:
            call(stream)
        return last_season(windows)

    stream = calibrator().stream(forecaster)
    for row in target()[:40]:
        stream.step(row)
    before, meddling = saved(stream), True
    with pytest.raises(BusyError, match="not from its own forecaster"):
        stream.step(target()[40])
    assert saved(stream) == before
    meddling = False
    assert same(stream.step(target()[40]), walked(target()[:40]).step(target()[40]))


def test_a_forecaster_may_swallow_the_error_and_read_the_stream() -> None:
    seen: list[int] = []

    def forecaster(windows: Floats) -> Floats:
        with pytest.raises(BusyError):
            stream.step(target()[0])
        seen.append(stream.rows)
        stream.realised_risk()
        return last_season(windows)

    stream = calibrator().stream(forecaster)
    for row in target()[:40]:
        stream.step(row)
    assert seen == list(range(5, 40))
    assert saved(stream) == saved(walked(target()[:40]))


def test_an_error_that_is_kept_does_not_keep_the_stream_busy() -> None:
    """Its traceback holds the frames of the call that failed."""
    wrong = False

    def forecaster(windows: Floats) -> Floats:
        return windows if wrong else last_season(windows)

    stream = calibrator().stream(forecaster)
    for row in target()[:40]:
        stream.step(row)
    kept: list[BaseException] = []
    with pytest.raises(NotFiniteError) as refused:
        stream.step([np.inf, 0.0])
    with pytest.raises(NotFiniteError) as late:
        stream.observe(39, [np.inf, 0.0])
    kept += [refused.value, late.value]
    wrong = True
    with pytest.raises(ForecasterError) as failed:
        stream.step(target()[40])
    wrong = False
    kept.append(failed.value)
    assert all(error.__traceback__ is not None for error in kept)
    stream.observe(39, target()[39])
    assert stream.step(target()[40]) is not None


def test_a_busy_error_that_is_kept_does_not_keep_the_stream_busy() -> None:
    kept: list[BusyError] = []

    def forecaster(windows: Floats) -> Floats:
        with pytest.raises(BusyError) as caught:
            stream.observe(0, target()[0])
        kept.append(caught.value)
        return last_season(windows)

    stream = calibrator().stream(forecaster)
    for row in target()[:20]:
        stream.step(row)
    assert stream.rows == 20
    assert len(kept) == 15


def test_a_generator_that_is_left_alone_does_not_keep_the_stream_busy() -> None:
    """A call ends when it returns; nothing has to be closed."""
    stream = calibrator().stream(last_season)
    steps = (stream.step(row) for row in target()[:20])
    for _ in range(10):
        next(steps)
    assert stream.step(target()[10]) is not None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))])
def test_copies_go_their_own_ways(copied: Callable[[ompb.Stream], ompb.Stream]) -> None:
    """A copy shares no buffer: what is done to one leaves the other as it was."""
    stream = walked(target()[:60])
    twin = copied(stream)
    before = saved(twin)
    for row in target()[60:90]:
        stream.step(row + 5)
    assert saved(twin) == before
    never = walked(target()[:60])
    assert all(same(twin.step(row), never.step(row)) for row in target()[60:90])


def test_a_stream_copied_at_work_is_not_busy() -> None:
    copies: list[ompb.Stream] = []

    def forecaster(windows: Floats) -> Floats:
        if not copies:
            copies.append(copy.copy(stream))
        return last_season(windows)

    stream = calibrator().stream(forecaster)
    for row in target()[:5]:
        stream.step(row)
    expected = stream.step(target()[5])
    assert copies[0].rows == 5
    assert same(copies[0].step(target()[5]), expected)


@pytest.mark.parametrize(
    "kept",
    [
        lambda stream, path: (stream.save(path), ompb.Stream.load(path, calibrator(), last_season))[1],
        lambda stream, _: copy.copy(stream),
        lambda stream, _: pickle.loads(pickle.dumps(stream)),
    ],
    ids=["saved", "copied", "pickled"],
)
def test_a_stream_is_kept_whole_while_another_thread_steps_it(
    kept: Callable[[ompb.Stream, Path], ompb.Stream], tmp_path: Path
) -> None:
    """States share buffers: one that is read for too long would be half of an older row and half of a newer one."""
    rows, stream, keeps, done, another = target(), walked(target()[:20]), [], [], threading.Event()

    def feed() -> None:
        for number, row in enumerate(rows[20:320], start=1):
            stream.step(row)
            if number % 20 == 0:  # not so fast that nothing is kept between
                another.wait(10)
                another.clear()
        done.append(True)

    def keep() -> None:
        while not done:
            keeps.append(kept(stream, tmp_path / "stream"))
            another.set()

    in_threads([feed, keep])
    assert len({one.rows for one in keeps}) > 5
    alone = walked(rows[:20])
    for one in sorted(keeps, key=lambda one: one.rows)[:: 1 + len(keeps) // LOOKED_AT]:
        while alone.rows < one.rows:
            alone.step(rows[alone.rows])
        twin = copy.copy(alone)
        assert all(same(one.step(row), twin.step(row)) for row in rows[320 : 320 + HORIZON + PATIENCE + 2])


def test_a_state_that_never_stays_is_given_up() -> None:
    rows = iter(range(10_000))
    assert copied(lambda: 7, str, "stream") == "7"
    with pytest.raises(BusyError, match="this stream takes in rows faster than it can be copied"):
        copied(lambda: next(rows), str, "stream")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_stream_goes_on_as_its_parent_does() -> None:
    stream = walked(target()[:60])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        for row in target()[60:90]:
            stream.step(row)
        os.write(write, saved(stream).encode())
        os._exit(0)
    os.waitpid(child, 0)
    found = os.read(read, 1000).decode()
    os.close(read)
    os.close(write)
    assert stream.rows == 60
    for row in target()[60:90]:
        stream.step(row)
    assert saved(stream) == found
