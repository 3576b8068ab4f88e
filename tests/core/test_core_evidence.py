"""Evidence before any outcome, against cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ompb.core.arrays import quantile
from ompb.core.evidence import LEAST, Evidence, EvidenceOptions, EvidenceState, Novelty, Usual
from ompb.core.members.memory import Memory, Span
from ompb.types import Floats

CALM = 3
RULES = Evidence(CALM, EvidenceOptions(power=4.0, fade=10.0))
CAME, MISSING = np.ones(1), np.zeros(1)


def random_memory(lanes: int, horizon: int, *lengths: int) -> Memory:
    rng = np.random.default_rng(0)
    return Memory(
        tuple(
            Span(rng.normal(size=(1, rows, 3)), rng.normal(size=(1, 3, horizon)), rng.normal(size=(lanes, 3, horizon)))
            for rows in lengths
        )
    )


def test_novelty_is_the_mean_squared_distance_over_what_is_usual() -> None:
    """Lane 0: (4 + 16) / 2 = 10, lane 1: (0 + 36) / 2 = 18, by the spread of the span that is known."""
    memory = random_memory(2, 2, 2, 4)
    usual = Usual(np.asarray([[2.0, 4.0], [1.0, 9.0]]))
    corrections = np.asarray([[[9.0, 9.0], [2.0, -4.0]], [[9.0, 9.0], [0.0, 6.0]]])
    novelty = Novelty(usual, memory, voice=1)
    for known, expected in ((2, [5.0, 18.0]), (3, [5.0, 18.0]), (4, [2.5, 2.0]), (999, [2.5, 2.0])):
        np.testing.assert_allclose(novelty.of(corrections, novelty.usual_with(known)), expected)


def test_what_is_usual_is_exceeded_in_one_window_of_a_hundred() -> None:
    lanes, windows, horizon = 2, 301, 4
    rng = np.random.default_rng(1)
    memory = random_memory(lanes, horizon, 6, 12)
    rows, base = rng.normal(size=(lanes, windows, 12)), rng.normal(size=(lanes, windows, horizon))
    spread = Usual.of(memory, rows, base).spread
    for lane in range(lanes):
        for place, span in enumerate(memory.spans):
            gaps = []
            for n in range(windows):
                said = rows[lane, n, -span.rows :] @ span.reads[0] @ span.pooled[0]
                gaps.append(np.mean((base[lane, n] - said) ** 2))
            # of 301 ordered gaps the 99 % one lies at place 297 of 0 .. 300, with three above it
            assert spread[lane, place] == pytest.approx(sorted(gaps)[297])


def test_a_forecaster_that_is_the_memory_stays_finite() -> None:
    memory = random_memory(1, 4, 6)
    rows = np.random.default_rng(2).normal(size=(1, 50, 6))
    base = memory.spans[0].forecasts(rows)[..., :4]
    np.testing.assert_array_equal(Usual.of(memory, rows, base).spread, [[LEAST]])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_quantiles_are_numpys(count: int, share: float) -> None:
    values = np.random.default_rng(count).normal(size=(3, count))
    np.testing.assert_allclose(quantile(values, share), np.quantile(values, share, axis=-1), atol=1e-14)


def state(began: float, heard: float, calm: float) -> EvidenceState:
    return EvidenceState(np.asarray([began]), np.asarray([heard]), np.asarray([calm]))


def assert_state(found: EvidenceState, began: float, heard: float, calm: float) -> None:
    np.testing.assert_array_equal(np.concatenate(found), [began, heard, calm])


def issued(before: EvidenceState, origin: int, novelty: float) -> tuple[EvidenceState, float]:
    """The state after a forecast, and the factor on the backbone's prior."""
    found, after = RULES.issue(before, origin, np.asarray([novelty]))
    return after, float(np.exp(said(found, np.asarray([novelty])))[0])


