"""A sub-gamma martingale, for unbounded losses."""

from __future__ import annotations

from ompb.core.arrays import Array, namespace
from ompb.core.certificate.kinds.contract import ESTIMATED, Kind, bernstein, predictable_spread


class SubGamma(Kind, tag="subgamma"):
    """The same term with c-bar, the largest predictable standard deviation, as scale of an increment."""

    assumption = ESTIMATED

    def summary(self, losses: Array, factor: float) -> Array:
        """V and c-bar."""
        return namespace(losses).stack(predictable_spread(losses, factor), axis=-1)

    def gamma(self, kappa: Array, summary: Array, windows: int) -> Array:
        """(...)."""
        return bernstein(kappa, summary, windows)
