r"""The paper's head: a gated linear correction of the base forecast under a diagonal Gaussian law.

.. math:: h(w) = z + s\,(W z + b),\qquad s = \sigma(\alpha),\qquad W_{oi} \sim N(\mu_{oi}, \sigma_{oi}^2),
   \quad b_o \sim N(\mu_o, \sigma_o^2)

one W (H x H) and b (H) per channel, one gate logit alpha for all. Channels lead every array. An input carries a last
value of 1, and W transposed has b as its last row, so that W z + b is one matrix product: z (C, n, H + 1) times
(C, H + 1, H).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

# Standard deviations of the priors of the paper's software: sigma_0 of the weights, and that of the gate logit.
PRIOR_SD, GATE_PRIOR_SD = 10.0, 10.0


def as_inputs(base: Tensor) -> Tensor:
    """Base forecasts (n, H, C) as inputs of the head, (C, n, H + 1), the last value being 1."""
    by_channel = base.permute(2, 0, 1)
    return torch.cat([by_channel, torch.ones_like(by_channel[..., :1])], dim=-1)


@dataclass(frozen=True, eq=False)
class Law:
    """The law of the weights, and the law of the forecast that follows from it."""

    mean: Tensor  # mu: (C, H + 1, H)
    variance: Tensor  # sigma^2: (C, H + 1, H)
    log_variance: Tensor  # ln sigma^2: (C, H + 1, H)
    gate: Tensor  # s: ()

    def forecast(self, inputs: Tensor) -> Tensor:
        """Mean of h(w), z + s (W z + b) at the mean weights: (C, n, H)."""
        return inputs[..., :-1] + self.gate * (inputs @ self.mean)

    def output_variance(self, squares: Tensor) -> Tensor:
        r"""Variance of h(w), (C, n, H), from the squared inputs. Leads are independent of each other.

        .. math:: s^2 \big( \textstyle\sum_i z_i^2 \sigma_{oi}^2 + \sigma_o^2 \big)
        """
        return squares @ (self.gate**2 * self.variance)

    def kl(self) -> Tensor:
        r"""KL to the prior N(0, sigma_0^2 I), over all P weights of all channels.

        .. math:: \tfrac12 \sum_{i=1}^{P} \Big( \frac{\sigma_i^2 + \mu_i^2}{\sigma_0^2} - 1
           - \ln \frac{\sigma_i^2}{\sigma_0^2} \Big)
        """
        spread = (self.variance.sum() + self.mean.square().sum()) / PRIOR_SD**2
        log_ratio = self.log_variance.sum() - self.mean.numel() * math.log(PRIOR_SD**2)
        return 0.5 * (spread - self.mean.numel() - log_ratio)

    def with_gate_held(self) -> Law:
        """The same law, whose gate no gradient reaches."""
        return Law(self.mean, self.variance, self.log_variance, self.gate.detach())


@dataclass(frozen=True, eq=False)
class Head:
    """What Adam moves: 2 C H (H + 1) + 1 numbers in three tensors."""

    mean: Tensor  # mu: (C, H + 1, H)
    log_sd: Tensor  # ln sigma: (C, H + 1, H)
    logit: Tensor  # alpha: ()
    gated: bool = field(default=True, kw_only=True)  # False: s = 1, and Adam leaves alpha alone

    @classmethod
    def fresh(
        cls, channels: int, horizon: int, log_sd: float, logit: float, device: torch.device, gated: bool = True
    ) -> Head:
        """Zero means, so that the forecast starts as the base forecast, whatever the gate."""
        shape = (channels, horizon + 1, horizon)
        return cls(
            torch.zeros(shape, device=device, requires_grad=True),
            torch.full(shape, log_sd, device=device, requires_grad=True),
            torch.tensor(logit, device=device, requires_grad=True),
            gated=gated,
        )

    @property
    def gate(self) -> Tensor:
        """s, in (0, 1), or 1."""
        return torch.sigmoid(self.logit) if self.gated else torch.ones_like(self.logit)

    def parameters(self) -> list[Tensor]:
        """What Adam moves of the three tensors."""
        return [self.mean, self.log_sd, self.logit] if self.gated else [self.mean, self.log_sd]

    def copy(self) -> Head:
        """A head of its own with the same values."""
        tensors = (tensor.detach().clone().requires_grad_() for tensor in (self.mean, self.log_sd, self.logit))
        return Head(*tensors, gated=self.gated)

    def law(self) -> Law:
        """The present law, as a function of the parameters."""
        log_variance = 2 * self.log_sd
        return Law(self.mean, torch.exp(log_variance), log_variance, self.gate)

    def gate_penalty(self) -> Tensor:
        """alpha^2 / (2 * 10^2): minus the log prior density of the logit, up to a constant; 0 without a gate."""
        return self.logit**2 / (2 * GATE_PRIOR_SD**2) if self.gated else torch.zeros_like(self.logit)
