"""Gamma as windows come in, kind by kind, and from how many windows on one kind is below another."""

from __future__ import annotations

import numpy as np

from ompb.core.certificate.kinds import Kind
from ompb.types import Floats

DELTA = 0.05


def gammas(kind: str, losses: Floats, delta: float = DELTA) -> Floats:
    """Gamma of the first 1, 2, .. m of the losses (m,), in time order, with no KL to pay: (m,)."""
    made: Kind = Kind.tags[kind]()
    return np.array([_gamma(made, losses[None, :count], delta) for count in range(1, len(losses) + 1)])


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
