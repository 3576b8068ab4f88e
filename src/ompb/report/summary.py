"""The numbers of a finished run as plain data: scores per phase, the last certificate, and what they say in words.

A pair (origin, lead) belongs to the phase in which its *outcome* lies, so a forecast that straddles a change is split
between both sides. Errors and widths are in source standard deviations.
"""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from ompb.backtest import Run
from ompb.calibrator import Calibrator
from ompb.datasets.demo import Phase
from ompb.metrics.point import known_mean, mae, mse
from ompb.metrics.probabilistic import coverage, width
from ompb.times import Times
from ompb.types import Certificate, Floats

BARE, OMPB = "bare forecaster", "ompb"
# The fields of Scores that tables show, and their headings.
COLUMNS = {
    "mae": "MAE",
    "mse": "MSE",
    "coverage80": "in\n80 %",
    "width80": "width\n80 %",
    "coverage95": "in\n95 %",
    "width95": "width\n95 %",
    "certificate": "certificate",
    "gate": "gate",
}
# The error size, in source standard deviations, that the tail-risk sentence speaks of.
LARGE_ERROR = 1.0


@dataclass(frozen=True, eq=False)
class Study:
    """A finished run with all that a report says of it. Phases and times count the rows of the stream."""

    title: str
    calibrator: Calibrator
    run: Run
    rows: Floats  # (T, C) that were streamed
    times: Times  # (T,)
    phases: tuple[Phase, ...]
    references: Mapping[str, Floats]  # other forecasts (n, H, C) of the same origins, by name
    facts: Mapping[str, str] = field(default_factory=dict)  # what else the reader should know: data, split, seed

    @property
    def forecasts(self) -> dict[str, Floats]:
        """Every forecast (n, H, C) by name: the bare one first, ours last."""
        return {BARE: self.run.base, **self.references, OMPB: self.run.mean}

    @property
    def season(self) -> int:
        """Rows to average a curve over: a season, or a horizon where there is no season."""
        return self.calibrator.season or self.calibrator.horizon


@dataclass(frozen=True, slots=True)
class Scores:
    """One line of a table. NaN means unknown; None means that the line has no such thing."""

    name: str
    mae: float
    mse: float
    coverage80: float | None = None
    width80: float | None = None
    coverage95: float | None = None
    width95: float | None = None
    certificate: float | None = None  # mean over the origins in the phase
    gate: float | None = None  # mean over the origins in the phase and the channels


def score_phase(study: Study, phase: Phase) -> list[Scores]:
    """Scores of every forecast over the outcomes that lie in the phase; ours is the last."""
    run = study.run
    leads = np.arange(1, run.mean.shape[1] + 1)
    outcome_rows = run.origins[:, None] + leads  # (n, H)
    inside = (outcome_rows >= phase.first) & (outcome_rows < phase.stop)
    outcome = run.outcome[inside] / run.scale
    plain = [
        Scores(name, mae(forecast[inside] / run.scale, outcome), mse(forecast[inside] / run.scale, outcome))
        for name, forecast in study.forecasts.items()
    ]
    only_ours: dict[str, Any] = _interval_scores(run, inside, outcome) | _means_at_origins(run, phase)
    ours = dataclasses.replace(plain[-1], **only_ours)
    return [*plain[:-1], ours]


def _interval_scores(run: Run, inside: Any, outcome: Floats) -> dict[str, float | None]:
    scores: dict[str, float | None] = {}
    for percent in (80, 95):
        lower, upper = (end[inside] / run.scale for end in run.interval(percent / 100))
        scores[f"coverage{percent}"] = coverage(lower, upper, outcome)
        scores[f"width{percent}"] = width(lower, upper)
    return scores


def _means_at_origins(run: Run, phase: Phase) -> dict[str, float | None]:
    inside = (run.origins >= phase.first) & (run.origins < phase.stop)
    certificate = known_mean(run.certificate["value"][inside]) if run.certificate else None
    return {"certificate": certificate, "gate": known_mean(run.gate[inside])}


