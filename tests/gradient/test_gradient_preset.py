import math
from typing import Any

import numpy as np
import pytest
import torch

from ompb.errors import DtypeError, NotFiniteError, OptionError, ShapeError, StaleRowError
from ompb.gradient import GradientHead, OnlineGradientHead, PaperPreset
from ompb.types import Floats

torch.set_num_threads(1)
HORIZON, CHANNELS, NOISE = 6, 3, 0.3


def source(windows: int = 600, seed: int = 0) -> tuple[Floats, Floats]:
    """Base forecasts and outcomes (n, H, C) of a forecaster whose errors are white: there is nothing to correct."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(windows, HORIZON, CHANNELS))
    return base, base + NOISE * rng.normal(size=base.shape)


@pytest.fixture(scope="module")
def fitted() -> GradientHead:
    return GradientHead.fit(*source(), PaperPreset(epochs=20))


def run(online: OnlineGradientHead, windows: int, shift: float) -> tuple[list[Floats], list[float]]:
    """Forecasts, and the supervised loss before each update, on a stream whose outcomes have moved."""
    base, outcomes = source(windows, seed=1)
    forecasts, losses = [], []
    for z, y in zip(base, outcomes + shift, strict=True):
        forecasts.append(online.forecast(z)[0])
        losses.append(online.learn(z, y).supervised.item())
    return forecasts, losses


def test_defaults_are_the_papers() -> None:
    preset = PaperPreset()
    assert (preset.epochs, preset.batch, preset.offline_rate) == (20, 256, 1e-3)
    assert (preset.steps, preset.online_rate, preset.draws, preset.replay, preset.ring) == (5, 5e-3, 5, 256, 64)
    assert (preset.logit, preset.log_sd, preset.delta, preset.kind) == (0.0, 0.0, 0.05, "freedman")


def test_offline_training_leaves_next_to_nothing_to_correct(fitted: GradientHead) -> None:
    base, outcomes = source()
    forecast = np.stack([fitted.start().forecast(z)[0] for z in base[:50]])
    residual = np.sqrt(np.mean((forecast - base[:50]) ** 2))
    assert 0 < residual < 0.2 * NOISE
    assert np.mean((forecast - outcomes[:50]) ** 2) < 1.05 * NOISE**2


def test_untrained_head_is_the_backbone() -> None:
    base, outcomes = source()
    mean, _ = GradientHead.fit(base, outcomes, PaperPreset(epochs=0)).start().forecast(base[0])
    np.testing.assert_array_equal(mean, base[0].astype(np.float32))


def test_the_kl_alone_widens_the_law_offline(fitted: GradientHead) -> None:
    """Adam moves a slope of constant sign by its rate: 3 batches of 20 epochs at 1e-3."""
    np.testing.assert_allclose(fitted.head.log_sd.detach().numpy(), 60e-3, atol=1e-3)
    assert list(fitted.losses) == sorted(fitted.losses, reverse=True)


def test_replay_windows_are_source_windows_in_time_order(fitted: GradientHead) -> None:
    base, outcomes = source()
    first = fitted.inputs[0, :, 0].numpy()
    places = [int(np.flatnonzero(base[:, 0, 0].astype(np.float32) == value)[0]) for value in first]
    assert len(places) == 256
    assert places == sorted(set(places))
    np.testing.assert_array_equal(fitted.outcomes.permute(1, 2, 0).numpy(), outcomes[places].astype(np.float32))


def test_a_source_smaller_than_the_replay_set_is_kept_whole() -> None:
    assert GradientHead.fit(*source(10), PaperPreset(epochs=1)).inputs.shape[1] == 10


def test_sd_adds_output_variance_and_replay_errors(fitted: GradientHead) -> None:
    base, _ = source()
    mean, sd = fitted.start().forecast(base[0])
    law, z = fitted.head.law(), base[0]
    variance = law.variance.detach().double().numpy()  # (C, H + 1, H)
    s2 = law.gate.item() ** 2
    own = s2 * (np.einsum("ic,cio->oc", z**2, variance[:, :-1]) + variance[:, -1].T)
    residuals = (fitted.outcomes - law.forecast(fitted.inputs)).detach().double().numpy()
    np.testing.assert_allclose(sd, np.sqrt(own + (residuals**2).mean(axis=1).T), rtol=1e-5)
    assert mean.shape == sd.shape == (HORIZON, CHANNELS)
    assert mean.dtype == sd.dtype == np.float64


def test_inner_steps_lower_the_loss_of_the_outcome_they_see(fitted: GradientHead) -> None:
    base, outcomes = source()
    online = fitted.start()
    online.forecast(base[0])
    before = online.learn(base[0], outcomes[0] + 2).supervised
    assert online.learn(base[0], outcomes[0] + 2).supervised < before


def test_a_shift_of_the_outcomes_is_learned_as_far_as_the_replay_lets_it(fitted: GradientHead) -> None:
    """Replay and outcome weigh alike, and the inputs do not tell them apart: half of the shift of 2 is the optimum."""
    online = fitted.start()
    _, losses = run(online, windows=150, shift=2.0)
    assert np.mean(losses[:3]) > 3.0
    assert np.mean(losses[-30:]) == pytest.approx(1 + NOISE**2, rel=0.1)
    assert 0.5 < online.gate < 1


def test_parameters_stay_finite_and_the_gate_inside(fitted: GradientHead) -> None:
    online = fitted.start()
    forecasts, losses = run(online, windows=80, shift=1e3)
    assert np.isfinite(forecasts).all()
    assert np.isfinite(losses).all()
    assert 0 < online.gate < 1


def test_streams_repeat_to_the_bit_and_never_change_the_fitted_head(fitted: GradientHead) -> None:
    kept = [parameter.detach().clone() for parameter in fitted.head.parameters()]
    state = torch.get_rng_state()
    one, other = run(fitted.start(), 20, 1.0), run(fitted.start(), 20, 1.0)
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1] == other[1]
    assert all(torch.equal(*pair) for pair in zip(kept, fitted.head.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())


def test_the_seed_decides_the_fit() -> None:
    one, same, other = (GradientHead.fit(*source(), PaperPreset(epochs=2, seed=seed)) for seed in (3, 3, 4))
    assert torch.equal(one.head.mean, same.head.mean)
    assert torch.equal(one.inputs, same.inputs)
    assert not torch.equal(one.head.mean, other.head.mean)
    assert not torch.equal(one.inputs, other.inputs)


def test_what_is_handed_in_is_never_written_to() -> None:
    base, outcomes = source()
    kept = base.copy(), outcomes.copy()
    base.setflags(write=False)
    outcomes.setflags(write=False)
    online = GradientHead.fit(base, outcomes, PaperPreset(epochs=1)).start()
    online.forecast(base[0])
    online.learn(base[0], outcomes[0])
    np.testing.assert_array_equal(base, kept[0])
    np.testing.assert_array_equal(outcomes, kept[1])


def test_the_ring_holds_the_newest_windows_the_present_one_included() -> None:
    """Once the ring holds the replay windows again there is no mismatch; one window more, and there is."""
    base, outcomes = source(20)
    online = GradientHead.fit(base, outcomes, PaperPreset(epochs=1, ring=20)).start()
    for z in (*5 * base, *base):  # large inputs first: they must have left
        online.forecast(z)
    assert online.learn(base[0], outcomes[0]).mismatch.item() == pytest.approx(0, abs=1e-6)
    online.forecast(20 * base[0])
    assert online.learn(base[0], outcomes[0]).mismatch.item() > 0.01


def test_the_scale_of_the_papers_software_clips_everything_at_the_start() -> None:
    base, outcomes = source()
    software = 5 / math.sqrt(HORIZON * CHANNELS)
    mismatch = []
    for scale in (software, "auto"):
        settings: Any = {"epochs": 1, "log_sd": 2.0, "disagreement_scale": scale}
        online = GradientHead.fit(base, outcomes, PaperPreset(**settings)).start()
        online.forecast(9 * base[0])
        mismatch.append(online.learn(base[0], outcomes[0]).mismatch.item())
    assert mismatch[0] == pytest.approx(0, abs=1e-3)
    assert mismatch[1] > 0.1


def test_progress_counts_every_batch() -> None:
    calls: list[tuple[int, int]] = []
    GradientHead.fit(*source(600), PaperPreset(epochs=2), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(done, 6) for done in range(1, 7)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1}, "steps = -1 is out of range; accepted: a whole number from 0"),
        ({"gated": 1}, "gated = 1"),
        ({"tau_d_factor": 0.0}, "tau_d_factor = 0.0 is out of range"),
        ({"disagreement": "none"}, "disagreement = 'none' is out of range; accepted: one of clipped"),
        ({"draws": 1}, "draws = 1 is out of range; accepted: a whole number from 2"),
        ({"replay": 2.5}, "replay = 2.5"),
        ({"online_rate": 0.0}, "online_rate = 0.0 is out of range"),
        ({"delta": 1.0}, "delta = 1.0 is out of range"),
        (
            {"kind": "hoeffding"},
            "kind = 'hoeffding' is out of range; accepted: one of betting, freedman, iid, subgamma",
        ),
        ({"disagreement_scale": -1.0}, "disagreement_scale = -1.0 is out of range; accepted: 'auto'"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        PaperPreset(**options)


def test_bad_arrays_are_named(fitted: GradientHead) -> None:
    base, outcomes = source(10)
    with pytest.raises(ShapeError, match=r"base has shape \(10, 6, 3\), outcomes \(9, 6, 3\)"):
        GradientHead.fit(base, outcomes[1:])
    with pytest.raises(DtypeError, match="base does not hold numbers"):
        GradientHead.fit("words", outcomes)
    online = fitted.start()
    with pytest.raises(ShapeError, match=r"base has shape \(5, 3\); this head was fitted for \(H, C\) = \(6, 3\)"):
        online.forecast(base[0, 1:])
    with pytest.raises(StaleRowError, match="before any forecast"):
        online.learn(base[0], outcomes[0])
    online.forecast(base[0])
    with pytest.raises(NotFiniteError, match="outcome is missing or infinite"):
        online.learn(base[0], np.full_like(base[0], np.nan))
