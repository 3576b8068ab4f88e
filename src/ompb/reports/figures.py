"""The pictures of a finished run, and the one of them that a README shows.

Every function returns a matplotlib ``Figure`` and leaves no global state behind.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib.dates
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ompb.core.record import RAREST
from ompb.datasets.times import with_future
from ompb.diagnosis import proxy_loss
from ompb.errors import OptionError
from ompb.files import replacing
from ompb.phases import Phase
from ompb.reports.curves import error_by_row, rolling_mean
from ompb.studies import BARE, OMPB, Study

Places: TypeAlias = NDArray[np.intp]

# Okabe-Ito: colours that stay apart for every kind of colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
# Line styles differ too, for grey print. The other references are in the table: here they would hide the rest.
CURVES: dict[str, dict[str, Any]] = {
    BARE: {"color": VERMILION, "linestyle": "--"},
    "seasonal profile": {"color": GREEN, "linestyle": ":"},
    "running bias": {"color": PURPLE, "linestyle": "-."},
    OMPB: {"color": BLUE, "linewidth": 2.0},
}
TERMS = (("source risk", SKY), ("complexity (gamma)", ORANGE), ("half the disagreement", PURPLE))
CHANNEL_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW)

# Of the warnings: what saw something.
SIGNALS: dict[str, dict[str, Any]] = {
    "inputs": {"color": BLUE, "marker": "o", "linewidth": 0},
    "level": {"color": GREEN, "marker": "s", "linewidth": 0},
    "errors": {"color": VERMILION, "marker": "^", "linewidth": 0},
    "novelty": {"color": PURPLE, "marker": "D", "linewidth": 0},
}

MOST_POINTS = 1200  # of a line: about one per pixel; more cannot be seen and would make the file large
WIDTH_INCHES, PANEL_INCHES = 9.6, 3.2
STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "0.6",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "date.converter": "concise",
    "figure.constrained_layout.use": True,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 10.0,
    "grid.color": "0.92",
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "text.parse_math": False,  # a channel may be called "$"
    "xtick.color": "0.35",
    "ytick.color": "0.35",
}


@rc_context(STYLE)
def error_figure(study: Study) -> Figure:
    """Rolling error of ours, the bare forecaster and the references."""
    figure, panel = _one_panel()
    _draw_errors(panel, study)
    return figure


@rc_context(STYLE)
def certificate_figure(study: Study) -> Figure:
    """The certificate over time, stacked by its terms, with the loss that was then realised."""
    figure, panel = _one_panel()
    _draw_certificate(panel, study)
    return figure


@rc_context(STYLE)
def gate_figure(study: Study) -> Figure:
    """The gate of every channel over time; of many channels, the median and where most of them lie."""
    figure, panel = _one_panel()
    _draw_gates(panel, study)
    return figure


@rc_context(STYLE)
def warning_figure(study: Study) -> Figure:
    """Episodes of warnings on the time axis, one line for each signal, as high as they are rare."""
    figure, panel = _one_panel()
    _draw_warnings(panel, study)
    return figure


@rc_context(STYLE)
def fan_figure(study: Study) -> Figure:
    """One forecast of the first channel per phase (or per third of a single phase), with its intervals."""
    moments = _moments(study)
    figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES))
    panels = figure.subplots(1, len(moments), squeeze=False)[0]
    for panel, (name, place) in zip(panels, moments.items(), strict=True):
        _draw_fan(panel, study, place)
        panel.margins(x=0)
        panel.set_title(name, loc="left", fontsize=10)
        _set_few_ticks(panel.xaxis, dates=study.times.dtype.kind == "M")
    panels[0].set_ylabel(study.run.names[0])
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return figure


@rc_context(STYLE)
def write_picture(study: Study, path: Path) -> None:
    """The rolling error above the certificate as one PNG, 1200 pixels wide."""
    require_png(path)
    drawings: list[Callable[[Any, Study], None]] = [_draw_errors]
    if study.run.certificate:
        drawings.append(_draw_certificate)
    figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES * len(drawings)))
    panels = figure.subplots(len(drawings), 1, squeeze=False)[:, 0]
    for panel, draw in zip(panels, drawings, strict=True):
        draw(panel, study)
    with replacing(path, parents=True) as part:
        save(figure, part, dpi=1200 / WIDTH_INCHES, format="png")


def require_png(path: Path) -> None:
    """Raise `OptionError` unless the name ends in .png."""
    if path.suffix.lower() != ".png":
        raise OptionError(f"{str(path)!r} ends in {path.suffix!r}; name the picture .png.")


def save(figure: Figure, file: Any, **options: Any) -> None:
    """``figure.savefig`` without a word about letters that the built-in font lacks: a box in their place says it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, **options)


