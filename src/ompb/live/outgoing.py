"""What goes out: forecasts and warnings with the user's units, names and times, from what the core says of lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ompb.calibrator import Calibrator
from ompb.core.arrays import Array, has_all, namespace
from ompb.core.intervals import LEVELS
from ompb.core.online import Issued, OnlineState
from ompb.core.record import rows_between
from ompb.floor.times import Stamp
from ompb.live.cohort import Cohort
from ompb.types import Alert, Forecast

TRACKED = np.asarray(LEVELS)
TRACKED.flags.writeable = False


class InUnits(NamedTuple):
    """What was issued for S series, in the user's units; see `ompb.Forecast`."""

    mean: Array  # (S, H, C)
    base: Array  # (S, H, C)
    gate: Array  # (S, C)
    novelty: Array | None  # (S, C)
    sd: Array  # (S, H, C)
    multipliers: Array  # (S, 2, levels, H, C), or H = 1 for all leads
    expected_error: Array  # (S, C)


def in_units(cohort: Cohort, base: Array, issued: Issued) -> InUnits:
    """What was issued around base forecasts (S, H, C)."""
    xp, scale = namespace(base), cohort.scaler.scale
    series, _, channels = base.shape

    def by_series(lanes: Array) -> Array:
        return lanes.reshape((series, channels, *lanes.shape[1:]))

    gate = by_series(issued.gate)
    mean = base + scale * by_series(issued.correction).mT
    if not has_all(gate):  # adding a zero would turn -0.0 into 0.0: a closed gate returns the base bit for bit
        mean = xp.where(gate[:, None] > 0, mean, base)
    widths = xp.permute_dims(by_series(issued.half_widths), (0, 2, 3, 1))
    per_series = scale if scale.ndim == 1 else scale[:, 0]
    return InUnits(
        mean=mean,
        base=base,
        gate=gate,
        novelty=None if issued.novelty is None else by_series(issued.novelty),
        sd=scale * by_series(issued.sd).mT,
        multipliers=widths.reshape((series, 2, len(LEVELS), -1, channels)),
        expected_error=per_series * by_series(issued.expected_error),
    )


def forecast_of(
    cohort: Cohort,
    origin: int,
    stamp: Stamp | None,
    base: Array,
    issued: Issued,
    hidden: Array | None,
    alerts: tuple[Alert, ...],
    replaced: int | None,
) -> Forecast:
    """The forecast of a single series, issued with row ``origin`` around a base forecast (1, H, C)."""
    cal = cohort.cal
    units = InUnits(*map(_first, in_units(cohort, base, issued)))
    return Forecast(
        origin=origin,
        times=None if stamp is None or cal.grid is None else cal.grid.after(stamp, cal.horizon),
        mean=units.mean,
        base=units.base,
        gate=units.gate,
        novelty=units.novelty,
        sd=units.sd,
        levels=TRACKED,
        multipliers=units.multipliers,
        bounds=cal.bounds,
        expected_error=units.expected_error,
        certificate=None if issued.certificate is None else cal.certificate(issued.certificate),
        hidden=() if hidden is None else tuple(cal.names[place] for place in np.flatnonzero(hidden)),
        warnings=alerts,
        replaced=replaced,
    )


def _first(every: Array | None) -> Array | None:
    """That of the first series, read-only."""
    if every is None:
        return None
    first = every[0]
    first.setflags(write=False)
    return first


def alerts_of(
    cal: Calibrator, online: OnlineState, row: int, stamp: Stamp | None, series: int = 0
) -> tuple[Alert, ...]:
    """A series' warnings in force at the newest row, of that time if rows have times; strongest first."""
    return tuple(
        Alert(
            signal=one.signal,
            since=one.since,
            newest=one.newest,
            since_time=None if stamp is None or cal.grid is None else cal.grid.before(stamp, row - one.since),
            channels=tuple(cal.names[place] for place in np.flatnonzero(2 * one.parts >= one.parts.max())),
            rows_between=rows_between(one.excess),
        )
        for one in cal.online.warnings.in_force(online.warnings, row, series)
    )
