"""What `Run.plot` and `Forecast.plot` draw."""

from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import pytest
from small_study import CONTEXT, HORIZON, fitted, small_study

import ompb
from ompb.errors import OptionError
from ompb.plots.curves import error_by_row, rolling_mean

RUN = small_study().run


def last_forecast(timed: bool) -> ompb.Forecast:
    forecaster, calibrator, target = fitted()
    stream = calibrator.stream(forecaster)
    start = np.datetime64("2024-01-01T00", "h") if timed else None
    issued = [stream.step(row, at=start if place == 0 else None) for place, row in enumerate(target[: CONTEXT + 20])]
    assert issued[-1] is not None
    return issued[-1]


def curve(panel: Any, label: str) -> np.ndarray:
    (found,) = (line for line in panel.lines if line.get_label() == label)
    return np.asarray(found.get_ydata())


def test_a_run_shows_all_its_parts_or_those_that_are_named() -> None:
    assert len(RUN.plot().axes) == 4
    assert len(small_study(certificate=False).run.plot().axes) == 3
    (panel,) = RUN.plot("gate").axes
    np.testing.assert_array_equal(curve(panel, RUN.names[0]), RUN.gate[:, 0])


def test_errors_are_rolling_means_of_both_forecasts() -> None:
    (panel,) = RUN.plot("errors").axes
    for name, forecast in {"bare forecaster": RUN.base, "ompb": RUN.mean}.items():
        expected = rolling_mean(error_by_row(RUN, forecast), 12)[RUN.origins[0] + 1 : len(RUN.rows)]
        np.testing.assert_array_equal(curve(panel, name), expected)


def test_the_forecast_shown_is_the_newest_whose_outcome_is_due() -> None:
    (panel,) = RUN.plot("forecast").axes
    place = int(np.flatnonzero(RUN.origins == len(RUN.rows) - 1 - HORIZON)[0])
    np.testing.assert_array_equal(curve(panel, "ompb"), RUN.mean[place, :, 0])
    np.testing.assert_array_equal(curve(panel, "outcome"), RUN.rows[-HORIZON:, 0])


def test_a_long_season_leaves_the_forecast_room() -> None:
    (panel,) = RUN.plot("forecast").axes
    assert len(curve(panel, "history")) == 2 * 12  # two seasons, which are four horizons
    yearly = replace(RUN, calibrator=replace(RUN.calibrator, season=52))
    (panel,) = yearly.plot("forecast").axes
    assert len(curve(panel, "history")) == 4 * HORIZON


@pytest.mark.parametrize("timed", [True, False])
def test_a_forecast_has_a_panel_for_each_channel(timed: bool) -> None:
    forecast = last_forecast(timed)
    panels = forecast.plot().axes
    assert len(panels) == 2
    for channel, panel in enumerate(panels):
        np.testing.assert_array_equal(curve(panel, "ompb"), forecast.mean[:, channel])
        top = np.asarray(panel.collections[0].get_paths()[0].vertices)[:, 1].max()
        assert top == forecast.interval(0.95)[1][:, channel].max()
    (first,) = {np.asarray(panel.lines[0].get_xdata())[0] for panel in panels}
    assert first == (forecast.times[0] if forecast.times is not None else 1)


def test_of_very_many_channels_the_first_are_drawn() -> None:
    forecast = last_forecast(timed=False)
    names = ("mean", "base", "sd", "multipliers")
    wider: dict[str, Any] = {name: np.repeat(getattr(forecast, name), 10, axis=-1) for name in names}
    many = replace(forecast, **wider)
    assert len(many.plot().axes) == 6


def test_a_notebook_shows_a_picture_by_itself_and_nothing_global_changes() -> None:
    before = dict(matplotlib.rcParams)
    assert RUN.plot("errors")._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(OptionError, match="no part 'mood' to plot; accepted: errors, certificate, gate, forecast"):
        RUN.plot("mood")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no certificates to plot"):
        small_study(certificate=False).run.plot("certificate")
