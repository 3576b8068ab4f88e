"""The belief in voices and speeds, against its formula in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ompb.core.gate import (
    CLOSED,
    FIRST_SPEED,
    SPEED_CAUTION,
    SPEED_DISCOUNT,
    Gate,
    GateMode,
    GateOptions,
    GateState,
    Opinion,
)
from ompb.types import Floats

PRIOR = (0.6, 0.3, 0.1)
HORIZON, EVIDENCE = 4, 6.0
DISCOUNTS, CAUTIONS = (0.9, 0.7), (5.0, 1.0)
LANES, VOICES, SPEEDS = 2, 3, 2
EVERY_LEAD = np.ones((LANES, HORIZON))


def heard(errors: Floats, observed: Floats) -> tuple[Floats, Floats]:
    """Whether a row was heard of (N,), and the mean square of errors (N, V, H) over the observed leads, each 1/h."""
    weights = observed / np.arange(1, HORIZON + 1)
    counted = weights.sum(axis=1)
    total = (errors**2 * weights[:, None]).sum(axis=2)
    return (counted > 0).astype(float), total / np.where(counted > 0, counted, 1.0)[:, None]


class Learner:
    """A gate with what it has heard."""

    def __init__(self, options: GateOptions) -> None:
        self.rules = Gate.of(np.asarray(PRIOR), 0, HORIZON, LANES, options)
        self.state: GateState = self.rules.start(LANES)

    def opinion(self, log_weight: Floats | None = None) -> Opinion:
        return self.rules.opinion(self.state, log_weight)

    def weights(self, log_weight: Floats | None = None) -> Floats:
        return np.asarray(self.opinion(log_weight).weights)

    def tell(self, voices: Floats) -> None:
        """Rows of the voices' errors (rows, N, K, H), every lead observed; the speeds' are what they made of them."""
        for row in voices:
            self.state = self.rules.learn(self.state, *heard(self.with_speeds(row), EVERY_LEAD))

    def with_speeds(self, voices: Floats) -> Floats:
        return np.concatenate([voices, self.opinion().by_speed @ voices], axis=1)


def gate(mode: GateMode = "channel", waits: bool = True) -> Learner:
    return Learner(GateOptions(mode, DISCOUNTS, CAUTIONS, EVIDENCE, waits))


def one_speed(mode: GateMode = "channel", evidence: float = EVIDENCE) -> Learner:
    return Learner(GateOptions(mode, DISCOUNTS[:1], CAUTIONS[:1], evidence))


def weighed(squares: Floats) -> float:
    """Mean over leads, of which lead h counts 1/h."""
    shares = [1 / lead for lead in range(1, len(squares) + 1)]
    return sum(share * float(square) for share, square in zip(shares, squares, strict=True)) / sum(shares)


def draw(seed: int, scales: list[float], rows: int) -> Floats:
    return np.random.default_rng(seed).normal(scale=np.asarray(scales)[:, None], size=(rows, LANES, VOICES, HORIZON))


def test_the_belief_of_one_speed_is_the_formula() -> None:
    errors = draw(0, [1.0, 1.3, 0.8], 9)
    learner = one_speed()
    learner.tell(errors)
    for lane in range(LANES):
        losses, rows = [0.0] * VOICES, 0.0
        for row in errors[:, lane]:
            losses = [DISCOUNTS[0] * loss + weighed(row[k] ** 2) for k, loss in enumerate(losses)]
            rows = DISCOUNTS[0] * rows + 1
        smoothed = [loss + CAUTIONS[0] * min(losses) / rows for loss in losses]
        odds = [prior * loss**-EVIDENCE for prior, loss in zip(PRIOR, smoothed, strict=True)]
        np.testing.assert_allclose(learner.weights()[lane], np.asarray(odds) / sum(odds))


class Twin:
    """The module's equations for two speeds, in loops over all that was ever heard."""

    def __init__(self, mode: GateMode) -> None:
        self.mode = mode
        self.heard: list[list[tuple[int, list[float], list[float]]]] = [[] for _ in range(LANES)]
        self.now = -1

    def hear(self, row: int, errors: Floats, observed: Floats) -> None:
        """Errors (N, K + Z, H) of a row; the cells that are not observed say nothing."""
        for lane in range(LANES):
            shares = [float(observed[lane, h]) / (h + 1) for h in range(HORIZON)]
            if sum(shares):
                losses = [
                    sum(share * e**2 for share, e in zip(shares, errors[lane, i], strict=True)) / sum(shares)
                    for i in range(VOICES + SPEEDS)
                ]
                self.heard[lane].append((row, losses[:VOICES], losses[VOICES:]))

    def summed(self, lane: int, discount: float, which: int) -> tuple[list[float], float]:
        """Discounted losses of voices (which = 1) or speeds (2), and the discounted count of rows."""
        totals, rows = [0.0] * (VOICES if which == 1 else SPEEDS), 0.0
        for entry in self.heard[lane]:
            fading = discount ** (self.now - entry[0])
            losses = entry[1] if which == 1 else entry[2]
            totals = [total + fading * loss for total, loss in zip(totals, losses, strict=True)]
            rows += fading
        return totals, rows

    def mean_over_channels(self, discount: float, which: int) -> tuple[list[float], float]:
        parts = [self.summed(lane, discount, which) for lane in range(LANES)]
        totals = [sum(part[0][i] for part in parts) / LANES for i in range(len(parts[0][0]))]
        return totals, sum(part[1] for part in parts) / LANES

    def opinion(self, log_weight: list[float]) -> tuple[Floats, Floats]:
        every_speed, every_weight = [], []
        for lane in range(LANES):
            shared = self.mode == "shared"
            of = self.mean_over_channels if shared else lambda d, w, lane=lane: self.summed(lane, d, w)
            against = sum(log_weight) / LANES if shared else log_weight[lane]
            prior = [PRIOR[0] * math.exp(against), *PRIOR[1:]]
            if self.mode == "open":
                prior[0] = 0.0
            by_speed = []
            for discount, caution in zip(DISCOUNTS, CAUTIONS, strict=True):
                losses, rows = of(discount, 1)
                if rows == 0 and against == 0 and self.mode != "open":
                    by_speed.append([1.0, 0.0, 0.0])
                else:
                    by_speed.append(belief(prior, losses, rows, caution))
            losses, rows = of(SPEED_DISCOUNT, 2)
            speeds = belief([FIRST_SPEED, 1 - FIRST_SPEED], losses, rows, SPEED_CAUTION)
            weights = [sum(speeds[z] * by_speed[z][k] for z in range(SPEEDS)) for k in range(VOICES)]
            every_speed.append(by_speed)
            every_weight.append([1.0, 0.0, 0.0] if 1 - weights[0] < CLOSED else weights)
        return np.asarray(every_speed), np.asarray(every_weight)


