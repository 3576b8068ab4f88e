"""One absurd number must not poison a stream: it counts as missing and is reported."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from small_streams import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    PATIENCE,
    calibrator,
    finite,
    fit,
    last_season,
    same,
    saved,
    source,
    target,
    walked,
)

import ompb
from ompb.datasets.benchmark import load
from ompb.datasets.synthetic import Shift, shifted_stream
from ompb.errors import ForecasterError, NotFiniteError
from ompb.types import Floats

AT = 100  # the row of the absurd cell
SEEDS = range(3)
FILL_VALUE = 9.969209968386869e36  # NetCDF's


def with_cell(value: float, rows: int = 1, channel: int = 0) -> Floats:
    """The stream with an absurd cell, or several in a row."""
    spoiled = target().copy()
    spoiled[AT : AT + rows, channel] = value
    return spoiled


def off_by(deviations: float, rows: int = 1) -> Floats:
    """The stream with cells that are so many source standard deviations off."""
    spoiled = target().copy()
    spoiled[AT : AT + rows, 0] += deviations * calibrator().scale[0]
    return spoiled


def forecasts(rows: Floats, cal: ompb.Calibrator | None = None) -> list[ompb.Forecast]:
    stream = (cal or calibrator()).stream(last_season)
    return [forecast for forecast in map(stream.step, rows) if forecast is not None]


@pytest.mark.parametrize("said", [1e160, 1e120, -1e200, 1e8])
def test_a_forecaster_that_says_too_much_once_is_refused_and_goes_on(said: float) -> None:
    wrong = False

    def forecaster(windows: NDArray[np.floating]) -> Floats:
        return np.full((len(windows), HORIZON, CHANNELS), said) if wrong else last_season(windows)

    stream, twin = walked(target()[:AT], forecaster=forecaster), walked(target()[:AT])
    before, wrong = saved(stream), True
    with pytest.raises(ForecasterError, match="standard deviations"):
        stream.step(target()[AT])
    assert saved(stream) == before
    wrong = False
    assert all(same(stream.step(row), twin.step(row)) for row in target()[AT:])


@pytest.mark.parametrize("said", [1e200, -1e160, 1e7])
def test_fit_refuses_a_forecaster_that_says_too_much(said: float) -> None:
    def forecaster(windows: NDArray[np.floating]) -> Floats:
        return np.full((len(windows), HORIZON, CHANNELS), said * calibrator().scale)

    with pytest.raises(ForecasterError, match="standard deviations"):
        fit(forecaster)


@lru_cache
def missing_instead() -> tuple[ompb.Stream, list[ompb.Forecast | None]]:
    """A stream whose cell was missing, at its end, and all that it has issued."""
    stream = calibrator().stream(last_season)
    return stream, [stream.step(row) for row in with_cell(np.nan)]


@pytest.mark.parametrize("value", [1e90, 1e100, FILL_VALUE, -FILL_VALUE, 1e10, -1e10, 1e6, 1e4, 200.0])
def test_an_absurd_cell_does_what_a_missing_one_does_to_the_bit(value: float) -> None:
    stream, (twin, issued) = calibrator().stream(last_season), missing_instead()
    for at, (row, expected) in enumerate(zip(with_cell(value), issued, strict=True)):
        forecast = stream.step(row)
        assert same(forecast, expected)
        assert forecast is None or finite(forecast)
        assert forecast is None or forecast.hidden == (("channel 0",) if at == AT else ())
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    assert twin.hidden == {"channel 0": 0, "channel 1": 0}
    assert stream.realised_risk() == twin.realised_risk()
    assert "1 cells not believed" in repr(stream)


@pytest.mark.parametrize("value", [FILL_VALUE, 1e4, -1e3])
@pytest.mark.parametrize("channels", [(0,), (0, 1)])
@pytest.mark.parametrize("at", [0, CONTEXT - 2, CONTEXT - 1])
def test_an_absurd_cell_before_the_first_forecast(at: int, channels: tuple[int, ...], value: float) -> None:
    """No forecast speaks of it yet: it is held against the last known cell, the first one against the source mean."""
    spoiled, missing = target()[:AT].copy(), target()[:AT].copy()
    spoiled[at, channels], missing[at, channels] = value, np.nan
    found, expected = forecasts(spoiled), forecasts(missing)
    assert all(same(a, b) for a, b in zip(found[1:], expected[1:], strict=True))  # the first may name the hidden cell
    np.testing.assert_array_equal(found[0].mean, expected[0].mean)


def test_a_level_that_is_far_off_from_the_first_row_on_is_believed_after_six() -> None:
    far = target() + 30 * calibrator().scale
    stream = walked(far[:6])
    assert stream.hidden == {"channel 0": 6, "channel 1": 6}
    assert all(stream.step(row) is not None for row in far[6:60])
    assert stream.hidden == {"channel 0": 6, "channel 1": 6}


def test_a_cell_between_two_models_is_held_against_the_one_before_it() -> None:
    """A new model has forecast nothing yet."""
    spoiled = walked(target()[:AT])
    spoiled.replace(last_season, calibrator())
    twin = walked(target()[:AT])
    twin.replace(last_season, calibrator())
    one, other = spoiled.step([1e4, target()[AT, 1]]), twin.step([np.nan, target()[AT, 1]])
    assert one is not None
    assert other is not None
    assert one.hidden == ("channel 0",)
    np.testing.assert_array_equal(one.mean, other.mean)


@pytest.mark.parametrize("deviations", [1e4, 1e6, -1e4])
def test_a_spike_leaves_no_trace(deviations: float) -> None:
    """No correction chases it and no interval widens by it, while it would be in the window or later."""
    learned, clean = shifted_stream("level", 1, 800, 300, 2, 12)
    forecaster = ompb.Ridge.fit(learned, 24, 6)
    cal = ompb.Calibrator.fit(forecaster, learned, context=24, horizon=6, season=12)
    spoiled = clean.copy()
    spoiled[AT, 0] += deviations * cal.scale[0]
    found, expected = (ompb.backtest(cal, forecaster, rows) for rows in (spoiled, clean))
    width, usual = (np.ptp(run.interval(0.8), axis=0) for run in (found, expected))
    assert (width <= 1.1 * usual).all()
    assert (np.abs(found.mean - expected.mean) < 0.5 * cal.scale).all()


def test_the_same_spike_without_guard_does_leave_one() -> None:
    """What the guard is for; and so the tests above can fail."""
    trusting = fit(guard=None)
    spoiled, clean = forecasts(off_by(1e4), trusting), forecasts(target(), trusting)
    after = AT - CONTEXT + 2
    width, usual = (np.ptp(f[after].interval(0.8), axis=0) for f in (spoiled, clean))
    assert (width[:, 0] > 10 * usual[:, 0]).all()


def test_beyond_any_limit_a_spike_is_a_missing_cell_without_guard_either() -> None:
    trusting, missing = fit(guard=None), target().copy()
    missing[AT, 0] = np.nan
    spoiled, expected = forecasts(off_by(2e6), trusting), forecasts(missing, trusting)
    for found, other in zip(spoiled, expected, strict=True):
        np.testing.assert_array_equal(found.interval(0.95), other.interval(0.95))


@pytest.mark.parametrize("rows", [1, 5, 6, 7, 8, 60])
def test_six_cells_in_a_row_are_hidden_and_the_seventh_is_believed(rows: int) -> None:
    """The level has moved; it is believed for as long as it stays."""
    issued = forecasts(off_by(300.0, rows))
    hidden = {f.origin for f in issued if f.hidden}
    moved_back = set(range(AT + rows, AT + rows + 6)) if rows > 6 else set()  # the way back is a jump, too
    assert hidden >= set(range(AT, AT + min(rows, 6)))
    assert hidden <= set(range(AT, AT + min(rows, 6))) | moved_back
    assert all(finite(f) for f in issued)


def test_a_missing_cell_neither_ends_nor_lengthens_a_run() -> None:
    rows = off_by(300.0, 60)
    rows[[AT + 2, AT + 4], 0] = np.nan
    assert [f.origin - AT for f in forecasts(rows) if f.hidden] == [0, 1, 3, 5, 6, 7]


@pytest.mark.parametrize("guard_rows", [0, 2])
def test_how_many_cells_are_hidden_is_an_option(guard_rows: int) -> None:
    issued = forecasts(off_by(300.0, 60)[: AT + 30], fit(guard_rows=guard_rows))
    assert sum(bool(f.hidden) for f in issued) == guard_rows


@pytest.mark.parametrize("seed", range(3))
def test_a_true_jump_costs_about_the_rows_it_is_not_believed_in(seed: int) -> None:
    """Forecasts issued in those six rows miss the jump of 30 deviations; then learning begins, six rows later."""
    learned, rows = shifted_stream("none", seed, 800, 420, 2, 12)
    forecaster, jump, judged = ompb.Ridge.fit(learned, 24, 6), 30.0, 300
    rows = rows.copy()
    rows[AT:] += jump * learned.std(axis=0)
    errors = []
    for guard in (20.0, None):
        cal = ompb.Calibrator.fit(forecaster, learned, context=24, horizon=6, season=12, guard=guard)
        run = ompb.backtest(cal, forecaster, rows)
        first = AT - 23  # the place of origin AT
        outcome = np.stack([rows[origin + 1 : origin + 7] for origin in range(AT, AT + judged)])
        errors.append(np.abs((run.mean[first : first + judged] - outcome) / learned.std(axis=0)).mean())
        assert run.origins[first] == AT
        assert run.hidden.sum() == (2 * 6 if guard else 0)
    assert errors[0] - errors[1] < 1.5 * 6 * jump / judged


@lru_cache
def clean_runs() -> dict[tuple[Shift, int], ompb.Run]:
    """By shift and seed, all at once, each as it would be alone."""
    made = {(shift, seed): shifted_stream(shift, seed, 600, 500, 3, 12) for shift in get_args(Shift) for seed in SEEDS}
    learned, rows = ({one: parts[part] for one, parts in made.items()} for part in (0, 1))
    ridges = {one: ompb.Ridge.fit(source, 24, 6) for one, source in learned.items()}
    cals = ompb.calibrate(ridges, learned, context=24, horizon=6, season=12, certificate=False)
    return ompb.backtest(cals, ridges, rows)


@pytest.mark.parametrize("shift", get_args(Shift))
@pytest.mark.parametrize("seed", SEEDS)
def test_no_cell_of_a_clean_stream_is_hidden(shift: Shift, seed: int) -> None:
    assert not clean_runs()[shift, seed].hidden.any()


def test_no_cell_of_the_second_transformer_is_hidden(data_dir: Path) -> None:
    data = load("etth", data_dir)
    learned = data.source[-3000:]
    forecaster = ompb.Ridge.fit(learned, 48, 24)
    cal = ompb.Calibrator.fit(forecaster, learned, context=48, horizon=24, season=24, certificate=False)
    assert not ompb.backtest(cal, forecaster, data.streams["ood"][:3000]).hidden.any()


@pytest.mark.parametrize("deviations", [1e3, 9e5, -9e5])
def test_without_guard_a_million_deviations_are_believed_and_nothing_breaks(deviations: float) -> None:
    trusting = fit(guard=None)
    issued = forecasts(off_by(deviations), trusting)
    assert all(finite(f) and not f.hidden for f in issued)
    window = next(f for f in issued if f.origin == AT)
    assert np.abs(window.base - target()[AT]).max() > 0.2 * abs(deviations) * trusting.scale[0]  # it was seen
    beyond = forecasts(off_by(5e6), trusting)
    assert [f.origin for f in beyond if f.hidden] == [AT]
    assert all(map(finite, beyond))


@pytest.mark.parametrize("options", [{}, {"guard": None}])
@pytest.mark.parametrize("seed", range(4))
def test_storms_of_absurd_cells_never_give_nan(seed: int, options: dict[str, Any]) -> None:
    """Among all magnitudes, in any number, for a whole stream."""
    rng = np.random.default_rng(seed)
    rows = target()[:250].copy()
    hit = rng.random(rows.shape) < 0.2
    rows[hit] *= 10.0 ** rng.uniform(0, 100, hit.sum())
    stream = fit(**options).stream(last_season)
    for row in rows:
        forecast = stream.step(np.clip(row, -1e100, 1e100))
        assert forecast is None or finite(forecast)
    assert np.isfinite(stream.realised_risk().upper)


@pytest.mark.parametrize("value", [1e90, FILL_VALUE, 1e10])
@pytest.mark.parametrize("row", [20, 290])
def test_a_source_with_an_absurd_cell_is_refused_by_row_and_channel(value: float, row: int) -> None:
    rows = source().copy()
    rows[row, 1] = value
    with pytest.raises(NotFiniteError, match=rf"at row {row}, channel 1, .*write NaN"):
        fit(rows=rows)


@pytest.mark.parametrize("forecaster", [last_season, lambda windows: np.repeat(windows[:, -1:], HORIZON, axis=1)])
def test_a_backtest_is_the_stream_where_cells_are_hidden(forecaster: Any) -> None:
    rows = off_by(300.0, 3)
    rows[150, 1], rows[151, 0] = FILL_VALUE, np.nan
    run, stream = ompb.backtest(calibrator(), forecaster, rows), calibrator().stream(forecaster)
    issued = [forecast for forecast in map(stream.step, rows) if forecast is not None]
    for name in ("mean", "base", "gate", "sd", "multipliers"):
        assert getattr(run, name).tobytes() == np.stack([getattr(f, name) for f in issued]).tobytes()
    expected = np.zeros(rows.shape, dtype=bool)
    expected[AT : AT + 3, 0] = expected[150, 1] = True
    np.testing.assert_array_equal(run.hidden, expected)
    np.testing.assert_array_equal(np.isnan(run.rows), expected | np.isnan(rows))
    assert dict(zip(run.names, run.hidden.sum(axis=0).tolist(), strict=True)) == stream.hidden
    assert run.realised == stream.realised_risk()
    assert np.isnan(run.outcome[np.flatnonzero(run.origins == AT - 1)[0], 0, 0])


def test_a_backtest_is_not_stopped_by_windows_that_the_stream_never_comes_to() -> None:
    """Base forecasts are asked for in blocks before it is known which cells are believed."""
    rows, limit = off_by(300.0), 100 * calibrator().scale[0]

    def choosy(windows: NDArray[np.floating]) -> Floats:
        if np.abs(windows).max() > limit:
            raise OverflowError("too large for me")
        return last_season(windows)

    run, plain = (ompb.backtest(calibrator(), forecaster, rows) for forecaster in (choosy, last_season))
    assert run.mean.tobytes() == plain.mean.tobytes()
    with pytest.raises(ForecasterError, match="too large for me"):
        ompb.backtest(fit(guard=None), choosy, rows)


CANNOT_BE = (1e90, FILL_VALUE, 1e10)


@pytest.mark.parametrize(
    ("value", "age"),
    # with a forecast that is remembered and without, in the forecaster's window and before it
    [(value, age) for value in (*CANNOT_BE, 1e4) for age in (0, PATIENCE, PATIENCE + 1, CONTEXT + PATIENCE)],
)
def test_an_absurd_late_cell_is_no_news(value: float, age: int) -> None:
    """Beyond the patience no forecast is left to judge it by: it is held against what stood there."""
    rows = target()[:AT].copy()
    late = AT - 1 - age
    rows[late, 0] = np.nan
    stream, twin = walked(rows), walked(rows)
    stream.observe(late, [value, np.nan])
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    for row in target()[AT : AT + 30]:
        assert same(stream.step(row), twin.step(row))


@pytest.mark.parametrize("age", [0, 3, PATIENCE, PATIENCE + 1])
def test_a_cell_that_is_known_and_comes_again_is_held_against_what_stands_there(age: int) -> None:
    rows = target()[:AT]
    stream, twin, at = walked(rows), walked(rows), AT - 1 - age
    stream.observe(at, [1e4, np.nan])
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    assert same(stream.step(target()[AT]), twin.step(target()[AT]))
    stream.observe(at, [rows[at, 0] + 0.5, np.nan])
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    assert not same(stream.step(target()[AT + 1]), twin.step(target()[AT + 1]))  # the forecaster sees it


@pytest.mark.parametrize("age", [0, 1, PATIENCE])
def test_an_absurd_late_cell_of_a_row_that_nobody_forecast_is_no_news(age: int) -> None:
    rows = target()[: CONTEXT - 1]  # nothing is issued yet
    stream, twin = walked(rows), walked(rows)
    stream.observe(CONTEXT - 2 - age, [1e4, np.nan])
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    for row in target()[CONTEXT - 1 : AT]:
        assert same(stream.step(row), twin.step(row))


@pytest.mark.parametrize("value", [FILL_VALUE, 1e4, -1e3])
@pytest.mark.parametrize("at", [0, 40, AT - 1])
def test_an_absurd_cell_of_a_history_counts_as_missing(at: int, value: float) -> None:
    spoiled, missing = target()[:AT].copy(), target()[:AT].copy()
    spoiled[at, 0], missing[at, 0] = value, np.nan
    stream, twin = (calibrator().stream(last_season, history=rows) for rows in (spoiled, missing))
    assert stream.hidden == {"channel 0": 1, "channel 1": 0}
    for row in target()[AT : AT + 30]:
        assert same(stream.step(row), twin.step(row))


@pytest.mark.parametrize("guard", [20.0, None])
def test_a_history_is_judged_as_its_rows_would_be_one_by_one(guard: float | None) -> None:
    """A level that moves for good, spikes and gaps, before any forecast: the window is the one of a stream so far."""
    cal = fit(guard=guard)
    rows = target()[:60] + 30 * cal.scale * (np.arange(60)[:, None] >= 20)
    rows[[5, 40, 41], 0], rows[[6, 22], 1] = 1e4, np.nan
    remembered = cal.stream(None, history=rows)
    stepped = cal.stream(None)
    for row in rows:
        stepped.step(row, base=None)
    assert remembered.hidden == stepped.hidden
    assert remembered.hidden == ({"channel 0": 6 + 3, "channel 1": 6} if guard else {"channel 0": 0, "channel 1": 0})
    for one, other in zip(remembered._state.window[:2], stepped._state.window[:2], strict=True):
        np.testing.assert_array_equal(one, other)
