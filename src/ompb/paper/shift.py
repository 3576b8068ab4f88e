"""How far the streams lie from the source, by four distances, and what that looks like. From data alone.

The paper's pairs are whole files (the one at home is source and "id" together), in the units of the files. A stream is
judged on its first rows only, so the shift that methods meet is that of the second table.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.store import Cell
from ompb.datasets.benchmark import BenchmarkData
from ompb.datasets.splits import ID
from ompb.metrics.shift import BINS, ShiftTable, mmd, shift_table
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import HINT, Doubts
from ompb.paper.drawing import cloud, picked, rounded
from ompb.paper.grid import SPLITS, STAND_IN, paper_dataset
from ompb.paper.places import NOT_PAPERS, data_at_hand, number, ratio
from ompb.paper.printed import diagnostics
from ompb.rows.scaler import Scaler
from ompb.types import Floats

NAME, TITLE = "shift", "How far the streams lie from the source"
HOME = "home"  # source and "id" together
FAR, NEAR = "ood_far", "ood_near"
# The paper's pairs: parts of ours, and the table and subject of the printed numbers.
PAIRS: Mapping[str, tuple[tuple[str, str, str, str], ...]] = {
    "etth": ((HOME, "ood", "covariate_shift_ett", "etth1_vs_etth2"),),
    "ili": ((HOME, "ood", "covariate_shift_ili", "precovid_vs_covid"),),
    STAND_IN: (
        (HOME, NEAR, "covariate_shift_weather_locations", "miami_vs_atlanta"),
        (HOME, FAR, "covariate_shift_weather_locations", "miami_vs_nyc"),
        (NEAR, FAR, "covariate_shift_weather_locations", "atlanta_vs_nyc"),
    ),
}
PRINTED = ("covariate_shift_ett", "covariate_shift_ili", "covariate_shift_weather_locations")
DISTANCES = {"ks_mean": "KS", "wasserstein_mean": "Wasserstein", "js_mean": "JS", "mmd_rbf": "MMD"}
BY_PAPERS = "ours by paper's"  # no "ratio", whose cells pages colour as if less were better
UNSCALED = "MMD squared, unscaled"
POINTS = 200  # of each part in a projection


def cells(scope: Scope) -> list[Cell]:  # noqa: ARG001
    """None: data alone."""
    return []


def reduce(runs: Runs, scope: Scope) -> Finding:  # noqa: ARG001
    """Distances beside the paper's, those of the streams as they are judged, densities and projections."""
    names = ["etth"] if scope.quick else list(SPLITS)
    loaded = {name: data_at_hand(name) for name in names}
    data = {name: found for name, found in loaded.items() if not isinstance(found, str)}
    text = (
        "KS, Wasserstein and JS are means over channels, in the units of the files; MMD is joint, over channels "
        "divided by their pooled standard deviation, but where said otherwise. The files of the weather stand-in are "
        "not the paper's, and the rows of ILI need not be."
    )
    absent = [found for found in loaded.values() if isinstance(found, str)]
    figures = [figure for name, found in data.items() for figure in (_densities(name, found), _projection(name, found))]
    sections = (_beside_paper(data), _as_judged(data))
    return Finding(NAME, TITLE, " ".join([text, *absent]), sections, tuple(figures), {"data": list(data)})


def parts(data: BenchmarkData) -> dict[str, Floats]:
    """All rows there are of home and of every stream away from it."""
    away = {split: rows for split, rows in data.streams.items() if split != ID}
    return {HOME: np.concatenate([data.source, data.streams[ID]]), **away}


def distances(table: ShiftTable) -> dict[str, float]:
    """By the names of the printed numbers."""
    means = table.means()
    return {
        "ks_mean": means["ks"],
        "wasserstein_mean": means["wasserstein"],
        "js_mean": means["jensen_shannon"],
        "mmd_rbf": table.mmd_joint,
    }


