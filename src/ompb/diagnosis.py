"""Post-hoc diagnostics: the full certificate over a finished run, outcomes and all. Never part of the online path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ompb.backtest import Run
from ompb.core.certificate.kinds import Iid, Spread
from ompb.errors import InputError
from ompb.types import Floats


@dataclass(frozen=True, slots=True)
class Diagnosis:
    r"""The regression-proxy bound with its last term, which needs outcomes, beside the risk it bounds.

    .. math:: R_T \le R_S + \Gamma + \tfrac12 |D_S - D_T| + \tilde\lambda,\qquad
       \tilde\lambda = \big| (R_T - \tfrac12 D_T) - (R_S - \tfrac12 D_S) \big|

    All are means over the forecasts whose outcome is complete.
    """

    target_risk: float  # R_T: realised proxy risk of the issued forecasts
    source_risk: float
    gamma: float  # of the kind the run was certified with
    gamma_iid: float
    disagreement: float  # |D_S - D_T|
    residual_mismatch: float  # lambda tilde
    outcomes: int

    @property
    def martingale_bound(self) -> float:
        """The full bound with the run's own complexity term."""
        return self.source_risk + self.gamma + 0.5 * self.disagreement + self.residual_mismatch

    @property
    def iid_bound(self) -> float:
        """The full bound with the complexity term of independent windows."""
        return self.source_risk + self.gamma_iid + 0.5 * self.disagreement + self.residual_mismatch


def diagnose(run: Run) -> Diagnosis:
    """Full certificate of a finished run. Raises `InputError` without certificates or complete outcomes."""
    if not run.certificate:
        raise InputError("the run has no certificates; fit the calibrator with certificate=True to diagnose it.")
    loss = proxy_loss(run)
    complete = np.isfinite(loss)
    if not complete.any():
        raise InputError(f"none of the run's {len(loss)} outcomes is complete; pass at least horizon more rows.")
    term = {name: values[complete] for name, values in run.certificate.items()}
    risk, source_risk = float(loss[complete].mean()), float(term["source_risk"].mean())
    source, target = float(term["source_disagreement"].mean()), float(term["target_disagreement"].mean())
    kappa = term["kl"] + term["log_term"]
    gamma_iid = Iid().gamma(kappa, Spread(term["variance"], term["scale"]), int(term["windows"][0]))
    return Diagnosis(
        target_risk=risk,
        source_risk=source_risk,
        gamma=float(term["gamma"].mean()),
        gamma_iid=float(np.mean(gamma_iid)),
        disagreement=abs(source - target),
        residual_mismatch=abs((risk - 0.5 * target) - (source_risk - 0.5 * source)),
        outcomes=int(complete.sum()),
    )


def proxy_loss(run: Run) -> Floats:
    """min(1, MSE / tau_y^2) of each forecast over horizon and channels, (n,); NaN while its outcome is incomplete.

    Missing cells stay out of the mean; an outcome without any known cell is NaN too.
    """
    error = (run.mean - run.outcome) / run.scale
    known = np.isfinite(error)
    cells = known.sum(axis=(1, 2))
    squared = np.where(known, error, 0.0) ** 2
    loss = squared.sum(axis=(1, 2)) / np.maximum(cells, 1) / run.certificate["tau_y"] ** 2
    matured = (run.origins + run.mean.shape[1] <= run.origins[-1]) & (cells > 0)
    return np.where(matured, np.minimum(loss, 1.0), np.nan)
