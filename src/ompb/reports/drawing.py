"""Figures that are plain values (`ompb.bench.findings`) as SVG, for light and dark pages, wide and narrow ones.

For a page, a panel is an ``svg`` element of its own, so that panels stand side by side or below each other. Nothing is
painted behind them, but a file has the light page's colour there, to be read wherever it is shown. Every colour is a
variable of the page with the light page's value as default: ``--ink``, ``--soft``, ``--line``, ``--page``, and
``--series-0`` and so on for the curves.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from textwrap import fill
from typing import Any, Final
from zlib import crc32

from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from ompb.bench.findings import Curve, Figure, Panel
from ompb.plots.look import STYLE
from ompb.reports.inline import inline_svg
from ompb.reports.slim import slim
from ompb.reports.style import INK, LINE, PAGE, SERIES, SOFT

# As many as have no divisor in common with the colours: thirty curves until a pair comes again. A dash is seen in grey
# print, too, and shows the line that it lies on.
DASHES: Final = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.2, 1.5, 1.2)), (0, (3, 3)))
LINE_WIDTHS: Final = (2.4, 1.9, 1.6, 1.3)  # the wider below the narrower; that of the last for all after it
MARKER_SIZES: Final = (5.5, 4.5, 3.5, 2.8)  # likewise
MARKERS = "os"
WIDTH_INCHES, AXES_INCHES, LEGEND_INCHES = 4.9, 3.1, 0.22  # so narrow that letters keep their size on a phone
TITLE_LETTERS, LABEL_LETTERS, SIDE_LETTERS = 54, 44, 30  # that fit above, below and beside a panel
OURS = re.compile(r"ompb(, .*)?|issued")  # curves that have the first colour
BARE = ("original", "bare forecaster")  # and the second, where ours are
ACROSS = 2  # panels in a row of a file
_SIZE = re.compile(r'viewBox="0 0 (\S+) ([^"]+)"')
_WHOLE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height:g}pt"
 viewBox="0 0 {width:g} {height:g}">
<rect width="100%" height="100%" fill="{page}"/>
{panels}
</svg>
"""
LOOK: Any = {
    **STYLE,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "grid.color": LINE,
    "legend.handlelength": 2.8,  # in which a dash comes twice
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
    """The whole figure as one ``svg`` element, or file: panels from left to right, two in a row."""
    drawn = panel_svgs(figure)
    sizes = [tuple(map(float, _SIZE.findall(text)[0])) for text in drawn]
    sized = list(zip(drawn, sizes, strict=True))
    rows = [sized[first : first + ACROSS] for first in range(0, len(sized), ACROSS)]
    placed, top = [], 0.0
    for row in rows:
        for column, (text, (width, height)) in enumerate(row):
            place = f'<svg x="{column * width:g}" y="{top:g}" width="{width:g}" height="{height:g}" '
            placed.append(text.replace("<svg ", place, 1))
        top += max(height for _, (_, height) in row)
    across = max((sum(width for _, (width, _) in row) for row in rows), default=0.0)
    return _WHOLE.format(width=across, height=top, page=f"var(--page, {PAGE})", panels="\n".join(placed))


def panel_svgs(figure: Figure) -> list[str]:
    """One ``svg`` element per panel, in order; the same figure makes the same text."""
    whole = _ranks(figure.panels)
    shared = len(whole) <= len(SERIES)  # else colours would be missing where they tell curves of a panel apart
    titles = Counter(panel.title for panel in figure.panels)
    return [
        _panel_svg(
            replace(panel, title=f"{panel.title}: {panel.y_label}") if titles[panel.title] > 1 else panel,
            f"f{crc32(figure.name.encode()):x}-{place}",  # short, for it stands in front of every name
            whole if shared else _ranks([panel]),
            is_named=len(whole) > 1,
        )
        for place, panel in enumerate(figure.panels)
    ]


def _ranks(panels: Iterable[Panel]) -> dict[str, int]:
    """A number for each name, which decides its look: first ours and the band around it, then the bare forecaster."""
    curves = [curve for panel in panels for curve in panel.curves if curve.name]
    names = list(dict.fromkeys(curve.name for curve in curves))
    ours = next((name for name in names if OURS.fullmatch(name)), None)
    if ours is None:
        return {name: rank for rank, name in enumerate(names)}
    bands = {curve.name for curve in curves if curve.mark == "band"}
    others = sorted((name for name in names if name not in {ours, *bands}), key=lambda name: name not in BARE)
    return {name: rank for rank, name in enumerate((ours, *others))} | dict.fromkeys(bands, 0)


def _panel_svg(panel: Panel, prefix: str, ranks: Mapping[str, int], *, is_named: bool) -> str:
    names = [curve.name for curve in panel.curves if curve.name]
    columns = max(1, len(names)) if len(names) < 3 and sum(map(len, names)) <= LABEL_LETTERS else 2
    legend = -(-len(names) // columns) if names and is_named else 0  # rows of it
    with rc_context(LOOK):
        canvas = Canvas(figsize=(WIDTH_INCHES, AXES_INCHES + LEGEND_INCHES * legend))
        _draw(canvas.subplots(), panel, ranks)
        if legend:
            canvas.legend(loc="outside lower center", ncols=columns)
        text = inline_svg(canvas, prefix)
    label = escape(panel.title or panel.y_label, quote=True)
    text = re.sub(r'(<svg [^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)  # where it stands decides
    return _themed(slim(text)).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _draw(axes: Any, panel: Panel, ranks: Mapping[str, int]) -> None:
    categories = list(dict.fromkeys(x for curve in panel.curves for x in curve.x if isinstance(x, str)))
    bars = [curve for curve in panel.curves if curve.mark == "bars"]
    ranked = [(ranks.get(curve.name, place), curve) for place, curve in enumerate(panel.curves)]
    for rank, curve in sorted(ranked, key=lambda one: (one[1].mark != "band", one[0])):  # later ones lie on top
        x = [float(categories.index(at) if isinstance(at, str) else at) for at in curve.x]
        if curve.mark == "bars":
            _draw_bars(axes, curve, x, rank, bars.index(curve), len(bars))
        else:
            _draw_curve(axes, curve, x, rank)
    axes.set_title(fill(panel.title, TITLE_LETTERS), loc="left", fontsize=10)
    axes.set_xlabel(fill(panel.x_label, LABEL_LETTERS))
    axes.set_ylabel(fill(panel.y_label, SIDE_LETTERS))
    if categories:
        crowded = max(map(len, categories)) * len(categories) > LABEL_LETTERS
        axes.set_xticks(
            range(len(categories)), categories, rotation=35 if crowded else 0, ha="right" if crowded else "center"
        )
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))


def _draw_curve(axes: Any, curve: Curve, x: Sequence[float], rank: int) -> None:
    colour, size = SERIES[rank % len(SERIES)], MARKER_SIZES[min(rank, len(MARKER_SIZES) - 1)]
    y = _numbers(curve.y)
    if curve.mark == "band":
        axes.fill_between(x, y, _numbers(curve.top), color=colour, alpha=0.25, linewidth=0, label=curve.name)
    elif curve.mark == "points":
        marker = MARKERS[rank % len(MARKERS)]
        axes.plot(x, y, color=colour, marker=marker, markersize=3.5, linestyle="none", alpha=0.8, label=curve.name)
    else:
        few = len(x) <= 12  # then the places where there is a number are worth seeing
        style = {"linestyle": DASHES[rank % len(DASHES)], "linewidth": LINE_WIDTHS[min(rank, len(LINE_WIDTHS) - 1)]}
        axes.plot(x, y, color=colour, marker="o" if few else "", markersize=size, label=curve.name, **style)


def _draw_bars(axes: Any, curve: Curve, x: Sequence[float], rank: int, place: int, count: int) -> None:
    """Bars of several curves stand side by side at each x, in four fifths of the room between two of them."""
    gaps = [after - before for before, after in itertools.pairwise(sorted(set(x)))]
    width = 0.8 * min(gaps, default=1.0) / count
    shifted = [at + (place - (count - 1) / 2) * width for at in x]
    axes.bar(shifted, _numbers(curve.y), width, color=SERIES[rank % len(SERIES)], linewidth=0, label=curve.name)


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _themed(text: str) -> str:
    """Colours as variables of the page."""
    for colour, variable in VARIABLES.items():
        text = re.sub(re.escape(colour), f"var({variable}, {colour})", text, flags=re.IGNORECASE)
    return text
