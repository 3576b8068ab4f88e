r"""The predictive law of a method that says a mean only, so that all methods can be scored as laws.

.. math:: y_{h,c} \sim N\bigl(m_{h,c},\, s^2_{h,c}\bigr), \qquad
   s^2_{h,c} = \frac{n_0 \, v_{h,c} + \sum e^2_{h,c}}{n_0 + n_{h,c}}

The sum is over the method's own errors that its protocol has revealed, n of them for lead h of channel c; v is the mean
squared error of the base forecasts on the source, which counts as n_0 of them. It is what a user would put around such
a forecast, and it knows no more than the method does.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ompb.bench.contract import Issued, Labels, Prediction, Snapshot, Task
from ompb.bench.protocols import Clock
from ompb.rows.windows import sliding
from ompb.types import Floats

SOURCE_WINDOWS = 10.0  # n_0
BLOCK = 256  # windows of the source read at a time
SMALLEST = 1e-6  # of a standard deviation, in those of the source: a source without errors still gives a law


@dataclass(slots=True)
class OwnErrors:
    """Gives every prediction without a law one from the method's revealed errors."""

    squares: Floats  # n_0 v + sum of e^2: (H, C)
    counts: Floats  # n_0 + n: (H, C)
    issued: Issued  # means

    @classmethod
    def start(cls, task: Task) -> OwnErrors:
        """With the source's errors alone."""
        variance = _source_variance(task)
        issued = Issued(Clock(task.protocol, task.horizon).pending)
        return cls(SOURCE_WINDOWS * variance, np.full_like(variance, SOURCE_WINDOWS), issued)

    def around(self, prediction: Prediction, snapshot: Snapshot) -> Prediction:
        """The prediction with a law: its own if it has one. Call it with every snapshot, in turn."""
        if len(snapshot.labels):
            self._hear(snapshot.labels)
        self.issued.put(snapshot.origin, prediction.mean)
        if prediction.sd is not None or prediction.intervals is not None:
            return prediction
        return dataclasses.replace(prediction, sd=np.maximum(np.sqrt(self.squares / self.counts), SMALLEST))

    def _hear(self, labels: Labels) -> None:
        error = labels.values - self.issued.of(labels)
        known = ~np.isnan(error)
        self.squares[labels.leads] += np.where(known, error, 0.0) ** 2
        self.counts[labels.leads] += known


def _source_variance(task: Task) -> Floats:
    """Mean squared error (H, C) of the base forecasts over the source's windows; missing cells do not count."""
    outcomes = sliding(task.source[task.context :], task.horizon)
    squares, counts = np.zeros((2, task.horizon, task.source.shape[1]))
    for first in range(0, len(task.source_base), BLOCK):
        block = slice(first, first + BLOCK)
        errors = outcomes[block] - task.source_base[block]
        squares += np.nansum(errors**2, axis=0)
        counts += (~np.isnan(errors)).sum(axis=0)
    return np.asarray(squares / np.maximum(counts, 1))
