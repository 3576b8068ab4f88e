"""The belief in the members, against its formula in plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.gate import Gate
from ompb.settings import GateMode
from ompb.types import Floats

PRIOR = (0.6, 0.3, 0.1)
HORIZON, DISCOUNT, EVIDENCE, RAMP = 4, 0.9, 6.0, 5.0


def gate(mode: GateMode = "channel") -> Gate:
    return Gate(
        prior=np.asarray(PRIOR),
        backbone=np.asarray([1.0, 0.0, 0.0]),
        loss=np.zeros((2, 3)),
        rows=np.zeros(2),
        discount=DISCOUNT,
        evidence=EVIDENCE,
        ramp=RAMP,
        mode=mode,
        channels=2,
    )


def tell(learner: Gate, errors: Floats) -> None:
    """Rows of errors (rows, N, H, K), every lead heard."""
    for row in errors:
        learner.fade()
        learner.learn(row, np.full(2, float(HORIZON)), age=0)


def test_belief_is_the_formula() -> None:
    errors = np.random.default_rng(0).normal(scale=[1.0, 1.3, 0.8], size=(9, 2, HORIZON, 3))
    learner = gate()
    tell(learner, errors)
    for lane in range(2):
        losses, rows = [0.0] * 3, 0.0
        for row in errors[:, lane]:
            losses = [DISCOUNT * loss + float(np.mean(row[:, k] ** 2)) for k, loss in enumerate(losses)]
            rows = DISCOUNT * rows + 1
        kappa = EVIDENCE * min(1.0, rows / RAMP)
        odds = [prior * loss**-kappa for prior, loss in zip(PRIOR, losses, strict=True)]
        np.testing.assert_allclose(learner.belief()[lane], np.asarray(odds) / sum(odds))


def test_a_shared_gate_pools_the_channels() -> None:
    errors = np.random.default_rng(1).normal(scale=[1.0, 0.5, 2.0], size=(9, 2, HORIZON, 3))
    errors[:, 1] *= 3
    apart, shared = gate(), gate("shared")
    tell(apart, errors)
    tell(shared, errors)
    np.testing.assert_array_equal(shared.belief()[0], shared.belief()[1])
    assert not np.allclose(apart.belief()[0], apart.belief()[1])


@pytest.mark.parametrize("mode", ["channel", "shared"])
def test_closed_before_any_outcome_and_when_the_backbone_is_far_better(mode: GateMode) -> None:
    learner = gate(mode)
    np.testing.assert_array_equal(learner.weights(learner.belief()), [[1, 0, 0]] * 2)
    tell(learner, np.ones((9, 2, HORIZON, 3)) * [1.0, 9.0, 9.0])
    np.testing.assert_array_equal(learner.weights(learner.belief()), [[1, 0, 0]] * 2)
    opened = gate("open")
    tell(opened, np.ones((9, 2, HORIZON, 3)) * [1.0, 9.0, 9.0])
    assert (opened.weights(opened.belief())[:, 0] == 0).all()


def test_late_errors_count_less_by_their_age() -> None:
    errors = np.random.default_rng(2).normal(size=(2, 2, HORIZON, 3))
    on_time, late = gate(), gate()
    tell(on_time, errors)
    late.fade()
    late.fade()
    late.learn(errors[1], np.full(2, float(HORIZON)), age=0)
    late.learn(errors[0], np.full(2, float(HORIZON)), age=1)
    np.testing.assert_allclose(late.belief(), on_time.belief())
