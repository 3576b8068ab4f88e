"""A bounded martingale."""

from __future__ import annotations

from ompb.core.arrays import Array, namespace
from ompb.core.certificate.kinds.contract import Kind, Spread, bernstein, predictable_spread

# Largest increment of a loss in [0, 1].
B = 1.0


class Freedman(Kind, tag="freedman"):
    """Freedman's term, with c = B / 3 for increments of at most B."""

    def spread(self, losses: Array, factor: float) -> Spread:
        """V, summed predictable variance, and B / 3."""
        variance, scale = predictable_spread(losses, factor)
        return Spread(variance, namespace(scale).full_like(scale, B / 3))

    def gamma(self, kappa: Array, spread: Spread, windows: int) -> Array:
        """(S,)."""
        return bernstein(kappa, spread, windows)
