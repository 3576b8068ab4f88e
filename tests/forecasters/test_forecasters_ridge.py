import dataclasses

import numpy as np
import pandas as pd
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from ompb.errors import DtypeError, NotFiniteError, OmpbError, OptionError, ShapeError, TooShortError
from ompb.forecasters import Ridge, ridge
from ompb.types import Floats

CONTEXT, HORIZON, PENALTY = 5, 3, 0.07


@pytest.fixture
def source() -> Floats:
    rng = np.random.default_rng(1)
    return np.asarray(50 + np.array([1.0, 20.0]) * rng.standard_normal((120, 2)).cumsum(axis=0))


def explicit_forecast(series: Floats, window: Floats) -> Floats:
    """Ridge of one channel as least squares on penalty-augmented rows, window by window in a plain loop."""
    known = series[~np.isnan(series)]
    mean, sd = known.mean(), known.std()
    pairs = [series[k : k + CONTEXT + HORIZON] for k in range(len(series) - CONTEXT - HORIZON + 1)]
    complete = np.array([(pair - mean) / sd for pair in pairs if not np.isnan(pair).any()])
    n = len(complete)
    design = np.hstack([complete[:, :CONTEXT], np.ones((n, 1))])
    shrink = np.hstack([np.sqrt(PENALTY * n) * np.eye(CONTEXT), np.zeros((CONTEXT, 1))])
    targets = np.vstack([complete[:, CONTEXT:], np.zeros((CONTEXT, HORIZON))])
    weights = np.linalg.lstsq(np.vstack([design, shrink]), targets, rcond=None)[0]
    return np.asarray(mean + sd * (np.append((window - mean) / sd, 1.0) @ weights))


@pytest.mark.parametrize("missing", [0, 15])
@pytest.mark.parametrize("block", [7, 2048])
def test_ridge_equals_explicit_least_squares_per_channel(
    source: Floats, missing: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ridge, "BLOCK_WINDOWS", block)
    lost = np.random.default_rng(2).choice(source.size, missing, replace=False)
    source.flat[lost] = np.nan
    windows = sliding_window_view(np.nan_to_num(source, nan=50.0), CONTEXT, axis=0).transpose(0, 2, 1)[:9]
    forecasts = Ridge.fit(source, CONTEXT, HORIZON, PENALTY)(windows)
    assert forecasts.shape == (9, HORIZON, 2)
    for n, channel in np.ndindex(9, 2):
        expected = explicit_forecast(source[:, channel], windows[n, :, channel])
        np.testing.assert_allclose(forecasts[n, :, channel], expected, rtol=1e-9)


def test_ridge_does_not_depend_on_units(source: Floats) -> None:
    windows = source[None, :CONTEXT]
    forecast = Ridge.fit(source, CONTEXT, HORIZON)(windows)
    rescaled = Ridge.fit(1000 * source - 7, CONTEXT, HORIZON)(1000 * windows - 7)
    np.testing.assert_allclose(rescaled, 1000 * forecast - 7, rtol=1e-9)


def test_ridge_penalty_does_not_depend_on_the_number_of_windows() -> None:
    period = np.sin(np.arange(24.0))
    once, often = (Ridge.fit(np.tile(period, k)[:, None], 8, 4, penalty=1.0) for k in (20, 200))
    np.testing.assert_allclose(once.weights, often.weights, atol=0.02)


def test_ridge_forecasts_a_constant_channel_as_that_constant(source: Floats) -> None:
    source[:, 0] = 3.0
    forecasts = Ridge.fit(source, CONTEXT, HORIZON)(source[None, :CONTEXT])
    np.testing.assert_allclose(forecasts[0, :, 0], 3.0)


def test_ridge_forecasts_alone_as_in_a_batch_and_marks_missing_windows(source: Floats) -> None:
    model = Ridge.fit(source, CONTEXT, HORIZON)
    windows = sliding_window_view(source, CONTEXT, axis=0).transpose(0, 2, 1).copy()
    windows[3, 0, 1] = np.nan
    batch = model(windows)
    np.testing.assert_allclose(batch, np.concatenate([model(w[None]) for w in windows]))
    assert np.isnan(batch[3, :, 1]).all()
    assert np.isnan(batch).sum() == HORIZON


def test_ridge_does_not_learn_across_a_gap_in_the_times(source: Floats) -> None:
    days = pd.date_range("2024-01-01", periods=len(source))
    kept = np.delete(np.arange(len(source)), [40, 41, 80])
    holes = source.copy()
    holes[[40, 41, 80]] = np.nan
    from_frame = Ridge.fit(pd.DataFrame(source[kept], index=days[kept]), CONTEXT, HORIZON)
    np.testing.assert_array_equal(from_frame.weights, Ridge.fit(holes, CONTEXT, HORIZON).weights)
    assert not np.array_equal(from_frame.weights, Ridge.fit(source[kept], CONTEXT, HORIZON).weights)


def test_ridge_takes_numpys_numbers(source: Floats) -> None:
    fitted = Ridge.fit(source, np.int64(CONTEXT), np.int32(HORIZON), np.float32(0.5))  # type: ignore[arg-type]
    np.testing.assert_array_equal(fitted.weights, Ridge.fit(source, CONTEXT, HORIZON, 0.5).weights)


def test_ridge_is_frozen_and_leaves_its_input_alone(source: Floats) -> None:
    before = source.copy()
    model = Ridge.fit(source, CONTEXT, HORIZON)
    np.testing.assert_array_equal(source, before)
    assert (model.context, model.horizon, model.channels) == (CONTEXT, HORIZON, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.weights = np.zeros(3)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        model.weights[0, 0, 0] = 1.0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"source": np.zeros(40)}, ShapeError, "shape"),
        ({"source": [["a", "b"]] * 40}, DtypeError, "numbers"),
        ({"source": np.full((40, 1), np.inf)}, NotFiniteError, "row 0, channel 0"),
        ({"source": np.full((40, 1), np.nan)}, TooShortError, "channel 0"),
        ({"source": np.zeros((7, 1))}, TooShortError, "8 successive rows"),
        ({"context": 0}, OptionError, "context = 0"),
        ({"context": 2.0}, OptionError, "context = 2.0"),
        ({"horizon": True}, OptionError, "horizon = True"),
        ({"penalty": "much"}, OptionError, "penalty = 'much'"),
        ({"horizon": -1}, OptionError, "horizon = -1"),
        ({"penalty": 0.0}, OptionError, "penalty = 0.0"),
        ({"penalty": float("nan")}, OptionError, "penalty = nan"),
    ],
)
def test_ridge_refuses_what_it_cannot_fit(change: dict[str, object], error: type[OmpbError], words: str) -> None:
    options: dict[str, object] = {"source": np.zeros((40, 1)), "context": CONTEXT, "horizon": HORIZON}
    with pytest.raises(error, match=words):
        Ridge.fit(**(options | change))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(CONTEXT, 2), (1, CONTEXT + 1, 2), (1, CONTEXT, 3)])
def test_ridge_refuses_windows_of_another_shape(source: Floats, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="fitted on windows"):
        Ridge.fit(source, CONTEXT, HORIZON)(np.zeros(shape))
