"""Independent windows."""

from __future__ import annotations

from ompb.core.arrays import Array, namespace
from ompb.core.certificate.kinds.contract import Kind


class Iid(Kind, tag="iid"):
    r"""Gamma = sqrt(kappa / (2 m)). Breaks when windows depend on each other."""

    assumption = "The certificate windows are independent of each other."

    def summary(self, losses: Array, factor: float) -> Array:
        """Nothing: (..., 0)."""
        del factor
        return losses[..., :0]

    def gamma(self, kappa: Array, summary: Array, windows: int) -> Array:
        """(...)."""
        del summary
        return namespace(kappa).sqrt(kappa / (2 * windows))