def _beside_paper(data: Mapping[str, BenchmarkData]) -> Section:
    lines, doubts = [], Doubts()
    for name, found in data.items():
        rows = parts(found)
        for first, second, table, subject in PAIRS[name]:
            printed = diagnostics(table)
            measured = distances(shift_table(rows[first], rows[second], found.channels))
            ours = [(shown, distance, measured[distance]) for distance, shown in DISTANCES.items()]
            ours.append((UNSCALED, "mmd_rbf", mmd(rows[first], rows[second], scaled=False) ** 2))
            for shown, distance, value in ours:
                theirs = printed[paper_dataset(name), subject, distance]
                lines.append((name, first, second, shown, _digits(value), doubts.shown(theirs),
                              ratio(name, value, theirs)))  # fmt: skip
    return Section(
        "Whole files, beside the paper's",
        (
            "Home is source and id together.",
            "The paper does not say how its MMD is computed. Squared and in the units of the files, where the channel "
            "of the largest numbers decides, it is near the printed numbers; ours is a root over scaled channels.",
            HINT,
            NOT_PAPERS,
            *doubts.notes(),
        ),
        ("data", "part", "against", "distance", "ours", "paper", BY_PAPERS),
        tuple(lines),
    )


def _as_judged(data: Mapping[str, BenchmarkData]) -> Section:
    lines = []
    for name, found in data.items():
        scaler = Scaler.fit(found.source)
        source = scaler.standardise(found.source)
        for split in found.streams:
            rows = scaler.standardise(found.stream(split, 1))
            table = shift_table(source, rows, found.channels)
            worst = int(np.nanargmax(table.ks))
            values = distances(table)
            lines.append((name, split, *(number(values[distance]) for distance in DISTANCES), found.channels[worst],
                          number(float(table.ks[worst])), str(len(rows))))  # fmt: skip
    return Section(
        "The source and each stream as it is judged",
        ("Standardised with the source, so that Wasserstein counts standard deviations of the source.",),
        ("data", "split", *DISTANCES.values(), "channel moved most", "its KS", "rows"),
        tuple(lines),
        keys=2,
    )


def _digits(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.0f}" if value >= 1000 else f"{value:.3f}"


def _densities(name: str, data: BenchmarkData) -> Figure:
    rows = parts(data)
    panels = []
    for channel, label in enumerate(data.channels):
        samples = {part: values[:, channel] for part, values in rows.items()}
        edges = np.histogram_bin_edges(np.concatenate(list(samples.values())), bins=BINS)
        middles = tuple(float(f"{middle:.5g}") for middle in (edges[1:] + edges[:-1]) / 2)
        curves = [
            Curve(part, middles, rounded(np.histogram(sample, bins=edges, density=True)[0]))
            for part, sample in samples.items()
        ]
        panels.append(Panel(label, "value", "density", tuple(curves)))
    return Figure(f"shift-densities-{name}", f"Densities of the channels of {name}",
                  f"Histograms of {BINS} bins over all rows of each part.", tuple(panels))  # fmt: skip


def _projection(name: str, data: BenchmarkData) -> Figure:
    rows = parts(data)
    shown = {part: values[picked(len(values), POINTS)] for part, values in rows.items()}
    pool = np.concatenate(list(shown.values()))
    scaler, (axes, share) = Scaler.fit(pool), principal_axes(pool)
    curves = [cloud(part, *(scaler.standardise(values) @ axes).T) for part, values in shown.items()]
    panel = Panel("First two principal components", f"first, {share[0]:.0%} of the variance",
                  f"second, {share[1]:.0%}", tuple(curves))  # fmt: skip
    return Figure(f"shift-pca-{name}", f"{name} in two dimensions",
                  f"At most {POINTS} rows of each part, channels divided by their pooled standard deviation.",
                  (panel,))  # fmt: skip


def principal_axes(pool: Floats) -> tuple[Floats, Floats]:
    """The first two principal axes (C, 2) of a standardised pool (m, C), and the share of its variance on each (2,)."""
    _, values, axes = np.linalg.svd(Scaler.fit(pool).standardise(pool), full_matrices=False)
    return axes[:2].T, values[:2] ** 2 / np.sum(values**2)


ANALYSIS = Analysis(NAME, TITLE, (*PRINTED, "ETTh_shift", "ILI_shift", "WEATHER_shift"), cells, reduce)
