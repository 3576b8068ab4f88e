"""A fleet whose model is replaced is as many streams whose model is replaced."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_fleets import (
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
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import BusyError, ForecasterError, FormatError, OmpbError, OptionError
from ompb.types import Floats

AT = 50
AHEAD = HORIZON - 1  # of the new model


def level(windows: Floats) -> Floats:
    """Another forecaster, by plain sums: the middle of the window's ends."""
    return np.asarray(np.repeat(0.5 * windows[:, :1] + 0.5 * windows[:, -1:], AHEAD, axis=1))


@lru_cache
def renewed(number: int = 0) -> ompb.Calibrator:
    source = 3 * shifted_stream("level", 30 + number, 300, 40, 2, SEASON)[0]
    return ompb.Calibrator.fit(level, source, context=CONTEXT, horizon=AHEAD, season=SEASON, **SETTINGS)


def each_renewed() -> dict[str, ompb.Calibrator]:
    return {one: renewed(number) for number, one in enumerate(IDS)}


def said(stream: ompb.Stream, row: Floats) -> tuple[ompb.Forecast | None, int]:
    forecast = stream.step(row)
    return forecast, -1 if forecast is None or forecast.replaced is None else forecast.replaced


@pytest.mark.parametrize(("device", "tolerance"), [(None, 0.0), ("cpu", 1e-9)])
@pytest.mark.parametrize("own", [False, True])
def test_a_fleet_is_replaced_as_its_streams_are(own: bool, device: str | None, tolerance: float) -> None:
    """Also for series that joined later."""
    if device is not None:
        pytest.importorskip("torch")
    before: Any = calibrators() if own else calibrator()
    after: Any = each_renewed() if own else renewed()
    first, joining = IDS[:3], IDS[3:]
    fleet = ompb.Fleet(before, last_season, first, device=device)
    streams = [(before[one] if own else before).stream(last_season) for one in IDS]
    for tick, rows in enumerate(table()[:AT]):
        if tick == 20:
            fleet.add(joining, before)
        fleet.step(rows[: len(fleet.ids)])
        for stream, row in zip(streams[: len(fleet.ids)], rows, strict=False):
            stream.step(row)
    fleet.replace(level, after)
    for one, stream in zip(IDS, streams, strict=True):
        stream.replace(level, after[one] if own else after)
    for rows in table()[AT:]:
        out = fleet.step(rows)
        assert out is not None
        for place, (stream, row) in enumerate(zip(streams, rows, strict=True)):
            forecast, replaced = said(stream, row)
            assert_equal(out, place, forecast, tolerance)
            assert out.replaced[place] == replaced
    assert (fleet.ids, fleet.ticks) == (IDS, len(table()))


def test_series_that_had_forecasts_at_other_ticks_go_on_together() -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS)
    for tick, rows in enumerate(table()[:AT]):
        base = last_season(np.nan_to_num(table()[tick - CONTEXT + 1 : tick + 1]).swapaxes(0, 1)) if tick > 30 else None
        if base is not None and tick == 40:
            base[1:3] = np.nan
        fleet.step(rows, base=base)
    assert len(fleet._now.groups) == 2
    alone = [fleet.take(one) for one in IDS]
    fleet.replace(level, renewed())
    assert len(fleet._now.groups) == 1
    for stream in alone:
        stream.replace(level, renewed())
    for rows in table()[AT : AT + 10]:
        out = fleet.step(rows)
        assert out is not None
        for place, stream in enumerate(alone):
            assert_equal(out, place, stream.step(rows[place]))


def test_it_is_saved_with_the_new_calibrators_and_new_series_get_them(tmp_path: Path) -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS[:4])
    for rows in table()[:AT]:
        fleet.step(rows[:4])
    fleet.replace(level, renewed())
    fleet.step(table()[AT, :4])
    fleet.save(tmp_path / "fleet")
    with pytest.raises(FormatError):
        ompb.Fleet.load(tmp_path / "fleet", calibrator(), last_season)
    loaded = ompb.Fleet.load(tmp_path / "fleet", renewed(), level)
    for one in (fleet, loaded):
        one.add(IDS[4:])
    for rows in table()[AT + 1 : AT + 20]:
        mine, theirs = fleet.step(rows), loaded.step(rows)
        assert mine is not None
        assert theirs is not None
        np.testing.assert_array_equal(mine.mean, theirs.mean)
        np.testing.assert_array_equal(mine.replaced, theirs.replaced)
    assert mine is not None
    assert mine.mean.shape == (5, AHEAD, 2)


def unfit() -> dict[str, tuple[Any, Any, type[OmpbError], str]]:
    lacking = {one: cal for one, cal in each_renewed().items() if one != "c"}
    return {
        "lacking": (level, lacking, OptionError, "calibrators lack c; pass one"),
        "unlike": (level, {**each_renewed(), "c": calibrator()}, OptionError, "'c' and 'a' differ in horizon"),
        "channels": (last_season, calibrator(0, 1), OptionError, "the new calibrator has the channels"),
        "no forecaster": (renewed(), renewed(), ForecasterError, "is a Calibrator"),
    }


@pytest.mark.parametrize("why", ["lacking", "unlike", "channels", "no forecaster"])
def test_a_model_that_does_not_fit_leaves_the_fleet_as_it_was(why: str) -> None:
    forecaster, calibrators, kind, words = unfit()[why]
    fleet, other = (ompb.Fleet(calibrator(), last_season, IDS) for _ in range(2))
    for rows in table()[:AT]:
        fleet.step(rows)
        other.step(rows)
    with pytest.raises(kind, match=words):
        fleet.replace(forecaster, calibrators)
    mine, theirs = fleet.step(table()[AT]), other.step(table()[AT])
    assert mine is not None
    assert theirs is not None
    np.testing.assert_array_equal(mine.mean, theirs.mean)
    assert (mine.replaced == -1).all()


def test_a_forecaster_must_not_replace_itself() -> None:
    def meddling(windows: Floats) -> Floats:
        fleet.replace(last_season, calibrator())
        return last_season(windows)

    fleet = ompb.Fleet(calibrator(), meddling, IDS)
    for rows in table()[: CONTEXT - 1]:
        fleet.step(rows)
    with pytest.raises(BusyError):
        fleet.step(table()[CONTEXT])
    assert fleet.ticks == CONTEXT - 1
