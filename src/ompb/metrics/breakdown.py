"""Scores of a run taken apart: by channel, by lead, by month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ompb.floor.cards import table
from ompb.metrics.score import PARTS, Interval
from ompb.types import Floats

COVERED = {"coverage80": 0.8, "coverage95": 0.95}
HEADS = {
    "mae": "MAE",
    "bare_mae": "bare MAE",
    "mse": "MSE",
    "crps": "CRPS",
    "coverage80": "in 80 %",
    "coverage95": "in 95 %",
}


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """How forecasts did in each of G groups, in source standard deviations; NaN where no outcome is known.

    ``str()`` is a table, and so is what a notebook shows.
    """

    by: str  # channel, lead or month
    names: tuple[str, ...]  # of the groups, (G,)
    outcomes: NDArray[np.int64]  # known ones, (G,)
    mae: Floats  # (G,)
    bare_mae: Floats  # of the bare forecaster, (G,)
    mse: Floats  # (G,)
    crps: Floats  # (G,)
    coverage80: Floats  # share inside the 80 % interval, (G,)
    coverage95: Floats  # (G,)

    def columns(self) -> dict[str, list[str] | list[float]]:
        """Every column by name, as any frame library takes it."""
        numbers = {name: getattr(self, name).tolist() for name in ("outcomes", *HEADS)}
        return {self.by: list(self.names), **numbers}

    def __str__(self) -> str:
        lines = [(self.by, "outcomes", *HEADS.values()), *self._lines()]
        long = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                [line[0].ljust(long[0]), *(cell.rjust(wide) for cell, wide in zip(line[1:], long[1:], strict=True))]
            )
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table((self.by, "outcomes", *HEADS.values()), self._lines())

    def _lines(self) -> list[tuple[str, ...]]:
        numbers = zip(*(getattr(self, name).tolist() for name in HEADS), strict=True)
        return [
            (name, f"{count:,}", *(f"{number:.3f}" for number in line))
            for name, count, line in zip(self.names, self.outcomes.tolist(), numbers, strict=True)
        ]


def breakdown(
    by: str,
    names: Sequence[str],
    group: NDArray[np.integer],
    forecasts: tuple[Floats, Floats],
    outcome: Floats,
    interval: Interval,
    scale: Floats,
) -> Breakdown:
    """Score the issued and the bare ``forecasts``, each (n, H, C), against their outcomes, in units of ``scale`` (C,).

    ``group`` is the place in ``names`` of each cell, of any shape that broadcasts to (n, H, C). The CRPS is that of
    `ompb.metrics.score.score`.
    """
    known = np.isfinite(outcome)
    places = np.broadcast_to(group, outcome.shape)[known]
    count = np.bincount(places, minlength=len(names))
    y, units = outcome[known], np.broadcast_to(scale, outcome.shape)[known]

    def by_group(cells: Floats) -> Floats:
        total = np.bincount(places, cells, minlength=len(names))
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def ends(level: float) -> tuple[Floats, Floats]:
        lower, upper = interval(level)
        return lower[known], upper[known]

    mean, base = (forecast[known] for forecast in forecasts)
    inside = {name: ends(level) for name, level in COVERED.items()}
    return Breakdown(
        by=by,
        names=tuple(names),
        outcomes=count,
        mae=by_group(np.abs(mean - y) / units),
        bare_mae=by_group(np.abs(base - y) / units),
        mse=by_group(((mean - y) / units) ** 2),
        crps=by_group(_crps(ends, y) / units),
        **{name: by_group(((low <= y) & (y <= high)).astype(np.float64)) for name, (low, high) in inside.items()},
    )


def _crps(ends: Interval, outcome: Floats) -> Floats:
    """Of each outcome: twice the mean pinball loss of the quantiles at the middles of equal parts of (0, 1)."""
    total = np.zeros(len(outcome))
    for part in range(PARTS // 2):
        q = (part + 0.5) / PARTS
        for quantile, share in zip(ends(1 - 2 * q), (q, 1 - q), strict=True):
            total += np.maximum(share * (outcome - quantile), (share - 1) * (outcome - quantile))
    return 2 / PARTS * total
