r"""What the online stage descends: the certificate of the present law plus the error on the newest outcome.

.. math:: L(t) = R(\rho) + \Gamma_m(\rho) + \tfrac12 \big| D_S(\rho) - D_T(\rho) \big|
   + \tfrac1{HC} \lVert y_t - \bar h(w_t) \rVert^2

R is the raw Gibbs squared error on the m replay windows, D_S and D_T the disagreement there and on the ring of the
newest target windows, the last term the squared error of the mean forecast. The head is trained on its replay windows,
so Gamma prices the whole KL to the prior. As in the paper's software the gate is not drawn, its quadratic penalty is
counted with the KL, and the posterior's own terms R and D do not move it: only its penalty and the outcome do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ompb.core.certificate.disagreement import DisagreementMode
from ompb.core.certificate.kinds import Kind
from ompb.gradient.head import Head, Law

# Quantiles on the replay windows: tau_y^2 of the Gibbs errors (a tenth saturates the proxy loss), tau_d^2 of the gaps.
TAU_Y_QUANTILE, TAU_D_QUANTILE = 0.9, 0.5


class Terms(NamedTuple):
    """The terms of the loss, each a scalar."""

    risk: Tensor  # R: Gibbs squared error on the replay windows, not bounded
    gamma: Tensor
    mismatch: Tensor  # |D_S - D_T|
    supervised: Tensor  # squared error of the mean forecast on the newest outcome

    @property
    def bound(self) -> Tensor:
        """R + Gamma + mismatch / 2: what is known without target outcomes."""
        return self.risk + self.gamma + 0.5 * self.mismatch

    @property
    def loss(self) -> Tensor:
        """All of it."""
        return self.bound + self.supervised


@dataclass(frozen=True, eq=False)
class GibbsRisk:
    r"""Expected squared error of a drawn head, mean over m windows, leads and channels; no drawing.

    .. math:: R = \tfrac1{mHC} \sum_{c,w,o} \Big[ (r_{cwo} - s \textstyle\sum_i z_{cwi} \mu_{cio})^2
       + s^2 \sum_i z_{cwi}^2 \sigma_{cio}^2 \Big],\qquad r = y - z

    With inputs Z = Q A the first part is ||Q^T r - s A mu||^2 + ||r - Q Q^T r||^2: at most H + 1 rows per channel stand
    for all windows, and their sums of squares are those of Z.
    """

    rows: Tensor  # A: (C, min(m, H + 1), H + 1)
    residuals: Tensor  # Q^T r: (C, min(m, H + 1), H)
    energy: Tensor  # sum of z_i^2 over windows: (C, H + 1, 1)
    rest: float  # ||r - Q Q^T r||^2, out of reach
    cells: int  # m H C

    @classmethod
    def of(cls, inputs: Tensor, residuals: Tensor) -> GibbsRisk:
        """From inputs (C, m, H + 1) and residuals y - z (C, m, H); reduced in float64."""
        q, a = torch.linalg.qr(inputs.double())
        reached = q.mT @ residuals.double()
        rest = residuals.double().square().sum() - reached.square().sum()
        energy = a.square().sum(dim=1)[..., None]
        return cls(
            a.to(inputs.dtype), reached.to(inputs.dtype), energy.to(inputs.dtype), float(rest), residuals.numel()
        )

    def __call__(self, law: Law) -> Tensor:
        """R of a law."""
        errors = self.residuals - law.gate * (self.rows @ law.mean)
        variances = law.gate**2 * (self.energy * law.variance).sum()
        return (errors.square().sum() + variances + self.rest) / self.cells


@dataclass(frozen=True, eq=False)
class WindowRisk:
    """The same R from every window, for inputs that change from step to step: `GibbsRisk` would cost more to make."""

    inputs: Tensor  # (C, m, H + 1)
    outcomes: Tensor  # (C, m, H)

    def __call__(self, law: Law) -> Tensor:
        """R of a law."""
        errors = self.outcomes - law.forecast(self.inputs)
        return (errors.square() + law.output_variance(self.inputs.square())).mean()


def pair_squares(noise: Tensor) -> Tensor:
    """(eps_k - eps_l)^2 of all K (K - 1) / 2 pairs, (C, H, pairs), of standard normals eps (K, C, H)."""
    first, second = torch.triu_indices(len(noise), len(noise), offset=1, device=noise.device)
    return (noise[first] - noise[second]).square().permute(1, 2, 0)


def pair_gaps(law: Law, squares: Tensor, pairs: Tensor) -> Tensor:
    r"""||h_k - h_l||^2 / (H C) of pairs of drawn forecasts, (n, pairs), for windows of squared inputs (C, n, H + 1).

    A forecast is Gaussian with independent leads, and its draws share their mean, so a pair differs by

    .. math:: \tfrac1{HC} \sum_{c,o} v_{co} (\epsilon_{kco} - \epsilon_{lco})^2
       = \tfrac1{HC} \sum_{c,i} z_{ci}^2 \sum_o s^2 \sigma_{cio}^2 (\epsilon_{kco} - \epsilon_{lco})^2

    with v the output variance. One set of normals serves all windows, as one drawn head would: on each window the law
    is that of drawn weights, at H C normals a draw instead of C H (H + 1), and v itself is never formed.
    """
    spread = (law.gate**2 * law.variance) @ pairs  # the sum over o: (C, H + 1, pairs)
    return (squares @ spread).sum(dim=0) / pairs[..., 0].numel()


@dataclass(frozen=True, eq=False)
class Objective:
    """The loss as a function of the head; all that is fixed once the stream starts."""

    squares: Tensor  # squared inputs of the replay windows: (C, m, H + 1)
    risk: Callable[[Law], Tensor]
    kind: Kind
    summary: Tensor  # what the kind keeps of the bounded losses under the law the stream starts with
    tau_d: float
    delta: float
    mode: DisagreementMode = "clipped"

    @classmethod
    def at_start(
        cls,
        law: Law,
        inputs: Tensor,
        outcomes: Tensor,
        noise: Tensor,
        tau_d: float | None,
        kind: str,
        delta: float,
        *,
        tau_d_factor: float = 1.0,
        variance_factor: float = 1.0,
        mode: DisagreementMode = "clipped",
    ) -> Objective:
        """From replay windows in time order, inputs (C, m, H + 1) and outcomes (C, m, H), and the offline law.

        Without a ``tau_d`` it is the root of the median gap over replay windows and pairs of ``noise`` (K, C, H); the
        factors are on it and on the variance that the kind estimates.
        """
        squares = inputs.square()
        errors = (outcomes - law.forecast(inputs)).square() + law.output_variance(squares)
        per_window = errors.mean(dim=(0, 2)).double()  # (m,)
        losses = torch.clamp(per_window / per_window.quantile(TAU_Y_QUANTILE), max=1.0)
        complexity: Kind = Kind.tags[kind]()
        summary = torch.from_numpy(complexity.summary(losses.cpu().numpy(), variance_factor)).to(inputs)
        if tau_d is None:
            gaps = pair_gaps(law, squares, pair_squares(noise))
            tau_d = math.sqrt(gaps.quantile(TAU_D_QUANTILE).item())
        risk = GibbsRisk.of(inputs, outcomes - inputs[..., :-1])
        return cls(squares, risk, complexity, summary, tau_d_factor * tau_d, delta, mode)

    @property
    def windows(self) -> int:
        """m, the number of replay windows."""
        return self.squares.shape[1]

    def gamma(self, kl: Tensor) -> Tensor:
        """Gamma of its kind at kappa = KL + log term."""
        kappa = kl + self.kind.log_term(self.windows, self.delta)
        gamma: Tensor = self.kind.gamma(kappa, self.summary, self.windows)
        return gamma

    def disagreement(self, law: Law, squares: Tensor, noise: Tensor) -> Tensor:
        """Mean over pairs of min(1, gap / tau_d^2), (n,), from normals (K, C, H); other modes bound it otherwise."""
        scaled = pair_gaps(law, squares, pair_squares(noise)) / self.tau_d**2
        if self.mode == "clipped":
            scaled = scaled.clamp(max=1)
        elif self.mode == "normalised":
            scaled = scaled / (1 + scaled)
        return scaled.mean(dim=1)

    def terms(self, head: Head, probes: Tensor, noise: Tensor, inputs: Tensor, outcome: Tensor) -> Terms:
        """Terms for one labelled window, inputs (C, 1, H + 1) and outcome (C, 1, H).

        ``probes`` are the squared inputs of the replay windows and then of the ring, (C, m + n, H + 1), ``noise``
        (K, C, H) draws the forecasts that disagree. Both disagreements share it, where the paper draws twice: so
        their difference is zero for equal windows, not only in the mean.
        """
        law = head.law()
        drawn = law.with_gate_held()
        source, target = self.disagreement(drawn, probes, noise).tensor_split([self.windows])
        return Terms(
            risk=self.risk(drawn),
            gamma=self.gamma(law.kl() + head.gate_penalty()),
            mismatch=(source.mean() - target.mean()).abs(),
            supervised=(outcome - law.forecast(inputs)).square().mean(),
        )
