"""Rows known before the first one, and a memory that grows: what a stream makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_streams import CHANNELS, CONTEXT, HORIZON, SEASON, fit, last_season, same, saved, walked

import ompb
from ompb.core.members.memory import Memory
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import BusyError, ForecasterError, InputError, ShapeError, StaleRowError, TimeOrderError
from ompb.types import Floats

START = np.datetime64("2024-01-01T00:00")
HOUR = np.timedelta64(1, "h")


@lru_cache
def world() -> tuple[Floats, Floats]:
    """A source and a stream with a period too long for a window."""
    source, rows = shifted_stream("level", 2, 600, 300, CHANNELS, SEASON)
    slow = [2 * np.sin(2 * np.pi * np.arange(len(part))[:, None] / 30) * source.std(axis=0) for part in (source, rows)]
    return np.asarray(source + slow[0]), np.asarray(rows + slow[1])


def rows() -> Floats:
    return world()[1]


@lru_cache
def calibrator() -> ompb.Calibrator:
    return fit(rows=world()[0])


@lru_cache
def timed() -> ompb.Calibrator:
    return fit(rows=world()[0], times=START + HOUR * np.arange(600))


def memory(cal: ompb.Calibrator) -> Memory:
    return next(member for member in cal.source.members if isinstance(member, Memory))


def silent(before: Floats, cal: ompb.Calibrator | None = None, **more: Any) -> ompb.Stream:
    """A stream that has stepped through rows without a forecast."""
    stream = (cal or calibrator()).stream(last_season)
    for row in before:
        assert stream.step(row, base=None, **more) is None
    return stream


def alike(a: ompb.Forecast | None, b: ompb.Forecast | None) -> bool:
    """Equal to the last bit in all that does not count rows."""
    assert a is not None
    assert b is not None
    assert a.novelty is not None
    assert b.novelty is not None
    names = ("mean", "base", "gate", "novelty", "sd", "multipliers")
    return all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in names)


def test_the_world_has_a_ladder() -> None:
    """Else the tests here would say little."""
    lengths = [span.rows for span in memory(calibrator()).spans]
    assert lengths[0] == CONTEXT
    assert len(lengths) >= 3
    assert calibrator().remembers == lengths[-1]


@pytest.mark.parametrize("known", [1, CONTEXT - 1, CONTEXT, 20, 36, 37, 90])
@pytest.mark.parametrize("holes", [False, True])
def test_history_is_rows_that_were_stepped_through_without_a_forecast(known: int, holes: bool) -> None:
    """Whether that is less or more than is remembered; from then on all forecasts are the same."""
    before, after = rows()[:known].copy(), rows()[known : known + 40]
    if holes:
        before[np.random.default_rng(known).random(before.shape) < 0.3] = np.nan
        before[-1] = np.nan
    stream, other = calibrator().stream(last_season, history=before), silent(before)
    assert stream.rows == 0
    issued = 0
    for row in after:
        mine, theirs = stream.step(row), other.step(row)
        if mine is None:
            assert theirs is None
            continue
        issued += 1
        assert theirs is not None
        assert alike(mine, theirs)
        assert theirs.origin == mine.origin + known
        assert mine.certificate == theirs.certificate
    assert issued == 40 - max(0, CONTEXT - 1 - known)


def novelty_by_hand(cal: ompb.Calibrator, before: Floats, base: Floats) -> Floats:
    """R of the longest span that rows (T, C), all that is known, fill."""
    spans = memory(cal).spans
    place = max(i for i, span in enumerate(spans) if span.rows <= len(before))
    lanes = ((before[-spans[place].rows :] - cal.centre) / cal.scale).T
    said = spans[place].forecasts(lanes[:, None])[:, 0, :HORIZON].T
    assert cal.source.usual is not None
    squared = (((base - cal.centre) / cal.scale - said) ** 2).mean(axis=0)
    return np.asarray(squared / cal.source.usual.spread[:, place])


@pytest.mark.parametrize("known", [0, 10, 36, 100])
def test_a_stream_uses_the_longest_span_it_knows(known: int) -> None:
    cal = calibrator()
    stream = cal.stream(last_season, history=rows()[:known] if known else None)
    for now in range(known, known + 50):
        forecast = stream.step(rows()[now])
        if forecast is not None:
            assert forecast.novelty is not None
            expected = novelty_by_hand(cal, rows()[: now + 1], forecast.base)
            np.testing.assert_allclose(forecast.novelty, expected, rtol=1e-8)


def test_the_forecaster_gets_its_own_window() -> None:
    asked: list[Floats] = []

    def watching(windows: Floats) -> Floats:
        asked.append(windows.copy())
        return last_season(windows)

    stream = calibrator().stream(watching, history=rows()[:50])
    for row in rows()[50:60]:
        stream.step(row)
    for place, window in enumerate(asked):
        np.testing.assert_array_equal(window[0], rows()[51 + place - CONTEXT : 51 + place])
    assert len(asked) == 10


def test_a_cell_of_history_that_cannot_be_true_counts_as_missing() -> None:
    absurd = rows()[:50].copy()
    absurd[47, 0], absurd[20, 1] = 1e30, -1e30
    missing = np.where(np.abs(absurd) > 1e20, np.nan, absurd)
    stream, other = (calibrator().stream(last_season, history=before) for before in (absurd, missing))
    assert stream.hidden == {"channel 0": 1, "channel 1": 1}
    assert other.hidden == {"channel 0": 0, "channel 1": 0}
    for row in rows()[50:80]:
        assert same(stream.step(row), other.step(row))


@pytest.mark.parametrize("gap", [0, 1, 3, 45])
@pytest.mark.parametrize("known", [4, 50])
def test_history_with_times_and_a_gap_after_it(known: int, gap: int) -> None:
    """The rows that are left out count as missing: the forecaster is asked there as in any gap."""
    cal, before = timed(), rows()[:known]
    times = START + HOUR * np.arange(200)
    stream = cal.stream(last_season, history=before, times=times[:known])
    first = stream.step(rows()[known + gap], at=times[known + gap])
    assert stream.rows == gap + 1
    frame = pd.DataFrame(before, index=pd.DatetimeIndex(times[:known]), columns=list(cal.names))
    framed = cal.stream(last_season, history=frame)
    assert same(framed.step(rows()[known + gap], at=times[known + gap]), first)
    holed = cal.stream(last_season, history=before, times=times[:known])
    for _ in range(gap):
        holed.step(np.full(CHANNELS, np.nan))
    assert same(holed.step(rows()[known + gap]), first)  # without a time the next one is meant
    if first is not None:
        assert first.times is not None
        assert first.times[0] == times[known + gap + 1]


def test_a_gap_within_history_counts_as_missing_rows() -> None:
    cal, times = timed(), START + HOUR * np.arange(50)
    kept = np.asarray([*range(20), *range(23, 50)])
    holed = rows()[:50].copy()
    holed[20:23] = np.nan
    stream = cal.stream(last_season, history=rows()[kept], times=times[kept])
    other = cal.stream(last_season, history=holed, times=times)
    assert saved(stream) == saved(other)


def test_history_without_times_leaves_the_first_time_open() -> None:
    stream = timed().stream(last_season, history=rows()[:50])
    forecast = stream.step(rows()[50], at=START)
    assert forecast is not None
    assert forecast.times is not None
    assert forecast.times[0] == START + HOUR


@pytest.mark.parametrize("with_times", [False, True])
def test_replayed_history_is_stepped_through(with_times: bool) -> None:
    cal, times = timed(), START + HOUR * np.arange(80)
    stream = cal.stream(last_season, history=rows()[:80], times=times if with_times else None, replay=True)
    other = cal.stream(last_season)
    for place, row in enumerate(rows()[:80]):
        other.step(row, at=times[0] if with_times and place == 0 else None)
    assert stream.rows == 80
    assert saved(stream) == saved(other)
    for row in rows()[80:100]:
        assert same(stream.step(row), other.step(row))
    assert not alike(stream.step(rows()[100]), calibrator().stream(last_season, history=rows()[:100]).step(rows()[100]))


REFUSED: dict[str, tuple[Callable[[ompb.Stream], Any], type[InputError], str]] = {
    "channels": (lambda s: s.remember(rows()[:9, :1]), ShapeError, "history"),
    "no rows": (lambda s: s.remember(rows()[:0]), InputError, "history"),
    "infinite": (lambda s: s.remember(np.where(rows()[:9] > 0, np.inf, 0.0)), InputError, "history"),
    "unsorted": (
        lambda s: s.remember(rows()[:3], times=START + HOUR * np.asarray([0, 2, 1])),
        TimeOrderError,
        "history",
    ),
    "too few times": (lambda s: s.remember(rows()[:3], times=START + HOUR * np.arange(2)), ShapeError, "history"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_history_that_cannot_be_used_is_refused(why: str) -> None:
    call, kind, words = REFUSED[why]
    stream = timed().stream(last_season)
    before = saved(stream)
    with pytest.raises(kind, match=words):
        call(stream)
    assert saved(stream) == before


def test_history_comes_once_and_before_the_first_row() -> None:
    late = walked(rows()[:3], calibrator())
    twice = calibrator().stream(last_season, history=rows()[:3])
    replayed = calibrator().stream(last_season, history=rows()[:3], replay=True)
    for stream, words in ((late, "3 rows have been"), (twice, "has a history"), (replayed, "3 rows have been")):
        before = saved(stream)
        with pytest.raises(StaleRowError, match=f"{words}.*; history comes once, before the first row"):
            stream.remember(rows()[:9])
        assert saved(stream) == before


def test_times_mean_nothing_to_a_calibrator_without_them() -> None:
    with pytest.raises(TimeOrderError, match="fitted without times"):
        calibrator().stream(last_season, history=rows()[:3], times=START + HOUR * np.arange(3))


def test_a_replay_that_fails_leaves_the_stream_as_it_was() -> None:
    def fails_late(windows: Floats) -> Floats:
        if windows[0, -1, 0] == rows()[30, 0]:
            raise ValueError("no")
        return last_season(windows)

    stream = calibrator().stream(fails_late)
    before = saved(stream)
    with pytest.raises(ForecasterError):
        stream.remember(rows()[:50], replay=True)
    assert saved(stream) == before
    stream.remember(rows()[:30], replay=True)
    assert saved(stream) == saved(walked(rows()[:30], calibrator()))


def test_history_during_a_call_is_refused() -> None:
    def meddles(windows: Floats) -> Floats:
        stream.remember(rows()[:3])
        return last_season(windows)

    stream = calibrator().stream(meddles)
    for row in rows()[: CONTEXT - 1]:
        stream.step(row)
    with pytest.raises((BusyError, ForecasterError)) as caught:
        stream.step(rows()[CONTEXT - 1])
    assert isinstance(caught.value, BusyError) or isinstance(caught.value.__cause__, BusyError)


@pytest.mark.parametrize("history", [0, 15])
@pytest.mark.parametrize("at", [3, 8, 30])
def test_saved_while_the_memory_grows_it_goes_on_bit_for_bit(at: int, history: int, tmp_path: Path) -> None:
    cal = calibrator()
    assert at + history < 2 * cal.remembers
    stream = cal.stream(last_season, history=rows()[:history] if history else None)
    for row in rows()[history : history + at]:
        stream.step(row)
    cal.save(tmp_path / "cal.ompb")
    stream.save(tmp_path / "stream.ompb")
    loaded = ompb.Stream.load(tmp_path / "stream.ompb", ompb.Calibrator.load(tmp_path / "cal.ompb"), last_season)
    for row in rows()[history + at : history + at + 60]:
        mine, theirs = stream.step(row), loaded.step(row)
        assert same(mine, theirs)
        assert mine is None or alike(mine, theirs)
    assert saved(stream) == saved(loaded)


@pytest.mark.parametrize("after", [1, 30])
def test_saved_when_rows_of_history_have_left_the_window(after: int, tmp_path: Path) -> None:
    stream = calibrator().stream(last_season, history=rows()[:90])
    for row in rows()[90 : 90 + after]:
        stream.step(row)
    stream.save(tmp_path / "stream.ompb")
    assert saved(ompb.Stream.load(tmp_path / "stream.ompb", calibrator(), last_season)) == saved(stream)


def test_a_late_row_that_only_memory_still_sees() -> None:
    """It is too old to be learned, and out of the forecaster's window; the memory reads it as if it had been known."""
    cal, late = calibrator(), 30
    age = cal.remembers - 2
    assert age > max(cal.settings.patience, CONTEXT)
    holed = rows().copy()
    holed[late] = np.nan
    whole, stream, never = (
        silent(rows()[: late + age + 1]),
        silent(holed[: late + age + 1]),
        silent(holed[: late + age + 1]),
    )
    stream.observe(late, rows()[late])
    newest = rows()[late + age + 1]
    mine, known, unknown = (s.step(newest) for s in (stream, whole, never))
    assert alike(mine, known)
    assert not alike(mine, unknown)
    assert saved(stream) != saved(never)
    assert mine is not None
    assert unknown is not None
    np.testing.assert_array_equal(mine.base, unknown.base)
    stream.observe(late, rows()[late])  # its last chance
    stream.step(rows()[late + age + 2])
    with pytest.raises(StaleRowError, match=r"cannot be observed now"):
        stream.observe(late, rows()[late])


