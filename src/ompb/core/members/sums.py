r"""Sums over learning windows for a regression of targets on features.

.. math:: G = \overline{\phi \phi^T} + \text{RIDGE} \cdot \tfrac1F \mathrm{tr}(\overline{\phi \phi^T}) \, I
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace

# Share of the mean diagonal of G added to its diagonal, so that it can be inverted.
RIDGE = 1e-3


@dataclass
class Sums:
    """Sums over learning windows, taken in block by block."""

    windows: int = 0
    gram: Array = 0.0  # sum phi phi^T: (N, F, F)
    cross: Array = 0.0  # sum phi y_h over known outcomes: (N, F, H)
    squared: Array = 0.0  # sum y_h^2: (N, H)
    known: Array = 0.0  # count of known outcomes: (N, H)

    def add(self, phi: Array, target: Array) -> None:
        """Take in features (N, n, F) and targets (N, n, H); a missing target is NaN and adds nothing."""
        xp = namespace(phi)
        is_known = xp.isfinite(target)
        clean = xp.where(is_known, target, 0.0)
        turned = xp.matrix_transpose(phi)
        self.windows += phi.shape[1]
        self.gram = self.gram + xp.matmul(turned, phi)
        self.cross = self.cross + xp.matmul(turned, clean)
        self.squared = self.squared + xp.sum(clean**2, axis=1)
        self.known = self.known + xp.sum(xp.astype(is_known, phi.dtype), axis=1)

    def pooled(self, channels: int) -> Sums:
        """Those of the lanes of each series together, as one lane."""
        xp, every = namespace(self.gram), Sums()
        every.windows = self.windows * channels
        for name in ("gram", "cross", "squared", "known"):
            total = getattr(self, name)
            setattr(every, name, xp.sum(total.reshape((-1, channels, *total.shape[1:])), axis=1))
        return every

    def means(self, ridge: float = RIDGE) -> tuple[Array, Array]:
        """G (N, F, F), with that ridge, and the mean of phi y_h (N, F, H)."""
        xp = namespace(self.gram)
        size = self.gram.shape[-1]
        gram = self.gram / self.windows
        diagonal = ridge * xp.linalg.trace(gram)[:, None, None] / size
        known = xp.where(self.known > 0, self.known, 1.0)
        unit = xp.eye(size, dtype=gram.dtype, device=gram.device)
        return gram + diagonal * unit, self.cross / known[:, None, :]

    def mean_square(self) -> Array:
        """Mean of y_h^2, (N, H)."""
        return self.squared / namespace(self.squared).where(self.known > 0, self.known, 1.0)
