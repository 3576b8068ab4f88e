"""The belief in the members, against its formula in plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.gate import HINT, Gate, lead_groups
from ompb.settings import GateMode, Settings
from ompb.types import Floats

PRIOR = (0.6, 0.3, 0.1)
HORIZON, DISCOUNT, EVIDENCE, RAMP = 4, 0.9, 6.0, 5.0
SPANS = ((0, 1), (1, 2), (2, 3), (3, 4))  # of four leads each is a group


def gate(mode: GateMode = "channel", horizon: int = HORIZON) -> Gate:
    settings = Settings(gate=mode, gate_discount=DISCOUNT, evidence=EVIDENCE, ramp=RAMP)
    return Gate.start(2, np.asarray(PRIOR), lead_groups(np.zeros(1), horizon), 2, settings)


def tell(learner: Gate, errors: Floats, heard: Floats | None = None) -> None:
    """Rows of errors (rows, N, K, H), of leads heard (rows, H), all unless said otherwise."""
    for place, row in enumerate(errors):
        leads = np.ones(row.shape[-1]) if heard is None else heard[place]
        learner.fade()
        learner.learn(row * leads, np.tile(leads, (2, 1)), age=0)


@pytest.mark.parametrize(
    ("horizon", "sizes"), [(1, [1]), (2, [1, 1]), (4, [1, 1, 1, 1]), (24, [2, 3, 6, 13]), (96, [3, 7, 21, 65])]
)
def test_every_lead_is_in_one_group_and_groups_grow(horizon: int, sizes: list[int]) -> None:
    groups = lead_groups(np.zeros(1), horizon)
    np.testing.assert_array_equal(groups.sum(axis=0), np.ones(horizon))
    np.testing.assert_array_equal(groups.sum(axis=1), sizes)
    np.testing.assert_array_equal(np.argmax(groups, axis=1), np.cumsum([0, *sizes[:-1]]))  # in order, without holes


def test_belief_is_the_formula() -> None:
    """Nine leads in groups of 2, 1, 2 and 4; the long ones are heard of from the fifth row on."""
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(9, 2, 3, 9)) * np.asarray([1.0, 1.3, 0.8])[:, None]
    heard = np.ones((9, 9))
    heard[:5, 5:] = 0
    learner = gate(horizon=9)
    tell(learner, errors, heard)
    spans = ((0, 2), (2, 3), (3, 5), (5, 9))
    for lane in range(2):
        losses, rows = np.zeros((4, 3)), np.zeros(4)
        for row, leads in zip(errors[:, lane], heard, strict=True):
            losses, rows = DISCOUNT * losses, DISCOUNT * rows
            for group, (first, last) in enumerate(spans):
                if leads[first]:
                    losses[group] += [float(np.mean(member[first:last] ** 2)) for member in row]
                    rows[group] += 1
        kappa = EVIDENCE * min(1.0, rows[0] / RAMP)
        for group in range(4):
            mean = (losses[group] + HINT * losses.sum(axis=0)) / (rows[group] + HINT * rows.sum())
            odds = [prior * loss**-kappa for prior, loss in zip(PRIOR, mean, strict=True)]
            np.testing.assert_allclose(learner.belief()[lane, group], np.asarray(odds) / sum(odds))


def test_short_leads_speak_for_long_ones_until_these_are_heard_of() -> None:
    errors = np.ones((6, 2, 3, HORIZON)) * np.asarray([1.0, 0.3, 3.0])[:, None]
    heard = np.ones((6, HORIZON))
    heard[:, 2:] = 0
    learner = gate()
    tell(learner, errors, heard)
    np.testing.assert_allclose(learner.belief()[:, 3], learner.belief()[:, 0])
    assert learner.belief()[0, 3, 1] > 0.9
    errors[..., 2:] = np.asarray([1.0, 3.0, 0.3])[:, None]  # far ahead it is the other way round
    tell(learner, errors)
    assert learner.belief()[0, 0, 1] > 0.9
    assert learner.belief()[0, 3, 1] < 0.1


def test_weights_are_the_belief_of_each_leads_group() -> None:
    learner = gate()
    tell(learner, np.random.default_rng(3).normal(size=(9, 2, 3, HORIZON)))
    belief = learner.belief()
    weights = learner.weights(belief)
    for group, (first, last) in enumerate(SPANS):
        for lead in range(first, last):
            np.testing.assert_array_equal(weights[:, :, lead], belief[:, group])


def test_a_shared_gate_pools_the_channels() -> None:
    errors = np.random.default_rng(1).normal(size=(9, 2, 3, HORIZON)) * np.asarray([1.0, 0.5, 2.0])[:, None]
    errors[:, 1] *= 3
    apart, shared = gate(), gate("shared")
    tell(apart, errors)
    tell(shared, errors)
    np.testing.assert_array_equal(shared.belief()[0], shared.belief()[1])
    assert not np.allclose(apart.belief()[0], apart.belief()[1])


@pytest.mark.parametrize("mode", ["channel", "shared"])
def test_closed_before_any_outcome_and_where_the_backbone_is_far_better(mode: GateMode) -> None:
    learner = gate(mode)
    closed = np.tile(np.asarray([1.0, 0.0, 0.0])[:, None], (2, 1, HORIZON))
    np.testing.assert_array_equal(learner.weights(learner.belief()), closed)
    errors = np.ones((9, 2, 3, HORIZON)) * np.asarray([1.0, 3.0, 3.0])[:, None]
    tell(learner, errors)
    np.testing.assert_array_equal(learner.weights(learner.belief()), closed)
    opened = gate("open")
    tell(opened, errors)
    assert (opened.weights(opened.belief())[:, 0] == 0).all()
    half_open = gate(mode)
    errors[:, :, 1, 3] = 0.1  # at the last lead another is far better
    tell(half_open, errors)
    weights = half_open.weights(half_open.belief())
    np.testing.assert_array_equal(weights[..., :3], closed[..., :3])
    assert (weights[:, 1, 3] > 0.5).all()


def test_late_errors_count_less_by_their_age() -> None:
    errors = np.random.default_rng(2).normal(size=(2, 2, 3, HORIZON))
    on_time, late = gate(), gate()
    tell(on_time, errors)
    late.fade()
    late.fade()
    late.learn(errors[1], np.ones((2, HORIZON)), age=0)
    late.learn(errors[0], np.ones((2, HORIZON)), age=1)
    np.testing.assert_allclose(late.belief(), on_time.belief())
