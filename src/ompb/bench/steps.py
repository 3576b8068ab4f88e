"""What is kept of a stream step by step: errors, the method's signals, and three forecasts to look at.

============== ========= ====================================================================
array          shape     what it holds
============== ========= ====================================================================
origin         (n,)      of each forecast
mae, mse       (n,)      over horizon and channels, once its outcome was complete
a signal       (n,)      under its own name: what `Prediction.signals` said
shown_origin   (3,)      forecasts a quarter, a half and three quarters down the stream
shown_...      (3, H, C) their mean, base, outcome, and the ends lower and upper of the 80 % interval
============== ========= ====================================================================
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ompb.bench.contract import Prediction, Snapshot
from ompb.bench.scores import intervals
from ompb.bench.store import Steps
from ompb.errors import OptionError
from ompb.types import Floats

MEANS = {"certificate": "value", "disagreement": "disagreement"}  # metrics that are means of signals
SHOWN_LEVEL = 0.8
QUARTERS = 4


@dataclass(slots=True)
class StepLog:
    """Collects the steps of a stream of so many forecasts."""

    count: int
    columns: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    shown: dict[str, list[Floats]] = field(default_factory=lambda: defaultdict(list))

    def add(self, snapshot: Snapshot, prediction: Prediction, outcome: Floats, errors: tuple[float, float]) -> None:
        """Take in one forecast, its outcome (H, C) and its MAE and MSE."""
        place = len(self.columns["origin"])
        named = {"origin": float(snapshot.origin), "mae": errors[0], "mse": errors[1], **prediction.signals}
        if place and named.keys() != self.columns.keys():
            other = ", ".join(sorted(named.keys() ^ self.columns.keys()))
            raise OptionError(f"signals have other names than a step before ({other}); give all at every step, or NaN.")
        for name, value in named.items():
            self.columns[name].append(value)
        if place in {self.count * quarter // QUARTERS for quarter in range(1, QUARTERS)}:
            self._show(snapshot, prediction, outcome)

    def _show(self, snapshot: Snapshot, prediction: Prediction, outcome: Floats) -> None:
        nothing = np.full_like(outcome, np.nan)
        lower, upper = intervals(prediction).get(SHOWN_LEVEL, (nothing, nothing))
        self.shown["shown_origin"].append(np.asarray(snapshot.origin))
        named = {"mean": prediction.mean, "base": snapshot.base, "outcome": outcome, "lower": lower, "upper": upper}
        for name, values in named.items():
            self.shown[f"shown_{name}"].append(values)

    def means(self) -> dict[str, float]:
        """Of the signals in `MEANS` that the method gives, over the steps at which there is a reading."""
        read = {metric: np.asarray(self.columns[name]) for metric, name in MEANS.items() if name in self.columns}
        known = {metric: values[np.isfinite(values)] for metric, values in read.items()}
        return {metric: float(values.mean()) for metric, values in known.items() if len(values)}

    def arrays(self) -> Steps:
        """All of it, in float32, origins as whole numbers."""
        steps = {name: np.asarray(values, dtype=np.float32) for name, values in self.columns.items()}
        steps |= {name: np.asarray(values, dtype=np.float32) for name, values in self.shown.items()}
        return steps | {name: steps[name].astype(np.int64) for name in ("origin", "shown_origin") if name in steps}
