from typing import get_args

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from ompb.datasets.synthetic import Shift, shifted_stream
from ompb.errors import OptionError
from ompb.forecasters import Ridge
from ompb.types import Floats

CONTEXT, HORIZON = 48, 24


def mean_squared_error(forecaster: Ridge, rows: Floats) -> float:
    pairs = sliding_window_view(rows, CONTEXT + HORIZON, axis=0).transpose(0, 2, 1)
    return float(np.mean((forecaster(pairs[:, :CONTEXT]) - pairs[:, CONTEXT:]) ** 2))


@pytest.mark.parametrize("shift", get_args(Shift))
def test_stream_is_positive_repeatable_and_shares_its_source(shift: Shift) -> None:
    source, target = shifted_stream(shift, seed=3, source_rows=400, target_rows=300, channels=2)
    again = shifted_stream(shift, seed=3, source_rows=400, target_rows=300, channels=2)
    unshifted, _ = shifted_stream("none", seed=3, source_rows=400, target_rows=300, channels=2)
    assert (source.shape, target.shape) == ((400, 2), (300, 2))
    assert min(source.min(), target.min()) > 0
    np.testing.assert_array_equal(source, unshifted)
    np.testing.assert_array_equal(target, again[1])
    assert not np.array_equal(source, shifted_stream(shift, seed=4, source_rows=400, target_rows=300, channels=2)[0])


def test_level_and_scale_are_what_they_say() -> None:
    _, plain = shifted_stream("none", seed=0)
    np.testing.assert_allclose(shifted_stream("level", seed=0)[1], plain + 4)
    np.testing.assert_allclose(shifted_stream("scale", seed=0)[1], 1.6 * plain)


def test_phase_rolls_the_season_by_a_quarter_but_for_the_channel_that_keeps_time() -> None:
    _, plain = shifted_stream("none", seed=0)
    _, rolled = shifted_stream("phase", seed=0)
    turns = [np.fft.rfft(rows[:1488], axis=0)[1488 // 24] for rows in (plain, rolled)]
    # the noise is the same, so the season turns by a quarter up to what the noise holds at its frequency
    np.testing.assert_allclose(np.angle(turns[1] / turns[0]), [0, -np.pi / 2, -np.pi / 2], atol=0.2)
    np.testing.assert_array_equal(rolled[:, 0], plain[:, 0])


def test_dynamics_changes_persistence() -> None:
    source, target = shifted_stream("dynamics", seed=0, source_rows=4800, target_rows=4800)
    persistence = [lag_one_correlation(rows) for rows in (source, target)]
    np.testing.assert_allclose(persistence, [[0.95] * 3, [0.3] * 3], atol=0.05)


def lag_one_correlation(rows: Floats) -> list[float]:
    seasonal = rows.reshape(-1, 24, rows.shape[1]).mean(axis=0)
    noise = rows - np.tile(seasonal, (len(rows) // 24, 1))
    return [float(np.corrcoef(series[1:], series[:-1])[0, 1]) for series in noise.T]


@pytest.mark.parametrize(("shift", "factor"), [("level", 4), ("scale", 8), ("dynamics", 2)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_lasting_shift_hurts_a_linear_forecaster(shift: Shift, factor: float, seed: int) -> None:
    source, target = shifted_stream(shift, seed)
    forecaster = Ridge.fit(source, CONTEXT, HORIZON)
    unshifted = mean_squared_error(forecaster, shifted_stream("none", seed)[1])
    assert mean_squared_error(forecaster, target) > factor * unshifted


def test_phase_hurts_a_linear_forecaster_around_the_roll_only() -> None:
    source, target = shifted_stream("phase", seed=0)
    forecaster = Ridge.fit(source, CONTEXT, HORIZON)
    unshifted = mean_squared_error(forecaster, shifted_stream("none", seed=0)[1])
    around = mean_squared_error(forecaster, np.concatenate([source[-CONTEXT:], target[:CONTEXT]]))
    assert around > 1.5 * unshifted
    assert mean_squared_error(forecaster, target[CONTEXT:]) < 1.2 * unshifted


def test_unusable_options_are_refused() -> None:
    with pytest.raises(OptionError, match="shift = 'tilt'"):
        shifted_stream("tilt", seed=0)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="channels = 0"):
        shifted_stream("none", seed=0, channels=0)
