"""The residual variance and the conformal factors, against their formulas in plain loops and an adversary."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ompb.core.intervals import (
    FLOOR,
    GAUSSIAN_WINDOWS,
    LEVELS,
    MEMORY_SHARE,
    REACH,
    SHORTEST,
    SOURCE_ROWS,
    SOURCE_SHARE,
    TILT,
    Conformal,
    ConformalState,
    Heard,
    IntervalOptions,
    Matured,
    half_widths_of,
)
from ompb.floor.normal import gaussian_half_width
from ompb.types import Floats

LANES, LEADS, DISCOUNT, RATE = 2, 3, 0.96, 0.6


def rule(lanes: int = LANES, leads: int = LEADS, rate: float = RATE, discount: float = DISCOUNT) -> Conformal:
    return Conformal(IntervalOptions(discount, rate), np.ones((lanes, leads)))


def start(rules: Conformal, variance: Floats) -> ConformalState:
    """After a source whose errors are Gaussian."""
    return rules.start(variance, np.broadcast_to(rules.gaussian, (len(variance), 2, len(LEVELS))))


def draw(seed: int, scale: float = 1.0) -> Matured:
    """Errors of one row, and what they were issued with."""
    rng = np.random.default_rng(seed)
    observed = np.asarray(rng.random((LANES, LEADS)) < 0.7, dtype=np.float64)
    leverage = rng.uniform(0.2, 3.0, (LANES, LEADS))
    error = scale * rng.normal(size=(LANES, LEADS)) * observed
    half_widths = rng.uniform(0.3, 3.0, (LANES, 2 * len(LEVELS), LEADS))
    in_sd = error * rng.uniform(0.3, 2, (LANES, LEADS))
    return Matured(error, in_sd, Heard.of(observed), half_widths, 1 / (1 + leverage))


def test_the_variance_is_the_mean_of_errors_freed_of_their_leverage() -> None:
    """An error has variance sigma^2 (1 + q): without its share 1/(1 + q) sigma^2 would take the posterior's for its.

    A lead without a label is taken to have erred as the others did, relative to their variances.
    """
    rules = rule()
    state = start(rules, np.full((LANES, LEADS), 2.0))
    expected, rows = np.full((LANES, LEADS), 2.0), np.full((LANES, LEADS), SOURCE_ROWS)
    for seed in range(60):
        matured = draw(seed)
        state = rules.learn(state, matured)
        before = expected.copy()
        for lane, lead in np.ndindex(LANES, LEADS):
            heard = [h for h in range(LEADS) if matured.heard.observed[lane, h]]
            own = {h: matured.error[lane, h] ** 2 * matured.shrink[lane, h] for h in heard}
            if not heard:
                continue
            if lead not in heard:
                own[lead] = before[lane, lead] * np.mean([own[h] / before[lane, h] for h in heard])
            rows[lane, lead] = min(rows[lane, lead] + (lead in heard), 1 / (1 - DISCOUNT))
            expected[lane, lead] += (own[lead] - expected[lane, lead]) / rows[lane, lead]
        np.testing.assert_allclose(state.variance, expected, rtol=1e-12)
    assert (rows < 26).all()  # the rehearsal reached the discount


def test_a_lead_without_a_label_follows_the_ratio_of_the_others() -> None:
    """Errors twice and four times their variance: the third lead is taken to have erred three times its own.

    A lane of which nothing is known stays as it is.
    """
    rules = rule(2, 3)
    state = start(rules, np.asarray([[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]]))
    observed = np.asarray([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    error = np.sqrt([[2.0, 8.0, 0.0], [0.0, 0.0, 0.0]])
    wide = np.full((2, 2 * len(LEVELS), 3), 9.0)
    after = rules.learn(state, Matured(error, error, Heard.of(observed), wide, np.ones((2, 3))))
    heard, unheard = 1 / (SOURCE_ROWS + 1), 1 / SOURCE_ROWS  # only a label counts as a row
    expected = [[1.0 + heard, 2.0 + 6 * heard, 5.0 + 10 * unheard], [1.0, 2.0, 5.0]]
    np.testing.assert_allclose(after.variance, expected, rtol=1e-12)


def test_the_variance_is_that_of_the_noise_whatever_the_leverage() -> None:
    rng = np.random.default_rng(0)
    rules = rule(1, 1, discount=0.999)
    state: ConformalState = start(rules, np.ones((1, 1)))
    one, wide = np.ones((1, 1)), np.full((1, 2 * len(LEVELS), 1), 9.0)
    for _ in range(20_000):
        leverage, noise = rng.uniform(0, 9), 0.5
        error = rng.normal(scale=noise * math.sqrt(1 + leverage), size=(1, 1))
        state = rules.learn(state, Matured(error, error, Heard.of(one), wide, one / (1 + leverage)))
    assert state.variance[0, 0] == pytest.approx(0.25, rel=0.1)


def test_sd_puts_the_leverage_back() -> None:
    state = ConformalState(np.asarray([[4.0, 9.0, 1.0]]), np.ones((1, 3)), np.zeros((1, 2, len(LEVELS))))
    np.testing.assert_allclose(rule().sd(state, np.asarray([3.0])), [[4.0, 6.0, 2.0]])


def test_factors_move_by_the_shares_outside_what_was_issued() -> None:
    rules = rule()
    state = start(rules, np.ones((LANES, LEADS)))
    logs = np.zeros((LANES, 2, len(LEVELS)))
    for seed in range(60):
        matured = draw(seed, scale=2.0)
        for lane in range(LANES):
            seen = [lead for lead in range(LEADS) if matured.heard.observed[lane, lead]]
            for place, level in enumerate(LEVELS):
                below = above = 0.0
                for lead in seen:
                    off = matured.in_sd[lane, lead]
                    below += (-off > matured.half_widths[lane, place, lead]) / len(seen)
                    above += (off > matured.half_widths[lane, len(LEVELS) + place, lead]) / len(seen)
                if seen:
                    total, tilt = below + above - (1 - level), TILT * (above - below)
                    for side, move in enumerate((total - tilt, total + tilt)):
                        moved = logs[lane, side, place] + RATE / SHORTEST * move
                        logs[lane, side, place] = min(max(moved, -math.log(5)), math.log(5))
        state = rules.learn(state, matured)
        np.testing.assert_allclose(state.log_factor, logs, atol=1e-12)


def test_neither_variance_nor_factors_leave_their_bounds() -> None:
    rules = rule()
    state = start(rules, np.ones((LANES, LEADS)))
    ones, wide = np.ones((LANES, LEADS)), np.ones((LANES, 2 * len(LEVELS), LEADS))
    for _ in range(1000):
        state = rules.learn(state, Matured(0 * ones, 0 * ones, Heard.of(ones), wide, ones))
    assert (state.variance == FLOOR).all()
    assert (state.log_factor == -REACH).any()
    for _ in range(1000):
        state = rules.learn(state, Matured(1e6 * ones, 1e6 * ones, Heard.of(ones), wide, ones))
    assert (state.log_factor[:, 1] == REACH).all()
    np.testing.assert_allclose(rules.half_widths(state)[0, 1], [5 * gaussian_half_width(level) for level in LEVELS])


def test_a_wider_level_is_never_issued_narrower() -> None:
    rng, rules = np.random.default_rng(1), rule(lanes=50)
    factors = rng.uniform(-REACH, REACH, (50, 2, len(LEVELS)))
    state = ConformalState(np.ones((50, LEADS)), np.ones((50, LEADS)), factors)
    shape = rng.uniform(0.2, 5.0, (50, 2, len(LEVELS), LEADS))
    wanted = rules.half_widths(state)
    assert (np.diff(wanted, axis=-1) < 0).any()
    for issued, asked in (
        (rules.issued(state), wanted[..., None]),
        (rules.issued(state, shape), wanted[..., None] * shape),
    ):
        expected = np.maximum.accumulate(asked, axis=2).reshape(50, 2 * len(LEVELS), -1)
        np.testing.assert_allclose(issued, expected, rtol=1e-15)


# ----------------------------------------------------------------------------------------- what the docstring proves

Adversary = Callable[[int, Floats], Floats]  # row and half-widths issued for it (2, levels, H) to errors (H,) in sd


def misses(adversary: Adversary, horizon: int, rows: int, rate: float = 0.5) -> tuple[Floats, Floats, bool]:
    """Shares of leads outside the issued intervals, (T, 2, levels), the moves of ln c, and whether one was stopped."""
    rules = rule(1, horizon, rate)
    state = start(rules, np.ones((1, horizon)))
    ones, issued, shares, stopped = np.ones((1, horizon)), [rules.issued(state)[0, :, 0]] * horizon, [], False
    for row in range(rows):
        told = np.stack(issued[::-1][:horizon], axis=-1)  # lead h was issued h rows ago: (2 levels, H)
        widths = told.reshape(2, len(LEVELS), horizon)
        errors = adversary(row, widths)
        shares.append(np.stack([(-errors > widths[0]).mean(axis=-1), (errors > widths[1]).mean(axis=-1)]))
        state = rules.learn(state, Matured(errors[None], errors[None], Heard.of(ones), told[None], ones))
        stopped |= bool((np.abs(state.log_factor) == REACH).any())
        issued = [*issued[1:], rules.issued(state)[0, :, 0]]
    return np.asarray(shares), state.log_factor[0], stopped


def spiteful(seed: int) -> Adversary:
    """Calm and wild by turns, mostly on one side for a while, and never inside by much or outside by much.

    Each error is moved to just outside the narrowest interval that it can reach, or to just inside.
    """
    rng = np.random.default_rng(seed)

    def errors(row: int, widths: Floats) -> Floats:
        drawn = np.asarray(rng.normal(size=widths.shape[-1]) * (0.7 if row // 30 % 2 else 1.6))
        side = np.where(rng.random(drawn.shape) < 0.8, row // 50 % 2, rng.integers(2, size=drawn.shape))
        theirs = np.where(side == 1, widths[1], widths[0])  # (levels, H)
        nearest = np.abs(theirs - np.abs(drawn)).argmin(axis=0)
        aim = np.take_along_axis(theirs, nearest[None], axis=0)[0]
        close = np.abs(aim - np.abs(drawn)) < 0.5
        size = np.where(close, aim * (1.001 if row % 3 else 0.999), np.abs(drawn))
        return np.asarray((2 * side - 1) * size)

    return errors


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("horizon", [1, 16])
def test_shares_outside_are_as_promised_whatever_the_errors(horizon: int, seed: int) -> None:
    rate, rows = 0.5, 3000
    step = rate / max(horizon, SHORTEST)
    shares, moved, stopped = misses(spiteful(seed), horizon, rows, rate)
    assert not stopped
    allowed = 1 - np.asarray(LEVELS)
    total, tilt = shares.sum(axis=1).mean(axis=0), (shares[:, 1] - shares[:, 0]).mean(axis=0)
    # the moves telescope, to the last digit
    np.testing.assert_allclose(moved.sum(axis=0) / 2, step * rows * (total - allowed), atol=1e-9)
    np.testing.assert_allclose((moved[1] - moved[0]) / 2, step * rows * TILT * tilt, atol=1e-9)
    # hence the bounds
    assert (np.abs(total - allowed) <= 2 * REACH / (step * rows)).all()
    assert (np.abs(tilt) <= 2 * REACH / (step * TILT * rows)).all()


def test_against_the_present_width_the_promise_would_not_hold() -> None:
    """The same adversary, who is told the newest widths instead: so the test above can fail."""
    horizon, rows = 16, 3000
    rules = rule(1, horizon, 4.0)
    state, ones = start(rules, np.ones((1, horizon))), np.ones((1, horizon))
    issued, outside = [rules.issued(state)[0, :, 0]] * horizon, []
    for _ in range(rows):
        told = np.stack(issued[::-1], axis=-1).reshape(2, len(LEVELS), horizon)
        present = rules.issued(state)[0].reshape(2, len(LEVELS))
        # outside what was issued, inside what is issued now, wherever that is possible
        errors = np.where(told[1, 1] < present[1, 1], (told[1, 1] + present[1, 1]) / 2, 1.3 * present[1, 1])
        outside.append((errors > told[1, 1]).mean())
        now = np.repeat(rules.issued(state), horizon, axis=2)
        state = rules.learn(state, Matured(errors[None], errors[None], Heard.of(ones), now, ones))
        issued = [*issued[1:], rules.issued(state)[0, :, 0]]
    assert np.mean(outside) > 0.25  # of a promised 0.2


def test_skewed_errors_are_covered_on_each_side() -> None:
    """Gamma noise, whose upper tail is long: about 2.5 % outside the 95 % interval on each side."""
    rng, horizon = np.random.default_rng(0), 6

    def gamma(row: int, widths: Floats) -> Floats:
        del row, widths
        return np.asarray(rng.gamma(2.0, size=horizon) - 2.0) / math.sqrt(2.0)

    shares, moved, _ = misses(gamma, horizon, 8000)
    later = shares[2000:].mean(axis=0)[:, LEVELS.index(0.95)]
    np.testing.assert_allclose(later, 0.025, atol=0.005)
    assert moved[1, LEVELS.index(0.95)] > 0.1 > 0 > moved[0, LEVELS.index(0.95)]


@pytest.mark.parametrize(("leads", "worth"), [(1, SOURCE_ROWS), (24, SOURCE_ROWS), (96, SOURCE_SHARE * 96)])
def test_the_source_is_worth_more_rows_at_a_long_horizon(leads: int, worth: float) -> None:
    variance = np.ones((2, leads))
    rule = Conformal(IntervalOptions(), variance)
    state = start(rule, variance)
    error, observed = np.zeros((2, leads)), np.zeros((2, leads))
    error[:, 0], observed[:, 0] = 3.0, 1.0
    half_widths = rule.issued(state)
    after = rule.learn(state, Matured(error, error, Heard.of(observed), half_widths, np.ones_like(error)))
    # a plain mean of the source's variance, so many times, and of one squared error of 9
    np.testing.assert_allclose(after.variance[:, 0], (worth + 9.0) / (worth + 1))


def by_hand(errors: Floats, level: float, windows: float) -> tuple[float, float]:
    """The half-widths of one lane's errors (n, H) below and above, by sorting."""
    standardised = []
    for lead in errors.T:
        known = [error for error in lead if not math.isnan(error)]
        mean = sum(known) / len(known)
        sd = math.sqrt(sum((error - mean) ** 2 for error in known) / len(known))
        standardised += [(error - mean) / sd for error in known]
    ends = np.quantile(standardised, [(1 - level) / 2, (1 + level) / 2])
    gaussian = gaussian_half_width(level)
    below, above = (
        max(gaussian, (windows * reached + GAUSSIAN_WINDOWS * gaussian) / (windows + GAUSSIAN_WINDOWS))
        for reached in (-ends[0], ends[1])
    )
    return below, above


