"""A bounded martingale."""

from __future__ import annotations

from ompb.core.arrays import Array, namespace
from ompb.core.certificate.kinds.contract import ESTIMATED, Kind, bernstein, predictable_spread

# Largest increment of a loss in [0, 1].
B = 1.0


class Freedman(Kind, tag="freedman"):
    """Freedman's term, with c = B / 3 for increments of at most B."""

    assumption = ESTIMATED

    def summary(self, losses: Array, factor: float) -> Array:
        """V, summed predictable variance, and B / 3."""
        xp = namespace(losses)
        variance, _ = predictable_spread(losses, factor)
        return xp.stack([variance, xp.full_like(variance, B / 3)], axis=-1)

    def gamma(self, kappa: Array, summary: Array, windows: int) -> Array:
        """(...)."""
        return bernstein(kappa, summary, windows)
