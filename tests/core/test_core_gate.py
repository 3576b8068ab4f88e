"""The belief in the members, against its formula in plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.gate import CLOSED, Gate, GateMode, GateOptions, GateState
from ompb.types import Floats

PRIOR = (0.6, 0.3, 0.1)
HORIZON, DISCOUNT, EVIDENCE, CAUTION = 4, 0.9, 6.0, 5.0


class Learner:
    """A gate with what it has heard."""

    def __init__(self, options: GateOptions) -> None:
        prior = np.asarray(PRIOR)
        self.rules = Gate.of(prior, np.asarray([1.0, 0.0, 0.0]), HORIZON, 2, options)
        self.state: GateState = self.rules.start(2)

    def belief(self) -> Floats:
        return np.asarray(self.rules.belief(self.state))

    def weights(self) -> Floats:
        return np.asarray(self.rules.weights(self.state, self.rules.belief(self.state)))


def gate(mode: GateMode = "channel") -> Learner:
    return Learner(GateOptions(mode, DISCOUNT, EVIDENCE, CAUTION))


def tell(learner: Learner, errors: Floats) -> None:
    """Rows of errors (rows, N, K, H), every lead observed."""
    for row in errors:
        learner.state = learner.rules.learn(learner.state, row, np.ones((2, HORIZON)))


def weighed(squares: Floats) -> float:
    """Mean over leads, of which lead h counts 1/h."""
    shares = [1 / lead for lead in range(1, len(squares) + 1)]
    return sum(share * float(square) for share, square in zip(shares, squares, strict=True)) / sum(shares)


def draw(seed: int, scales: list[float], rows: int) -> Floats:
    return np.random.default_rng(seed).normal(scale=np.asarray(scales)[:, None], size=(rows, 2, 3, HORIZON))


def test_belief_is_the_formula() -> None:
    errors = draw(0, [1.0, 1.3, 0.8], 9)
    learner = gate()
    tell(learner, errors)
    for lane in range(2):
        losses, rows = [0.0] * 3, 0.0
        for row in errors[:, lane]:
            losses = [DISCOUNT * loss + weighed(row[k] ** 2) for k, loss in enumerate(losses)]
            rows = DISCOUNT * rows + 1
        smoothed = [loss + CAUTION * min(losses) / rows for loss in losses]
        odds = [prior * loss**-EVIDENCE for prior, loss in zip(PRIOR, smoothed, strict=True)]
        np.testing.assert_allclose(learner.belief()[lane], np.asarray(odds) / sum(odds))


def test_a_shared_gate_pools_the_channels() -> None:
    errors = draw(1, [1.0, 0.5, 2.0], 9)
    errors[:, 1] *= 3
    apart, shared = gate(), gate("shared")
    tell(apart, errors)
    tell(shared, errors)
    np.testing.assert_array_equal(shared.belief()[0], shared.belief()[1])
    assert not np.allclose(apart.belief()[0], apart.belief()[1])


@pytest.mark.parametrize("mode", ["channel", "shared"])
def test_closed_before_any_outcome_and_when_the_backbone_is_far_better(mode: GateMode) -> None:
    learner = gate(mode)
    np.testing.assert_array_equal(learner.weights(), [[1, 0, 0]] * 2)
    tell(learner, np.ones((9, 2, 3, HORIZON)) * [[1.0], [9.0], [9.0]])
    np.testing.assert_array_equal(learner.weights(), [[1, 0, 0]] * 2)
    opened = gate("open")
    tell(opened, np.ones((9, 2, 3, HORIZON)) * [[1.0], [9.0], [9.0]])
    assert (opened.weights()[:, 0] == 0).all()


def test_late_errors_count_less_by_their_age() -> None:
    errors = draw(2, [1.0, 1.0, 1.0], 2)
    on_time, late = gate(), gate()
    tell(on_time, errors)
    nothing = np.zeros((2, 3, HORIZON)), np.zeros((2, HORIZON))
    late.state = late.rules.learn(late.state, *nothing)
    late.state = late.rules.learn(late.state, errors[1], np.ones((2, HORIZON)))
    late.state = late.rules.learn_late(late.state, errors[0], np.ones((2, HORIZON)), age=1)
    np.testing.assert_allclose(late.belief(), on_time.belief())


def test_a_row_of_few_leads_counts_as_much_as_any() -> None:
    """Errors of 1 at the leads that were observed, whichever they are, are a loss of 1 a row."""
    learner = gate()
    observed = np.asarray([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    learner.state = learner.rules.learn(learner.state, np.ones((2, 3, HORIZON)) * observed[:, None], observed)
    np.testing.assert_allclose(learner.state.loss, 1.0)
    learner.state = learner.rules.learn(learner.state, np.zeros((2, 3, HORIZON)), np.zeros((2, HORIZON)))
    np.testing.assert_allclose(learner.state.loss, DISCOUNT)
    np.testing.assert_allclose(learner.state.rows, DISCOUNT)


def test_a_large_difference_opens_the_gate_at_once_and_a_small_one_has_to_last() -> None:
    def mass_off_the_backbone(loss_ratio: float, rows: int) -> float:
        learner = Learner(GateOptions())
        errors = np.ones((rows, 2, 3, HORIZON)) * [[loss_ratio**0.5], [1.0], [1.0]]
        tell(learner, errors)
        return float(1 - learner.weights()[0, 0])

    prior = 1 - PRIOR[0]
    assert mass_off_the_backbone(25.0, rows=5) > 0.99
    assert mass_off_the_backbone(1.2, rows=5) < prior + 0.02
    assert mass_off_the_backbone(1.2, rows=1000) > prior + 0.2
    assert mass_off_the_backbone(1 / 1.2, rows=1000) < prior - 0.2


def test_a_member_without_any_error_is_believed() -> None:
    for best in range(3):
        learner = gate()
        errors = np.ones((3, 2, 3, HORIZON))
        errors[:, :, best] = 0.0
        tell(learner, errors)
        np.testing.assert_allclose(learner.weights(), [np.arange(3) == best] * 2, atol=1e-12)


@pytest.mark.parametrize(("mass", "opens"), [(0.5 * CLOSED, False), (0.99 * CLOSED, False), (1.01 * CLOSED, True)])
def test_the_gate_closes_below_one_per_cent(mass: float, opens: bool) -> None:
    """CLOSED is that line, and nothing else decides."""
    assert CLOSED == 0.01
    learner = gate()
    tell(learner, np.ones((3, 2, 3, HORIZON)))
    belief = np.asarray([[1 - mass, mass / 2, mass / 2]] * 2)
    weights = learner.rules.weights(learner.state, belief)
    np.testing.assert_array_equal(weights, belief if opens else [[1, 0, 0]] * 2)


def test_an_open_gate_chooses_among_the_others_however_far_the_backbone_is_ahead() -> None:
    learner = Learner(GateOptions("open", DISCOUNT, 1e4, CAUTION))
    tell(learner, draw(0, [0.01, 1.0, 2.0], 9))
    np.testing.assert_allclose(learner.belief(), [[0.0, 1.0, 0.0]] * 2)


@pytest.mark.parametrize("mode", ["channel", "shared", "open"])
def test_a_backbone_that_is_alone_is_believed(mode: GateMode) -> None:
    rules = Gate.of(np.ones(1), np.ones(1), HORIZON, 2, GateOptions(mode, DISCOUNT, EVIDENCE, CAUTION))
    state = rules.learn(rules.start(2), np.ones((2, 1, HORIZON)), np.ones((2, HORIZON)))
    belief = rules.belief(state)
    np.testing.assert_array_equal(rules.weights(state, belief), np.ones((2, 1)))