def said(log_weight: Floats | None, novelty: Floats) -> Floats:
    """What is said against the backbone; None stands for nothing."""
    if log_weight is None:
        assert (novelty <= 1).all()
        return np.zeros_like(novelty)
    return log_weight


def test_an_episode_worked_by_hand() -> None:
    now = RULES.start(np.zeros((1, 2)))
    assert_state(now, -1, 0, CALM)

    now, factor = issued(now, 4, 1.0)  # as usual
    assert factor == 1.0
    now = RULES.learn(now, CAME)
    now, factor = issued(now, 5, 2.0)  # an episode begins, and what was heard before does not count
    assert_state(now, 5, 0, 0)
    assert factor == pytest.approx(1 / 16)  # 2 ** -4

    now = RULES.learn(now, CAME)
    now, factor = issued(now, 6, 2.0)
    assert_state(now, 5, 1, 0)
    assert factor == pytest.approx(2 ** (-40 / 11))

    now = RULES.learn(now, MISSING)  # a missing row says nothing
    now, factor = issued(now, 7, 0.5)
    assert_state(now, 5, 1, 1)
    assert factor == 1.0  # evidence is never in the backbone's favour

    now, _ = issued(RULES.learn(now, CAME), 8, 0.9)
    now, factor = issued(RULES.learn(now, CAME), 9, 16.0)  # after two calm rows: the same episode
    assert_state(now, 5, 3, 0)
    assert factor == pytest.approx(16 ** (-40 / 13))

    for row in (10, 11, 12):
        now, _ = issued(RULES.learn(now, CAME), row, 1.0)
    assert_state(now, 5, 6, CALM)
    now = RULES.learn(now, CAME)
    assert_state(now, 5, 7, CALM)
    now, factor = issued(now, 13, 3.0)  # after three, another one
    assert_state(now, 13, 0, 0)
    assert factor == pytest.approx(1 / 81)


def test_a_late_row_counts_if_it_came_after_the_episode_began() -> None:
    now = state(began=13, heard=2, calm=0)
    assert_state(RULES.learn_late(now, 12, CAME), 13, 2, 0)
    assert_state(RULES.learn_late(now, 13, CAME), 13, 2, 0)  # the row the episode began with
    assert_state(RULES.learn_late(now, 14, CAME), 13, 3, 0)


def test_so_many_rows_halve_what_it_says() -> None:
    powers = []
    for heard in (0, 10, 30, 10_000_000):
        found = RULES.log_weight(state(0, heard, 0), np.asarray([math.e]))
        powers.append(-float(found[0]))
    assert powers == pytest.approx([4.0, 2.0, 1.0, 0.0], abs=1e-5)


def test_without_power_it_says_nothing() -> None:
    silent = Evidence(CALM, EvidenceOptions(power=0.0))
    np.testing.assert_array_equal(silent.log_weight(state(0, 0, 0), np.asarray([100.0])), [0.0])


def test_every_lane_has_an_episode_of_its_own() -> None:
    """Two lanes at once are two lanes apart."""
    rng = np.random.default_rng(3)
    together = RULES.start(np.zeros((2, 2)))
    apart = [RULES.start(np.zeros((1, 2))) for _ in range(2)]
    for row in range(60):
        novelty, heard = rng.exponential(0.6, 2), (rng.random(2) < 0.6) * 1.0
        found, together = RULES.issue(RULES.learn(together, heard), row, novelty)
        alone: list[Floats] = []
        for lane in range(2):
            learned = RULES.learn(apart[lane], heard[lane : lane + 1])
            mine, apart[lane] = RULES.issue(learned, row, novelty[lane : lane + 1])
            alone.append(said(mine, novelty[lane : lane + 1]))
        for both, *others in zip(together, *apart, strict=True):
            np.testing.assert_array_equal(both, np.concatenate(others))
        np.testing.assert_array_equal(said(found, novelty), np.concatenate(alone))
