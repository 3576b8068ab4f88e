"""Cells that are missing, late or never come, at the level of the stream."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from small_streams import CHANNELS, CONTEXT, HORIZON, calibrator, finite, fit, last_season, saved, target

import ompb
from ompb.core.posterior import Posterior
from ompb.types import Floats

PATIENCE = 12  # more than the context: rows older than the window can still be learned


def patient(**options: Any) -> ompb.Calibrator:
    return fit(patience=PATIENCE, **options)


def head(stream: ompb.Stream) -> Posterior:
    return next(state for state in stream._state.online.members if isinstance(state, Posterior))


def standing_still(holes: tuple[int, ...]) -> Floats:
    """Rows in which each of the holes repeats the row before: filled, the window is the same as if it had come."""
    rows = target()[:120].copy()
    for hole in holes:
        rows[hole] = rows[hole - 1]
    return rows


def stepped(cal: ompb.Calibrator, rows: Floats, holes: tuple[int, ...]) -> ompb.Stream:
    stream = cal.stream(last_season)
    for at, row in enumerate(rows):
        stream.step(np.full(CHANNELS, np.nan) if at in holes else row)
    return stream


@pytest.mark.parametrize("holes", [(115,), (110, 113), (108, 109, 110), (119,)])
def test_late_labels_are_learned_as_if_on_time_in_any_order(holes: tuple[int, ...]) -> None:
    """Where the inputs are the same, so is the head, to the last digits; and so are the gate's sums."""
    cal, rows = patient(), standing_still(holes)
    on_time = stepped(cal, rows, ())
    for order in itertools.permutations(holes):
        late = stepped(cal, rows, holes)
        assert np.abs(head(late).mean - head(on_time).mean).max() > 1e-6  # something is missing
        for at in order:
            late.observe(at, rows[at])
        np.testing.assert_allclose(head(late).mean, head(on_time).mean, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(head(late).root, head(on_time).root)
        gates = [stream._state.online.gate for stream in (late, on_time)]
        np.testing.assert_allclose(gates[0].rows, gates[1].rows, rtol=1e-12)
        np.testing.assert_array_equal(late._state.window.filled, on_time._state.window.filled)


def test_a_late_cell_may_come_channel_by_channel() -> None:
    cal, rows = patient(), standing_still((112,))
    at_once, in_turn = stepped(cal, rows, (112,)), stepped(cal, rows, (112,))
    at_once.observe(112, rows[112])
    in_turn.observe(112, [np.nan, rows[112, 1]])
    in_turn.observe(112, [rows[112, 0], np.nan])
    np.testing.assert_allclose(head(in_turn).mean, head(at_once).mean, rtol=0, atol=1e-13)


def test_between_forecasts_a_late_label_counts_like_one_on_time() -> None:
    """The heads went on learning after the hole, over a refill of the source's word."""
    cal, rows = patient(), standing_still((68,))
    on_time, late = cal.stream(last_season), cal.stream(last_season)
    for at, row in enumerate(rows):
        on_time.step(row)
        late.step(np.full(CHANNELS, np.nan) if at == 68 else row)
        if at == 68 + PATIENCE:
            assert np.abs(head(late).mean - head(on_time).mean).max() > 1e-6
            late.observe(68, rows[68])
        if at >= 68 + PATIENCE:
            np.testing.assert_allclose(head(late).mean, head(on_time).mean, rtol=0, atol=1e-12)


class Watching:
    """A forecaster that keeps the newest window it was shown."""

    window: Floats

    def __call__(self, windows: NDArray[np.floating]) -> Floats:
        self.window = np.array(windows[-1])
        return last_season(windows)


@pytest.mark.parametrize("order", [(90, 92), (92, 90)])
def test_the_newest_row_before_the_window_fills_it_whatever_comes_later(order: tuple[int, int]) -> None:
    """Channel 0 has been silent for longer than a window; of two late cells, the newer one is what was known last."""
    forecaster = Watching()
    stream = patient().stream(forecaster)
    for at, row in enumerate(target()[:100]):
        stream.step(row if at < 88 else [np.nan, row[1]])
    values = {90: 20.0, 92: 21.0}
    for at in order:
        stream.observe(at, [values[at], np.nan])
    stream.step([np.nan, target()[100, 1]])
    assert (forecaster.window[:, 0] == 21.0).all()
    np.testing.assert_array_equal(forecaster.window[:, 1], target()[101 - CONTEXT : 101, 1])


def test_a_late_cell_inside_the_window_fills_what_follows_it_only() -> None:
    forecaster = Watching()
    stream = patient().stream(forecaster)
    for at, row in enumerate(target()[:100]):
        stream.step(row if at < 95 else [np.nan, row[1]])
    stream.observe(97, [20.0, np.nan])
    stream.observe(96, [19.0, np.nan])
    stream.step([np.nan, target()[100, 1]])
    assert forecaster.window[:, 0].tolist() == [target()[94, 0], 19.0, 20.0, 20.0, 20.0, 20.0]


def test_a_revision_is_seen_but_not_learned_again() -> None:
    stream = stepped(patient(), target()[:100], ())
    before = saved(stream)
    stream.observe(99, target()[99])
    assert saved(stream) == before
    learned = head(stream).mean.copy()
    stream.observe(99, target()[99] + 1)
    np.testing.assert_array_equal(head(stream).mean, learned)
    np.testing.assert_array_equal(stream._state.window.filled[0, -1], target()[99] + 1)


def test_labels_that_never_come_take_no_room(tmp_path: Path) -> None:
    """A tenth of the cells is lost for ever: what is kept for them has an end, and goes once all come in time."""
    rng = np.random.default_rng(0)
    stream = calibrator().stream(last_season)

    def size() -> int:
        stream.save(tmp_path / "stream")
        return (tmp_path / "stream").stat().st_size

    room = [size()]  # for all cells that may be missing at once
    for at in range(2000):
        if at in (100, 1800):
            room.append(size())
        row = target()[at % len(target())]
        lost = (rng.random(CHANNELS) < 0.1) & (100 <= at < 1800)
        forecast = stream.step(np.where(lost, np.nan, row))
        assert forecast is None or at % 50 or finite(forecast)
    most, before, during, after = *room, size()
    assert before < during < most
    assert abs(after - before) < 100  # numbers in the header grow by a digit


def test_a_row_that_is_all_missing_forecasts_from_what_is_known() -> None:
    stream = stepped(calibrator(), target()[:60], ())
    widths = []
    for _ in range(3 * HORIZON):
        forecast = stream.step([np.nan, np.nan])
        assert forecast is not None
        assert finite(forecast)
        widths.append(np.ptp(forecast.interval(0.9), axis=0))
    assert len({width.tobytes() for width in widths}) > 1
    assert stream.rows == 60 + 3 * HORIZON
