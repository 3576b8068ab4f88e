"""Figures that are plain values (`ompb.bench.findings`) as SVG, for light and dark pages, wide and narrow ones.

A panel is an ``svg`` element of its own, so that a page may set panels side by side or below each other. Nothing is
painted behind them, and every colour is a variable of the page with the light page's value as default: ``--ink``,
``--soft``, ``--line``, and ``--series-0`` and so on for the curves.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from ompb.bench.findings import Curve, Figure, Panel
from ompb.reports.figures import BLUE, GREEN, ORANGE, PURPLE, SKY, STYLE, VERMILION
from ompb.reports.inline import inline_svg

INK, SOFT, LINE = "#1c1f23", "#5c6570", "#d9dee3"  # as the page's style sheet has them
SERIES: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("-", "--", "-.", ":")  # for grey print, and for more curves than colours
MARKERS = "os^Dv*"
WIDTH_INCHES, AXES_INCHES, LEGEND_INCHES = 4.9, 3.1, 0.22  # so narrow that letters keep their size on a phone
LABEL_LETTERS = 44  # that fit side by side below a panel
LOOK: Any = {
    **STYLE,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "grid.color": LINE,
    "legend.labelcolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
}
VARIABLES: Final = {
    INK: "--ink",
    SOFT: "--soft",
    LINE: "--line",
    **{colour: f"--series-{place}" for place, colour in enumerate(SERIES)},
}


def svg(figure: Figure) -> str:
    """One ``svg`` element per panel, in order; the same figure makes the same text."""
    drawn = (_panel_svg(panel, f"{figure.name}-{place}") for place, panel in enumerate(figure.panels))
    return "\n".join(drawn)


def _panel_svg(panel: Panel, prefix: str) -> str:
    names = [curve.name for curve in panel.curves if curve.name]
    columns = len(names) if len(names) < 3 and sum(map(len, names)) <= LABEL_LETTERS else 2
    legend = -(-len(names) // columns) if len(names) > 1 else 0  # rows of it
    with rc_context(LOOK):
        canvas = Canvas(figsize=(WIDTH_INCHES, AXES_INCHES + LEGEND_INCHES * legend))
        _draw(canvas.subplots(), panel)
        if legend:
            canvas.legend(loc="outside lower center", ncols=columns)
        text = inline_svg(canvas, re.sub(r"[^A-Za-z0-9]+", "-", prefix))
    label = escape(panel.title or panel.y_label, quote=True)
    return _themed(_rounded(text)).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _draw(axes: Any, panel: Panel) -> None:
    categories = list(dict.fromkeys(x for curve in panel.curves for x in curve.x if isinstance(x, str)))
    bars = [curve for curve in panel.curves if curve.mark == "bars"]
    for place, curve in enumerate(panel.curves):
        x = [float(categories.index(at) if isinstance(at, str) else at) for at in curve.x]
        if curve.mark == "bars":
            _draw_bars(axes, curve, x, place, bars.index(curve), len(bars))
        else:
            _draw_curve(axes, curve, x, place)
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if categories:
        crowded = sum(map(len, categories)) > LABEL_LETTERS
        axes.set_xticks(
            range(len(categories)), categories, rotation=35 if crowded else 0, ha="right" if crowded else "center"
        )
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))


def _draw_curve(axes: Any, curve: Curve, x: Sequence[float], place: int) -> None:
    colour, style = SERIES[place % len(SERIES)], DASHES[place // len(SERIES) % len(DASHES)]
    y = _numbers(curve.y)
    if curve.mark == "band":
        axes.fill_between(x, y, _numbers(curve.top), color=colour, alpha=0.25, linewidth=0, label=curve.name)
    elif curve.mark == "points":
        marker = MARKERS[place % len(MARKERS)]
        axes.plot(x, y, color=colour, marker=marker, markersize=3.5, linewidth=0, alpha=0.8, label=curve.name)
    else:
        few = len(x) <= 12  # then the places where there is a number are worth seeing
        axes.plot(x, y, color=colour, linestyle=style, marker="o" if few else "", markersize=3.5, label=curve.name)


def _draw_bars(axes: Any, curve: Curve, x: Sequence[float], place: int, rank: int, count: int) -> None:
    """Bars of several curves stand side by side at each x, in four fifths of the room between two of them."""
    gaps = [after - before for before, after in itertools.pairwise(sorted(set(x)))]
    width = 0.8 * min(gaps, default=1.0) / count
    shifted = [at + (rank - (count - 1) / 2) * width for at in x]
    axes.bar(shifted, _numbers(curve.y), width, color=SERIES[place % len(SERIES)], linewidth=0, label=curve.name)


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _rounded(text: str) -> str:
    """A hundredth of a point is enough."""
    return re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", text)


def _themed(text: str) -> str:
    """Colours as variables of the page."""
    for colour, variable in VARIABLES.items():
        text = re.sub(re.escape(colour), f"var({variable}, {colour})", text, flags=re.IGNORECASE)
    return text
