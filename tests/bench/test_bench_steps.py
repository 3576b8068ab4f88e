"""What is kept step by step."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.bench.contract import Labels, Prediction, Snapshot
from ompb.bench.steps import StepLog
from ompb.errors import OptionError


def add(log: StepLog, origin: int, **signals: float) -> None:
    nothing, places = np.zeros((2, 1)), np.zeros(0, dtype=np.intp)
    labels = Labels(places, places, nothing[:0], nothing[:0])
    snapshot = Snapshot(origin, nothing[0], nothing, nothing, labels)
    log.add(snapshot, Prediction(nothing, signals=signals), nothing, (1.0, 2.0))


def test_signals_stand_beside_the_errors() -> None:
    log = StepLog(4)
    for origin in range(4):
        add(log, origin, novelty=float(origin))
    kept = log.arrays()
    assert kept["novelty"].tolist() == kept["origin"].tolist() == [0, 1, 2, 3]
    assert kept["mse"].tolist() == [2.0] * 4
    assert kept["shown_origin"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("signals", [{}, {"gate": 1.0}, {"novelty": 1.0, "gate": 1.0}])
def test_other_signals_than_before_are_refused(signals: dict[str, float]) -> None:
    log = StepLog(4)
    add(log, 0, novelty=1.0)
    with pytest.raises(OptionError, match="other names than a step before"):
        add(log, 1, **signals)
