"""What a study found, as plain data and in words."""

from __future__ import annotations

import dataclasses
import math
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from ompb.diagnosis import diagnose, proxy_loss
from ompb.episodes import Episode
from ompb.floor.names import listed
from ompb.studies import Study
from ompb.tables import Clock

# The fields of PhaseScores that tables show, and their headings.
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
DIGITS = 6  # of what was found, in files
# Certificate windows below which their number is why a certificate excludes nothing.
FEW_WINDOWS = 100
# Channels whose unit a sentence tells.
LISTED_SCALES = 4


def three_decimals(value: float | None) -> str:
    """A number as tables show it; a dash where there is none.

    >>> three_decimals(0.25), three_decimals(None), three_decimals(float("nan"))
    ('0.250', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def units_sentence(study: Study) -> str:
    """What the errors in a table of scores are measured in."""
    pairs = zip(study.run.names, study.run.scale, strict=True)
    sizes = [f"{scale:.4g} for {name}" for name, scale in pairs]
    return (
        "MAE and widths are in standard deviations of the source, MSE in their squares: 1 is "
        f"{listed(sizes, LISTED_SCALES)}."
    )


def columns_sentence() -> str:
    """What the headings of a table of scores mean."""
    return (
        "In 80 % and in 95 %: the share of outcomes inside those intervals. Certificate: said before outcomes, of a "
        "loss between 0 and 1. Gate: 0 is the bare forecast, 1 the full correction."
    )


def vacuous_sentence(study: Study) -> str:
    """Why certificates exclude nothing, and what would help; empty if they mostly exclude something."""
    certificate = study.run.last_certificate
    mean = float(np.mean(study.run.certificate["value"])) if certificate is not None else 0.0
    if certificate is None or mean < 1:
        return ""
    head = f"The certificate is {mean:.2f} on average, and losses lie between 0 and 1: from 1 on it excludes nothing."
    if certificate.windows >= FEW_WINDOWS:
        return head
    windows = "1 window" if certificate.windows == 1 else f"{certificate.windows} windows"
    return (
        f"{head} It rests on only {windows} of the source, and the price of having so few is "
        f"{study.run.certificate['gamma'].mean():.2f} of it: a longer source, more unseen rows of it (--unseen) or a "
        "shorter horizon lower it."
    )


def realised_sentence(study: Study) -> str:
    """What matured outcomes prove about the issued forecasts, in words."""
    realised = study.run.realised
    if not realised.outcomes:
        return "No outcome is complete yet, so nothing is proved about the forecasts issued so far."
    return (
        f"With confidence {1 - realised.delta:.0%}, at all times at once, the average conditional risk of the "
        "forecasts issued so far (that of each given what was known when it was issued) is at most "
        f"{realised.upper:.3f} (observed {realised.mean:.3f}, on a scale from 0 to 1). It rests on "
        f"{realised.outcomes} forecasts whose outcome is due; the newest of them was issued {realised.newest_age} rows "
        "before the last row. Cells that never came must be missing at random."
    )


def share_above_sentence(study: Study) -> str:
    """How often a loss was above the certificate that went before it, in words; empty without both."""
    if not study.run.certificate or not np.isfinite(proxy_loss(study.run)).any():
        return ""
    found = diagnose(study.run)
    return (
        f"The loss of {found.share_above:.0%} of the {found.outcomes} forecasts whose outcome is complete was above "
        "the certificate's value. A single loss may be: the value speaks of the average risk."
    )


def summary(study: Study) -> dict[str, Any]:
    """Everything above as one tree of plain values, ready for JSON: no NaN, which JSON lacks, but None."""
    certificate = study.run.last_certificate
    tree = {
        "title": study.title,
        **shared(study),
        "channels": list(study.calibrator.names),
        **found_in(study),
        "realised_risk": realised_sentence(study),
        "certificate_excludes_nothing": vacuous_sentence(study) or None,
        "certificate_and_losses": share_above_sentence(study) or None,
        "tail_risk": str(certificate.tail_risk(LARGE_ERROR)) if certificate else None,
        "assumptions": list(certificate.assumptions) if certificate else [],
    }
    return {name: plain(value) for name, value in tree.items()}


def shared(study: Study) -> dict[str, Any]:
    """What the studies of many series have in common."""
    calibrator = study.calibrator
    return {
        "versions": {name: version(name) for name in ("ompb", "numpy")} | {"python": platform.python_version()},
        "context": calibrator.context,
        "horizon": calibrator.horizon,
        "settings": dataclasses.asdict(calibrator.settings),
    }


def found_in(study: Study) -> dict[str, Any]:
    """What was found in one series, ready for JSON, in as many digits as anyone reads."""
    certificate = study.run.last_certificate
    found = {
        "season": study.calibrator.season,
        "forecasts": len(study.run.origins),
        "facts": dict(study.facts),
        "notes": list(study.notes),
        "scores": {phase: [dataclasses.asdict(line) for line in lines] for phase, lines in study.scores().items()},
        "hidden": [dataclasses.asdict(cells) for cells in study.hidden()],
        "warnings": [_episode(episode, study.clock) for episode in study.run.warnings],
        "realised": dataclasses.asdict(study.run.realised),
        "certificate": certificate.terms() if certificate else None,
    }
    return {name: plain(value, DIGITS) for name, value in found.items()}


def _episode(episode: Episode, clock: Clock) -> dict[str, Any]:
    """An episode of warnings, with times as text."""
    tree = dataclasses.asdict(episode)
    for alert in tree["alerts"]:
        alert["since_time"] = None if alert["since_time"] is None else clock.shown(alert["since_time"])
    return tree


def plain(value: Any, digits: int | None = None) -> Any:
    """A tree without NaN, which JSON lacks, but None; its numbers with so many digits, or all they have.

    >>> plain({"mae": [0.123456789, float("nan")]}, 3)
    {'mae': [0.123, None]}
    """
    if isinstance(value, dict):
        return {name: plain(inner, digits) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, digits) for inner in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")