def test_rows_of_history_cannot_be_observed() -> None:
    stream = timed().stream(last_season, history=rows()[:50], times=START + HOUR * np.arange(50))
    stream.step(rows()[50])
    before = saved(stream)
    for at, span in ((-1, "0 to 0"), (START + HOUR * 49, "the newest 1, up to 2024-01-03T02:00:00")):
        with pytest.raises(StaleRowError, match=rf"accepted: rows already stepped and still in use \({span}\)"):
            stream.observe(at, rows()[49])
    assert saved(stream) == before


def test_a_closed_gate_returns_the_base_bit_for_bit_with_history_too() -> None:
    closed = fit(rows=world()[0], backbone_prior=1.0)
    stream = closed.stream(last_season, history=rows()[:60])
    for row in rows()[60:120]:
        forecast = stream.step(row)
        assert forecast is not None
        assert forecast.mean.tobytes() == forecast.base.tobytes()


def test_without_memory_a_stream_keeps_its_window() -> None:
    cal = fit(rows=world()[0], members=("backbone", "profile", "head"))
    assert cal.remembers == CONTEXT
    stream = cal.stream(last_season, history=rows()[:50])
    forecast = stream.step(rows()[50])
    assert forecast is not None
    assert forecast.novelty is None
    assert same_but_origin(forecast, cal, rows()[:50])


def same_but_origin(forecast: ompb.Forecast, cal: ompb.Calibrator, before: Floats) -> bool:
    other = silent(before, cal).step(rows()[len(before)])
    assert other is not None
    return forecast.mean.tobytes() == other.mean.tobytes() and forecast.base.tobytes() == other.base.tobytes()
