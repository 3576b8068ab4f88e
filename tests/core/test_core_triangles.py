"""Equations with a triangle, against those with any matrix."""

from __future__ import annotations

import numpy as np
import pytest

from ompb.core.members.triangles import BLOCK, Triangle


@pytest.mark.parametrize("size", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_they_are_those_of_any_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(4, size, 2 * size + 3))
    root, right = np.linalg.cholesky(rows @ rows.mT + 0.1 * np.eye(size)), rng.normal(size=(4, size, 3))
    triangle = Triangle.of(root)
    np.testing.assert_allclose(triangle.solve(right), np.linalg.solve(root, right), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(triangle.solve_transposed(right), np.linalg.solve(root.mT, right), rtol=1e-9, atol=1e-12)


def test_what_stands_above_the_diagonal_is_not_read() -> None:
    """But within a block on the diagonal, which is inverted as a whole."""
    rng = np.random.default_rng(0)
    size = 2 * BLOCK
    root, right = np.tril(rng.normal(size=(1, size, size))) + 9 * np.eye(size), rng.normal(size=(1, size, 2))
    spoiled = root.copy()
    spoiled[:, :BLOCK, BLOCK:] = np.nan
    np.testing.assert_array_equal(Triangle.of(spoiled).solve(right), Triangle.of(root).solve(right))
    np.testing.assert_array_equal(
        Triangle.of(spoiled).solve_transposed(right), Triangle.of(root).solve_transposed(right)
    )


def test_no_series_depends_on_the_others() -> None:
    rng = np.random.default_rng(1)
    size = BLOCK + 9
    root = np.tril(rng.normal(size=(5, size, size))) + 9 * np.eye(size)
    right = rng.normal(size=(5, size, 4))
    together, alone = Triangle.of(root), Triangle.of(root[3:4])
    np.testing.assert_array_equal(together.solve(right)[3:4], alone.solve(right[3:4]))
    np.testing.assert_array_equal(together.solve_transposed(right)[3:4], alone.solve_transposed(right[3:4]))
