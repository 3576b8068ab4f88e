r"""How wrong a forecast is likely to be: its own standard deviations, by how errors have lately compared with theirs.

.. math:: \hat E = \rho \, \overline{s_h},\qquad
   \rho \leftarrow \rho + \tfrac1{10} \sum_h w_h \Bigl(\frac{|y - \hat y_h|}{s_h} - \rho\Bigr),\qquad w_h \propto 1/h

over the leads at which the row that has arrived was forecast, in the standard deviations s_h that were issued. Those
follow the errors of a hundred rows and know the far leads; rho follows those of ten rows, which the near leads tell of
first: as in the gate, every octave of leads says as much as any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, dot, namespace
from ompb.floor.shapes import Shape

# Rows that rho looks back on.
MEMORY = 10
# E|e| of a standard normal: where rho begins.
GAUSSIAN = math.sqrt(2 / math.pi)


class ExpectedState(NamedTuple):
    """What was heard of N lanes."""

    ratio: Annotated[Array, Shape("N", least=0)]  # rho


@dataclass(frozen=True)
class ExpectedErrors:
    """The mean absolute error to expect."""

    leads: Array  # what lead h counts, 1/h: (H,)

    @cached_property
    def rate(self) -> Array:
        """How far a row moves the ratio for each unit of what its leads count: (), 1/10 for all of them."""
        return 1 / (MEMORY * namespace(self.leads).sum(self.leads))

    @cached_property
    def shares(self) -> Array:
        """What a lead counts in a plain mean, 1/H: (H,)."""
        return namespace(self.leads).full_like(self.leads, 1 / self.leads.shape[0])

    def start(self, like: Array) -> ExpectedState:
        """Nothing heard yet; ``like`` is any (N, H) array."""
        return ExpectedState(namespace(like).full_like(like[:, 0], GAUSSIAN))

    def learn(self, state: ExpectedState, error: Array, counted: Array) -> ExpectedState:
        """A row has arrived: errors (N, H) by lead, in issued standard deviations, 0 where there is none.

        ``counted`` (N,) is what the leads count at which there is an error.
        """
        news = dot(abs(error), self.leads)
        return ExpectedState(state.ratio + self.rate * (news - state.ratio * counted))

    def of(self, state: ExpectedState, sd: Array) -> Array:
        """The mean absolute error (N,) to expect of a forecast with standard deviations (N, H)."""
        return state.ratio * dot(sd, self.shares)
