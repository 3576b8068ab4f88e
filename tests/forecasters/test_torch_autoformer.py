import math
from typing import Any

import pytest
import torch
from torch import Tensor

from ompb.errors import OptionError
from ompb.forecasters.torch import Backbone, CanonicalAutoformerConfig, SimplifiedAutoformerConfig, backbone
from ompb.forecasters.torch.autoformer import AutoCorrelation, correlate, decoder_start, decompose, lag_weights

torch.set_num_threads(1)

BOTH = pytest.mark.parametrize("name", ["autoformer", "autoformer-canonical"])


def autoformer(name: str, horizon: int = 24, channels: int = 7, **options: Any) -> Backbone:
    torch.manual_seed(0)
    return backbone(name, 96, horizon, channels, **options).eval()


def size(parameters: Any) -> int:
    return sum(parameter.numel() for parameter in parameters)


@pytest.mark.parametrize("horizon", [24, 96])
def test_parameter_counts_do_not_depend_on_the_horizon(horizon: int) -> None:
    assert size(autoformer("autoformer", horizon).parameters()) == 171_918
    # 2 embeddings, 2 encoder layers, 2 norms, a decoder layer with its trend convolution, the head
    canonical = 2 * 1_344 + 2 * (16_640 + 32_768) + 2 * 128 + (2 * 16_640 + 32_768 + 1_344) + 455
    assert size(autoformer("autoformer-canonical", horizon).parameters()) == canonical


def test_last_layers() -> None:
    reference = autoformer("autoformer", channels=6).last_layer_parameters()
    assert {name.split(".")[0] for name in reference} == {"seasonal_head", "trend_head"}
    assert size(reference.values()) == 780
    assert list(autoformer("autoformer-canonical").last_layer_parameters()) == ["head.weight", "head.bias"]


def test_trend_of_a_constant_shows_the_edge_rule() -> None:
    ones = torch.ones(1, 96, 2)
    reference, canonical = decompose(ones, 25, canonical=False)[1], decompose(ones, 25, canonical=True)[1]
    for end in (0, -1):
        torch.testing.assert_close(reference[:, end], torch.full((1, 2), 0.52))
    torch.testing.assert_close(reference[:, 12:-12], ones[:, 12:-12])
    torch.testing.assert_close(canonical, ones)


@pytest.mark.parametrize("canonical", [False, True])
def test_parts_add_up_to_the_whole(canonical: bool) -> None:
    x = torch.randn(3, 96, 7, dtype=torch.float64)
    seasonal, trend = decompose(x, 25, canonical)
    assert torch.equal(x - trend, seasonal)
    torch.testing.assert_close(seasonal + trend, x, rtol=0, atol=1e-15)  # a rounding or two
    middle = torch.stack([x[:, t - 12 : t + 13].mean(dim=1) for t in range(12, 84)], dim=1)
    torch.testing.assert_close(trend[:, 12:84], middle)


def test_correlation_is_the_circular_sum() -> None:
    a, b = torch.randn(2, 9, 1, dtype=torch.float64), torch.randn(2, 9, 1, dtype=torch.float64)
    expected = torch.stack([(a.roll(-lag, dims=1) * b).sum(dim=1) for lag in range(9)], dim=1)
    torch.testing.assert_close(correlate(a, b), expected)


@pytest.mark.parametrize("period", [8, 12, 24])
def test_a_sine_picks_multiples_of_its_period(period: int) -> None:
    wave = torch.sin(2 * math.pi * torch.arange(96.0) / period).reshape(1, 96, 1)
    weights = lag_weights(correlate(wave, wave), keep=96 // period, shared=False)
    assert weights.flatten().nonzero().flatten().tolist() == list(range(0, 96, period))
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))


