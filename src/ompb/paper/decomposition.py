r"""A stream's certificate taken apart once its outcomes are known.

.. math:: R_T = \overline{\min\{1,\ \mathrm{MSE}_t / \tau_y^2\}},\qquad
   \tilde\lambda = R_T - R_S - \tfrac12 (D_T - D_S)

    full bound = R_S + Gamma + (D_T - D_S)_+ / 2 + lambda_+

The full bound needs outcomes and cannot fail: lambda is whatever is left over. How the certificate fared, which knows
no outcome, is said by its slack and by the share of forecasts whose realised proxy lay above it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ompb.bench.store import Steps
from ompb.types import Floats


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Of one stream. Medians over its forecasts where the name says so, else means."""

    median_value: float
    median_source_risk: float
    median_gamma: float
    median_half_disagreement: float
    value: float
    source_risk: float
    gamma: float
    change: float  # D_T - D_S
    target_risk: float  # R_T
    share_above: float  # of the forecasts, whose proxy lay above their certificate
    forecasts: int

    @classmethod
    def of(cls, steps: Steps) -> Decomposition:
        """From what was kept step by step."""
        realised = realised_proxy(steps)
        terms = {name: np.asarray(steps[name], dtype=np.float64) for name in _TERMS}
        return cls(
            median_value=float(np.median(terms["value"])),
            median_source_risk=float(np.median(terms["source_risk"])),
            median_gamma=float(np.median(terms["gamma"])),
            median_half_disagreement=float(np.median(terms["disagreement"])) / 2,
            value=float(terms["value"].mean()),
            source_risk=float(terms["source_risk"].mean()),
            gamma=float(terms["gamma"].mean()),
            change=float((terms["target_disagreement"] - terms["source_disagreement"]).mean()),
            target_risk=float(realised.mean()),
            share_above=float(np.mean(realised > terms["value"])),
            forecasts=len(realised),
        )

    @property
    def slack(self) -> float:
        """What the certificate said beyond what came, in the mean."""
        return self.value - self.target_risk

    @property
    def mismatch(self) -> float:
        """Lambda tilde."""
        return self.target_risk - self.source_risk - 0.5 * self.change

    @property
    def full(self) -> float:
        """The full bound."""
        return float(self.full_with(self.source_risk, self.gamma))

    def full_with(self, source_risk: Floats | float, gamma: Floats | float) -> Floats:
        """The full bound, had the source risk and Gamma been these."""
        mismatch = self.target_risk - np.asarray(source_risk) - 0.5 * self.change
        return np.asarray(source_risk + gamma + 0.5 * max(self.change, 0.0) + np.maximum(mismatch, 0.0))


_TERMS = ("value", "source_risk", "gamma", "disagreement", "source_disagreement", "target_disagreement")


def realised_proxy(steps: Steps) -> Floats:
    """min(1, MSE / tau_y^2) of each forecast: (n,)."""
    scaled = np.asarray(steps["mse"], dtype=np.float64) / np.asarray(steps["tau_y"], dtype=np.float64) ** 2
    return np.minimum(scaled, 1.0)
