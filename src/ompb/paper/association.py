"""How closely signals that are known before the outcome go with the error that then comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.bench.store import Steps
from ompb.floor.extras import extra
from ompb.paper.severity import MEASURES, Severity
from ompb.types import Floats

CERTIFICATE, DISAGREEMENT, EXPECTED = "value", "disagreement", "expected_error"
INPUTS, OUTCOMES = "inputs", "inputs and earlier outcomes"
# What each signal reads: the head and its gate have learned from the outcomes that came before.
SIGNALS = {
    CERTIFICATE: OUTCOMES,
    DISAGREEMENT: OUTCOMES,
    "target_disagreement": OUTCOMES,
    "novelty": INPUTS,
    EXPECTED: OUTCOMES,
    "expected_square": OUTCOMES,
    "warnings": OUTCOMES,
    "gate": OUTCOMES,
    "posterior_shift": OUTCOMES,
}
SEVERITIES = {f"severity_{name}": INPUTS for name in MEASURES}  # not the method's, but known as early
STATISTICS = ("pearson", "spearman")
# Of what was issued, and of the bare forecaster: the paper's "pre-calibration" error.
ISSUED = {"mae": "MAE", "mse": "MSE"}
BARE = {"bare_mae": "MAE, bare", "bare_mse": "MSE, bare"}
ERRORS = ISSUED | BARE
LEAST = 10  # pairs of values for a correlation to be shown


@dataclass(frozen=True, slots=True)
class Association:
    """Pearson's r and Spearman's rho of so many pairs, means over so many seeds."""

    pearson: float
    spearman: float
    pairs: int
    seeds: int = 1


def association(x: Floats, y: Floats) -> Association | None:
    """Of the pairs whose values are both known; None for few of them, or where one side never moves."""
    known = np.isfinite(x) & np.isfinite(y)
    first, second = (np.asarray(values[known], dtype=np.float64) for values in (x, y))
    if len(first) < LEAST or _constant(first) or _constant(second):
        return None
    with extra("bench", needed_by="ompb.paper.association"):  # here, so that the command starts without it
        from scipy.stats import pearsonr, spearmanr
    return Association(float(pearsonr(first, second)[0]), float(spearmanr(first, second)[0]), len(first))


def _constant(values: Floats) -> bool:
    """Up to the rounding of what was kept."""
    return bool(np.ptp(values) <= 1e-6 * np.abs(values).max())


# By signal and error, "value bare_mae"; the disagreement also by measure of severity, "disagreement ks".
Found: TypeAlias = Mapping[str, Association]


def signals(steps: Steps, severity: Severity | None) -> tuple[NDArray[np.int64], dict[str, Floats], dict[str, Floats]]:
    """Places at which the severity was measured, what it was there, and every other signal at every step."""
    known = {name: np.asarray(steps[name], dtype=np.float64) for name in SIGNALS if name in steps}
    if severity is None:
        return np.empty(0, dtype=np.int64), {}, known
    where, measured = severity.at(steps["origin"])
    return where, measured, known


def associations(steps: Steps, bare: Steps | None, severity: Severity | None) -> dict[str, Association]:
    """Every signal with every error, and the disagreement with the severity, on one stream."""
    where, measured, known = signals(steps, severity)
    errors = {error: steps[error] for error in ISSUED}
    if bare is not None:
        errors |= {error: bare[error.removeprefix("bare_")] for error in BARE}
    pairs = {f"{name} {error}": (values, errors[error]) for name, values in known.items() for error in errors}
    for name, values in measured.items():
        pairs |= {f"severity_{name} {error}": (values, errors[error][where]) for error in errors}
        if DISAGREEMENT in known:
            pairs[f"{DISAGREEMENT} {name}"] = known[DISAGREEMENT][where], values
    found = {key: association(*pair) for key, pair in pairs.items()}
    return {key: one for key, one in found.items() if one is not None}


def mean_over_seeds(seeds_found: list[dict[str, Association]]) -> Found:
    """Means over the seeds, of what all of them have."""
    common = [key for key in seeds_found[0] if all(key in found for found in seeds_found)]
    return {
        key: Association(
            fmean(found[key].pearson for found in seeds_found),
            fmean(found[key].spearman for found in seeds_found),
            seeds_found[0][key].pairs,
            len(seeds_found),
        )
        for key in common
    }


def best(found: Found, error: str, among: Iterable[str]) -> str | None:
    """The signal with the largest Spearman correlation with an error."""
    ranked = {name: found[f"{name} {error}"].spearman for name in among if f"{name} {error}" in found}
    return max(ranked, key=ranked.__getitem__) if ranked else None
