"""The paper's ablations and sweeps: what each switch takes away or turns, and nothing else."""

from typing import Any

import numpy as np
import pytest
import torch

from ompb.gradient import GradientHead, OnlineGradientHead, PaperPreset
from ompb.gradient.objective import Terms
from ompb.types import Floats

torch.set_num_threads(1)
HORIZON, CHANNELS = 4, 2


def windows(count: int = 60, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(count, HORIZON, CHANNELS))
    return base, 0.5 * base + 0.3 * rng.normal(size=base.shape)


def started(**options: Any) -> tuple[GradientHead, OnlineGradientHead]:
    settings = PaperPreset(**{"epochs": 2, "offline_rate": 0.05, "log_sd": -1.0, **options})
    fitted = GradientHead.fit(*windows(), settings)
    return fitted, fitted.start()


def followed(online: OnlineGradientHead, count: int = 12) -> tuple[list[Floats], list[Terms]]:
    forecasts, terms = [], []
    base, outcomes = windows(count, seed=1)
    for z, y in zip(3 * base, outcomes + 1, strict=True):
        forecasts.append(online.forecast(z)[0])
        terms.append(online.learn(z, y))
    return forecasts, terms


def test_without_a_gate_the_correction_counts_whole() -> None:
    fitted, online = started(gated=False)
    base, _ = windows()
    law = fitted.head.law()
    inputs = np.concatenate([base[0].T, np.ones((CHANNELS, 1))], axis=1)
    by_hand = base[0] + np.einsum("ci,cio->oc", inputs, law.mean.detach().numpy())
    np.testing.assert_allclose(online.forecast(base[0])[0], by_hand, atol=1e-5)
    followed(online)
    assert online.gate == 1.0
    assert fitted.head.gate_penalty().item() == 0.0
    assert started()[1].gate != 1.0


def test_without_the_certificate_the_law_keeps_its_width() -> None:
    """Only the certificate's terms know the standard deviations, so nothing moves them."""
    _, online = started(certified=False)
    forecasts, _ = followed(online)
    assert not np.allclose(forecasts[0], forecasts[-1])
    base, _ = windows(seed=2)
    fitted, fresh = started(certified=False)
    ratio = online.gate / fresh.gate
    variance = [head.forecast(base[0])[1] ** 2 - residual(fitted) for head in (online, fresh)]
    np.testing.assert_allclose(variance[0], ratio**2 * variance[1], rtol=1e-3)
    _, certified = started()
    followed(certified)
    assert not np.allclose(
        certified.forecast(base[0])[1] ** 2 - residual(fitted),
        (certified.gate / fresh.gate) ** 2 * variance[1],
        rtol=1e-3,
    )


def residual(fitted: GradientHead) -> Floats:
    """Mean squared error (H, C) of the offline head on the replay windows."""
    errors = fitted.outcomes - fitted.head.law().forecast(fitted.inputs)
    return errors.detach().square().mean(dim=1).T.double().numpy()


def test_without_steps_the_head_stays_as_the_source_left_it() -> None:
    fitted, online = started(steps=0)
    _, terms = followed(online)
    base, _ = windows(seed=2)
    np.testing.assert_array_equal(online.forecast(base[0])[0], fitted.start().forecast(base[0])[0])
    assert all(torch.isfinite(term.loss) for term in terms)
    assert not terms[0].loss.requires_grad


def test_the_factor_on_the_scale_divides_by_its_square() -> None:
    """Unclipped, the mismatch goes with 1 / tau_d^2; before any step, all else is the same."""
    first = {
        factor: followed(started(tau_d_factor=factor, disagreement="unclipped")[1], 1)[1][0] for factor in (1.0, 4.0)
    }
    assert first[4.0].mismatch.item() == pytest.approx(first[1.0].mismatch.item() / 16, rel=1e-5)
    assert first[4.0].risk == first[1.0].risk
    assert first[4.0].gamma == first[1.0].gamma


def test_modes_of_disagreement() -> None:
    """For gaps that are tiny beside the scale all modes say the same; for huge ones two are at 1 and one goes on."""
    tiny, huge = (
        {mode: followed(started(tau_d_factor=factor, disagreement=mode)[1], 1)[1][0].mismatch.item() for mode in MODES}
        for factor in (1e2, 1e-3)
    )
    assert tiny["normalised"] == pytest.approx(tiny["clipped"], rel=0.05)
    assert tiny["unclipped"] == pytest.approx(tiny["clipped"], rel=0.05)
    assert huge["clipped"] == pytest.approx(0.0, abs=1e-4)
    assert huge["normalised"] == pytest.approx(0.0, abs=1e-4)
    assert huge["unclipped"] > 1e3


MODES = ("clipped", "normalised", "unclipped")


def test_more_variance_more_complexity() -> None:
    gammas = [followed(started(variance_factor=factor)[1], 1)[1][0].gamma.item() for factor in (0.5, 1.0, 4.0)]
    assert gammas == sorted(gammas)
    assert gammas[0] < gammas[2]
