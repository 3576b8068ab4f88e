"""What a stream promises: no leak, no harm when closed, nothing lost on a restart, no bad cell that spreads."""

from __future__ import annotations

import dataclasses
import gc
import tracemalloc
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ompb
from ompb.core.members.head import SourceHead
from ompb.core.members.memory import Memory
from ompb.core.posterior import Posterior
from ompb.datasets.synthetic import shifted_stream

CONTEXT, HORIZON, SEASON = 24, 6, 12
Floats = NDArray[np.float64]


@lru_cache
def fit(**options: Any) -> tuple[ompb.Calibrator, ompb.Ridge, Floats]:
    source, target = shifted_stream("scale", 3, 600, 260, 2, SEASON)
    target.flags.writeable = False  # shared
    forecaster = ompb.Ridge.fit(source, CONTEXT, HORIZON)
    cal = ompb.Calibrator.fit(forecaster, source, context=CONTEXT, horizon=HORIZON, season=SEASON, **options)
    return cal, forecaster, target


def posterior(stream: ompb.Stream) -> Posterior:
    return next(state for state in stream._state.online.members if isinstance(state, Posterior))


def same(a: ompb.Forecast | None, b: ompb.Forecast | None) -> bool:
    """Equal to the last bit, arrays and certificate alike."""
    if a is None or b is None:
        return a is b
    arrays = ("mean", "base", "gate", "sd", "multipliers")
    return (
        a.origin == b.origin
        and all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in arrays)
        and a.certificate == b.certificate
    )


def with_gaps(rows: Floats, seed: int = 0) -> Floats:
    gappy = rows.copy()
    gappy[np.random.default_rng(seed).random(rows.shape) < 0.1] = np.nan
    return gappy


@pytest.mark.parametrize("future", [np.nan, 1e6])
def test_leak_canary(future: float) -> None:
    """Replacing every row after t changes nothing issued up to t, by one bit."""
    cal, forecaster, rows = fit()
    rows = with_gaps(rows)
    for t in (CONTEXT, 100, 180):
        poisoned = rows.copy()
        poisoned[t + 1 :] = future
        honest, canary = cal.stream(forecaster), cal.stream(forecaster)
        for row, other in zip(rows[: t + 1], poisoned[: t + 1], strict=True):
            assert same(honest.step(row), canary.step(other))
    run, poisoned_run = (ompb.backtest(cal, forecaster, x) for x in (rows, poisoned))
    until = run.origins <= 180
    for name in ("mean", "base", "gate", "sd", "multipliers"):
        assert getattr(run, name)[until].tobytes() == getattr(poisoned_run, name)[until].tobytes()
    for name, values in run.certificate.items():
        assert values[until].tobytes() == poisoned_run.certificate[name][until].tobytes()


def test_backtest_is_the_stream() -> None:
    cal, forecaster, rows = fit()
    run, stream = ompb.backtest(cal, forecaster, rows), cal.stream(forecaster)
    issued = [f for f in map(stream.step, rows) if f is not None]
    # the forecaster rounds a block of windows differently from one window
    np.testing.assert_allclose(run.mean, [f.mean for f in issued], rtol=1e-9)
    assert run.origins.tolist() == [f.origin for f in issued]
    np.testing.assert_allclose(run.realised.upper, stream.realised_risk().upper, rtol=1e-9)


def test_fresh_head_and_closed_gate_return_the_base_bit_for_bit() -> None:
    cal, forecaster, rows = fit(novelty=0.0)
    negative_zero = ompb.Recorded(np.full((len(rows), HORIZON, 2), -0.0))
    first = [f for f in map(cal.stream(negative_zero).step, rows[:CONTEXT]) if f is not None]
    assert first[0].mean.tobytes() == first[0].base.tobytes()
    assert (first[0].gate == 0).all()
    closed, forecaster, rows = fit(backbone_prior=1.0)
    for forecast in map(closed.stream(forecaster).step, rows):
        if forecast is not None:
            assert forecast.mean.tobytes() == forecast.base.tobytes()
            assert (forecast.gate == 0).all()


def test_before_any_outcome_the_gate_opens_where_there_is_novelty_and_nowhere_else() -> None:
    cal, forecaster, rows = fit()
    memory = next(member for member in cal.source.members if isinstance(member, Memory))
    lanes = ((rows[:CONTEXT] - cal.centre) / cal.scale).T
    said = memory.spans[0].forecasts(lanes[:, None])[:, 0, :HORIZON].T  # a forecaster that is the memory itself ...
    base = cal.centre + cal.scale * (said + np.asarray([50.0, 0.0]))  # ... in one channel, and far off in the other
    stream = cal.stream()
    for row in rows[: CONTEXT - 1]:
        stream.step(row)
    first = stream.step(rows[CONTEXT - 1], base=base)
    assert first is not None
    assert first.novelty is not None
    assert first.novelty[0] > 1 >= first.novelty[1]
    assert first.gate[0] > 0.99
    assert first.gate[1] == 0
    assert first.mean[:, 1].tobytes() == first.base[:, 1].tobytes()
    silent = fit(members=("backbone", "head"))[0].stream(forecaster)
    assert next(f for f in map(silent.step, rows[:CONTEXT]) if f is not None).novelty is None


