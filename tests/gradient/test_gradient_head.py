import math

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from ompb.core.posterior import gaussian_kl
from ompb.gradient import Head
from ompb.gradient.head import PRIOR_SD, as_inputs

torch.set_num_threads(1)
CHANNELS, HORIZON = 2, 4
CPU = torch.device("cpu")


def random_head(seed: int = 0) -> Head:
    chance = torch.Generator().manual_seed(seed)
    shape = (CHANNELS, HORIZON + 1, HORIZON)
    mean, log_sd = (torch.randn(shape, generator=chance, dtype=torch.float64) for _ in range(2))
    return Head(mean, 0.5 * log_sd, torch.tensor(0.3, dtype=torch.float64))


def windows(count: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(count, HORIZON, CHANNELS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("horizon", "expected"), [(24, 8_401), (96, 130_369)])
def test_parameter_counts_are_the_papers(horizon: int, expected: int) -> None:
    head = Head.fresh(7, horizon, 0.0, 0.0, CPU)
    assert sum(parameter.numel() for parameter in head.parameters()) == expected == 2 * 7 * horizon * (horizon + 1) + 1


@pytest.mark.parametrize("logit", [-3.0, 0.0, 3.0])
def test_fresh_head_is_the_backbone_bit_for_bit(logit: float) -> None:
    base = windows(5)
    law = Head.fresh(CHANNELS, HORIZON, 0.0, logit, CPU).law()
    assert torch.equal(law.forecast(as_inputs(base.float())), base.float().permute(2, 0, 1))


def test_forecast_is_the_gated_residual_of_each_channel() -> None:
    head, base = random_head(), windows(3)
    forecast = head.law().forecast(as_inputs(base))
    s = 1 / (1 + math.exp(-0.3))
    for c in range(CHANNELS):
        weights, bias = head.mean[c, :-1].T, head.mean[c, -1]
        for n in range(3):
            z = base[n, :, c]
            torch.testing.assert_close(forecast[c, n], z + s * (weights @ z + bias))


def test_output_law_is_that_of_drawn_weights() -> None:
    head, base, draws = random_head(), windows(3), 20_000
    law, inputs = head.law(), as_inputs(base)
    noise = torch.randn(draws, *head.mean.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weights = head.mean + head.log_sd.exp() * noise
    drawn = inputs[..., :-1] + law.gate * torch.einsum("cni,kcio->kcno", inputs, weights)
    variance = law.output_variance(inputs.square())
    assert ((drawn.mean(0) - law.forecast(inputs)).abs() < 4 * (variance / draws).sqrt()).all()
    assert ((drawn.var(0) / variance - 1).abs() < 4 * math.sqrt(2 / draws)).all()


def test_kl_is_that_of_torch_and_of_the_core() -> None:
    head = random_head()
    kl = head.law().kl()
    normals = kl_divergence(Normal(head.mean, head.log_sd.exp()), Normal(0.0, PRIOR_SD))
    torch.testing.assert_close(kl, normals.sum())
    # The core's law is N(w, sigma^2 P) against N(v, sigma^2 I): every lead a lane, sigma the prior's, P diagonal.
    by_lead = (values.mT.reshape(-1, HORIZON + 1).numpy() for values in (head.mean, (2 * head.log_sd).exp()))
    mean, variance = by_lead
    root = np.einsum("ni,ij->nij", np.sqrt(variance) / PRIOR_SD, np.eye(HORIZON + 1))
    core = gaussian_kl(mean[:, None, None], root[:, None], np.full((len(mean), 1), PRIOR_SD**2))
    np.testing.assert_allclose(kl.item(), core.sum(), rtol=1e-12)


def test_kl_of_the_prior_is_zero() -> None:
    assert Head.fresh(CHANNELS, HORIZON, math.log(PRIOR_SD), 0.0, CPU).law().kl().item() == pytest.approx(0, abs=1e-4)


def test_gate_penalty_is_that_of_a_prior_of_ten() -> None:
    assert Head.fresh(1, 1, 0.0, 3.0, CPU).gate_penalty().item() == pytest.approx(9 / 200)


def test_copy_shares_nothing() -> None:
    head = Head.fresh(CHANNELS, HORIZON, 0.0, 0.0, CPU)
    other = head.copy()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter += 1
    assert not head.mean.any()
    assert other.mean.requires_grad
