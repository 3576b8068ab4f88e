"""What a method may have seen before it issues forecast t.

========== ========================================================= ======================
protocol   known before forecast t                                   use
========== ========================================================= ======================
honest     lead h of origin k, for k + h <= t                        what a deployment has
full       complete outcomes of origins k <= t - H                   learners of whole pairs
delay=D    complete outcomes of origins k <= t - D                   the paper's delay table
one-step   complete outcomes of origins k <= t - 1                   the paper's main tables
========== ========================================================= ======================

The last two *leak* wherever the delay is shorter than the horizon: rows after t are known before forecast t.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.floor import checks

HONEST, FULL, ONE_STEP = "honest", "full", "one-step"
ACCEPTED = (HONEST, FULL, "delay=D (D from 1)", ONE_STEP)


class Revealed(NamedTuple):
    """Origins, oldest first, and leads of them, from 1, whose outcomes become visible together. No lead comes twice."""

    origins: NDArray[np.intp]  # (n,)
    leads: NDArray[np.intp]  # (n,)


@dataclass(frozen=True, slots=True)
class Clock:
    """Hands out every label once, when its protocol allows it. Origins count rows; ``first`` is the first of them.

    >>> Clock("honest", horizon=2).revealed(5)
    Revealed(origins=array([3, 4]), leads=array([2, 1]))
    >>> Clock("one-step", horizon=2).revealed(5)
    Revealed(origins=array([4, 4]), leads=array([1, 2]))
    >>> Clock("hourly", horizon=2)
    Traceback (most recent call last):
    ompb.errors.OptionError: option protocol = 'hourly' is out of range; accepted: honest, full, ...
    """

    protocol: str
    horizon: int
    first: int = 0

    def __post_init__(self) -> None:
        checks.count("horizon", self.horizon)
        delay_of(self.protocol, self.horizon)

    @property
    def delay(self) -> int | None:
        """Rows from an origin to the moment its whole outcome is shown; None where leads come one by one."""
        return delay_of(self.protocol, self.horizon)

    @property
    def leaks(self) -> bool:
        """Whether labels are shown before their rows have come."""
        return self.delay is not None and self.delay < self.horizon

    @property
    def pending(self) -> int:
        """Forecasts that can wait for the end of their outcome at once."""
        return self.delay or self.horizon

    def revealed(self, origin: int) -> Revealed:
        """The labels that become visible between the forecasts of ``origin`` - 1 and ``origin``."""
        if self.delay is None:
            leads = np.arange(min(self.horizon, origin - self.first), 0, -1)
            return Revealed(origin - leads, leads)
        due = origin - self.delay
        leads = np.arange(1, self.horizon + 1 if due >= self.first else 1)
        return Revealed(np.full_like(leads, due), leads)


def delay_of(protocol: str, horizon: int) -> int | None:
    """Rows from an origin to its whole outcome under a protocol, by name; None where leads come one by one."""
    whole = {HONEST: None, FULL: horizon, ONE_STEP: 1}
    if protocol in whole:
        return whole[protocol]
    name, _, rows = protocol.partition("=")
    if name != "delay" or re.fullmatch("[1-9][0-9]{0,6}", rows) is None:
        raise checks.refuse("protocol", protocol, ", ".join(ACCEPTED))
    return int(rows)
