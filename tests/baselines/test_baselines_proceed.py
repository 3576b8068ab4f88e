"""PROCEED: the generator and the layers it adapts, by hand; which half of the model moves in which step."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from baseline_world import CONTEXT, HORIZON, World, predictions
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from ompb.baselines.proactive import Adapted, ConceptEncoder, Generator, Layer, ProactiveModel, adapt, clipped
from ompb.baselines.proceed import Learner, Proceed, ProceedSettings, Source, train, validate
from ompb.bench.contract import Snapshot
from ompb.bench.methods import unfit
from ompb.errors import ForecasterError, NotFiniteError, OptionError, TooShortError
from ompb.forecasters.torch import backbone
from ompb.forecasters.torch.autoformer import CircularConv
from ompb.forecasters.torch.gpt4ts import Projection
from ompb.forecasters.torch.tcn import CausalConv

torch.set_num_threads(1)

SMALL = ProceedSettings(concept=6, bottleneck=3, epochs=2, offline_rate=1e-3)
GPT4TS = {"weights": "random", "width": 16, "heads": 2, "positions": 32}
AUTOFORMER = {"width": 8, "heads": 2, "hidden": 16}
BACKBONES: dict[str, dict[str, Any]] = {
    "tcn": {},
    "autoformer": AUTOFORMER,
    "autoformer-canonical": AUTOFORMER,
    "gpt4ts": GPT4TS,
}
CHANNELS = 3
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def network(name: str) -> nn.Module:
    torch.manual_seed(3)
    return backbone(name, CONTEXT, HORIZON, CHANNELS, **BACKBONES[name]).eval()


def proactive(name: str) -> ProactiveModel:
    torch.manual_seed(4)
    return ProactiveModel(network(name), CONTEXT, HORIZON, SMALL.concept, SMALL.bottleneck).eval()


def stirred(model: ProactiveModel) -> ProactiveModel:
    """The model with a generator that says something."""
    torch.manual_seed(6)
    for name, parameter in model.generators.named_parameters():
        if "outer" in name:
            nn.init.normal_(parameter, std=0.3)
    return model


def learner(model: ProactiveModel) -> Learner:
    found = Learner(model, CONTEXT, draw(4, CONTEXT + HORIZON, CHANNELS, seed=8))
    found.set_rate(1e-3)
    return found


def kernel(layer: Layer) -> Tensor:
    """Weights (out, in, taps) that a layer applies; a linear one has one tap."""
    match layer:
        case CausalConv():
            lengths = (layer.direction**2).sum(dim=(1, 2), keepdim=True).sqrt()
            return (layer.gain * layer.direction / lengths).detach()
        case Projection():
            return layer.weight.detach().T[:, :, None]
        case nn.Linear():
            return layer.weight.detach()[:, :, None]
    return layer.weight.detach().clone()


LAYERS: dict[str, tuple[Layer, tuple[int, ...]]] = {  # and the shape of an input
    "linear": (nn.Linear(3, 5), (2, 3)),
    "linear over time": (nn.Linear(3, 5), (2, 7, 3)),
    "linear without bias": (nn.Linear(3, 5, bias=False), (2, 3)),
    "gpt-2": (Projection(3, 5), (2, 7, 3)),
    "conv": (nn.Conv1d(3, 5, 3, padding=1), (2, 3, 7)),
    "causal conv": (CausalConv(3, 5, 3, 2, "reference"), (2, 3, 7)),
    "weight-normed conv": (weight_norm(nn.Conv1d(3, 5, 3, padding=1)), (2, 3, 7)),
    "circular conv": (CircularConv(3, 5), (2, 7, 3)),
}


def plain(layer: Layer, weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """What a layer of that kind says with this kernel (out, in, taps) and bias."""
    match layer:
        case CausalConv():
            return functional.conv1d(functional.pad(x, (2 * layer.dilation, 0)), weight, bias, dilation=layer.dilation)
        case CircularConv():
            around = functional.pad(x.transpose(1, 2), (1, 1), mode="circular")
            return functional.conv1d(around, weight, bias).transpose(1, 2)
        case nn.Conv1d():
            return functional.conv1d(x, weight, bias, padding=1)
    return functional.linear(x, weight[:, :, 0], bias)


@pytest.mark.parametrize("kind", LAYERS)
def test_the_effective_weight_is_scaled_on_both_sides(kind: str) -> None:
    layer, shape = copy.deepcopy(LAYERS[kind])
    if isinstance(layer, CausalConv):
        layer.gain.data *= 1.7  # else the kernel is v itself
    if layer.bias is not None:
        layer.bias.data.copy_(draw(5, seed=1))
    weight, bias = kernel(layer), None if layer.bias is None else layer.bias.detach().clone()
    adapted = Adapted(layer)
    moves = draw(2, 5 + 3 + (0 if bias is None else 5), seed=2)  # two samples, each with its own
    x = draw(*shape, seed=3)
    found = functional_call(adapted, {"parts": adapted.parts + moves}, (x,))
    for sample in range(2):
        outward, inward, shift = moves[sample].tensor_split([5, 8])
        scaled = torch.einsum("o,oik,i->oik", 1 + outward, weight, 1 + inward)
        shifted = None if bias is None else bias + shift
        expected = plain(layer, scaled, shifted, x[sample : sample + 1])
        torch.testing.assert_close(found[sample : sample + 1], expected, rtol=1e-5, atol=1e-5)


def test_a_sample_may_fill_several_places() -> None:
    layer = nn.Linear(3, 5)
    adapted, parts, x = Adapted(copy.deepcopy(layer)), draw(2, 13), draw(6, 3)
    found = functional_call(adapted, {"parts": parts}, (x,))
    alone = functional_call(adapted, {"parts": parts[1:]}, (x[3:],))
    torch.testing.assert_close(found[3:], alone)


@pytest.mark.parametrize("name", BACKBONES)
def test_it_starts_as_the_backbone(name: str) -> None:
    windows, recent = draw(5, CONTEXT, CHANNELS), 9 * draw(4, CONTEXT + HORIZON, CHANNELS, seed=1)
    torch.testing.assert_close(proactive(name)(windows, recent), network(name)(windows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BACKBONES)
def test_samples_of_a_batch_have_drifts_of_their_own(name: str) -> None:
    model, recent = stirred(proactive(name)), draw(4, CONTEXT + HORIZON, CHANNELS, seed=1)
    windows = draw(3, CONTEXT, CHANNELS)
    together = model(windows, recent)
    assert not torch.allclose(together, network(name)(windows), atol=1e-2)
    for sample in range(3):
        torch.testing.assert_close(model(windows[sample, None], recent)[0], together[sample], rtol=1e-4, atol=1e-4)


def test_every_linear_layer_and_convolution_is_adapted() -> None:
    model = network("tcn")
    groups = adapt(model)
    assert [(names, model.get_buffer(f"{names[0]}.parts").shape[1]) for names in groups] == [
        (["blocks.0.branch.0"], 32 + CHANNELS + 32),
        (["blocks.0.branch.3", "blocks.1.branch.3", "blocks.2.branch.3"], 96),
        (["blocks.0.shortcut"], 32 + CHANNELS + 32),
        (["blocks.1.branch.0", "blocks.2.branch.0"], 96),
        (["head"], HORIZON * CHANNELS * 2 + 32),
    ]
    model = network("gpt4ts")
    found = {name for names in adapt(model) for name in names}
    assert {f"gpt2.h.1.{part}" for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")} < found
    assert len(found) == 2 + 2 * 4
    assert not any(p.requires_grad for name, p in model.named_parameters() if name.endswith("layer.bias"))
    assert not any(p.requires_grad for name, p in model.named_parameters() if ".c_" in name)


def test_the_generator_by_hand() -> None:
    generator = Generator(draw(2, 5, seed=1), SMALL.concept, SMALL.bottleneck)
    nn.init.normal_(generator.outer.weight)
    nn.init.normal_(generator.outer_bias)
    drift = draw(4, 6)
    w1, w2 = generator.inner.weight, generator.outer.weight
    assert w1.shape == (3, 6)
    found = generator(drift)
    for sample, layer in np.ndindex(4, 2):
        hidden = 1 / (1 + torch.exp(-(w1 @ drift[sample] + generator.inner_bias[layer])))
        moves = w2 @ hidden + generator.outer_bias[layer]
        torch.testing.assert_close(found[sample, layer], draw(2, 5, seed=1)[layer] + moves)


def test_a_concept_is_the_mean_over_channels() -> None:
    encoder, stretches = ConceptEncoder(CONTEXT, 6), draw(2, CONTEXT, CHANNELS)
    layers = nn.Sequential(encoder.inner, nn.GELU(), encoder.outer)
    lanes = [layers(stretches[:, :, channel]) for channel in range(CHANNELS)]
    torch.testing.assert_close(encoder(stretches), torch.stack(lanes).mean(dim=0))


def test_long_drifts_are_cut_to_one_and_short_ones_kept() -> None:
    drift = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], requires_grad=True)
    found = clipped(drift)
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    (gradient,) = torch.autograd.grad(found.sum(), drift)
    assert torch.isfinite(gradient).all()


def moved(before: ProactiveModel, after: ProactiveModel) -> set[str]:
    pairs = zip(before.named_parameters(), after.named_parameters(), strict=True)
    return {name for (name, old), (_, new) in pairs if not torch.equal(old, new)}


def fast_names(model: ProactiveModel) -> set[str]:
    return {
        name
        for name, parameter in model.named_parameters()
        if name.endswith("outer_bias") or (name.startswith("backbone.") and parameter.requires_grad)
    }


@pytest.mark.parametrize("name", BACKBONES)
def test_online_the_backbone_and_b2_move_and_nothing_else(name: str) -> None:
    model = stirred(proactive(name))
    frozen = {n for n, p in model.named_parameters() if not p.requires_grad}
    before = copy.deepcopy(model)
    # Autoformer's keys enter by lags alone, and its trend may leave a bias without effect: not all must move.
    learner(model).learn(draw(1, CONTEXT + HORIZON, CHANNELS))
    changed = moved(before, model)
    assert changed <= fast_names(model)
    assert {n for n in fast_names(model) if n.endswith("outer_bias")} <= changed
    assert any(n.startswith("backbone.") for n in changed)
    assert not frozen & changed
    assert all(torch.equal(old, new) for old, new in zip(before.buffers(), model.buffers(), strict=True))


def test_tuning_moves_encoders_and_generator_and_nothing_else() -> None:
    model = stirred(proactive("tcn"))
    before = copy.deepcopy(model)
    learner(model).tune(draw(1, CONTEXT + HORIZON, CHANNELS))
    slow = {n for n, _ in model.named_parameters()} - fast_names(model)
    assert moved(before, model) == {n for n in slow if not n.endswith("layer.bias")}


def test_an_offline_step_moves_both() -> None:
    model = stirred(proactive("tcn"))
    before, found = copy.deepcopy(model), learner(model)
    batch = draw(5, CONTEXT + HORIZON, CHANNELS)
    found.fit(batch)
    assert moved(before, model) == {n for n, p in model.named_parameters() if not n.endswith("layer.bias")}
    assert torch.equal(found.recent, batch)


def test_the_online_step_is_adams_on_the_drift_from_the_pair_before() -> None:
    """Its first step moves every parameter by the rate, against the sign of its gradient."""
    model, stretch = stirred(proactive("tcn")), draw(1, CONTEXT + HORIZON, CHANNELS)
    twin, found = copy.deepcopy(model), learner(model)
    windows, outcomes = stretch[:, :CONTEXT], stretch[:, CONTEXT:]
    drift = twin.window_concept(windows) - twin.pair_concept(found.recent).mean(dim=0)
    assert torch.linalg.vector_norm(drift) < 1  # else the scale would hide a wrong concept
    old, new = (dict(either.named_parameters())["backbone.head.layer.weight"] for either in (twin, model))
    (gradient,) = torch.autograd.grad(functional.mse_loss(twin(windows, found.recent), outcomes), old)
    found.learn(stretch)
    torch.testing.assert_close(new, old - 1e-3 * gradient.sign(), rtol=0, atol=1e-5)
    assert torch.equal(found.recent, stretch)


def test_unknown_cells_teach_nothing() -> None:
    stretch = draw(1, CONTEXT + HORIZON, CHANNELS)
    holes = stretch.clone()
    holes[0, -1, 0] = torch.nan
    one, other = learner(proactive("tcn")), learner(proactive("tcn"))
    said_of_hole = one.forecast(holes[:, :CONTEXT])[0, -1, 0]
    one.learn(holes)
    filled = stretch.clone()
    filled[0, -1, 0] = said_of_hole
    torch.testing.assert_close(one.recent, filled)
    other.learn(filled)  # no error in the cell, but one cell more to divide by: Adam's first step has the same sign
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


def test_the_rate_is_steady_then_shrinks() -> None:
    rates = [ProceedSettings(offline_rate=1.0).offline_rate_of(epoch) for epoch in range(5)]
    np.testing.assert_allclose(rates, [1, 1, 1, 0.9, 0.81])


def test_training_stops_before_the_rows_held_out(world: World) -> None:
    rows = np.arange(200.0)[:, None]
    task = copy.copy(world.task())
    object.__setattr__(task, "source", rows)
    source = Source.of(task, SMALL, CPU)
    seen = torch.cat(list(source.shuffled(16)))
    assert seen.max() == 179
    assert sorted(seen[:, 0, 0].tolist()) == list(range(180 - CONTEXT - HORIZON + 1))
    stream = list(source.online())
    assert [int(done[0, -1, 0]) for _, done in stream] == list(range(179, 200))  # each outcome on the row it ends on
    origins = [int(now[0, CONTEXT - 1, 0]) for now, _ in stream if now is not None]
    assert origins == list(range(179, 200 - HORIZON))  # with the whole outcome inside the source
    assert all(int(done[0, -1, 0]) == int(now[0, CONTEXT - 1, 0]) for now, done in stream if now is not None)


@pytest.fixture(scope="module")
def started(world: World) -> bytes:
    return pickle.dumps(Proceed.start(world.task(), SMALL))


def test_the_pair_before_is_learnt_before_the_forecast(started: bytes, world: World) -> None:
    """The method, step by step, is the learner fed with the pairs that are complete."""
    method, twin = pickle.loads(started), pickle.loads(started).learner
    shown = list(world.snapshots())
    rows = torch.as_tensor(world.stream, dtype=torch.float32)
    for place, prediction in enumerate(predictions(method, iter(shown[:12]))):
        if place >= HORIZON:
            twin.learn(rows[None, place - HORIZON : place + CONTEXT])
        found = twin.forecast(rows[None, place : place + CONTEXT])[0]
        np.testing.assert_array_equal(prediction.mean, found.numpy())


def test_the_last_pair_of_the_source_is_the_recent_one_at_the_start(started: bytes, world: World) -> None:
    recent = pickle.loads(started).learner.recent
    np.testing.assert_allclose(recent[0], world.source[-CONTEXT - HORIZON :], rtol=1e-6)


def test_a_pair_of_which_nothing_is_known_is_passed_over(started: bytes, world: World) -> None:
    method = pickle.loads(started)
    before = copy.deepcopy(method.learner.model)
    stream = world.stream.copy()
    stream[CONTEXT:] = np.nan
    shown = [
        Snapshot(m.origin, m.row, world.stream[:CONTEXT], m.base, m.labels) for m in world.snapshots(stream=stream)
    ]
    predictions(method, iter(shown[:20]))
    assert moved(before, method.learner.model) == set()


def test_the_callers_random_state_is_untouched(world: World) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Proceed.start(world.task(), ProceedSettings(concept=4, bottleneck=2, epochs=1))
    assert torch.equal(torch.rand(3), expected)


def test_validation_changes_only_what_it_is_given(world: World) -> None:
    task = world.task()
    torch.manual_seed(0)
    model = ProactiveModel(world.network_copy().model, CONTEXT, HORIZON, SMALL.concept, SMALL.bottleneck)
    source = Source.of(task, SMALL, CPU)
    found = Learner(model, CONTEXT, source.stretches[:1])
    trial = copy.deepcopy(found)
    before = copy.deepcopy(model)
    assert 0 < validate(trial, source) < 10
    assert moved(before, model) == set()
    assert moved(before, trial.model) != set()


def test_the_best_epoch_is_kept_and_patience_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ProceedSettings(concept=4, bottleneck=2, epochs=9, patience=3)
    source = Source.of(world.task(), settings, CPU)
    model = ProactiveModel(world.network_copy().model, CONTEXT, HORIZON, settings.concept, settings.bottleneck)
    epochs: list[Learner] = []

    def scripted(trial: Learner, _: Source) -> float:
        assert {group["lr"] for group in trial.fast.param_groups} == {settings.online_rate}
        epochs.append(trial)
        return [3.0, 1.0, 2.0, 2.0, 1.0][len(epochs) - 1]

    monkeypatch.setattr("ompb.baselines.proceed.validate", scripted)
    best = train(Learner(model, CONTEXT, source.stretches[:1]), source, settings)
    assert len(epochs) == 5
    assert moved(best.model, epochs[1].model) == set()
    assert moved(best.model, epochs[4].model) != set()


@pytest.mark.parametrize(
    "wrong", [{"concept": 0}, {"epochs": 0}, {"offline_rate": 0.0}, {"online_rate": np.inf}, {"validation": 1.0}]
)
def test_wrong_settings_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        ProceedSettings(**wrong)


def test_a_source_it_cannot_use_is_refused(world: World) -> None:
    task, holes = world.task(), world.source.copy()
    holes[7, 0] = np.nan
    object.__setattr__(task, "source", holes)
    with pytest.raises(NotFiniteError, match="missing"):
        Proceed.start(task, SMALL)
    object.__setattr__(task, "source", world.source[:30])
    with pytest.raises(TooShortError, match="30 rows"):
        Proceed.start(task, SMALL)
    for name in ("proceed", "proceed+tuned"):  # a benchmark leaves such a cell out by name
        assert "30 rows, 3 of them to validate on" in str(unfit(name, task))
        assert unfit(name, world.task()) is None


def test_divergence_is_told(world: World) -> None:
    with pytest.raises(ForecasterError, match="diverged"):
        Proceed.start(world.task(), ProceedSettings(concept=4, bottleneck=2, epochs=1, offline_rate=1e9))


@pytest.mark.parametrize(
    ("horizon", "concept", "bottleneck", "rate"),
    [(24, 50, 32, 3e-5), (48, 50, 32, 3e-6), (96, 100, 64, 3e-6), (720, 100, 64, 3e-6)],
)
def test_published_sizes_and_rates(horizon: int, concept: int, bottleneck: int, rate: float) -> None:
    found = ProceedSettings.published(horizon)
    assert (found.concept, found.bottleneck, found.online_rate) == (concept, bottleneck, rate)
