r"""How wrong a forecast is likely to be: its own standard deviations, by how errors have lately compared with theirs.

.. math:: \hat E = \rho \, \overline{s_h},\qquad
   \rho \leftarrow \rho + \tfrac1{10} \Bigl(\frac{\sum_h |y - \hat y_h| / (h s_h)}{\sum_h 1/h} - \rho\Bigr)

over the leads of the row that has arrived, in the standard deviations s_h that were issued. The standard deviations
follow the errors of a hundred rows and know the far leads; rho follows those of ten rows, which the near leads tell of
first: as in the gate, every octave of leads says as much as any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, namespace
from ompb.shapes import Shape

# Rows that rho looks back on.
MEMORY = 10
# E|e| of a standard normal: where rho begins.
GAUSSIAN = math.sqrt(2 / math.pi)
# Keeps the mean of no lead finite.
TINY = 1e-300


class ExpectedState(NamedTuple):
    """What was heard of N lanes."""

    ratio: Annotated[Array, Shape("N", least=0)]  # rho


@dataclass(frozen=True)
class ExpectedErrors:
    """The mean absolute error to expect."""

    leads: Array  # what lead h counts, 1/h: (H,)

    def start(self, like: Array) -> ExpectedState:
        """Nothing heard yet; ``like`` is any (N, H) array."""
        return ExpectedState(namespace(like).full_like(like[:, 0], GAUSSIAN))

    def learn(self, state: ExpectedState, error: Array, precision: Array, observed: Array) -> ExpectedState:
        """A row has arrived: errors (N, H) by lead, 0 but where ``observed`` (N, H) is 1; precision is 1 / s_h."""
        xp = namespace(error)
        counted = xp.matmul(observed, self.leads)
        heard = xp.matmul(xp.abs(error) * precision, self.leads)
        news = heard / xp.maximum(counted, TINY) - state.ratio
        return ExpectedState(xp.where(counted > 0, state.ratio + news / MEMORY, state.ratio))

    def of(self, state: ExpectedState, sd: Array) -> Array:
        """The mean absolute error (N,) to expect of a forecast with standard deviations (N, H)."""
        return state.ratio * namespace(sd).mean(sd, axis=1)
