"""The look of every picture: colours, style, size, and a figure that a notebook shows by itself."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

Places: TypeAlias = NDArray[np.intp]

# Okabe-Ito: colours that stay apart for every kind of colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"

MOST_POINTS = 1200  # of a line: about one per pixel; more cannot be seen and would make the file large
WIDTH_INCHES, PANEL_INCHES = 9.6, 3.2
MOST_LETTERS, LEGEND_LETTERS = 32, 130  # of a name in a picture, and those that stand side by side in a legend
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


class Picture(Figure):
    """A figure that no window manages; a notebook shows it where a cell ends with it."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        save(self, buffer, format="png")
        return buffer.getvalue()


def panels(count: int) -> tuple[Picture, list[Any]]:
    """A picture with so many panels below each other."""
    picture = Picture(figsize=(WIDTH_INCHES, PANEL_INCHES * count))
    return picture, picture.subplots(count, 1, squeeze=False)[:, 0].tolist()


def save(figure: Figure, file: Any, **options: Any) -> None:
    """``figure.savefig`` without a word about letters that the font lacks, or few dates on an axis."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="AutoDateLocator was unable to pick")
        figure.savefig(file, **options)


def thinned(places: Places) -> Places:
    """At most ``MOST_POINTS`` of the places, evenly spread, both ends included."""
    if len(places) <= MOST_POINTS:
        return places
    return places[np.linspace(0, len(places) - 1, MOST_POINTS).astype(np.intp)]


def in_picture(name: str, most: int = MOST_LETTERS) -> str:
    """A name as pictures show it: the middle of a long one is left out, since its end may tell it from the next.

    >>> in_picture("load"), in_picture("a long name with a number at its end, 17", 16), in_picture("_x")
    ('load', 'a long n…end, 17', ' _x')
    """
    ends = most // 2
    short = name if len(name) <= most else f"{name[:ends].rstrip()}…{name[ends + 1 - most :].lstrip()}"
    return f" {short}" if short.startswith("_") else short  # legends leave out what begins with an underscore


def legend_below(panel: Any) -> None:
    """The legend under the panel, whose curves reach from side to side."""
    panel.margins(x=0)  # a margin could lie beyond the last year there is
    longest = max(map(len, panel.get_legend_handles_labels()[1]), default=0)
    columns = max(1, min(8, LEGEND_LETTERS // (longest + 7)))  # a line and the space around it take seven letters
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=columns, columnspacing=1.4, handlelength=2.4)
