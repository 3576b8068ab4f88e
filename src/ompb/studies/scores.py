"""Scores of forecasts over a phase.

A pair (origin, lead) belongs to the phase in which its *outcome* lies, so a forecast that straddles a change is split
between both sides. Errors and widths are in source standard deviations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.backtest import BARE, OMPB, Run
from ompb.metrics.point import known_mean, mae, mse
from ompb.metrics.probabilistic import coverage, width
from ompb.rows.phases import Phase
from ompb.types import Floats


@dataclass(frozen=True, slots=True)
class PhaseScores:
    """How one forecaster did in one phase. NaN means unknown; None means that it has no such thing."""

    name: str  # of the forecaster
    mae: float
    mse: float
    coverage80: float | None = None
    width80: float | None = None
    coverage95: float | None = None
    width95: float | None = None
    certificate: float | None = None  # mean over the origins in the phase
    gate: float | None = None  # mean over the origins in the phase and the channels


def score_phase(run: Run, references: Mapping[str, Floats], phase: Phase) -> list[PhaseScores]:
    """Scores over the outcomes in the phase: the bare forecaster first, the references (n, H, C), ours last."""
    leads = np.arange(1, run.mean.shape[1] + 1)
    inside = phase.holds(run.origins[:, None] + leads)  # (n, H)
    outcome = run.outcome[inside] / run.scale

    def errors(name: str, forecast: Floats) -> PhaseScores:
        standardised = forecast[inside] / run.scale
        return PhaseScores(name, mae(standardised, outcome), mse(standardised, outcome))

    others = [errors(name, forecast) for name, forecast in {BARE: run.base, **references}.items()]
    only_ours: dict[str, Any] = _interval_scores(run, inside, outcome) | _means_at_origins(run, phase)
    return [*others, dataclasses.replace(errors(OMPB, run.mean), **only_ours)]


def mean_scores(lines: Sequence[PhaseScores]) -> PhaseScores:
    """The mean of every score of one forecaster over series, of which it is known in some.

    >>> mean_scores([PhaseScores("ompb", 1.0, 2.0), PhaseScores("ompb", 3.0, float("nan"))])
    PhaseScores(name='ompb', mae=2.0, mse=2.0, coverage80=None, width80=None, coverage95=None, ...)
    """
    means: dict[str, Any] = {}
    for field in dataclasses.fields(PhaseScores)[1:]:
        found = [value for line in lines if (value := getattr(line, field.name)) is not None]
        means[field.name] = float(known_mean(np.asarray(found))) if found else None
    return PhaseScores(lines[0].name, **means)


def _interval_scores(run: Run, inside: NDArray[np.bool_], outcome: Floats) -> dict[str, float]:
    scores, known = {}, ~np.isnan(outcome)  # widths count what errors count
    for percent in (80, 95):
        lower, upper = (end[inside] / run.scale for end in run.interval(percent / 100))
        scores[f"coverage{percent}"] = coverage(lower, upper, outcome)
        scores[f"width{percent}"] = width(lower[known], upper[known])
    return scores


def _means_at_origins(run: Run, phase: Phase) -> dict[str, float | None]:
    inside = phase.holds(run.origins)
    certificate = known_mean(run.certificate["value"][inside]) if run.certificate else None
    return {"certificate": certificate, "gate": known_mean(run.gate[inside])}
