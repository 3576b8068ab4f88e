"""Warnings of a whole stream: found, told, saved, and closed to late cells."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.core.record import BLOCK
from ompb.episodes import Episode, episodes
from ompb.types import Alert, Floats

CONTEXT, HORIZON, SEASON, SOURCE, CALM = 24, 4, 12, 1000, 400
START = np.datetime64("2024-01-01T00", "us")
HOUR = np.timedelta64(1, "h")


@lru_cache
def series() -> Floats:
    """A daily season in AR noise; the seed is one without a false alarm."""
    shocks = np.random.default_rng(1).normal(size=(SOURCE + CALM + 200, 2))
    noise = np.zeros_like(shocks)
    for row in range(1, len(noise)):
        noise[row] = 0.5 * noise[row - 1] + shocks[row]
    return np.asarray(20 + np.sin(2 * np.pi * np.arange(len(noise))[:, None] / SEASON) * [3, 1] + 0.4 * noise)


@lru_cache
def forecaster() -> ompb.Ridge:
    return ompb.Ridge.fit(series()[:700], CONTEXT, HORIZON)


@lru_cache
def calibrator() -> ompb.Calibrator:
    times = START + np.arange(SOURCE) * HOUR
    sizes: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON}
    return ompb.Calibrator.fit(forecaster(), series()[:SOURCE], times=times, unseen=300, **sizes)


@lru_cache
def _calm() -> ompb.Stream:
    stream = calibrator().stream(forecaster())
    for row, values in enumerate(series()[SOURCE : SOURCE + CALM], SOURCE):
        stream.step(values, at=START + row * HOUR)
    return stream


def calm() -> ompb.Stream:
    """After rows like those of the source."""
    return copy.deepcopy(_calm())


def changed(kind: str, rows: int = 96) -> Floats:
    """What follows, changed."""
    standard = calibrator().scaler.standardise(series()[SOURCE + CALM :])
    other = {
        "nothing": standard,
        "level": standard + 1.5,
        "scale": 1.8 * standard,
        "noise": standard + np.random.default_rng(1).normal(size=standard.shape),
        "reversal": -standard,
        "phase": standard[6:],
    }[kind]
    return np.asarray(calibrator().centre + calibrator().scale * other[:rows])


@pytest.mark.parametrize("kind", ["level", "scale", "noise", "reversal", "phase"])
def test_a_change_is_found_and_one_episode(kind: str) -> None:
    stream = calm()
    assert stream.warnings() == ()
    issued = [stream.step(row) for row in changed(kind)]
    found = episodes(forecast.warnings for forecast in issued if forecast is not None)
    assert len(found) >= 1
    assert found[0].since - CALM < 24
    assert all(alert.rows_between >= calibrator().settings.warning_rows for alert in found[0].alerts)


def test_nothing_is_found_where_nothing_changed() -> None:
    stream = calm()
    assert all(forecast is not None and forecast.warning is None for forecast in map(stream.step, changed("nothing")))


def test_a_warning_in_words() -> None:
    stream = calm()
    rows = changed("nothing")
    rows[:, 1] += 3 * calibrator().scale[1]
    forecasts = [forecast for forecast in map(stream.step, rows[:10]) if forecast is not None]
    warnings = forecasts[-1].warnings
    level = next(alert for alert in warnings if alert.signal == "level")
    assert level.channels == ("channel 1",)
    assert level.since_time == START + (SOURCE + level.since) * HOUR
    assert stream.warnings() == warnings
    assert forecasts[-1].warning == str(warnings[0])
    often = [alert.rows_between for alert in warnings]
    assert often == sorted(often, reverse=True)
    alert = Alert("level", 7, 9, None, ("a", "b"), 5234.0)
    assert str(alert) == "The level has moved since row 7 (a, b): a calm stream does so once in 5,234 rows."
    rare = Alert("errors", 7, 9, START, ("a",), 1e6)
    assert str(rare) == (
        "Forecasts err more than their intervals say since 2024-01-01T00:00:00 (a): "
        "a calm stream does so less than once in a million rows."
    )


def test_a_saved_stream_warns_as_one_that_never_stopped(tmp_path: Path) -> None:
    stream, rows = calm(), changed("scale")
    for row in rows[:30]:
        stream.step(row)
    stream.save(tmp_path / "stream.ompb")
    calibrator().save(tmp_path / "calibrator.ompb")
    loaded = ompb.Stream.load(
        tmp_path / "stream.ompb", ompb.Calibrator.load(tmp_path / "calibrator.ompb"), forecaster()
    )
    assert loaded.warnings() == stream.warnings() != ()
    for row in rows[30:60]:
        ours, theirs = stream.step(row), loaded.step(row)
        assert ours is not None
        assert theirs is not None
        assert ours.warnings == theirs.warnings


def test_missing_rows_late_cells_and_gaps_raise_no_warning() -> None:
    stream, rows = calm(), changed("nothing")
    for row in rows[:6]:
        stream.step(np.where([True, False], row, np.nan))
    assert stream.warnings() == ()
    before = stream._state.online.warnings
    stream.observe(CALM + 4, rows[4])
    assert stream._state.online.warnings is before  # a sum in time order takes nothing late
    stream.step(rows[6 + 3], at=START + (SOURCE + CALM + 9) * HOUR)  # over a gap of three rows
    assert all(forecast is not None and not forecast.warnings for forecast in map(stream.step, rows[10:40]))


def test_a_backtest_tells_of_the_same_warnings() -> None:
    rows = np.concatenate([series()[SOURCE : SOURCE + CALM], changed("level")])
    run = ompb.backtest(calibrator(), forecaster(), rows)
    stream = calibrator().stream(forecaster())
    issued = [forecast for forecast in map(stream.step, rows) if forecast is not None]
    told = [(e.since, e.newest, [a.signal for a in e.alerts]) for e in run.warnings]
    assert told == [(e.since, e.newest, [a.signal for a in e.alerts]) for e in episodes(f.warnings for f in issued)]
    assert any(episode.since >= CALM for episode in run.warnings)


def test_an_episode_keeps_the_strongest_reading_of_each_signal() -> None:
    weak, strong = Alert("level", 5, 6, None, ("a",), 2e3), Alert("level", 5, 8, None, ("a",), 9e3)
    other = Alert("errors", 7, 30, None, ("b",), 4e3)
    episode = Episode(5, 6, (weak,)).with_alerts([strong, other])
    assert episode == Episode(5, 30, (strong, other))
    assert str(episode).endswith("once in 9,000 rows. Also seen: errors.")
    assert BLOCK == 24  # rows that an episode outlasts its newest alarm
