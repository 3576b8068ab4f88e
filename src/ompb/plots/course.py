"""The course of a run over its rows: errors, certificate and gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib import rc_context

from ompb.backtest import BARE, OMPB, Run
from ompb.diagnosis import proxy_loss
from ompb.errors import OptionError
from ompb.plots.curves import error_by_row, rolling_mean
from ompb.plots.fan import BASE, ISSUED, LEVELS, draw_fan, draw_history, draw_outcome
from ompb.plots.look import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    STYLE,
    VERMILION,
    YELLOW,
    Picture,
    in_picture,
    legend_below,
    panels,
    thinned,
)
from ompb.types import Floats

# The other references are in the tables: here they would hide the rest.
CURVES: dict[str, dict[str, Any]] = {
    BARE: BASE,
    "seasonal profile": {"color": GREEN, "linestyle": ":"},
    "running bias": {"color": PURPLE, "linestyle": "-."},
    OMPB: ISSUED,
}
TERMS = (("source risk", SKY), ("complexity (gamma)", ORANGE), ("half the disagreement", PURPLE))
CHANNEL_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW)


def draw_errors(panel: Any, run: Run, forecasts: Mapping[str, Floats]) -> None:
    """Rolling mean absolute error of forecasts (n, H, C) by name, as far as they have a curve."""
    rows = thinned(np.arange(run.origins[0] + 1, len(run.rows)))
    for name, forecast in forecasts.items():
        if name in CURVES:
            error = rolling_mean(error_by_row(run, forecast), run.smoothing)
            panel.plot(run.stamps[rows], error[rows], label=name, **CURVES[name])
    panel.set_ylabel("mean absolute error\n(source standard deviations)")
    panel.set_ylim(bottom=0)


def draw_certificate(panel: Any, run: Run) -> None:
    """The certificate stacked by its terms, with the loss that was then realised."""
    places = thinned(np.arange(len(run.origins)))
    x = run.stamps[run.origins[places]]
    parts = (run.certificate["source_risk"], run.certificate["gamma"], 0.5 * run.certificate["disagreement"])
    names, colours = zip(*TERMS, strict=True)
    panel.stackplot(x, *(part[places] for part in parts), labels=names, colors=colours, alpha=0.75, linewidth=0)
    loss = rolling_mean(proxy_loss(run), run.smoothing)
    panel.plot(x, loss[places], color=BLACK, label="realised loss")
    panel.axhline(1, color="0.35", linewidth=0.8, linestyle=(0, (4, 3)))
    panel.set_ylabel("certificate\n(1 = the worst loss there is)")
    panel.set_ylim(bottom=0)


def draw_gates(panel: Any, run: Run) -> None:
    """The gate of every channel; of many channels, the median and where most of them lie."""
    places = thinned(np.arange(len(run.gate)))
    x = run.stamps[run.origins[places]]
    if run.gate.shape[1] <= len(CHANNEL_COLOURS):
        for name, values, colour in zip(run.names, run.gate.T, CHANNEL_COLOURS, strict=False):
            panel.plot(x, values[places], color=colour, label=in_picture(name))
    else:
        low, middle, high = np.quantile(run.gate[places], (0.1, 0.5, 0.9), axis=1)
        panel.fill_between(x, low, high, color=SKY, alpha=0.4, linewidth=0, label="8 in 10 channels")
        panel.plot(x, middle, color=BLUE, label="median channel")
    panel.set_ylabel("gate\n(0 = bare, 1 = fully corrected)")
    panel.set_ylim(-0.02, 1.02)


def draw_forecast(panel: Any, run: Run, place: int, channel: int = 0) -> None:
    """One forecast of one channel and what then happened, after two seasons, or four horizons if those are fewer."""
    origin = int(run.origins[place])
    before = min(2 * run.smoothing, 4 * run.mean.shape[1])  # of a long season, more would leave the forecast no room
    past = np.arange(max(0, origin + 1 - before), origin + 1)
    ahead = run.stamps_ahead[place]
    draw_history(panel, run.stamps[past], run.rows[past, channel])
    ends = {level: run.interval(level) for level in LEVELS}
    own = {level: (lower[place, :, channel], upper[place, :, channel]) for level, (lower, upper) in ends.items()}
    draw_fan(panel, ahead, run.mean[place, :, channel], run.base[place, :, channel], own)
    draw_outcome(panel, ahead, run.outcome[place, :, channel])


def _draw_both_errors(panel: Any, run: Run) -> None:
    draw_errors(panel, run, {BARE: run.base, OMPB: run.mean})


def _draw_last_complete(panel: Any, run: Run) -> None:
    """The newest forecast of the first channel whose outcome is known to its last lead, else the newest of all."""
    complete = np.flatnonzero(run.origins + run.mean.shape[1] < len(run.rows))
    draw_forecast(panel, run, int(complete[-1]) if len(complete) else len(run.origins) - 1)
    panel.set_ylabel(in_picture(run.names[0]))


PARTS: dict[str, Callable[[Any, Run], None]] = {
    "errors": _draw_both_errors,
    "certificate": draw_certificate,
    "gate": draw_gates,
    "forecast": _draw_last_complete,
}


@rc_context(STYLE)
def run_picture(run: Run, parts: tuple[str, ...]) -> Picture:
    """One panel for each part, by name; all that there are if none is named."""
    strange = [part for part in parts if part not in PARTS]
    if strange:
        raise OptionError(f"a run has no part {strange[0]!r} to plot; accepted: {', '.join(PARTS)}.")
    if "certificate" in parts and not run.certificate:
        raise OptionError("the run has no certificates to plot; fit the calibrator with certificate=True.")
    chosen = parts or tuple(part for part in PARTS if part != "certificate" or run.certificate)
    picture, shown = panels(len(chosen))
    for panel, part in zip(shown, chosen, strict=True):
        PARTS[part](panel, run)
        legend_below(panel)
    return picture
