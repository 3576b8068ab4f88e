"""What goes out: forecasts and warnings with the user's units, names and times, from what the core says of lanes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator
from ompb.core.intervals import LEVELS
from ompb.core.online import Issued, OnlineState
from ompb.core.record import rows_between
from ompb.times import Stamp
from ompb.types import Alert, Floats, Forecast

_LEVELS = np.asarray(LEVELS)
_LEVELS.flags.writeable = False


def forecast_of(
    cal: Calibrator,
    origin: int,
    stamp: Stamp | None,
    base: Floats,
    issued: Issued,
    hidden: NDArray[np.bool_] | None,
    alerts: tuple[Alert, ...],
) -> Forecast:
    """The forecast issued with row ``origin``, around a base forecast (H, C)."""
    moved = base + cal.scale * issued.correction.T
    # adding a zero would turn -0.0 into 0.0: a closed gate returns the base bit for bit
    mean = np.where(issued.gate > 0, moved, base)
    sd = cal.scale * issued.sd.T
    widths = np.moveaxis(issued.half_widths, 0, -1).reshape(2, len(LEVELS), -1, cal.channels)
    expected = cal.scale * issued.expected_error
    for array in (mean, base, issued.gate, sd, widths, expected, issued.novelty):
        if array is not None:
            array.flags.writeable = False
    return Forecast(
        origin=origin,
        times=None if stamp is None or cal.grid is None else cal.grid.after(stamp, cal.horizon),
        mean=mean,
        base=base,
        gate=issued.gate,
        novelty=issued.novelty,
        sd=sd,
        levels=_LEVELS,
        multipliers=widths,
        bounds=cal.bounds,
        expected_error=expected,
        certificate=None if issued.certificate is None else cal.certificate(issued.certificate),
        hidden=() if hidden is None else tuple(cal.names[place] for place in np.flatnonzero(hidden)),
        warnings=alerts,
    )


def alerts_of(cal: Calibrator, online: OnlineState, row: int, stamp: Stamp | None) -> tuple[Alert, ...]:
    """The warnings in force at the newest row, of that time if rows have times; strongest first."""
    return tuple(
        Alert(
            signal=one.signal,
            since=one.since,
            newest=one.newest,
            since_time=None if stamp is None or cal.grid is None else cal.grid.before(stamp, row - one.since),
            channels=tuple(cal.names[place] for place in np.flatnonzero(2 * one.parts >= one.parts.max())),
            rows_between=rows_between(one.excess),
        )
        for one in cal.online.warnings.in_force(online.warnings, row)
    )
