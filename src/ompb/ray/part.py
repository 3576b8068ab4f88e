"""What a shard says of a tick, unless something else is picked: enough for most, and a tenth of all there is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.fleet.forecast import FleetForecast
from ompb.types import Floats

LEVEL = 0.8  # of the interval


class Part(NamedTuple):
    """The forecasts of the S series of a shard."""

    ids: tuple[str, ...]
    mean: Floats  # (S, H, C), NaN before the first forecast
    lower: Floats  # (S, H, C), of the interval of 80 %
    upper: Floats  # (S, H, C)
    certificate: Floats | None  # (S,)
    warning: NDArray[np.bool_]  # (S, signals): whether a warning is in force


def summary(forecast: FleetForecast) -> Part:
    """Mean, 80 % interval, certificate and warnings, as NumPy arrays."""
    host, certificate = forecast.library.host, forecast.certificate
    lower, upper = forecast.interval(LEVEL)
    return Part(
        forecast.ids,
        host(forecast.mean),
        host(lower),
        host(upper),
        None if certificate is None else host(certificate.value),
        host(forecast.warning.in_force),
    )
