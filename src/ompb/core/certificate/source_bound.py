"""The source's part of a certificate at any size of error, not only at tau_y."""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace
from ompb.core.certificate.kinds import Kind
from ompb.core.certificate.scales import proxy


@dataclass(frozen=True, slots=True)
class SourceBound:
    """One reading of the certificate windows of one series, kept so that another scale can be asked for."""

    risks: Array  # mean squared error on each window, in time order: (m,)
    kappa: float
    kind: str
    variance_factor: float

    @property
    def assumption(self) -> str:
        """What its kind of complexity asks for, in words; empty if nothing."""
        return str(Kind.tags[self.kind].assumption)

    def at(self, tau: float) -> tuple[float, float]:
        """R_S and Gamma of the losses min(1, MSE / tau^2)."""
        xp, kind = namespace(self.risks), Kind.tags[self.kind]()
        losses = proxy(self.risks[None], tau)
        kappa = xp.full_like(losses[:, 0], self.kappa)
        gamma = kind.gamma(kappa, kind.summary(losses, self.variance_factor), losses.shape[1])
        return float(xp.mean(losses)), float(gamma[0])
