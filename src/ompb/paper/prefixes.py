"""Gamma as windows come in, kind by kind, and from how many windows on one kind is below another."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from ompb.core.certificate.kinds import Kind
from ompb.types import Floats

DELTA = 0.05
MOST_WINDOWS = 100_000  # that are looked for
ROUNDING = 1e-5  # of what was kept; one window more or less is 1 part in 2 m


def gammas(kind: str, losses: Floats, delta: float = DELTA) -> Floats:
    """Gamma of the first 1, 2, .. m of the losses (m,), in time order, with no KL to pay: (m,)."""
    made: Kind = Kind.tags[kind]()
    return np.array([_gamma(made, losses[None, :count], delta) for count in range(1, len(losses) + 1)])


def windows_behind(gamma: float, delta: float = DELTA) -> int:
    """Of how many windows this is Gamma, if it is the one for independent windows, which depends on nothing else.

    >>> windows_behind(float(gammas("iid", np.zeros(7))[-1]))
    7
    """
    iid: Kind = Kind.tags["iid"]()

    def is_enough(windows: int) -> bool:
        return _gamma(iid, np.zeros((1, windows)), delta) <= gamma * (1 + ROUNDING)

    return 1 + bisect_left(range(1, MOST_WINDOWS), True, key=is_enough)


def _gamma(kind: Kind, losses: Floats, delta: float) -> float:
    windows = losses.shape[1]
    kappa = np.array([kind.log_term(windows, delta)])
    return float(kind.gamma(kappa, kind.summary(losses, 1.0), windows)[0])


def running_means(losses: Floats) -> Floats:
    """The mean of the first 1, 2, .. m losses: (m,)."""
    return np.asarray(np.cumsum(losses) / np.arange(1, len(losses) + 1))


def below_from(ours: Floats, rival: Floats) -> int | None:
    """The number of windows from which on ours stays below the rival; None if it is not below at the end.

    >>> below_from(np.array([3.0, 1.0, 3.0, 1.0, 1.0]), np.full(5, 2.0))
    4
    """
    above = np.flatnonzero(ours >= rival)
    first = int(above[-1]) + 2 if len(above) else 1
    return first if first <= len(ours) else None
