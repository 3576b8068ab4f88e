r"""Equations with a triangular matrix: a fraction of the work that equations with any matrix take.

Block by block, with D_i the blocks on the diagonal of the lower triangle C,

.. math:: C X = B:\; X_i = D_i^{-1} \bigl(B_i - \textstyle\sum_{j<i} C_{ij} X_j\bigr),
   \qquad C^T X = B:\; X_i = D_i^{-T} \bigl(B_i - \textstyle\sum_{j>i} C_{ji}^T X_j\bigr)
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace

BLOCK = 32  # rows of D


@dataclass(frozen=True)
class Triangle:
    """Lower triangles C (S, M, M)."""

    matrix: Array
    blocks: tuple[slice, ...]
    inverses: tuple[Array, ...]  # of the blocks on the diagonal

    @classmethod
    def of(cls, matrix: Array) -> Triangle:
        """With what all equations share."""
        size, inv = int(matrix.shape[-1]), namespace(matrix).linalg.inv
        blocks = tuple(slice(first, min(first + BLOCK, size)) for first in range(0, size, BLOCK))
        return cls(matrix, blocks, tuple(inv(matrix[:, here, here]) for here in blocks))

    def solve(self, right: Array) -> Array:
        """X (S, M, k) with C X = B."""
        xp = namespace(right)
        found = xp.empty_like(right)
        for here, inverse in zip(self.blocks, self.inverses, strict=True):
            before = slice(here.start)
            known = xp.matmul(self.matrix[:, here, before], found[:, before])
            found[:, here] = xp.matmul(inverse, right[:, here] - known)
        return found

    def solve_transposed(self, right: Array) -> Array:
        """X (S, M, k) with C^T X = B."""
        xp = namespace(right)
        found = xp.empty_like(right)
        for here, inverse in zip(reversed(self.blocks), reversed(self.inverses), strict=True):
            after = slice(here.stop, None)
            known = xp.matmul(self.matrix[:, after, here].mT, found[:, after])
            found[:, here] = xp.matmul(inverse.mT, right[:, here] - known)
        return found