def shown(value: float | None) -> str:
    """A number as tables show it; a dash where there is none.

    >>> shown(0.25), shown(None), shown(float("nan"))
    ('0.250', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def error_by_row(run: Run, forecast: Floats) -> Floats:
    """Standardised absolute error of the forecasts about each row, over leads and channels, (T,); NaN where none is."""
    error = np.abs(forecast - run.outcome) / run.scale
    known = ~np.isnan(error)
    rows = run.origins[:, None] + np.arange(1, forecast.shape[1] + 1)
    by_pair = (np.where(known, error, 0.0).sum(axis=2), known.sum(axis=2))
    total, count = (np.bincount(rows.ravel(), values.ravel()).astype(np.float64) for values in by_pair)
    return _ratio(total, count)


def rolling_mean(values: Floats, length: int) -> Floats:
    """Mean of the known ones among the last ``length`` values, at each place; NaN where none is known.

    >>> rolling_mean(np.array([1.0, 3.0, np.nan, 5.0]), 2)
    array([1., 2., 3., 5.])
    """
    known = ~np.isnan(values)
    total, count = (_rolling_sum(x, length) for x in (np.where(known, values, 0.0), known.astype(np.float64)))
    return _ratio(total, count)


def _ratio(total: Floats, count: Floats) -> Floats:
    return np.asarray(np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0))


def _rolling_sum(values: Floats, length: int) -> Floats:
    return np.convolve(values, np.ones(length))[: len(values)]


def last_certificate(study: Study) -> Certificate | None:
    """The certificate of the newest forecast; None if the run has none."""
    terms = study.run.certificate
    if not terms:
        return None
    newest: dict[str, Any] = {
        f.name: int(terms[f.name][-1]) if f.type == "int" else float(terms[f.name][-1])
        for f in dataclasses.fields(Certificate)
        if f.name in terms
    }
    calibrator = study.calibrator
    return Certificate(**newest, kind=calibrator.settings.kind, in_sample=calibrator.in_sample)


def realised_sentence(study: Study) -> str:
    """What matured outcomes prove about the issued forecasts, in words."""
    realised = study.run.realised
    if not realised.outcomes:
        return "No outcome is complete yet, so nothing is proved about the forecasts issued so far."
    return (
        f"With confidence {1 - realised.delta:.0%}, the average risk of the forecasts issued so far is at most "
        f"{realised.upper:.3f} (observed {realised.mean:.3f}, on a scale from 0 to 1). It rests on "
        f"{realised.outcomes} complete outcomes that do not overlap; the newest of those forecasts was issued "
        f"{realised.newest_age} rows before the last row."
    )


def summary(study: Study) -> dict[str, Any]:
    """Everything above as one tree of plain values, ready for JSON: no NaN, which JSON lacks, but None."""
    calibrator = study.calibrator
    certificate = last_certificate(study)
    tree = {
        "title": study.title,
        "versions": {name: version(name) for name in ("ompb", "numpy")} | {"python": platform.python_version()},
        "context": calibrator.context,
        "horizon": calibrator.horizon,
        "season": calibrator.season,
        "channels": list(calibrator.names),
        "forecasts": len(study.run.origins),
        "facts": dict(study.facts),
        "settings": dataclasses.asdict(calibrator.settings),
        "scores": {phase.name: [dataclasses.asdict(s) for s in score_phase(study, phase)] for phase in study.phases},
        "realised": dataclasses.asdict(study.run.realised),
        "realised_risk": realised_sentence(study),
        "certificate": certificate.terms() if certificate else None,
        "tail_risk": str(certificate.tail_risk(LARGE_ERROR)) if certificate else None,
        "assumptions": list(certificate.assumptions) if certificate else [],
    }
    return {name: _plain(value) for name, value in tree.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
