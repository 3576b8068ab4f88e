r"""Whether each lead speaks of its own row: leads rise with time, and the first is the row after the window.

With f the forecasts and y the outcomes, standardised, means over windows, channels and the leads that both have:

.. math:: e = \overline{(f_h - y_h)^2}, \qquad e(s) = \overline{(f_h - y_{h+s})^2}, \qquad
          e(-) = \overline{(f_h - y_{H+1-h})^2}

Forecasts that fit other rows several times better than their own are out of place. A model that is merely slow, such as
one that repeats the last row, fits earlier rows better, too; but by shifts of up to a quarter of the horizon no more
than about twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ompb.checkup.probe import FEWEST, Probe
from ompb.errors import CheckError
from ompb.types import Floats

MUCH = 4.0  # times that other rows fit better
SMALLEST = 0.05**2  # mean squared error that counts, in source variances


def look(probe: Probe) -> tuple[str, ...]:
    """Raise if leads are out of place; what could not be looked for, with the reason."""
    if len(probe.origins) < FEWEST:
        return (f"lead order (fewer than {FEWEST} windows)",)
    for where, forecasts, others, own in _elsewhere(probe.forecasts, probe.outcomes):
        error, other = _mean_square(forecasts - own), _mean_square(forecasts - others)
        if error > SMALLEST and MUCH * other < error:
            raise CheckError(
                "lead order",
                f"the forecasts fit the rows {where} {error / max(other, SMALLEST / MUCH):.3g} times better than their "
                "own; return leads in the order of time, the first for the row after the window, and see that a season "
                "that is repeated has the length of the source's.",
            )
    return ()


def _elsewhere(forecasts: Floats, outcomes: Floats) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Other rows that forecasts (n, H, C) may be of, in words: the forecasts, these rows, and their own."""
    horizon = forecasts.shape[1]
    yield "in reverse order", forecasts, outcomes[:, ::-1], outcomes
    for shift in range(1, horizon // 4 + 1):
        early, late = slice(None, -shift), slice(shift, None)
        yield f"{shift} later", forecasts[:, early], outcomes[:, late], outcomes[:, early]
        yield f"{shift} earlier", forecasts[:, late], outcomes[:, early], outcomes[:, late]


def _mean_square(errors: Floats) -> float:
    """Of those that are known; 0 if none is."""
    known = errors[np.isfinite(errors)]
    return float(np.mean(known**2)) if known.size else 0.0
