"""A named stretch of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Phase:
    """Rows ``first`` to ``stop`` - 1 of a series or a stream.

    >>> Phase("tariff", 2, 4).holds(np.arange(5))
    array([False, False,  True,  True, False])
    """

    name: str
    first: int
    stop: int

    @property
    def rows(self) -> slice:
        """The stretch as a slice: ``values[phase.rows]``."""
        return slice(self.first, self.stop)

    def holds(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Which of these rows lie in the stretch, in their shape."""
        return (self.first <= rows) & (rows < self.stop)
