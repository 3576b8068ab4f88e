"""Rows known before the first tick: each series goes on as a stream with that history would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_fleets import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    IDS,
    SEASON,
    SETTINGS,
    assert_equal,
    calibrator,
    calibrators,
    last_season,
    table,
)

import ompb
from ompb.errors import InputError, OptionError, ShapeError, StaleRowError, TimeOrderError

HOURS = np.datetime64("2024-01-01T00", "us") + np.arange(90) * np.timedelta64(1, "h")
KNOWN = 40  # rows before the first tick


def timed() -> ompb.Calibrator:
    rows = table(holes=0.0)[:KNOWN, 0]
    arguments: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, **SETTINGS}
    return ompb.Calibrator.fit(last_season, rows, times=HOURS[:KNOWN], **arguments)


def assert_goes_on(fleet: ompb.Fleet, streams: list[ompb.Stream], tolerance: float = 0.0, **at: Any) -> None:
    """For some rows behind the history."""
    for tick in range(KNOWN, KNOWN + 25):
        when = {name: stamps[tick] for name, stamps in at.items()}
        out = fleet.step(table()[tick, : len(streams)], **when)
        assert out is not None
        for place, stream in enumerate(streams):
            assert_equal(out, place, stream.step(table()[tick, place], **when), tolerance)


@pytest.mark.parametrize("shared", [True, False])
def test_an_array_of_all(shared: bool) -> None:
    cal: Any = calibrator() if shared else calibrators()
    each = [calibrator()] * len(IDS) if shared else list(calibrators().values())
    fleet = ompb.Fleet(cal, last_season, IDS, batched=False)
    fleet.remember(np.moveaxis(table()[:KNOWN], 1, 0))
    assert (fleet.ticks, fleet.newest) == (0, None)
    streams = [one.stream(last_season, history=table()[:KNOWN, place]) for place, one in enumerate(each)]
    assert_goes_on(fleet, streams)


def test_some_know_more_than_others_and_one_nothing() -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS, batched=False)
    lengths = {"e": 5, "b": 20, "a": KNOWN, "d": 20}
    fleet.remember({one: table()[KNOWN - length : KNOWN, IDS.index(one)] for one, length in lengths.items()})
    streams = []
    for place, one in enumerate(IDS):
        rows = table()[KNOWN - lengths.get(one, 0) : KNOWN, place]
        streams.append(calibrator().stream(last_season, history=rows if len(rows) else None))
    assert_goes_on(fleet, streams)


def test_on_another_library() -> None:
    pytest.importorskip("torch")
    fleet = ompb.Fleet(calibrator(), last_season, IDS, device="cpu")
    fleet.remember(np.moveaxis(table()[:KNOWN], 1, 0))
    streams = [calibrator().stream(last_season, history=table()[:KNOWN, place]) for place in range(len(IDS))]
    assert_goes_on(fleet, streams, 1e-9)


def test_the_first_tick_follows_the_newest_time_also_of_a_saved_fleet(tmp_path: Path) -> None:
    cal = timed()
    frames = {
        one: pd.DataFrame(table()[:KNOWN, place], index=HOURS[:KNOWN], columns=cal.names)
        for place, one in enumerate(("a", "b"))
    }
    fleet = ompb.Fleet(cal, last_season, IDS[:3], batched=False)
    fleet.remember(frames)
    assert (fleet.ticks, fleet.newest) == (0, HOURS[KNOWN - 1])
    fleet.save(tmp_path / "fleet")
    again = ompb.Fleet.load(tmp_path / "fleet", cal, last_season, batched=False)
    assert fleet.step(table()[KNOWN - 1, :3], at=HOURS[KNOWN - 1]) is None
    with pytest.raises(ompb.GapError):
        fleet.step(table()[KNOWN + 1, :3], at=HOURS[KNOWN + 1])
    for one in (fleet, again):
        streams = [cal.stream(last_season, history=frame) for frame in frames.values()]
        assert_goes_on(one, [*streams, cal.stream(last_season)], at=HOURS)


def test_times_of_all_or_of_each() -> None:
    cal, rows = timed(), np.moveaxis(table()[:KNOWN, :2], 1, 0)
    by_id = {"a": HOURS[:KNOWN], "b": HOURS[10:KNOWN]}
    histories: list[tuple[Any, Any]] = [
        (rows, HOURS[:KNOWN]),
        ({"a": rows[0], "b": rows[1, 10:]}, by_id),
    ]
    for history, times in histories:
        fleet = ompb.Fleet(cal, last_season, ["a", "b"])
        fleet.remember(history, times=times)
        assert fleet.newest == HOURS[KNOWN - 1]


ROWS = np.zeros((12, CHANNELS))
REFUSED: list[tuple[Any, Any, type[Exception], str]] = [
    (np.zeros((2, 12, CHANNELS)), None, ShapeError, r"\(5, rows, channels\), a table for each series"),
    (ROWS, None, ShapeError, r"history has shape \(12, 2\)"),
    ({"a": ROWS, "z": ROWS}, None, InputError, "history names the series 'z', which is not here"),
    ({"a": ROWS[:, :1]}, None, InputError, "^series 'a': history has 1 channel"),
    ({"a": ROWS}, {"b": HOURS[:12]}, OptionError, "times names series that are not here: 'b'"),
    ({"a": ROWS, "b": ROWS}, {"a": HOURS[:12]}, TimeOrderError, "that of 'a' ends at 2024-01-01T11.*'b' has none"),
    (
        {"a": ROWS, "b": ROWS},
        {"a": HOURS[:12], "b": HOURS[1:13]},
        TimeOrderError,
        "'a' ends at 2024-01-01T11.*'b' ends at 2024-01-01T12.*share a clock",
    ),
]


@pytest.mark.parametrize(("history", "times", "error", "says"), REFUSED)
def test_what_cannot_be_used_leaves_the_fleet_as_it_was(
    history: Any, times: Any, error: type[Exception], says: str
) -> None:
    cal = timed()
    fleet = ompb.Fleet(cal, last_season, IDS)
    with pytest.raises(error, match=says):
        fleet.remember(history, times=times)
    fleet.remember(np.moveaxis(table()[:KNOWN], 1, 0), times=HOURS[:KNOWN])
    assert fleet.newest == HOURS[KNOWN - 1]


def test_history_comes_once_and_first() -> None:
    rows = np.moveaxis(table()[:KNOWN], 1, 0)
    fleet = ompb.Fleet(calibrator(), last_season, IDS)
    with pytest.raises(TimeOrderError, match="times= means nothing here"):
        fleet.remember(rows, times=HOURS[:KNOWN])
    fleet.remember(rows)
    with pytest.raises(StaleRowError, match="the fleet has a history; history comes once"):
        fleet.remember(rows)
    fleet.step(table()[KNOWN])
    with pytest.raises(StaleRowError, match="1 ticks have been closed"):
        fleet.remember(rows)
