r"""The fastest learner: one running bias per lead, added to the base forecast.

.. math:: b_h \leftarrow b_h + r\,(y_h - z_h - b_h)

It knows nothing of the inputs and follows a level that moves within a day or two, long before a head with many features
can. As a member of the mixture it counts for as much as its record speaks for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array


@dataclass
class RunningBias:
    """Bias of the base forecast by lane and lead."""

    value: Array  # (N, H), standardised
    rate: float

    def learn(self, error: Array, heard: Array, age: int) -> None:
        """A row's errors of the base forecast (N, H), 0 where not ``heard`` (N, H), ``age`` rows late."""
        rate = self.rate * (1 - self.rate) ** age
        self.value = self.value + rate * (error - heard * self.value)