def _one_panel() -> tuple[Figure, Any]:
    figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES))
    return figure, figure.subplots()


def _draw_errors(panel: Any, study: Study) -> None:
    rows = _thinned(np.arange(study.run.origins[0] + 1, len(study.rows)))
    for name, forecast in study.forecasts.items():
        if name in CURVES:
            error = rolling_mean(error_by_row(study.run, forecast), study.smoothing)
            panel.plot(study.times[rows], error[rows], label=name, **CURVES[name])
    panel.set_ylabel("mean absolute error\n(source standard deviations)")
    panel.set_ylim(bottom=0)
    _finish(panel, study)


def _draw_certificate(panel: Any, study: Study) -> None:
    run = study.run
    places = _thinned(np.arange(len(run.origins)))
    x = study.times[run.origins[places]]
    parts = (run.certificate["source_risk"], run.certificate["gamma"], 0.5 * run.certificate["disagreement"])
    names, colours = zip(*TERMS, strict=True)
    panel.stackplot(x, *(part[places] for part in parts), labels=names, colors=colours, alpha=0.75, linewidth=0)
    loss = rolling_mean(proxy_loss(run), study.smoothing)
    panel.plot(x, loss[places], color=BLACK, label="realised loss")
    panel.axhline(1, color="0.35", linewidth=0.8, linestyle=(0, (4, 3)))
    panel.set_ylabel("certificate\n(1 = the worst loss there is)")
    panel.set_ylim(bottom=0)
    _finish(panel, study)


def _draw_gates(panel: Any, study: Study) -> None:
    gate = study.run.gate
    places = _thinned(np.arange(len(gate)))
    x = study.times[study.run.origins[places]]
    if gate.shape[1] <= len(CHANNEL_COLOURS):
        for name, values, colour in zip(study.run.names, gate.T, CHANNEL_COLOURS, strict=False):
            panel.plot(x, values[places], color=colour, label=name)
    else:
        low, middle, high = np.quantile(gate[places], (0.1, 0.5, 0.9), axis=1)
        panel.fill_between(x, low, high, color=SKY, alpha=0.4, linewidth=0, label="8 in 10 channels")
        panel.plot(x, middle, color=BLUE, label="median channel")
    panel.set_ylabel("gate\n(0 = bare, 1 = fully corrected)")
    panel.set_ylim(-0.02, 1.02)
    _finish(panel, study)


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
    panel.set_ylim(study.calibrator.settings.warning_rows, 1.5 * RAREST)
    panel.set_ylabel("rows between two times that\na calm stream does so")
    _finish(panel, study)


def _draw_fan(panel: Any, study: Study, place: int) -> None:
    run, origin = study.run, int(study.run.origins[place])
    past = np.arange(max(0, origin + 1 - 2 * study.smoothing), origin + 1)
    horizon = run.mean.shape[1]
    ahead = with_future(study.times, horizon)[origin + 1 : origin + 1 + horizon]
    panel.plot(study.times[past], study.rows[past, 0], color="0.5", label="history")
    for level, alpha in ((0.95, 0.25), (0.8, 0.5)):
        lower, upper = (end[place, :, 0] for end in run.interval(level))
        panel.fill_between(ahead, lower, upper, color=SKY, alpha=alpha, linewidth=0, label=f"{level:.0%} interval")
    panel.plot(ahead, run.mean[place, :, 0], label=OMPB, **CURVES[OMPB])
    panel.plot(ahead, run.base[place, :, 0], label=BARE, **CURVES[BARE])
    panel.plot(ahead, run.outcome[place, :, 0], color=BLACK, marker="o", markersize=3, linewidth=0, label="outcome")


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


def _thinned(places: Places) -> Places:
    """At most ``MOST_POINTS`` of the places, evenly spread, both ends included."""
    if len(places) <= MOST_POINTS:
        return places
    return places[np.linspace(0, len(places) - 1, MOST_POINTS).astype(np.intp)]


def _finish(panel: Any, study: Study) -> None:
    """Mark and name the phases, and put the legend under the panel."""
    panel.margins(x=0)  # a margin could lie beyond the last year there is
    if len(study.phases) > 1:
        for phase in study.phases:
            start = study.times[phase.first]
            panel.axvline(start, color="0.35", linewidth=0.8)
            panel.annotate(
                phase.name, (start, 1), (4, 4), xycoords=("data", "axes fraction"), textcoords="offset points"
            )
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=8, columnspacing=1.4, handlelength=2.4)
