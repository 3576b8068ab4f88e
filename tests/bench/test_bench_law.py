"""The law around a method that says a mean only, against its formula written out."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.bench.contract import Prediction, Task, snapshots
from ompb.bench.law import SOURCE_WINDOWS, OwnErrors
from ompb.bench.protocols import Clock
from ompb.testing.method import task_of

CONTEXT, HORIZON, CHANNELS = 4, 3, 2


def task(protocol: str) -> Task:
    draw = np.random.default_rng(0)
    source = draw.normal(size=(300, CHANNELS))
    source[50, 1] = np.nan
    base = draw.normal(size=(300 - CONTEXT - HORIZON + 1, HORIZON, CHANNELS))
    return task_of(source, base, CONTEXT, protocol=protocol)


@pytest.mark.parametrize(("protocol", "delay"), [("honest", None), ("one-step", 1), ("delay=5", 5)])
def test_the_law_is_the_mean_square_of_revealed_errors(protocol: str, delay: int | None) -> None:
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(40, CHANNELS))
    rows[20, 0] = np.nan
    base = draw.normal(size=(40 - CONTEXT - HORIZON + 1, HORIZON, CHANNELS))
    said = draw.normal(size=base.shape)
    given = task(protocol)
    law = OwnErrors.start(given)
    outcomes = np.stack([given.source[o + 1 : o + 1 + HORIZON] for o in range(CONTEXT - 1, 300 - HORIZON)])
    prior = np.nanmean((outcomes - given.source_base) ** 2, axis=0)
    for snapshot in snapshots(rows, rows, base, Clock(protocol, HORIZON, CONTEXT - 1), CONTEXT):
        place = snapshot.origin - CONTEXT + 1
        sd = law.around(Prediction(said[place]), snapshot).sd
        for lead in range(HORIZON):
            # every earlier forecast whose lead is known by now
            known = [k for k in range(place) if (place - k >= (lead + 1 if delay is None else delay))]
            errors = np.asarray([rows[CONTEXT + k + lead] - said[k, lead] for k in known]).reshape(-1, CHANNELS)
            count = SOURCE_WINDOWS + (~np.isnan(errors)).sum(axis=0)
            expected = (SOURCE_WINDOWS * prior[lead] + np.nansum(errors**2, axis=0)) / count
            assert sd is not None
            assert sd[lead] == pytest.approx(np.sqrt(expected))


def test_a_law_of_the_methods_own_is_left_alone() -> None:
    draw = np.random.default_rng(2)
    rows, base = draw.normal(size=(10, CHANNELS)), np.zeros((3, HORIZON, CHANNELS))
    law = OwnErrors.start(task("honest"))
    (first, *_) = snapshots(rows, rows, base, Clock("honest", HORIZON, CONTEXT - 1), CONTEXT)
    own = Prediction(base[0], sd=np.ones((HORIZON, CHANNELS)))
    assert law.around(own, first) is own
    ends = Prediction(base[0], intervals={0.8: (base[0] - 1, base[0] + 1)})
    assert OwnErrors.start(task("honest")).around(ends, first) is ends
