r"""Whether forecasts lie where the source lies: in its units, and with its season in place.

*Units*: the median error of the forecasts, against that of repeating the last row.

*Season in place*: let p be the source's seasonal profile, S rows long, and u the forecasts less a line: their own where
they hold a whole season (p is then taken likewise), else that of their window. Over all windows i, starting at row a_i,
and leads h, with L the context,

.. math:: r_0 = \operatorname{corr}\bigl(u_{ih},\, p_{(a_i + L + h - 1) \bmod S}\bigr), \qquad
          r(b) = \operatorname{corr}\bigl(u_{ih},\, p_{(b + L + h - 1) \bmod S}\bigr)

A forecaster that knows where it is has r_0 > 0 and, since windows start at all phases, every r(b) near 0. One that
takes each window to start at the phase b of its training rows has r(b) > 0 and r_0 near 0. One whose forecasts all
have another shape in common, as those of a network that is hardly trained, may resemble the profile at some phase by
chance. What tells them apart is size: a season that was learned has the size of the source's. A shape that was not
learned has any other, and training takes it away, for it helps in no phase but one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ompb.checkup.probe import FEWEST, Probe
from ompb.errors import CheckError
from ompb.floor.names import in_words
from ompb.types import Floats

FAR = 5.0  # median error in source standard deviations, and in errors of the last row
STANDARDISED = 2.0  # errors of the last row that are too many if other units halve them
SMALLEST = 0.05  # error of the last row that counts, in source standard deviations
OUT_OF_PHASE = 0.8  # a correlation r(b) that means the profile, and not just any shape
SWING = 0.7  # share of the profile's size that the season of the forecasts must have, or the other way round
TINY = 1e-300
PHASES = 3  # at which windows must start, for that


def look(probe: Probe) -> tuple[str, ...]:
    """Raise at the first fault; what could not be looked for, with the reason."""
    _require_near(probe)
    reason = _no_phases(probe)
    if reason is None:
        _require_in_phase(probe)
    return () if reason is None else (f"phase ({reason})",)


def _require_near(probe: Probe) -> None:
    last = probe.windows[:, -1:]
    errors, usual = (_median_error(said, probe.outcomes) for said in (probe.forecasts, last))
    usual = np.maximum(usual, SMALLEST)
    scaler = probe.source.scaler
    as_standardised = _median_error(scaler.restore(probe.forecasts), probe.outcomes)
    for channel, name in enumerate(probe.source.rows.names):
        error = errors[channel]
        if error > STANDARDISED * usual[channel] and as_standardised[channel] < error / 2:
            raise CheckError(
                "scale",
                f"the forecasts of {in_words(name)} are off by {error:.3g} source standard deviations in the median, "
                "and fit if they are taken as standardised; return them in the user's units: mean + sd * forecast.",
            )
        if error > FAR * max(1.0, usual[channel]):
            raise CheckError(
                "scale",
                f"the forecasts of {in_words(name)} are off by {error:.3g} source standard deviations in the median "
                f"(the last row of each window: {usual[channel]:.3g}); return them in the units of the windows, "
                "with channels in the order of the windows, and undo any transformation of the target.",
            )


def _median_error(forecasts: Floats, outcomes: Floats) -> Floats:
    """Of each channel, (C,); 0 where no outcome is known."""
    errors = np.abs(forecasts - outcomes)
    known = np.isfinite(errors).any(axis=(0, 1))
    return np.nanmedian(np.where(known, errors, 0.0), axis=(0, 1))


def _no_phases(probe: Probe) -> str | None:
    """Why the phase cannot be judged; None if it can."""
    if probe.season is None:
        return "the source has no season"
    if len(probe.source.rows.values) < 2 * probe.season:
        return "the source does not hold two seasons"
    if max(probe.source.horizon, probe.source.context) < probe.season:
        return "neither window nor forecast holds a whole season"
    if len(probe.origins) < FEWEST:
        return f"fewer than {FEWEST} windows"
    if len(np.unique((probe.origins * PHASES // probe.season) % PHASES)) < PHASES:
        return "all windows start at like phases"
    return None


def _require_in_phase(probe: Probe) -> None:
    season = probe.season or 0
    profile = _profile(probe, season)
    leads = probe.source.context + np.arange(probe.source.horizon)
    starts = probe.origins - probe.source.context + 1
    shapes = _shapes(probe, season)

    def expected(start: Any) -> Floats:
        """The profile in windows that start there, as the forecasts are shaped: (n, H, C)."""
        segments = np.broadcast_to(profile[(np.asarray(start)[..., None] + leads) % season], shapes.shape)
        return _less_line(segments) if len(leads) >= season else segments

    in_place = _correlation(shapes, expected(starts))
    bound = [_correlation(shapes, expected(start)) for start in range(season)]
    best = int(np.argmax(bound))
    swing = float((shapes * expected(best)).sum() / max((expected(best) ** 2).sum(), TINY))
    if bound[best] > OUT_OF_PHASE and SWING < swing < 1 / SWING and in_place < bound[best] / 2:
        raise CheckError(
            "phase",
            f"the forecaster has the season of {season} rows in place only in windows that start at its row {best}: "
            f"it takes every window to start there (correlation {bound[best]:.2f}, in place {in_place:.2f}). Trim each "
            "window by query.origins so that it starts a whole number of seasons after the training rows did.",
        )


def _profile(probe: Probe, season: int) -> Floats:
    """Standardised mean of the source at each phase, less a moving average over a season: (S, C)."""
    rows = probe.source.scaler.standardise(probe.source.filled)
    sums = np.cumsum(np.concatenate([np.zeros((1, rows.shape[1])), rows]), axis=0)
    first = season // 2
    moving = (sums[season:] - sums[:-season]) / season  # of the rows from first on
    off = rows[first : first + len(moving)] - moving
    phases = (first + np.arange(len(off))) % season
    profile = np.stack([off[phases == phase].mean(axis=0) for phase in range(season)])
    return np.asarray(profile - profile.mean(axis=0))


def _shapes(probe: Probe, season: int) -> Floats:
    """Forecasts less their own line where they hold a whole season, else less the line of their window: (n, H, C)."""
    if probe.source.horizon >= season:
        return _less_line(probe.forecasts)
    seasons = probe.source.context // season
    means = probe.windows[:, -seasons * season :].reshape(len(probe.windows), seasons, season, -1).mean(axis=2)
    slope = (means[:, -1] - means[:, 0]) / max((seasons - 1) * season, 1)
    ahead = (season - 1) / 2 + np.arange(1, probe.source.horizon + 1)  # rows from the middle of the last season
    return np.asarray(probe.forecasts - means[:, -1:] - slope[:, None] * ahead[:, None])


def _less_line(values: Floats) -> Floats:
    """What is left of (n, H, C) when its level and slope along H are taken off: a drift is no season."""
    leads = np.arange(values.shape[1])
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(leads)), leads]))
    return np.asarray(values - np.einsum("hk,jk,njc->nhc", basis, basis, values))


def _correlation(one: Floats, other: Floats) -> float:
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size > 0 else 0.0
