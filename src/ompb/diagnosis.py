"""Post-hoc diagnostics: where the risk of a finished run came from, outcomes and all. Never part of the online path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ompb.backtest import Run
from ompb.core.certificate.kinds import Iid
from ompb.errors import InputError
from ompb.types import Floats


@dataclass(frozen=True, slots=True)
class Diagnosis:
    r"""The realised risk of a run, taken apart into the source's and what has changed since.

    .. math:: R_T = R_S + \tfrac12 (D_T - D_S) + \tilde\lambda,\qquad
       \tilde\lambda = (R_T - \tfrac12 D_T) - (R_S - \tfrac12 D_S)

    This is an identity: lambda tilde is what is left over. It needs outcomes, and no certificate has it. Adding Gamma
    and taking positive parts turns the identity into the full bound, which therefore holds whatever happened: it says
    where a risk came from, and is no evidence for the certificate. How the certificate fared is ``share_above``.

    All are means over the forecasts whose outcome is complete.
    """

    target_risk: float  # R_T: realised proxy risk of the issued forecasts
    source_risk: float
    gamma: float  # of the kind the run was certified with
    gamma_iid: float
    disagreement_change: float  # D_T - D_S
    residual_mismatch: float  # lambda tilde
    share_above: float  # of the forecasts, whose loss was above the certificate's value
    outcomes: int

    @property
    def martingale_bound(self) -> float:
        """The full bound with the run's own complexity term."""
        return self._full(self.gamma)

    @property
    def iid_bound(self) -> float:
        """The full bound with the complexity term of independent windows."""
        return self._full(self.gamma_iid)

    def _full(self, gamma: float) -> float:
        return self.source_risk + gamma + 0.5 * max(self.disagreement_change, 0.0) + max(self.residual_mismatch, 0.0)


def diagnose(run: Run) -> Diagnosis:
    """What a finished run's risk is made of. Raises `InputError` without certificates or complete outcomes."""
    if not run.certificate:
        raise InputError("the run has no certificates; fit the calibrator with certificate=True to diagnose it.")
    loss = proxy_loss(run)
    complete = np.isfinite(loss)
    if not complete.any():
        raise InputError(f"none of the run's {len(loss)} outcomes is complete; pass at least horizon more rows.")
    term = {name: values[complete] for name, values in run.certificate.items()}
    risk, source_risk = float(loss[complete].mean()), float(term["source_risk"].mean())
    change = float(term["disagreement_change"].mean())
    windows, iid = int(term["windows"][0]), Iid()
    log_terms = np.asarray([iid.log_term(windows, delta) for delta in term["delta"].tolist()])
    return Diagnosis(
        target_risk=risk,
        source_risk=source_risk,
        gamma=float(term["gamma"].mean()),
        gamma_iid=float(np.mean(iid.gamma(term["kl"] + log_terms, np.empty(0), windows))),
        disagreement_change=change,
        residual_mismatch=risk - source_risk - 0.5 * change,
        share_above=float(np.mean(loss[complete] > term["value"])),
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
