from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sine_world import (
    CONTEXT,
    HORIZON,
    SEASON,
    SIZES,
    SOURCE_ROWS,
    ahead_of,
    error,
    follows_a_stream,
    long_frame,
    stamps,
    windows_from,
    world,
)
from statsforecast import StatsForecast
from statsforecast.models import AutoARIMA, AutoETS, WindowAverage

from ompb.adapters import statsforecast
from ompb.errors import CheckError, ForecasterError, OptionError

EVERY_PHASE = [0, 5, 12, 19, 24, 31]


@lru_cache
def smoothing() -> Any:
    """Additive season, no trend."""
    return AutoETS(season_length=SEASON, model="ANA").fit(world()[0][:, 0])


def test_a_stream_of_two_channels_with_a_model_for_each(tmp_path: Path) -> None:
    source, _ = world(2)
    models = [AutoETS(season_length=SEASON, model="ANA").fit(source[:, channel]) for channel in range(2)]
    follows_a_stream(statsforecast.wrap(models, **SIZES), 2, tmp_path)


def test_quantiles_follow_a_stream(tmp_path: Path) -> None:
    forecaster = statsforecast.wrap(smoothing(), **SIZES, quantiles=(0.1, 0.5, 0.9))
    follows_a_stream(forecaster, 1, tmp_path)
    query = windows_from(EVERY_PHASE)
    said, level = forecaster.forecast(query), smoothing().forward(y=query.windows[0, :, 0], h=HORIZON, level=[80])
    np.testing.assert_array_equal(said[0, :, 0], np.stack([level["lo-80"], level["mean"], level["hi-80"]], axis=-1))


@pytest.mark.parametrize("quantiles", [(0.9, 0.1), (0.1, 0.9), 0.5, "0.5"])
def test_quantiles_that_are_none_are_refused_at_once(quantiles: Any) -> None:
    with pytest.raises(ForecasterError, match=r"quantiles are \(.*\); accepted: increasing numbers inside \(0, 1\)"):
        statsforecast.wrap(smoothing(), **SIZES, quantiles=quantiles)


def test_windows_start_at_the_phase_of_the_training_rows() -> None:
    """Forward by itself takes every window to start there, and is as wrong as can be."""
    query = windows_from(EVERY_PHASE)
    raw = np.stack([smoothing().forward(y=window[:, 0], h=HORIZON)["mean"] for window in query.windows])[..., None]
    wrong = np.abs(raw - ahead_of(query)).mean(axis=(1, 2))
    assert wrong[[0, 4]].max() < 0.3
    assert wrong[[1, 2, 3, 5]].min() > 1.5
    forecaster = statsforecast.wrap(smoothing(), **SIZES)
    assert np.abs(forecaster.forecast(query) - ahead_of(query)).max() < 0.5


def test_without_the_guard_the_check_finds_the_phase() -> None:
    unguarded = statsforecast.wrap(smoothing(), **SIZES, season=1)
    with pytest.raises(CheckError) as caught:
        unguarded.checked(world()[0])
    assert caught.value.fault == "phase"


def test_by_time_the_phase_is_right_wherever_a_stream_begins() -> None:
    query = windows_from([SOURCE_ROWS + 5, SOURCE_ROWS + 17], timed=True)
    counted_anew = type(query)(query.windows, np.array([CONTEXT - 1, CONTEXT]), query.times)
    by_time = statsforecast.wrap(smoothing(), **SIZES, times=stamps(0, SOURCE_ROWS))
    by_row = statsforecast.wrap(smoothing(), **SIZES)
    assert error(by_time.forecast(counted_anew), query) < 0.3
    assert error(by_row.forecast(counted_anew), query) > 1.5
    with pytest.raises(ForecasterError, match="this one has none; pass times="):
        by_time.forecast(windows_from([0]))


def test_a_whole_statsforecast_is_its_models() -> None:
    source, _ = world(2)
    fitted = StatsForecast([AutoETS(season_length=SEASON, model="ANA")], freq="h").fit(
        long_frame(source, stamps(0, len(source)))
    )
    assert statsforecast.wrap(fitted, **SIZES).models == tuple(fitted.fitted_[:, 0])


def test_series_that_are_sorted_by_id_must_be_so_in_the_source() -> None:
    source = pd.DataFrame(world(2)[0], columns=["north", "east"])
    frame = long_frame(source.to_numpy(), stamps(0, len(source))).replace({"unique_id": {"0": "north", "1": "east"}})
    fitted = StatsForecast([AutoETS(season_length=SEASON, model="ANA")], freq="h").fit(frame)
    forecaster = statsforecast.wrap(fitted, **SIZES)
    assert forecaster.series == ("east", "north")
    forecaster.checked(source[["east", "north"]])
    with pytest.raises(
        CheckError, match=r"series in the order east, north, .*, and the source has north, east"
    ) as found:
        forecaster.checked(source)
    assert found.value.fault == "channel order"


def test_a_model_without_season_keeps_its_windows() -> None:
    model = AutoARIMA(max_p=2, max_q=0, max_d=0, seasonal=False).fit(world()[0][:, 0])
    query = windows_from([3])
    said = statsforecast.wrap(model, **SIZES).forecast(query)
    np.testing.assert_array_equal(said[0, :, 0], model.forward(y=query.windows[0, :, 0], h=HORIZON)["mean"])


def test_times_that_do_not_go_with_the_training_rows_are_told() -> None:
    query = windows_from([0], timed=True)
    numbered = statsforecast.wrap(smoothing(), **SIZES, times=np.arange(SOURCE_ROWS))
    with pytest.raises(ForecasterError, match=r"begin at 0 and a window ends at 20.*: one is a date and one a number"):
        numbered.forecast(query)
    every_other_hour = statsforecast.wrap(smoothing(), **SIZES, times=stamps(0, 2 * SOURCE_ROWS)[::2])
    with pytest.raises(ForecasterError, match=r"not on the steps of 2:00:00 of the training rows: .* is off the grid"):
        every_other_hour.forecast(windows_from([0, 1], timed=True))


def test_a_hole_in_a_window_is_refused() -> None:
    query = windows_from([0])
    query.windows[0, 30] = np.nan
    assert np.isnan(smoothing().forward(y=query.windows[0, :, 0], h=HORIZON)["mean"]).all()  # in silence
    with pytest.raises(ForecasterError, match="missing values"):
        statsforecast.wrap(smoothing(), **SIZES).forecast(query)


def test_what_cannot_be_wrapped_is_refused_at_once() -> None:
    with pytest.raises(ForecasterError, match="WindowAverage has no forward"):
        statsforecast.wrap(WindowAverage(3), **SIZES)
    with pytest.raises(ForecasterError, match="AutoETS is not fitted"):
        statsforecast.wrap(AutoETS(season_length=SEASON), **SIZES)
    with pytest.raises(ForecasterError, match="StatsForecast is not fitted"):
        statsforecast.wrap(StatsForecast([AutoETS(season_length=SEASON)], freq="h"), **SIZES)
    for season in (0, "24"):
        with pytest.raises(OptionError, match=f"option season = {season!r} is out of range"):
            statsforecast.wrap(smoothing(), **SIZES, season=season)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="context = 40 is less than two seasons of 24 rows"):
        statsforecast.wrap(smoothing(), context=40, horizon=HORIZON)
    with pytest.raises(ForecasterError, match="2 models for 1 channel;"):
        statsforecast.wrap([smoothing()] * 2, **SIZES).forecast(windows_from([0]))