def explicit_attention(layer: AutoCorrelation, x: Tensor, memory: Tensor) -> Tensor:
    """Auto-correlation of the simplified variant by the definition: loops, rolls and no FFT."""
    n, heads = max(x.shape[1], memory.shape[1]), layer.config.heads
    q, k, v = torch.zeros(3, n, heads, layer.config.width // heads)
    q[: x.shape[1]] = layer.query(x[0]).reshape(x.shape[1], heads, -1)
    k[: memory.shape[1]] = layer.key(memory[0]).reshape(memory.shape[1], heads, -1)
    v[: memory.shape[1]] = layer.value(memory[0]).reshape(memory.shape[1], heads, -1)
    mixed = torch.zeros_like(v)
    for head in range(heads):
        score = torch.stack([(q[:, head].roll(-lag, 0) * k[:, head]).sum(0).mean() for lag in range(n)])
        top = score.topk(math.floor(3 * math.log(n)))
        for weight, lag in zip(top.values.softmax(0), top.indices.tolist(), strict=True):
            mixed[:, head] += weight * v[:, head].roll(-lag, 0)
    out: Tensor = layer.out(mixed[: x.shape[1]].flatten(1))
    return out


@pytest.mark.parametrize(("queries", "keys"), [(30, 30), (20, 30), (40, 30)])
def test_attention_equals_its_definition(queries: int, keys: int) -> None:
    torch.manual_seed(1)
    layer = AutoCorrelation(SimplifiedAutoformerConfig(96, 24, 7)).eval()
    x, memory = torch.randn(1, queries, 64), torch.randn(1, keys, 64)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, memory)[0], explicit_attention(layer, x, memory), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("keys", [20, 40])
def test_canonical_attention_fits_keys_to_the_queries(keys: int) -> None:
    """Keys and values beyond the queries' length are not seen; those short of it count as zeros."""
    torch.manual_seed(1)
    layer = AutoCorrelation(CanonicalAutoformerConfig(96, 24, 7)).eval()
    x, memory = torch.randn(2, 30, 64), torch.randn(2, keys, 64)
    changed = memory.clone()
    changed[:, 30:] += 1
    assert torch.equal(layer(x, memory), layer(x, changed))
    assert layer(x, memory).shape == x.shape


def test_a_canonical_training_batch_shares_its_lags() -> None:
    score = torch.randn(5, 30, 1, 1)
    shared, own = lag_weights(score, 4, shared=True), lag_weights(score, 4, shared=False)
    assert len({tuple(sample.flatten().nonzero().flatten().tolist()) for sample in shared}) == 1
    assert len({tuple(sample.flatten().nonzero().flatten().tolist()) for sample in own}) > 1
    assert len({float(sample.max()) for sample in shared}) == 5


def test_decoder_starts_from_half_the_window() -> None:
    config, windows = CanonicalAutoformerConfig(96, 24, 7), torch.randn(2, 96, 7)
    seasonal, trend = decoder_start(windows, config)
    assert seasonal.shape == trend.shape == (2, 48 + 24, 7)
    torch.testing.assert_close((seasonal + trend)[:, :48], windows[:, 48:])
    assert not seasonal[:, 48:].any()
    torch.testing.assert_close(trend[:, 48:], windows.mean(dim=1, keepdim=True).expand(2, 24, 7))


@BOTH
def test_eval_is_deterministic_and_does_not_depend_on_the_batch(name: str) -> None:
    model, windows = autoformer(name), torch.randn(4, 96, 7)
    assert model(windows).shape == (4, 24, 7)
    assert torch.equal(model(windows), model(windows))
    torch.testing.assert_close(model(windows)[:1], model(windows[:1]), rtol=1e-4, atol=1e-5)


def test_canonical_training_depends_on_the_batch() -> None:
    model, windows = autoformer("autoformer-canonical", dropout=0.0).train(), torch.randn(8, 96, 7)
    assert not torch.allclose(model(windows)[:1], model(windows[:1]), rtol=1e-4, atol=1e-5)


@BOTH
def test_every_parameter_that_can_learn_does(name: str) -> None:
    model = autoformer(name, horizon=96).train()
    model(torch.randn(4, 96, 7)).square().sum().backward()
    idle = [key for key, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()]
    assert idle == []


@BOTH
def test_short_weekly_windows_are_accepted(name: str) -> None:
    assert backbone(name, 24, 72, 11)(torch.randn(2, 24, 11)).shape == (2, 72, 11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 5}, "width = 64 is out of range; accepted: a multiple of heads = 5"),
        ({"average": 24}, "average = 24 is out of range; accepted: an odd number"),
        ({"factor": 0.5}, "factor = 0.5 is out of range; accepted: a number from 2"),
        ({"context": 1}, "context = 1 is out of range; accepted: a whole number from 2"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        backbone("autoformer", **{"context": 96, "horizon": 24, "channels": 7, **options})
