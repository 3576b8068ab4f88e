"""Whether a frozen forecaster is fit to be wrapped: one question at a time, each failure in words.

============== ==========================================================================================
fault          what was found
============== ==========================================================================================
training       a network of torch ran in training mode
gradient       the answer still hangs on the graph of torch's gradients
changes input  it writes into the arrays it is asked with
keeps input    it holds on to those arrays after it has answered
random         the same question has two answers
batch          a window alone has another answer than among others
quantile order the quantiles are not those that it says: nearly all of one lie below those before it
constant       the same answer, whatever it is asked
blind          the answers do not depend on the windows
dead channel   the answers depend on the windows in all channels but some
times          the answers do not depend on the times, or there are none, though it says that it uses them
scale          the answers are not in the units of the source, or far off it
lead order     the answers fit other rows far better than those they are said to be of
phase          the season is in place only in windows that start where the training rows started
============== ==========================================================================================

A forecaster that fails, or answers in a wrong shape, with no numbers or with infinite ones, raises the
`ForecasterError` that a fit would raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ompb.floor.checks import count
from ompb.seam.query import AnyForecaster

WINDOWS = 48
FAULTS = (
    "training", "gradient", "changes input", "keeps input", "random", "batch",
    "quantile order", "constant", "blind", "dead channel", "times", "scale", "lead order", "phase",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checkup:
    """What a forecaster has passed, and how fast it was."""

    windows: int  # different ones it was asked about
    left_out: tuple[str, ...]  # faults that could not be looked for here, with the reason
    windows_per_second: float  # all at a time

    def __str__(self) -> str:
        rest = f"; not looked for: {', '.join(self.left_out)}" if self.left_out else ""
        return f"no fault found in {self.windows} windows, {self.windows_per_second:.3g} windows/s{rest}"


def check(
    forecaster: AnyForecaster,
    source: Any,
    *,
    context: int,
    horizon: int,
    times: Any = None,
    future: Any = None,
    season: int | Literal["auto"] | None = "auto",
    windows: int = WINDOWS,
) -> Checkup:
    """Ask a forecaster about some windows of the source, and raise `CheckError` with the first fault that is found.

    Args:
        forecaster: what `Calibrator.fit` takes. One derived from `ompb.Forecaster` says with ``uses_windows`` and
            ``uses_times`` what its answers must move with.
        source: (T, C) array or frame, rows like those it was trained on.
        context: rows in a window.
        horizon: rows in a forecast.
        times: one for each row, if the source does not bring them.
        future: covariates known ahead, (T, K).
        season: rows in a season, None for no season, "auto" to find it.
        windows: so many different windows are asked about, and some of them again.

    Raises:
        CheckError: a fault, named in its ``fault``.
        ForecasterError: the forecaster fails, or answers with something that is no forecast.
        InputError: the source cannot be used.

    >>> import numpy as np, ompb
    >>> rows = 10 + np.sin(np.arange(400) * 2 * np.pi / 24)[:, None]
    >>> ompb.check(ompb.SeasonalProfile(horizon=12, season=24), rows, context=48, horizon=12).left_out
    ()
    >>> ompb.check(lambda windows: np.full((len(windows), 12, 1), 10.0), rows, context=48, horizon=12)
    Traceback (most recent call last):
    ompb.errors.CheckError: the forecaster gives one and the same answer...
    """
    from ompb.checkup import agreement, conduct, leads, response  # when asked for: `import ompb` stays fast
    from ompb.checkup.probe import Probe

    probe = Probe.of(
        forecaster,
        source,
        count("context", context),
        count("horizon", horizon),
        times,
        future,
        season,
        count("windows", windows, least=2),
    )
    response.require_times(probe)
    conduct.look(probe)
    response.look(probe)
    left_out = agreement.look(probe) + leads.look(probe)
    return Checkup(len(probe.origins), left_out, len(probe.origins) / probe.seconds)
