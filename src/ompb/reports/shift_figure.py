"""A picture of how the values of two tables differ, channel by channel."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ompb.errors import OptionError
from ompb.floor.files import replacing
from ompb.metrics.shift import BINS, ShiftTable
from ompb.plots.look import in_picture, save
from ompb.tables import Table
from ompb.types import Floats

MOST_PANELS = 12
COLUMNS = 4
TITLE_LETTERS = 20  # of a name, beside its KS
COLOURS = ("#0072B2", "#D55E00")  # Okabe-Ito blue and vermilion: apart for every kind of colour vision
OUTLINES = ("-", "--")  # and in grey print


def shift_figure(
    a: Table, b: Table, table: ShiftTable, path: str | Path, labels: tuple[str, str] = ("source", "target")
) -> None:
    """Draw the densities of both tables, one panel for each channel of ``table``, to a PNG or SVG file.

    Of more than 12 channels, the 12 with the largest KS statistic are drawn, and the figure says so.
    """
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise OptionError(f"{str(path)!r} ends in {path.suffix!r}; name the figure .png or .svg.")
    shown = _shown_channels(table)
    first, second = a.select(table.channels).values, b.select(table.channels).values
    figure, panels = _panels(len(shown))
    for panel, channel in zip(panels, shown, strict=True):
        _draw_densities(panel, (first[:, channel], second[:, channel]), labels)
        panel.set_title(_title(table, channel), fontsize=10, loc="left", parse_math=False)
    _add_legend(figure, panels, _caption(table, len(shown)))
    with replacing(path, parents=True) as part:
        save(figure, part, dpi=150, format=path.suffix[1:].lower())


def _shown_channels(table: ShiftTable) -> list[int]:
    """The channels to draw, in table order: those with the largest KS if there are too many."""
    by_ks = np.argsort(-np.nan_to_num(table.ks), kind="stable")
    return sorted(by_ks[:MOST_PANELS].tolist())


def _panels(count: int) -> tuple[Figure, list[Any]]:
    columns = min(count, COLUMNS)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(2.6 * columns, 4.5), 1.9 * rows + 0.9), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for spare in grid[count:]:
        spare.set_axis_off()
    return figure, grid[:count]


def _draw_densities(panel: Any, samples: tuple[Floats, Floats], labels: tuple[str, str]) -> None:
    known = [sample[~np.isnan(sample)] for sample in samples]
    edges = np.histogram_bin_edges(np.concatenate(known), bins=BINS)
    for sample, label, colour, outline in zip(known, map(in_picture, labels), COLOURS, OUTLINES, strict=True):
        density = np.histogram(sample, bins=edges)[0] / max(len(sample), 1) / np.diff(edges)
        panel.stairs(density, edges, fill=True, color=colour, alpha=0.3)
        panel.stairs(density, edges, color=colour, linewidth=1.2, linestyle=outline, label=label)
    panel.set_yticks([])
    panel.set_ylim(bottom=0)
    panel.tick_params(labelsize=8, color="0.6")
    panel.spines[["left", "top", "right"]].set_visible(False)
    panel.spines["bottom"].set_color("0.6")


def _title(table: ShiftTable, channel: int) -> str:
    return f"{in_picture(table.channels[channel], TITLE_LETTERS)}   KS {table.ks[channel]:.3f}"


def _caption(table: ShiftTable, shown: int) -> str:
    total = len(table.channels)
    which = f"the {shown} of {total} channels with the largest KS" if shown < total else "all channels"
    return f"Density of values, {which}; mean KS {table.means()['ks']:.3f}"


def _add_legend(figure: Figure, panels: list[Any], caption: str) -> None:
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    figure.suptitle(caption, fontsize=11)
