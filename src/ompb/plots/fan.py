"""A forecast with its intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ompb.backtest import BARE, OMPB
from ompb.floor.names import numbered
from ompb.plots.look import BLACK, BLUE, SKY, STYLE, VERMILION, Picture, panels
from ompb.types import Floats, Forecast

LEVELS = (0.95, 0.8)
ALPHAS = (0.25, 0.5)
# Line styles differ too, for grey print.
ISSUED: dict[str, Any] = {"color": BLUE, "linewidth": 2.0}
BASE: dict[str, Any] = {"color": VERMILION, "linestyle": "--"}
MOST_CHANNELS = 6  # in one picture


def draw_fan(
    panel: Any, ahead: NDArray[Any], mean: Floats, base: Floats, intervals: Mapping[float, tuple[Floats, Floats]]
) -> None:
    """Two forecasts (H,) of the rows ``ahead`` and the intervals, by level, of the first."""
    for (level, (lower, upper)), alpha in zip(intervals.items(), ALPHAS, strict=True):
        panel.fill_between(ahead, lower, upper, color=SKY, alpha=alpha, linewidth=0, label=f"{level:.0%} interval")
    panel.plot(ahead, mean, label=OMPB, **ISSUED)
    panel.plot(ahead, base, label=BARE, **BASE)


def draw_outcome(panel: Any, ahead: NDArray[Any], outcome: Floats) -> None:
    """What then happened, as dots."""
    panel.plot(ahead, outcome, color=BLACK, marker="o", markersize=3, linewidth=0, label="outcome")


def draw_history(panel: Any, times: NDArray[Any], rows: Floats) -> None:
    """What was known, as a grey line."""
    panel.plot(times, rows, color="0.5", label="history")


@rc_context(STYLE)
def forecast_picture(forecast: Forecast) -> Picture:
    """One panel for each channel, over the times of the rows, or over leads where there are none."""
    horizon, channels = forecast.mean.shape
    leads = forecast.times is None
    ahead = np.arange(1, horizon + 1) if forecast.times is None else forecast.times
    ends = {level: forecast.interval(level) for level in LEVELS}
    picture, shown = panels(min(channels, MOST_CHANNELS))
    for channel, panel in enumerate(shown):
        own = {level: (lower[:, channel], upper[:, channel]) for level, (lower, upper) in ends.items()}
        draw_fan(panel, ahead, forecast.mean[:, channel], forecast.base[:, channel], own)
        panel.set_ylabel(numbered(channels)[channel])
        panel.margins(x=0)
    if leads:
        shown[-1].set_xlabel("lead (rows ahead)")
        shown[-1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
    handles, labels = shown[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return picture
