"""A sub-gamma martingale, for unbounded losses."""

from __future__ import annotations

from ompb.core.arrays import Array
from ompb.core.certificate.kinds.contract import Kind, Spread, bernstein, predictable_spread


class SubGamma(Kind, tag="subgamma"):
    """The same term with c-bar, the largest predictable standard deviation, as scale of an increment."""

    def spread(self, losses: Array, factor: float) -> Spread:
        """V and c-bar."""
        return predictable_spread(losses, factor)

    def gamma(self, kappa: Array, spread: Spread, windows: int) -> Array:
        """(S,)."""
        return bernstein(kappa, spread, windows)
