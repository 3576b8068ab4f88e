"""The record of a signal: Gumbel's law by moments of block maxima."""

import math

import numpy as np
import pytest

from ompb.core.record import (
    BETA,
    BLOCK,
    BLOCKS,
    EULER,
    LEAST_BLOCKS,
    OUT_OF_REACH,
    RAREST,
    Record,
    line_of,
    rows_between,
)
from ompb.types import Floats

NO_LEAST = np.zeros(2)


def recorded(signals: Floats, least: Floats = NO_LEAST) -> Record:
    """After the signals (T, S, 2) of rows."""
    record = Record.empty(signals, signals.shape[1], 2)
    for row, shown in enumerate(signals):
        record = record.with_row(row, shown, least)
    return record


@pytest.mark.parametrize("rows", [5 * BLOCK, 7 * BLOCK + 5, BLOCKS * BLOCK, (2 * BLOCKS + 3) * BLOCK + 1])
def test_the_law_is_that_of_the_largest_values_of_the_last_whole_blocks(rows: int) -> None:
    signals = np.random.default_rng(rows).normal(size=(rows, 3, 2))
    record = recorded(signals)
    whole = rows // BLOCK
    maxima = signals[: whole * BLOCK].reshape(whole, BLOCK, 3, 2).max(axis=1)[-BLOCKS:]
    scale = BETA * maxima.std(axis=0)
    np.testing.assert_allclose(record.scale, scale, rtol=1e-12)
    np.testing.assert_allclose(record.location, maxima.mean(axis=0) - EULER * scale, rtol=1e-12)
    np.testing.assert_allclose(record.excess(signals[0]), (signals[0] - record.location) / record.scale)


def test_a_record_of_too_few_blocks_has_no_law() -> None:
    rows = np.zeros((LEAST_BLOCKS * BLOCK, 1, 2))
    assert (recorded(rows[:-1]).line(3.0) == OUT_OF_REACH).all()
    record = recorded(np.random.default_rng(0).normal(size=rows.shape))
    np.testing.assert_allclose(record.excess(record.line(3.0)), 3.0)


def test_a_signal_that_never_varies_keeps_the_least_scale() -> None:
    assert (recorded(np.ones((200, 1, 2)), np.asarray([0.5, 2.0])).scale == [[0.5, 2.0]]).all()


def test_whole_blocks_forget_the_rows_of_a_block_that_is_not_full() -> None:
    signals = np.random.default_rng(0).normal(size=(9 * BLOCK + 7, 1, 2))
    record, shorter = recorded(signals).whole_blocks(), recorded(signals[: 9 * BLOCK])
    more = np.random.default_rng(1).normal(size=(BLOCK, 1, 2))
    for row, shown in enumerate(more):
        record, shorter = record.with_row(row, shown, NO_LEAST), shorter.with_row(row, shown, NO_LEAST)
    assert all(np.array_equal(a, b) for a, b in zip(record, shorter, strict=True))


def test_an_earlier_record_stays_good() -> None:
    signals = np.random.default_rng(0).normal(size=(6 * BLOCK, 1, 2))
    record = recorded(signals[:-1])
    before = record.maxima.copy()
    record.with_row(0, signals[-1], NO_LEAST)
    assert np.array_equal(record.maxima, before)


@pytest.mark.parametrize("rows", [50.0, 1500.0, 99_000.0])
def test_line_and_rows_between_are_each_others_inverse(rows: float) -> None:
    assert rows_between(line_of(rows)) == pytest.approx(rows)
    # by Gumbel's law itself
    assert BLOCK / (1 - math.exp(-math.exp(-line_of(rows)))) == pytest.approx(rows)


def test_nothing_is_rarer_than_the_rarest() -> None:
    assert rows_between(1e9) == pytest.approx(RAREST)
