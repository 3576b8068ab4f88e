"""The model is replaced while live: rows stay, and so does what was not believed or comes late."""

from __future__ import annotations

import numpy as np
import pytest
from small_streams import fit, last_season
from two_models import (
    AFTER,
    NEW,
    assert_alike,
    assert_go_on_alike,
    followed,
    fresh,
    new,
    old,
    rows,
    with_holes,
    world,
)

from ompb import archive
from ompb.live.window import NEVER, Window


def test_cells_that_were_not_believed_stay_so_and_stay_counted() -> None:
    before = rows()[:90].copy()
    before[80, 0] += 400.0 * rows()[:, 0].std()
    stream = followed(before)
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    stream.replace(NEW["trained again"][0], new())
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    before[80, 0] = np.nan
    assert_go_on_alike(stream, fresh(before), rows()[90 : 90 + AFTER])


def test_cells_that_are_none_in_the_new_scale_count_as_missing() -> None:
    """To a calibrator of tiny values, the rows so far are beyond a million standard deviations."""
    tiny = fit(rows=world()[0] * [1.0, 1e-9])
    stream = followed(rows()[:90])
    stream.replace(last_season, tiny)
    assert stream.hidden == {"channel 0": 0, "channel 1": old().remembers}
    missing = rows()[:90].copy()
    missing[:, 1] = np.nan
    assert_go_on_alike(stream, tiny.stream(last_season, history=missing), rows()[90 : 90 + AFTER] * [1.0, 1e-9])


@pytest.mark.parametrize("at", [3, 70])
def test_for_a_channel_never_known_the_new_mean_stands_in(at: int) -> None:
    before = rows()[:at].copy()
    before[:, 1] = np.nan
    stream = followed(before)
    stream.replace(NEW["trained again"][0], new())
    assert_go_on_alike(stream, fresh(before), before[:10] + 1.0)
    assert (stream._state.window.filled[..., 1] == new().centre[1]).all()


def test_a_value_known_before_the_window_fills_its_first_cells() -> None:
    before = rows()[:90].copy()
    before[50:, 1] = np.nan
    assert old().remembers < 40
    stream = followed(before)
    stream.replace(NEW["trained again"][0], new())
    assert_go_on_alike(stream, fresh(before), before[60:70])
    assert (stream._state.window.filled[..., 1] == rows()[49, 1]).all()


@pytest.mark.parametrize("age", [0, 1, 2, 3, 5, 12])
def test_a_late_cell_of_the_old_model_s_rows_is_seen_in_windows(age: int) -> None:
    at = 90
    holed = rows()[:at].copy()
    holed[at - 1 - age] = np.nan
    stream = followed(holed)
    stream.replace(NEW["trained again"][0], new())
    stream.observe(at - 1 - age, rows()[at - 1 - age])
    assert_go_on_alike(stream, fresh(rows()[:at]), rows()[at : at + AFTER])


def test_outcomes_of_the_old_model_s_forecasts_are_not_learned() -> None:
    """A late row that both models spoke of teaches what the new one said of it, and an older one nothing."""
    at, patience = 90, new().settings.patience
    holed = rows().copy()
    holed[at - 1] = holed[at] = np.nan
    stream = followed(holed[:at])
    stream.replace(NEW["trained again"][0], new())
    other = fresh(holed[:at])
    assert patience >= 4
    for row in holed[at : at + 4]:
        assert_alike(stream.step(row), other.step(row), at)
    learned = [archive.fingerprint(part) for part in stream._state.online if isinstance(part, tuple)]
    stream.observe(at - 1, rows()[at - 1])
    after = [archive.fingerprint(part) for part in stream._state.online if isinstance(part, tuple)]
    assert after == learned
    stream.observe(at, rows()[at])
    other.observe(0, rows()[at])
    window = other._state.window.revised(4, -1, rows()[None, at - 1])  # as no stream may: a row of its history
    other._state = other._state._replace(window=window)
    assert_go_on_alike(stream, other, rows()[at + 4 : at + 4 + AFTER])


@pytest.mark.parametrize("kept", [1, 4, 9, 30])
@pytest.mark.parametrize("length", [1, 8, 25])
def test_the_newest_rows_of_a_table_are_what_stepping_leaves(kept: int, length: int) -> None:
    """Of a narrower window, too, and whatever was known before it."""
    rng = np.random.default_rng(length)
    known, centre = with_holes(rng.normal(size=(3, length, 2)), 0.6), rng.normal(size=(3, 2))
    stepped = Window.empty(kept, centre)
    for row in range(length):
        stepped = stepped.with_row(row, known[:, row : row + 1])
    found = Window.newest(kept, known, length - 1, centre, np.full((3, 2), NEVER))
    narrower = Window.newest(
        max(kept - 2, 1), found.known, length - 1, found.before, np.asarray(found.before_row, dtype=np.int64)
    )
    straight = Window.newest(max(kept - 2, 1), known, length - 1, centre, np.full((3, 2), NEVER))
    for mine, theirs in ((found, stepped), (narrower, straight)):
        for here, there in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(here, there)
