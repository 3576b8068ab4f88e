"""By how much many series gain: the ratio of errors as a picture."""

from __future__ import annotations

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ompb.plots.look import BLUE, PANEL_INCHES, STYLE, VERMILION, WIDTH_INCHES
from ompb.studies import Studies

LARGEST = 2.0  # ratios beyond it are drawn at it
BARS = 40  # from 0 to the largest; one begins at 1


@rc_context(STYLE)
def ratio_figure(studies: Studies) -> Figure:
    """How many series have which MAE of ompb over that of the bare forecaster, those that gain in another colour."""
    ratios = np.minimum([line.ratio for line in studies.ranked], LARGEST)
    figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES))
    panel = figure.subplots()
    edges = np.linspace(0, LARGEST, BARS + 1).tolist()
    for label, colour, part in (("better", BLUE, ratios[ratios < 1]), ("not better", VERMILION, ratios[ratios >= 1])):
        panel.hist(part, edges, color=colour, label=f"{label}: {len(part)} series")
    panel.axvline(1, color="0.35", linewidth=0.8)
    panel.set_xlabel("MAE of ompb / MAE of the bare forecaster")
    panel.set_ylabel("series")
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.legend()
    return figure