def test_gate_closes_when_the_correction_does_not_help() -> None:
    """A forecaster that is exactly right leaves nothing to correct."""
    cal, _, rows = fit()
    perfect = np.stack([np.roll(rows, -h, axis=0) for h in range(1, HORIZON + 1)], axis=1)
    issued = [f for f in map(cal.stream(ompb.Recorded(perfect)).step, rows[:-HORIZON]) if f is not None]
    assert all(f.mean.tobytes() == f.base.tobytes() for f in issued[60:])


def test_input_is_not_touched_and_forecasts_are_immutable() -> None:
    cal, forecaster, rows = fit()
    stream = cal.stream(forecaster)
    for row in rows[: CONTEXT + 5]:
        kept = row.copy()
        forecast = stream.step(row)
        assert row.tobytes() == kept.tobytes()
    assert forecast is not None
    for name in ("mean", "base", "gate", "novelty", "sd", "multipliers", "levels"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(forecast, name)[0] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        forecast.origin = 3  # type: ignore[misc]


def test_a_forecaster_that_writes_into_its_window_does_no_harm() -> None:
    cal, forecaster, rows = fit()

    def vandal(windows: Floats) -> Floats:
        base = forecaster(windows)
        windows[...] = 1e9
        return base

    ours, theirs = cal.stream(forecaster), cal.stream(vandal)
    assert all(same(ours.step(row), theirs.step(row)) for row in rows[:80])


def test_an_answer_that_is_a_part_of_the_window_is_taken_as_it_was_given() -> None:
    cal, _, rows = fit()
    given: list[Floats] = []

    def newest(windows: Floats) -> Floats:
        return windows[:, -HORIZON:]

    def late_vandal(windows: Floats) -> Floats:
        for old in given:
            old[...] = 1e9
        given.append(windows)
        return newest(windows)

    ours, theirs = cal.stream(newest), cal.stream(late_vandal)
    assert all(same(ours.step(row), theirs.step(row)) for row in rows[:80])


@pytest.mark.parametrize("options", [{}, {"discounts": (0.99, 0.999), "draws": 4}, {"certificate": False}])
def test_save_load_continue_equals_never_stopped(tmp_path: Path, options: dict[str, Any]) -> None:
    cal, forecaster, rows = fit(**options)
    rows = with_gaps(rows)
    cal.save(tmp_path / "cal.ompb")
    loaded = ompb.Calibrator.load(tmp_path / "cal.ompb")
    never, stream = cal.stream(forecaster), loaded.stream(forecaster)
    for t, row in enumerate(rows):
        if t in (0, 10, 40, 41, 150):
            stream.save(tmp_path / "s.ompb")
            stream = ompb.Stream.load(tmp_path / "s.ompb", loaded, forecaster)
        assert same(never.step(row), stream.step(row))
        if t % 7 == 3:
            late = np.where(np.isnan(row), 1.0, np.nan)
            never.observe(t, late)
            stream.observe(t, late)
    assert never.realised_risk() == stream.realised_risk()
    loaded.save(tmp_path / "again.ompb")
    assert (tmp_path / "again.ompb").read_bytes() == (tmp_path / "cal.ompb").read_bytes()


def test_one_bad_cell_changes_nothing_but_its_own_channel() -> None:
    """The forecaster sees each channel alone, so the other channel must not change by one bit."""
    cal, forecaster, rows = fit(certificate=False)
    broken = rows.copy()
    broken[100, 0] = np.nan
    clean, hurt = cal.stream(forecaster), cal.stream(forecaster)
    after = []
    for row, other in zip(rows, broken, strict=True):
        a, b = clean.step(row), hurt.step(other)
        if a is None or b is None:
            continue
        assert a.mean[:, 1].tobytes() == b.mean[:, 1].tobytes()
        assert a.sd[:, 1].tobytes() == b.sd[:, 1].tobytes()
        assert np.isfinite(b.mean).all()
        after.append(np.abs(a.mean[:, 0] - b.mean[:, 0]).max() / cal.scale[0])
    # ... and in its own channel the memory of it fades
    assert max(after) > 0
    assert np.mean(after[-50:]) < 0.05


def test_a_late_row_makes_up_for_its_hole() -> None:
    cal, forecaster, rows = fit()
    on_time, late = cal.stream(forecaster), cal.stream(forecaster)
    for t, row in enumerate(rows[:160]):
        on_time.step(row)
        late.step(np.full(2, np.nan) if t == 120 else row)
        if t == 124:
            late.observe(120, rows[120])
    a, b = (posterior(s) for s in (on_time, late))
    # forecasts issued from windows with the hole differ, so features do; the heads agree closely all the same
    np.testing.assert_allclose(a.mean, b.mean, atol=0.2 * np.abs(a.mean).max())


@pytest.mark.slow
def test_constant_rows_then_a_step() -> None:
    """3e3 constant rows, thirty times what a head with this discount remembers: no wind-up, no overflow, flat memory.

    A step that comes then is followed within a few seasons.
    """
    cal, forecaster, rows = fit(discounts=(0.99,))
    stream = cal.stream(forecaster)
    constant = rows[0]
    tracemalloc.start()
    held = []
    for _ in range(3):
        for _ in range(1000):
            forecast = stream.step(constant)
        gc.collect()  # what Python keeps at hand for later is not held by the stream
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[2] - held[1] < 5_000  # after the first thousand all that a step replaces has been traced
    assert forecast is not None
    assert np.abs(forecast.mean - constant).max() < 0.05 * cal.scale.max()
    for _ in range(10 * SEASON):
        forecast = stream.step(constant + 2 * cal.scale)
        assert forecast is not None
        assert np.isfinite(forecast.mean).all()
        assert np.isfinite(forecast.interval(0.95)).all()
        assert np.abs(forecast.mean - constant).max() < 20 * cal.scale.max()
    assert np.abs(forecast.mean - constant - 2 * cal.scale).max() < 0.5 * cal.scale.max()


def test_realised_risk_starts_at_one_and_names_its_age() -> None:
    cal, forecaster, rows = fit()
    stream = cal.stream(forecaster)
    assert stream.realised_risk() == ompb.RealisedRisk(1.0, 0.0, 0, 0, 0.05)
    patience = cal.settings.patience
    for row in rows[: CONTEXT + HORIZON + patience]:
        stream.step(row)
        assert stream.realised_risk().outcomes == 0
    for row in rows[CONTEXT + HORIZON + patience :][:2]:
        stream.step(row)
    risk = stream.realised_risk()
    assert risk.outcomes == 2
    assert risk.newest_age == HORIZON + patience + 1
    assert 0 < risk.mean <= risk.upper <= 1


def test_quantiles_are_ordered_and_intervals_nest() -> None:
    cal, forecaster, rows = fit()
    stream = cal.stream(forecaster)
    for row in rows:
        forecast = stream.step(row)
    assert forecast is not None
    levels = [0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99]
    quantiles = np.stack([forecast.quantile(q) for q in levels])
    assert (np.diff(quantiles, axis=0) > 0).all()
    assert forecast.quantile(0.5) is forecast.mean
    lower, upper = forecast.interval(0.8)
    np.testing.assert_allclose(lower, forecast.quantile(0.1))
    np.testing.assert_allclose(upper, forecast.quantile(0.9))
    with pytest.raises(ompb.errors.OptionError):
        forecast.quantile(1.0)


def test_options_of_the_head() -> None:
    opened, forecaster, rows = fit(gate="open")
    forecasts = [f for f in map(opened.stream(forecaster).step, rows[:60]) if f is not None]
    assert all((f.gate == 1).all() for f in forecasts)
    shared, forecaster, rows = fit(gate="shared")
    forecasts = [f for f in map(shared.stream(forecaster).step, rows) if f is not None]
    assert all(f.gate[0] == f.gate[1] for f in forecasts)
    offline, forecaster, rows = fit(online=False)
    stream = offline.stream(forecaster)
    forecasts = [f for f in map(stream.step, rows) if f is not None]
    source = next(member for member in offline.source.members if isinstance(member, SourceHead))
    np.testing.assert_array_equal(posterior(stream).mean[:, 0], source.weights)
    gates, novelties = np.asarray([f.gate for f in forecasts]), np.asarray([f.novelty for f in forecasts])
    # evidence never fades where no outcome is heard
    prior = offline.settings.backbone_prior
    odds = prior / (1 - prior) * np.maximum(novelties, 1.0) ** -offline.settings.novelty
    np.testing.assert_allclose(gates, 1 / (1 + odds))
    assert gates.min() == pytest.approx(1 - prior)
    assert gates.max() > 0.9
    without, forecaster, rows = fit(certificate=False)
    stream = without.stream(forecaster)
    forecast = [stream.step(row) for row in rows[:CONTEXT]][-1]
    assert forecast is not None
    assert forecast.certificate is None


def test_profile_needs_a_season_in_the_window() -> None:
    source, target = shifted_stream("none", 0, 600, 60, 2, 12)
    forecaster = ompb.Ridge.fit(source, 8, 4)
    cal = ompb.Calibrator.fit(forecaster, source, context=8, horizon=4, season=12)
    assert not cal.source.features.has_profile
    assert "profile" not in cal.online.mixture.names
    assert all(f is None or np.isfinite(f.mean).all() for f in map(cal.stream(forecaster).step, target))