def test_the_shape_of_the_source_is_its_errors_quantiles_in_their_own_sd() -> None:
    rng = np.random.default_rng(3)
    errors = rng.gamma(1.5, size=(2, 40, LEADS)) * [0.1, 1.0, 7.0] + 4.0
    errors[0, 5:9, 1] = np.nan
    found = half_widths_of(errors, windows=6.5)
    for lane, (place, level) in ((lane, pair) for lane in range(2) for pair in enumerate(LEVELS)):
        np.testing.assert_allclose(found[lane, :, place], by_hand(errors[lane], level, 6.5), rtol=1e-12)


def test_a_lane_without_errors_has_the_normal_laws_shape() -> None:
    errors = np.random.default_rng(4).standard_t(3, size=(2, 30, LEADS))
    errors[1] = np.nan
    found = half_widths_of(errors, windows=30.0)
    np.testing.assert_allclose(found[1], [[gaussian_half_width(level) for level in LEVELS]] * 2, rtol=1e-15)
    assert not np.allclose(found[0], found[1], rtol=0.05)


@pytest.mark.parametrize("errors", [np.zeros((1, 9, 2)), np.eye(9)[None], -1e6 * np.eye(9)[None]])
def test_errors_of_any_shape_start_within_reach(errors: Floats) -> None:
    state = rule(1, 9).start(np.ones((1, 9)), half_widths_of(errors, windows=1e9))
    assert (np.abs(state.log_factor) <= REACH).all()


