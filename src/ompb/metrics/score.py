"""All scores of a run in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ompb.metrics.point import known_mean, mae, mse
from ompb.metrics.probabilistic import pinball, width, winkler
from ompb.types import Floats

LEVELS = (0.5, 0.8, 0.9, 0.95)  # whose coverage and width are told
PARTS = 20  # equal parts of (0, 1); the CRPS is read off the quantiles in their middles

Interval = Callable[[float], tuple[Floats, Floats]]  # from a level to lower and upper ends


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How forecasts did, in source standard deviations. Unknown outcomes do not count; NaN where none is known."""

    outcomes: int  # known ones, each lead and channel counting
    mae: float
    mse: float
    crps: float
    winkler80: float
    winkler95: float
    levels: tuple[float, ...]
    coverage: tuple[float, ...]  # share inside at each level
    width: tuple[float, ...]  # mean length of the interval at each level
    coverage_by_lead: Floats  # (levels, H)

    def terms(self) -> dict[str, float]:
        """Every number over all leads by name, as the line of a table."""
        told = ("outcomes", "mae", "mse", "crps", "winkler80", "winkler95")
        found = {name: float(getattr(self, name)) for name in told}
        for name in ("coverage", "width"):
            for level, value in zip(self.levels, getattr(self, name), strict=True):
                found[f"{name}{100 * level:.0f}"] = value
        return found

    def __str__(self) -> str:
        shown = [f"{name:<10}{getattr(self, name):8.3f}" for name in ("mae", "mse", "crps", "winkler80", "winkler95")]
        lines = [f"{self.outcomes} outcomes, in source standard deviations", *shown]
        lines.append("level     coverage   lead 1  lead " + f"{self.coverage_by_lead.shape[1]:<3}   width")
        for level, inside, by_lead, long in zip(
            self.levels, self.coverage, self.coverage_by_lead, self.width, strict=True
        ):
            lines.append(f"{level:<8.0%}{inside:10.1%}{by_lead[0]:9.1%}{by_lead[-1]:10.1%}{long:8.3f}")
        return "\n".join(lines)

    __repr__ = __str__


def score(mean: Floats, outcome: Floats, interval: Interval, scale: Floats) -> Score:
    r"""Score forecasts (n, H, C) against their outcomes (NaN = unknown), in units of ``scale`` (C,).

    The CRPS is twice the mean pinball loss of the quantiles at the middles of `PARTS` equal parts of (0, 1):

    .. math:: \frac{2}{K} \sum_{k=1}^{K} \mathrm{pinball}\bigl( q_{(k - 1/2) / K} \bigr)
    """
    y, known = outcome / scale, np.isfinite(outcome)

    def ends(level: float) -> tuple[Floats, Floats]:
        lower, upper = interval(level)
        return lower / scale, upper / scale

    losses = []
    for part in range(PARTS // 2):
        q = (part + 0.5) / PARTS
        lower, upper = ends(1 - 2 * q)
        losses += [pinball(lower, y, q), pinball(upper, y, 1 - q)]
    at = {level: ends(level) for level in LEVELS}
    inside = [np.where(known, (low <= y) & (y <= high), np.nan) for low, high in at.values()]
    by_lead = np.stack([known_mean(hits, axis=(0, 2)) for hits in inside])
    by_lead.flags.writeable = False
    return Score(
        outcomes=int(known.sum()),
        mae=mae(mean / scale, y),
        mse=mse(mean / scale, y),
        crps=2 * float(np.mean(losses)),
        winkler80=winkler(*at[0.8], y, 0.8),
        winkler95=winkler(*at[0.95], y, 0.95),
        levels=LEVELS,
        coverage=tuple(known_mean(hits) for hits in inside),
        width=tuple(width(*both) for both in at.values()),
        coverage_by_lead=by_lead,
    )
