"""The sums that stand for every forecast of a row, against the forecasts themselves."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core import tally
from ompb.types import Floats

LANES, COMPARED, HORIZON, ORIGINS = 2, 3, 5, 23
LEADS = 1 / np.arange(1, HORIZON + 1)


def losses(forecasts: dict[tuple[int, int], Floats], row: int, values: Floats) -> tuple[Floats, Floats]:
    """The weighted mean of the squared errors of a row, (N, V), and what its leads count, by a loop over leads."""
    total, counted = np.zeros((LANES, COMPARED)), 0.0
    for lead in range(1, HORIZON + 1):
        if (row - lead, lead) in forecasts:
            total += LEADS[lead - 1] * (values[:, None] - forecasts[row - lead, lead]) ** 2
            counted += LEADS[lead - 1]
    return total / (counted or 1.0), np.full(LANES, counted)


def share(counted: Floats) -> Floats:
    return np.where(counted > 0, 1 / np.where(counted > 0, counted, 1.0), 0.0)


@pytest.mark.parametrize("level", [0.0, 1e3])
def test_two_sums_are_all_that_squared_errors_need(level: float) -> None:
    """With origins that issue nothing; and far from zero, where the first rows lose some digits."""
    rng = np.random.default_rng(7)
    kept = tally.empty(np.zeros((LANES, HORIZON)), COMPARED)
    forecasts: dict[tuple[int, int], Floats] = {}
    spoken = 0
    for row in range(ORIGINS):
        values = level + rng.normal(size=LANES)
        expected, counted = losses(forecasts, row, values)
        spoken += counted[0] > 0
        np.testing.assert_allclose(
            tally.losses(kept[:, :, 0], values, counted, share(counted)),
            expected,
            rtol=1e-12,
            atol=1e-14 * (1 + level**2),
        )
        if row % 4 == 3 or 8 < row < 15:  # the last of them: nobody has spoken of the next row
            kept = tally.passed_over(kept)
            continue
        base = level + rng.normal(size=(LANES, HORIZON))
        corrections = rng.normal(size=(LANES, COMPARED, HORIZON))
        mean = base + corrections.mean(axis=1)
        kept = tally.issued(kept, base, (corrections,), mean, LEADS)
        for lead in range(1, HORIZON + 1):
            forecasts[row, lead] = base[:, None, lead - 1] + corrections[:, :, lead - 1]
    assert 10 < spoken < ORIGINS


def test_a_perfect_forecast_has_no_loss_and_a_missing_cell_counts_for_nothing() -> None:
    said = np.full((LANES, HORIZON), 0.1)
    kept = tally.empty(said, COMPARED)
    for _ in range(2 * HORIZON):
        kept = tally.issued(kept, said, (np.zeros((LANES, COMPARED, HORIZON)),), said, LEADS)
    counted = np.asarray([LEADS.sum(), 0.0])
    np.testing.assert_array_equal(tally.losses(kept[:, :, 0], np.asarray([0.1, 0.0]), counted, share(counted)), 0.0)


def test_an_earlier_tally_stays_as_it_was() -> None:
    rng = np.random.default_rng(3)
    kept = rng.normal(size=(LANES, 2 * COMPARED + 1, HORIZON))
    before = kept.copy()
    said = rng.normal(size=(LANES, HORIZON))
    tally.issued(kept, said, (rng.normal(size=(LANES, COMPARED, HORIZON)),), said, LEADS)
    tally.passed_over(kept)
    np.testing.assert_array_equal(kept, before)
