"""The model is replaced while live: all that the old one taught begins anew, and forecasts say so."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_streams import CHANNELS, CONTEXT, HORIZON, fit, last_season, same, saved
from two_models import (
    AFTER,
    HOUR,
    NEW,
    START,
    assert_alike,
    assert_go_on_alike,
    drifting,
    followed,
    fresh,
    new,
    old,
    rows,
    with_holes,
    world,
)

import ompb
from ompb.errors import BusyError, ForecasterError, FormatError, OmpbError, OptionError, TooShortError
from ompb.types import Floats

# ------------------------------------------------------------------------------------------- what begins anew


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("at", [1, 17, 130])
@pytest.mark.parametrize("name", NEW)
def test_it_goes_on_as_a_fresh_stream_with_the_rows_so_far_as_history(name: str, at: int, holes: bool) -> None:
    before = with_holes(rows()[:at]) if holes else rows()[:at]
    stream, other = followed(before), fresh(before, name)
    assert new(name).remembers <= old().remembers  # else see below
    stream.replace(NEW[name][0], new(name))
    assert stream.rows == at
    assert assert_go_on_alike(stream, other, with_holes(rows()[at : at + AFTER], 0.05)) > AFTER - CONTEXT - 5


def test_the_same_model_again_forgets_what_it_has_learned() -> None:
    """Else the test above would say little."""
    stream, never = (followed(rows()[:130]) for _ in range(2))
    stream.replace(last_season, old())
    mine, theirs = (one.step(rows()[130]) for one in (stream, never))
    assert mine is not None
    assert theirs is not None
    np.testing.assert_array_equal(mine.base, theirs.base)
    assert (mine.mean != theirs.mean).all()
    assert (mine.sd != theirs.sd).all()
    assert stream.realised_risk().outcomes == 0 < never.realised_risk().outcomes


def test_history_counts_as_rows_so_far_and_one_model_may_follow_another() -> None:
    stream = followed(rows()[20:70], history=rows()[:20])
    stream.replace(last_season, old())
    for row in rows()[70:75]:
        stream.step(row)
    stream.replace(NEW["trained again"][0], new())
    assert stream.rows == 55
    assert_go_on_alike(stream, fresh(rows()[:75]), rows()[75 : 75 + AFTER])


def test_before_the_first_row_nothing_was_replaced() -> None:
    stream = followed(rows()[:0], history=rows()[:40])
    stream.replace(NEW["longer"][0], new("longer"))
    forecast = stream.step(rows()[40])
    assert same(forecast, fresh(rows()[:40], "longer").step(rows()[40]))
    assert forecast is not None
    assert forecast.replaced is None


def test_a_longer_memory_grows_from_the_rows_that_were_kept() -> None:
    """The old stream has forgotten those before; the new one is a fresh stream that was told of the others alone."""
    narrow = new("without memory")
    kept, at = narrow.remembers, 50
    assert kept < old().remembers
    stream = narrow.stream(drifting(HORIZON))
    for row in rows()[:at]:
        stream.step(row)
    stream.replace(last_season, old())
    other = old().stream(last_season, history=rows()[at - kept : at])
    assert assert_go_on_alike(stream, other, rows()[at : at + AFTER]) == AFTER


# ------------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize("name", ["trained again", "longer", "shorter"])
def test_forecasts_say_so_until_the_first_has_matured(name: str) -> None:
    stream, horizon = followed(rows()[:50]), new(name).horizon
    stream.replace(NEW[name][0], new(name))
    said = [forecast.replaced for row in rows()[50:70] if (forecast := stream.step(row)) is not None]
    assert said == [50] * horizon + [None] * (20 - horizon)


def test_silence_puts_the_first_forecast_off() -> None:
    stream = followed(rows()[:50])
    stream.replace(NEW["trained again"][0], new())
    for row in rows()[50:53]:
        assert stream.step(row, base=None) is None
    first = stream.step(rows()[53])
    assert stream.step(rows()[54], base=None) is None  # later ones do not
    said = [forecast.replaced for row in rows()[55:60] if (forecast := stream.step(row)) is not None]
    assert first is not None
    assert (first.replaced, said) == (53, [53] * (HORIZON - 2) + [None] * (7 - HORIZON))


# ------------------------------------------------------------------------------------------- times, files, errors


@pytest.mark.parametrize("gap", [0, 2, 40])
def test_times_go_on_and_a_gap_counts_as_missing_rows(gap: int) -> None:
    cal, times, at = old(timed=True), START + HOUR * np.arange(300), 50
    stream = cal.stream(last_season)
    seen = np.asarray([*range(20), *range(23, at)])
    for place in seen:
        stream.step(rows()[place], at=times[place])
    stream.replace(NEW["longer"][0], new("longer", timed=True))
    assert stream.rows == at
    other = new("longer", timed=True).stream(NEW["longer"][0], history=rows()[seen], times=times[seen])
    for place in range(at + gap, at + gap + AFTER):
        mine, theirs = (one.step(rows()[place], at=times[place]) for one in (stream, other))
        assert_alike(mine, theirs, at)
        assert mine is not None
        assert mine.times is not None
        assert mine.times[0] == times[place + 1]
    stream.observe(times[at + gap + AFTER - 2], [0.0, 0.0])


@pytest.mark.parametrize("later", [0, 1, 3, 20])
def test_saved_and_loaded_it_goes_on_bit_for_bit(later: int, tmp_path: Path) -> None:
    stream, path = followed(rows()[:70]), tmp_path / "stream.ompb"
    stream.replace(NEW["longer"][0], new("longer"))
    for row in rows()[70 : 70 + later]:
        stream.step(row)
    stream.save(path)
    with pytest.raises(FormatError):
        ompb.Stream.load(path, old(), last_season)
    loaded = ompb.Stream.load(path, new("longer"), NEW["longer"][0])
    for row in rows()[70 + later : 70 + later + AFTER]:
        mine, theirs = stream.step(row), loaded.step(row)
        assert_alike(mine, theirs, 0)
        assert mine is not None
        assert theirs is not None
        assert mine.replaced == theirs.replaced
    assert saved(stream) == saved(loaded)


def test_a_loaded_stream_is_replaced_as_the_one_that_was_saved(tmp_path: Path) -> None:
    stream, path = followed(rows()[20:70], history=rows()[:20]), tmp_path / "stream.ompb"
    stream.save(path)
    loaded = ompb.Stream.load(path, old(), last_season)
    for one in (stream, loaded):
        one.replace(NEW["trained again"][0], new())
    assert saved(stream) == saved(loaded)


@lru_cache
def unfit() -> dict[str, tuple[Any, ompb.Calibrator, type[OmpbError], str]]:
    """Models that cannot follow."""
    one, far = fit(rows=world()[0][:, :1]), drifting(HORIZON)
    long = fit(far, world()[0], context=60)
    return {
        "channels": (last_season, one, OptionError, r"channels .*'channel 0',.* 'channel 1'.*start anew with history="),
        "steps of time": (last_season, old(timed=True), OptionError, "steps of time 1:00:00, .* have None"),
        "context": (far, long, TooShortError, "context 60, and of 90 rows the newest .* are kept.*history="),
        "no forecaster": (old(), old(), ForecasterError, "is a Calibrator; accepted"),
        "of the source": (ompb.Recorded(np.zeros((90, HORIZON, CHANNELS))), recorded(), ForecasterError, "source"),
    }


@lru_cache
def recorded() -> ompb.Calibrator:
    return fit(ompb.Recorded(np.zeros((90, HORIZON, CHANNELS))), rows()[:90])


@pytest.mark.parametrize("why", ["channels", "steps of time", "context", "no forecaster", "of the source"])
def test_a_model_that_does_not_fit_leaves_the_stream_as_it_was(why: str) -> None:
    forecaster, calibrator, kind, words = unfit()[why]
    stream = followed(rows()[:90])
    before, other = saved(stream), copy.deepcopy(stream)
    with pytest.raises(kind, match=words) as kept:
        stream.replace(forecaster, calibrator)
    assert saved(stream) == before
    assert same(stream.step(rows()[90]), other.step(rows()[90])), kept


def test_a_long_context_follows_a_stream_that_has_forgotten_nothing() -> None:
    cal = fit(drifting(HORIZON), world()[0], context=60)
    stream = followed(rows()[:20])
    stream.replace(drifting(HORIZON), cal)
    other = cal.stream(drifting(HORIZON), history=rows()[:20])
    assert assert_go_on_alike(stream, other, rows()[20 : 20 + AFTER]) == AFTER - 39


def test_base_forecasts_may_be_handed_in_from_then_on() -> None:
    stream, other = followed(rows()[:50]), fresh(rows()[:50])
    stream.replace(None, new())
    with pytest.raises(ForecasterError, match="no forecaster"):
        stream.step(rows()[50])
    theirs = other.step(rows()[50])
    assert theirs is not None
    assert_alike(stream.step(rows()[50], base=theirs.base), theirs, 50)


def test_a_forecaster_must_not_replace_itself() -> None:
    def meddling(windows: Floats) -> Floats:
        if len(asked) == 30:
            stream.replace(last_season, old())
        asked.append(1)
        return last_season(windows)

    asked: list[int] = []
    stream = old().stream(meddling)
    for row in rows()[: 30 + CONTEXT - 1]:
        stream.step(row)
    with pytest.raises(BusyError):
        stream.step(rows()[50])
    assert stream.rows == 30 + CONTEXT - 1
    stream.replace(last_season, old())
    assert stream.step(rows()[50]) is not None
