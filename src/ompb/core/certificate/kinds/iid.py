"""Independent windows."""

from __future__ import annotations

from ompb.core.arrays import Array, namespace
from ompb.core.certificate.kinds.contract import Kind, Spread, predictable_spread


class Iid(Kind, tag="iid"):
    r"""Gamma = sqrt(kappa / (2 m)). Breaks when windows depend on each other."""

    def spread(self, losses: Array, factor: float) -> Spread:
        """For the record: it is not used."""
        return predictable_spread(losses, factor)

    def gamma(self, kappa: Array, spread: Spread, windows: int) -> Array:
        """(S,)."""
        del spread
        return namespace(kappa).sqrt(kappa / (2 * windows))
