"""By how much many series gain: the ratio of errors as a picture."""

from __future__ import annotations

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ompb.plots.look import BLUE, PANEL_INCHES, STYLE, VERMILION, WIDTH_INCHES
from ompb.studies import Studies
from ompb.types import Floats

LARGEST = 2.0  # ratios beyond it are drawn at it
BARS = 40  # at most
WIDTHS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # of a bar


@rc_context(STYLE)
def ratio_figure(studies: Studies) -> Figure:
    """How many series have which MAE of ompb over that of the bare forecaster, those that gain in another colour."""
    ratios = np.minimum([line.ratio for line in studies.ranked], LARGEST)
    figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES))
    panel = figure.subplots()
    edges = _edges(ratios)
    for label, colour, part in (("better", BLUE, ratios[ratios < 1]), ("not better", VERMILION, ratios[ratios >= 1])):
        panel.hist(part, edges, color=colour, label=f"{label}: {len(part)} series")
    panel.axvline(1, color="0.35", linewidth=0.8)
    panel.set_xlabel("MAE of ompb / MAE of the bare forecaster")
    panel.set_ylabel("series")
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.legend()
    return figure


def _edges(ratios: Floats) -> list[float]:
    """Of the bars, from the smallest ratio to the largest: one begins at 1, and they are as narrow as so many allow.

    >>> _edges(np.array([0.957, 1.005]))[:2], _edges(np.array([0.2, 2.0]))[-2:]
    ([0.956, 0.958], [1.95, 2.0])
    """
    low, high = min(ratios.min(), 1.0), max(ratios.max(), 1.0)
    width = next((width for width in WIDTHS if high - low <= (BARS - 2) * width), WIDTHS[-1])
    first, last = np.floor((low - 1) / width), np.ceil((high - 1) / width)
    return [round(1 + width * bar, 3) for bar in range(int(first), max(int(last), 1) + 1)]
