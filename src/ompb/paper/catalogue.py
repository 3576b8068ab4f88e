"""Every analysis there is, and what of it has run."""

from __future__ import annotations

from ompb.errors import OptionError
from ompb.paper import (
    ablation,
    correlation,
    delay,
    epochs,
    examples,
    main,
    miscalibration,
    partial,
    probabilistic,
    proxy,
    sensitivity,
    shift,
    timeline,
)
from ompb.paper.analysis import Analysis

ANALYSES: tuple[Analysis, ...] = (
    *main.ANALYSES,
    ablation.ANALYSIS,
    partial.ANALYSIS,
    epochs.ANALYSIS,
    probabilistic.ANALYSIS,
    sensitivity.ANALYSIS,
    delay.ANALYSIS,
    proxy.ANALYSIS,
    timeline.ANALYSIS,
    correlation.ANALYSIS,
    miscalibration.ANALYSIS,
    shift.ANALYSIS,
    examples.ANALYSIS,
)


def find(name: str) -> Analysis:
    """The analysis of that name. Raises `OptionError`."""
    for analysis in ANALYSES:
        if analysis.name == name:
            return analysis
    raise OptionError(f"there is no analysis {name!r}; accepted: {', '.join(analysis.name for analysis in ANALYSES)}.")
