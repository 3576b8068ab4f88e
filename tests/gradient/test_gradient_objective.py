import math

import numpy as np
import pytest
import torch

from ompb.core.certificate.kinds import Kind
from ompb.gradient import Head, Law, Objective
from ompb.gradient.head import as_inputs
from ompb.gradient.objective import GibbsRisk, pair_gaps, pair_squares

torch.set_num_threads(1)
CHANNELS, HORIZON, WINDOWS = 2, 4, 12


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_head(seed: int = 0) -> Head:
    shape = (CHANNELS, HORIZON + 1, HORIZON)
    tensors = normals(*shape, seed=seed), 0.5 * normals(*shape, seed=seed + 1), torch.tensor(0.3, dtype=torch.float64)
    return Head(*(tensor.requires_grad_() for tensor in tensors))


def drawn_forecasts(law: Law, inputs: torch.Tensor, draws: int, seed: int) -> torch.Tensor:
    """Forecasts (draws, C, n, H) of heads whose weights are drawn."""
    weights = law.mean + law.variance.sqrt() * normals(draws, *law.mean.shape, seed=seed)
    return inputs[..., :-1] + law.gate * torch.einsum("cni,kcio->kcno", inputs, weights)


def source(count: int = WINDOWS) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (C, n, H + 1) and outcomes (C, n, H)."""
    inputs = as_inputs(normals(count, HORIZON, CHANNELS, seed=5))
    return inputs, inputs[..., :-1] + 0.5 * normals(CHANNELS, count, HORIZON, seed=6)


def objective(head: Head, tau_d: float | None = None, kind: str = "freedman") -> Objective:
    with torch.no_grad():
        return Objective.at_start(head.law(), *source(), normals(32, CHANNELS, HORIZON, seed=7), tau_d, kind, 0.05)


@pytest.mark.parametrize("count", [3, HORIZON + 1, 200])  # fewer windows than rows of the reduction, as many, more
def test_reduced_risk_is_mean_error_plus_output_variance(count: int) -> None:
    law, (inputs, outcomes) = random_head().law(), source(count)
    direct = (outcomes - law.forecast(inputs)).square() + law.output_variance(inputs.square())
    reduced = GibbsRisk.of(inputs, outcomes - inputs[..., :-1])
    assert reduced.rows.shape[1] == min(count, HORIZON + 1)
    torch.testing.assert_close(reduced(law), direct.mean())


def test_risk_is_the_mean_error_of_drawn_heads() -> None:
    law, (inputs, outcomes), draws = random_head().law(), source(), 20_000
    drawn = (drawn_forecasts(law, inputs, draws, seed=8) - outcomes).square().mean(dim=(1, 2, 3))
    closed = GibbsRisk.of(inputs, outcomes - inputs[..., :-1])(law)
    assert abs(drawn.mean() - closed) < 4 * drawn.std() / math.sqrt(draws)


def test_gaps_are_those_of_explicit_draws_in_output_space() -> None:
    law, (inputs, _), noise = random_head().law(), source(), normals(5, CHANNELS, HORIZON, seed=9)
    sd = law.output_variance(inputs.square()).sqrt()
    drawn = law.forecast(inputs) + sd * noise[:, :, None]  # (K, C, n, H)
    pairs = [(k, other) for k in range(5) for other in range(k + 1, 5)]
    explicit = torch.stack([(drawn[k] - drawn[other]).square().mean(dim=(0, 2)) for k, other in pairs], dim=1)
    torch.testing.assert_close(pair_gaps(law, inputs.square(), pair_squares(noise)), explicit)


def test_disagreement_has_the_law_of_drawn_weights_on_every_window() -> None:
    head = random_head()
    law, (inputs, _), rounds = head.law(), source(), 4000
    loss = objective(head)
    drawn = drawn_forecasts(law, inputs, 2 * rounds, seed=10)
    gaps = (drawn[:rounds] - drawn[rounds:]).square().mean(dim=(1, 3))  # (rounds, n)
    in_weights = (gaps / loss.tau_d**2).clamp(max=1)
    noise = normals(rounds, 2, CHANNELS, HORIZON, seed=11)
    in_outputs = torch.stack([loss.disagreement(law, inputs.square(), pair) for pair in noise]).detach()
    for power in (1, 2):  # means, and second moments
        one, other = in_weights**power, in_outputs**power
        error = ((one.var(0) + other.var(0)) / rounds).sqrt()
        assert ((one.mean(0) - other.mean(0)).abs() < 4 * error).all()


def test_automatic_scale_clips_half_of_the_source_pairs() -> None:
    head = random_head()
    loss, (inputs, _) = objective(head), source()
    gaps = pair_gaps(head.law(), inputs.square(), pair_squares(normals(32, CHANNELS, HORIZON, seed=7)))
    assert (gaps >= loss.tau_d**2).double().mean().item() == pytest.approx(0.5, abs=0.001)


@pytest.mark.parametrize("kind", ["betting", "iid", "freedman", "subgamma"])
def test_gamma_is_the_cores(kind: str) -> None:
    loss, (inputs, outcomes) = objective(random_head(), kind=kind), source()
    law = random_head().law()
    errors = ((outcomes - law.forecast(inputs)).square() + law.output_variance(inputs.square())).mean(dim=(0, 2))
    errors_array = errors.detach().numpy()
    losses = np.minimum(errors_array / np.quantile(errors_array, 0.9), 1)
    complexity = Kind.tags[kind]()
    kappa = 7.0 + complexity.log_term(WINDOWS, 0.05)
    expected = complexity.gamma(np.asarray(kappa), complexity.summary(losses, 1.0), WINDOWS)
    assert loss.gamma(torch.tensor(7.0)).item() == pytest.approx(float(expected), rel=1e-6)


def test_loss_is_the_sum_of_its_terms_and_its_gradient_is_exact() -> None:
    head = random_head()
    loss, (inputs, outcomes) = objective(head), source()
    probes = torch.cat([loss.squares, 3 * normals(CHANNELS, 5, HORIZON + 1, seed=12).square()], dim=1)
    noise = normals(5, CHANNELS, HORIZON, seed=13)

    def total(mean: torch.Tensor, log_sd: torch.Tensor) -> torch.Tensor:
        return loss.terms(Head(mean, log_sd, head.logit), probes, noise, inputs[:, :1], outcomes[:, :1]).loss

    terms = loss.terms(head, probes, noise, inputs[:, :1], outcomes[:, :1])
    assert terms.mismatch > 0
    torch.testing.assert_close(terms.loss, terms.risk + terms.gamma + 0.5 * terms.mismatch + terms.supervised)
    assert torch.autograd.gradcheck(total, (head.mean, head.log_sd))


def test_only_the_outcome_and_the_penalty_move_the_gate() -> None:
    head = random_head()
    loss, (inputs, outcomes) = objective(head), source()
    probes = torch.cat([loss.squares, 3 * loss.squares[:, :5]], dim=1)
    terms = loss.terms(head, probes, normals(5, CHANNELS, HORIZON), inputs[:, :1], outcomes[:, :1])
    slopes = [torch.autograd.grad(term, head.logit, retain_graph=True, allow_unused=True)[0] for term in terms]
    assert [slope is not None and slope.item() != 0 for slope in slopes] == [False, True, False, True]


def test_larger_inputs_than_the_source_open_a_mismatch() -> None:
    head = random_head()
    loss, (inputs, outcomes) = objective(head), source()
    noise = normals(5, CHANNELS, HORIZON)
    same, larger = (
        loss.terms(head, torch.cat([loss.squares, factor * loss.squares], dim=1), noise, inputs[:, :1], outcomes[:, :1])
        for factor in (1, 9)
    )
    assert same.mismatch.item() == pytest.approx(0, abs=1e-12)
    assert larger.mismatch > 0.1
