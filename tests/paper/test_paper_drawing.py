"""Curves: few points, few digits, nothing that is not finite."""

import math

import numpy as np
import pytest

from ompb.paper.drawing import MOST_POINTS, block_means, cloud, course, picked, rounded


def test_numbers_keep_five_digits_and_lose_what_is_not_finite() -> None:
    assert rounded([math.pi * 1e-6, -math.inf, 2.0, math.nan]) == (3.1416e-06, None, 2.0, None)


@pytest.mark.parametrize("count", [1, 2, 399, 400, 401, 3365])
def test_picked_places_are_spread_evenly_from_the_first_to_the_last(count: int) -> None:
    places = picked(count)
    assert len(places) == min(count, MOST_POINTS)
    assert places[0] == 0
    assert places[-1] == count - 1
    if count > 1:
        gaps = np.diff(places)
        assert gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("count", [1, 7, 400, 1001])
def test_block_means_are_those_of_a_loop(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    values[::5] = np.nan
    size = math.ceil(count / MOST_POINTS)
    blocks = [values[first : first + size] for first in range(0, count, size)]
    known = [block[~np.isnan(block)] for block in blocks]
    expected = np.array([float(block.mean()) if len(block) else np.nan for block in known])
    np.testing.assert_allclose(block_means(values), expected)
    assert len(block_means(values)) <= MOST_POINTS


def test_a_course_keeps_a_gap_and_a_cloud_does_not() -> None:
    x, y = np.arange(3), np.array([1.0, np.nan, 3.0])
    assert course("c", x, y).y == (1.0, None, 3.0)
    assert (cloud("c", x, y).x, cloud("c", x, y).y) == ((0.0, 2.0), (1.0, 3.0))
    assert cloud("c", x, y).mark == "points"


def test_a_cloud_of_many_is_thinned_and_one_of_none_is_empty() -> None:
    assert len(cloud("c", np.arange(5000), np.arange(5000)).x) == MOST_POINTS
    assert cloud("c", np.arange(2), np.full(2, np.nan)).x == ()