def test_heavy_tails_are_covered_from_the_first_row_on() -> None:
    """Student's errors, as heavy on the stream as on the source: no row is needed to learn that."""
    rng = np.random.default_rng(5)
    source, stream = rng.standard_t(3, size=(2, 1, 4000, LEADS))
    scale = source.std()
    rules = rule(1, LEADS)
    widths = rules.issued(rules.start(np.full((1, LEADS), scale**2), half_widths_of(source, windows=4000.0)))[0, :, 0]
    inside = [
        ((stream / scale > -widths[place]) & (stream / scale < widths[len(LEVELS) + place])).mean()
        for place in range(len(LEVELS))
    ]
    assert inside[-1] == pytest.approx(LEVELS[-1], abs=0.003)
    # what lies nearer the middle than with the normal law waits for the stream to say so
    assert all(share >= level - 0.003 for share, level in zip(inside, LEVELS, strict=True))


def test_the_variance_of_a_long_horizon_goes_back_half_of_it() -> None:
    leads, worth = 400, MEMORY_SHARE * 400
    variance = np.ones((1, leads))
    rule = Conformal(IntervalOptions(), variance)
    assert worth > 1 / (1 - IntervalOptions().discount)
    state, none = start(rule, variance), np.zeros((1, leads))
    for _ in range(300):  # until it is a mean of all that it remembers
        state = rule.learn(state, Matured(none, none, Heard.of(none + 1), rule.issued(state), none + 1))
    np.testing.assert_allclose(state.rows, worth)
    after = rule.learn(state, Matured(none + 3, none, Heard.of(none + 1), rule.issued(state), none + 1))
    np.testing.assert_allclose(after.variance, state.variance + (9 - state.variance) / worth)
