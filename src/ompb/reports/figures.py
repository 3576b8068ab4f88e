"""The pictures of a study, and the one of them that a README shows.

Every function returns a matplotlib ``Figure`` and leaves no global state behind.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.dates
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ompb.core.record import RAREST
from ompb.errors import OptionError
from ompb.floor.files import replacing
from ompb.plots.course import draw_certificate, draw_errors, draw_forecast, draw_gates
from ompb.plots.look import (
    BLUE,
    GREEN,
    ORANGE,
    PANEL_INCHES,
    PURPLE,
    STYLE,
    VERMILION,
    WIDTH_INCHES,
    in_picture,
    legend_below,
    panels,
    save,
)
from ompb.rows.phases import Phase
from ompb.studies import Study

# Of the warnings: what saw something.
SIGNALS: dict[str, dict[str, Any]] = {
    "inputs": {"color": BLUE, "marker": "o", "linewidth": 0},
    "level": {"color": GREEN, "marker": "s", "linewidth": 0},
    "errors": {"color": VERMILION, "marker": "^", "linewidth": 0},
    "novelty": {"color": PURPLE, "marker": "D", "linewidth": 0},
}


@rc_context(STYLE)
def error_figure(study: Study) -> Figure:
    """Rolling error of ours, the bare forecaster and the references."""
    return _drawn(study, _draw_errors)


@rc_context(STYLE)
def certificate_figure(study: Study) -> Figure:
    """The certificate over time, stacked by its terms, with the loss that was then realised."""
    return _drawn(study, _draw_certificate)


@rc_context(STYLE)
def gate_figure(study: Study) -> Figure:
    """The gate of every channel over time; of many channels, the median and where most of them lie."""
    return _drawn(study, _draw_gates)


@rc_context(STYLE)
def warning_figure(study: Study) -> Figure:
    """Episodes of warnings on the time axis, one line for each signal, as high as they are rare."""
    return _drawn(study, _draw_warnings)


@rc_context(STYLE)
def fan_figure(study: Study) -> Figure:
    """One forecast of the first channel per phase (or per third of a single phase), with its intervals."""
    moments = _moments(study)
    figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES))
    fans = figure.subplots(1, len(moments), squeeze=False)[0]
    for panel, (name, place) in zip(fans, moments.items(), strict=True):
        draw_forecast(panel, study.run, place)
        panel.margins(x=0)
        panel.set_title(name, loc="left", fontsize=10)
        _set_few_ticks(panel.xaxis, dates=study.times.dtype.kind == "M")
    fans[0].set_ylabel(in_picture(study.run.names[0]))
    handles, labels = fans[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


@rc_context(STYLE)
def write_picture(study: Study, path: Path) -> None:
    """The rolling error above the certificate as one PNG, 1200 pixels wide."""
    require_png(path)
    figure = _drawn(study, _draw_errors, *([_draw_certificate] if study.run.certificate else []))
    with replacing(path, parents=True) as part:
        save(figure, part, dpi=1200 / WIDTH_INCHES, format="png")


def require_png(path: Path) -> None:
    """Raise `OptionError` unless the name ends in .png."""
    if path.suffix.lower() != ".png":
        raise OptionError(f"{str(path)!r} ends in {path.suffix!r}; name the picture .png.")


def _drawn(study: Study, *drawings: Callable[[Any, Study], None]) -> Figure:
    """A panel for each drawing, with the phases marked and a legend under it."""
    figure, below = panels(len(drawings))
    for panel, draw in zip(below, drawings, strict=True):
        draw(panel, study)
        _mark_phases(panel, study)
        legend_below(panel)
    return figure


def _draw_errors(panel: Any, study: Study) -> None:
    draw_errors(panel, study.run, study.forecasts)


def _draw_certificate(panel: Any, study: Study) -> None:
    draw_certificate(panel, study.run)


def _draw_gates(panel: Any, study: Study) -> None:
    draw_gates(panel, study.run)


def _draw_warnings(panel: Any, study: Study) -> None:
    alerts = [alert for episode in study.run.warnings for alert in episode.alerts]
    for signal, style in SIGNALS.items():
        seen = [alert for alert in alerts if alert.signal == signal]
        if seen:
            rarity = [alert.rows_between for alert in seen]
            panel.plot(study.times[[alert.since for alert in seen]], rarity, label=signal, **style)
    for episode in study.run.warnings:
        ends = study.times[[episode.since, episode.newest]]
        panel.axvspan(*ends, color=ORANGE, alpha=0.25, linewidth=0.5)
    first, last = study.times[[study.run.origins[0], len(study.rows) - 1]]
    panel.set_xlim(first, last)
    panel.set_yscale("log")
    panel.set_ylim(study.calibrator.settings.warning_rows / 1.5, 1.5 * RAREST)
    panel.set_ylabel("rows between two times that\na calm stream does so")


def _mark_phases(panel: Any, study: Study) -> None:
    """A line where each of several phases begins, with its name."""
    for phase in study.phases if len(study.phases) > 1 else ():
        start = study.times[phase.first]
        panel.axvline(start, color="0.35", linewidth=0.8)
        panel.annotate(phase.name, (start, 1), (4, 4), xycoords=("data", "axes fraction"), textcoords="offset points")


def _set_few_ticks(axis: Any, *, dates: bool) -> None:
    """So few that the labels of a narrow panel stay apart."""
    if dates:
        calendar: Any = matplotlib.dates  # comes without types
        locator = calendar.AutoDateLocator(minticks=2, maxticks=4)
        axis.set_major_locator(locator)
        axis.set_major_formatter(calendar.ConciseDateFormatter(locator))
    else:
        axis.set_major_locator(MaxNLocator(3, integer=True))


def _moments(study: Study) -> dict[str, int]:
    """The last forecast in each phase whose outcome lies in it too: its name and its place in the run."""
    run = study.run
    ends = run.origins + run.mean.shape[1]
    moments = {}
    for phase in study.phases if len(study.phases) > 1 else _thirds(study.phases[0]):
        inside = np.flatnonzero(phase.holds(run.origins) & phase.holds(ends))
        if len(inside):
            moments[phase.name] = int(inside[-1])
    return moments or {"the last forecast": len(run.origins) - 1}


def _thirds(phase: Phase) -> list[Phase]:
    edges = np.linspace(phase.first, phase.stop, 4).astype(int).tolist()
    names = ("end of the first third", "end of the second third", "end of the run")
    return [Phase(name, first, stop) for name, first, stop in zip(names, edges[:-1], edges[1:], strict=True)]