def belief(prior: list[float], losses: list[float], rows: float, caution: float) -> list[float]:
    if rows == 0:
        return [p / sum(prior) for p in prior]
    smoothed = [loss + caution * min(losses) / rows for loss in losses]
    odds = [p * loss**-EVIDENCE for p, loss in zip(prior, smoothed, strict=True)]
    return [one / sum(odds) for one in odds]


@pytest.mark.parametrize("mode", ["channel", "shared", "open"])
def test_two_speeds_are_what_the_equations_say(mode: GateMode) -> None:
    """With evidence, leads and rows that are missing, and rows that come late."""
    rng = np.random.default_rng(5)
    learner, twin = gate(mode), Twin(mode)
    errors = np.concatenate([draw(3, [1.0, 1.5, 1.2], 8), draw(4, [1.6, 1.0, 0.6], 8)])
    late: dict[int, tuple[Floats, Floats]] = {}
    opened = closed = 0
    for row in range(len(errors)):
        log_weight = np.where(rng.random(LANES) < 0.5, 0.0, -rng.exponential(2.0, LANES))
        if row < 3:  # before any outcome: without evidence, then one lane with it and the other without
            log_weight = -1.5 * np.asarray([row == 1, row == 2])
        issued = learner.opinion(log_weight)
        by_speed, weights = twin.opinion(log_weight.tolist())
        np.testing.assert_allclose(issued.by_speed, by_speed, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(issued.weights, weights, rtol=1e-11, atol=1e-14)
        opened, closed = opened + (weights[:, 0] < 1).sum(), closed + (weights[:, 0] == 1).sum()
        observed = (rng.random((LANES, HORIZON)) < 0.8).astype(np.float64)
        observed[0, :] *= row != 6
        if row < 3:
            observed[:] = 0.0
        said = np.concatenate([errors[row], by_speed @ errors[row]], axis=1)
        twin.now = row
        if row in (5, 11):  # all of this row comes three rows later
            late[row + 3] = said, observed
            observed = np.zeros_like(observed)
        learner.state = learner.rules.learn(learner.state, *heard(said, observed))
        twin.hear(row, said, observed)
        if row in late:
            before, labels = late[row]
            learner.state = learner.rules.learn_late(learner.state, *heard(before, labels), age=3)
            twin.hear(row - 3, before, labels)
    assert opened > 10
    if mode != "open":
        assert closed


def test_a_shared_gate_pools_the_channels() -> None:
    errors = draw(1, [1.0, 0.5, 2.0], 9)
    errors[:, 1] *= 3
    apart, shared = gate(), gate("shared")
    apart.tell(errors)
    shared.tell(errors)
    np.testing.assert_array_equal(shared.weights()[0], shared.weights()[1])
    assert not np.allclose(apart.weights()[0], apart.weights()[1])


@pytest.mark.parametrize("mode", ["channel", "shared"])
def test_closed_before_any_outcome_and_when_the_backbone_is_far_better(mode: GateMode) -> None:
    learner = gate(mode)
    np.testing.assert_array_equal(learner.weights(), [[1, 0, 0]] * 2)
    np.testing.assert_array_equal(learner.weights(np.zeros(2)), [[1, 0, 0]] * 2)  # evidence that says nothing
    learner.tell(np.ones((9, 2, 3, HORIZON)) * [[1.0], [9.0], [9.0]])
    np.testing.assert_array_equal(learner.weights(), [[1, 0, 0]] * 2)
    opened = gate("open")
    np.testing.assert_allclose(opened.weights(), [[0, 0.75, 0.25]] * 2)
    opened.tell(np.ones((9, 2, 3, HORIZON)) * [[1.0], [9.0], [9.0]])
    assert (opened.weights()[:, 0] == 0).all()


def test_before_any_outcome_only_evidence_opens_and_only_its_own_lane() -> None:
    """The prior of the backbone is multiplied by it: here by one half."""
    weights = gate().weights(np.asarray([math.log(0.5), 0.0]))
    np.testing.assert_allclose(weights[0], np.asarray([0.3, 0.3, 0.1]) / 0.7)
    np.testing.assert_array_equal(weights[1], [1, 0, 0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_evidence_beyond_all_numbers_leaves_a_belief(dtype: str) -> None:
    """The factor e^-2000 is 0 in either type, and so is (1/4)^10000 of the others, which is far less still."""
    options = GateOptions(discounts=(0.9,), cautions=(1e-3,), evidence=1e4)
    rules = Gate.of(np.asarray(PRIOR, dtype=dtype), 0, HORIZON, LANES, options)
    loss = np.tile(np.asarray([1.0, 4.0, 4.0, 1.0], dtype=dtype), (LANES, 1))
    state = rules.learn(rules.start(LANES), np.ones(LANES, dtype=dtype), loss)
    against = np.full(LANES, -2000.0, dtype=dtype)
    assert rules.opinion(state, against).weights.tolist() == [[1.0, 0.0, 0.0]] * LANES


def test_a_gate_that_does_not_wait_starts_with_the_prior() -> None:
    np.testing.assert_allclose(gate(waits=False).weights(), [PRIOR] * 2)


def test_the_faster_speed_takes_over_after_a_jump() -> None:
    """Its voice does better there, so the belief in it, 0.3 before any outcome, grows."""
    learner = Learner(GateOptions())
    calm = np.ones((300, 2, 3, HORIZON)) * [[1.0], [1.2], [1.2]]
    jump = np.ones((12, 2, 3, HORIZON)) * [[3.0], [1.0], [1.2]]
    learner.tell(calm)
    before = learner.opinion()
    learner.tell(jump)
    after = learner.opinion()
    slow, fast = after.by_speed[0]
    assert fast[1] > slow[1] + 0.2
    share = (after.weights[0, 1] - slow[1]) / (fast[1] - slow[1])  # how far the mixture has gone to the fast one
    assert share > 0.5
    np.testing.assert_allclose(before.weights[0], before.by_speed[0, 0], atol=0.15)


def test_late_errors_count_less_by_their_age() -> None:
    errors = draw(2, [1.0, 1.0, 1.0], 2)
    on_time, late = gate(), gate()
    told = [on_time.with_speeds(row) for row in errors]
    for row in told:
        on_time.state = on_time.rules.learn(on_time.state, *heard(row, EVERY_LEAD))
    late.state = late.rules.learn(late.state, *heard(told[0], 0 * EVERY_LEAD))
    late.state = late.rules.learn(late.state, *heard(told[1], EVERY_LEAD))
    late.state = late.rules.learn_late(late.state, *heard(told[0], EVERY_LEAD), age=1)
    for one, other in zip(late.state, on_time.state, strict=True):
        np.testing.assert_allclose(one, other)


def test_a_row_of_few_leads_counts_as_much_as_any() -> None:
    """Errors of 1 at the leads that were observed, whichever they are, are a loss of 1 a row."""
    learner = gate()
    observed = np.asarray([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    errors = np.ones((LANES, VOICES + SPEEDS, HORIZON))
    learner.state = learner.rules.learn(learner.state, *heard(errors, observed))
    for known in learner.state:
        np.testing.assert_allclose(known, 1.0)
    learner.state = learner.rules.learn(learner.state, *heard(errors, 0 * observed))
    np.testing.assert_allclose(learner.state.loss, np.ones((LANES, 1, VOICES)) * np.asarray(DISCOUNTS)[:, None])
    np.testing.assert_allclose(learner.state.rows, [DISCOUNTS] * LANES)
    np.testing.assert_allclose(learner.state.speed_loss, SPEED_DISCOUNT)
    np.testing.assert_allclose(learner.state.speed_rows, SPEED_DISCOUNT)


def test_a_large_difference_opens_the_gate_at_once_and_a_small_one_has_to_last() -> None:
    def mass_off_the_backbone(loss_ratio: float, rows: int) -> float:
        learner = Learner(GateOptions())
        learner.tell(np.ones((rows, 2, 3, HORIZON)) * [[loss_ratio**0.5], [1.0], [1.0]])
        return float(1 - learner.weights()[0, 0])

    prior = 1 - PRIOR[0]
    assert mass_off_the_backbone(25.0, rows=5) > 0.99
    assert mass_off_the_backbone(1.2, rows=5) < prior + 0.1
    assert mass_off_the_backbone(1.2, rows=1000) > prior + 0.2
    assert mass_off_the_backbone(1 / 1.2, rows=1000) < prior - 0.2


def test_a_member_without_any_error_is_believed() -> None:
    for best in range(3):
        learner = gate()
        errors = np.ones((3, 2, 3, HORIZON))
        errors[:, :, best] = 0.0
        learner.tell(errors)
        np.testing.assert_allclose(learner.opinion().by_speed, [[np.arange(3) == best] * 2] * 2, atol=1e-12)
        np.testing.assert_allclose(learner.weights(), [np.arange(3) == best] * 2, atol=1e-12)


@pytest.mark.parametrize(("mass", "opens"), [(0.5 * CLOSED, False), (0.99 * CLOSED, False), (1.01 * CLOSED, True)])
def test_the_gate_closes_below_one_per_cent(mass: float, opens: bool) -> None:
    """CLOSED is that line, and nothing else decides: the backbone's prior odds are pushed to just that mass."""
    assert CLOSED == 0.01
    learner = gate()
    learner.state = learner.rules.learn(learner.state, np.ones(LANES), np.ones((LANES, VOICES + SPEEDS)))
    odds = (1 - mass) / mass * (PRIOR[1] + PRIOR[2]) / PRIOR[0]
    found = learner.opinion(np.full(2, math.log(odds)))
    np.testing.assert_allclose(found.by_speed[..., 0], 1 - mass)
    np.testing.assert_array_equal(found.weights[:, 0] == 1, not opens)
    if opens:
        np.testing.assert_allclose(found.weights, found.by_speed[:, 0])
    else:
        np.testing.assert_array_equal(found.weights, [[1, 0, 0]] * 2)


def test_an_open_gate_chooses_among_the_others_however_far_the_backbone_is_ahead() -> None:
    learner = one_speed("open", evidence=1e4)
    learner.tell(draw(0, [0.01, 1.0, 2.0], 9))
    np.testing.assert_allclose(learner.weights(), [[0.0, 1.0, 0.0]] * 2)


@pytest.mark.parametrize("mode", ["channel", "shared", "open"])
def test_a_backbone_that_is_alone_is_believed(mode: GateMode) -> None:
    rules = Gate.of(np.ones(1), 0, HORIZON, 2, GateOptions(mode, DISCOUNTS, CAUTIONS, EVIDENCE))
    state = rules.learn(rules.start(2), np.ones(2), np.ones((2, 1 + SPEEDS)))
    for log_weight in (None, np.asarray([-3.0, 0.0])):
        np.testing.assert_array_equal(rules.opinion(state, log_weight).weights, np.ones((2, 1)))
