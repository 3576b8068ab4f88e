import math
from typing import Any

import pytest
import torch
from torch.nn import functional

from ompb.errors import OptionError
from ompb.forecasters.torch import TCN, TCNConfig, backbone
from ompb.forecasters.torch.tcn import CausalConv

torch.set_num_threads(1)


def tcn(horizon: int = 24, channels: int = 7, **options: Any) -> TCN:
    torch.manual_seed(0)
    return TCN(TCNConfig(96, horizon, channels, **options)).eval()


def size(parameters: Any) -> int:
    return sum(parameter.numel() for parameter in parameters)


@pytest.mark.parametrize(("horizon", "expected"), [(24, 22_216), (96, 38_848)])
def test_parameter_counts_are_the_papers(horizon: int, expected: int) -> None:
    assert size(tcn(horizon).parameters()) == expected == 16_672 + 33 * horizon * 7


def test_last_layer_is_the_linear_head() -> None:
    last = tcn(horizon=96).last_layer_parameters()
    assert list(last) == ["head.weight", "head.bias"]
    assert size(last.values()) == 22_176


def test_only_the_newest_29_rows_matter() -> None:
    windows = torch.randn(3, 96, 7, requires_grad=True)
    (gradient,) = torch.autograd.grad(tcn()(windows).abs().sum(), windows)
    used = gradient.abs().sum(dim=(0, 2)) > 0
    assert used.tolist() == [False] * 67 + [True] * 29


def test_leaving_old_rows_out_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    windows, model = torch.randn(3, 96, 7), tcn()
    trimmed = model(windows)
    monkeypatch.setattr(TCNConfig, "receptive_field", 96)
    torch.testing.assert_close(trimmed, model(windows))


def test_windows_shorter_than_the_receptive_field_are_accepted() -> None:
    assert backbone("tcn", 24, 48, 11)(torch.randn(2, 24, 11)).shape == (2, 48, 11)


def test_horizon_is_the_slow_index_of_the_head() -> None:
    model = tcn(horizon=4, channels=3)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.arange(12.0))
    torch.testing.assert_close(model(torch.randn(1, 96, 3))[0], torch.arange(12.0).reshape(4, 3))


def test_convolution_is_the_weight_normalised_causal_sum() -> None:
    conv = CausalConv(2, 3, kernel=3, dilation=2, init="reference")
    with torch.no_grad():
        conv.gain.copy_(torch.tensor([1.0, 2.0, -3.0]).reshape(3, 1, 1))
        conv.bias.copy_(torch.tensor([0.1, 0.2, 0.3]))
    x, y = torch.randn(1, 2, 9), torch.empty(3, 9)
    for o in range(3):
        weight = conv.gain[o] * conv.direction[o] / conv.direction[o].norm()
        for t in range(9):
            taps = [weight[:, j] @ x[0, :, t - 2 * (2 - j)] for j in range(3) if t >= 2 * (2 - j)]
            y[o, t] = conv.bias[o] + sum(taps)
    torch.testing.assert_close(conv(x)[0], y)


def test_both_starts_are_the_documented_ones() -> None:
    blocks: Any = tcn().blocks
    paper_blocks: Any = tcn(init="paper").blocks
    reference, paper = blocks[1].branch[0], paper_blocks[1].branch[0]
    bound = 1 / math.sqrt(32 * 3)
    assert reference.direction.abs().max() <= bound
    assert reference.direction.detach().std() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert paper.direction.detach().std() == pytest.approx(0.01, rel=0.05)
    for conv in (reference, paper):
        assert not conv.bias.any()
        torch.testing.assert_close(conv.gain * conv.direction / conv.norm(), conv.direction)
    shortcut = blocks[0].shortcut
    assert shortcut.weight.detach().std() == pytest.approx(0.01, rel=0.2)
    assert not shortcut.bias.any()


def test_block_adds_its_shortcut() -> None:
    block: Any = tcn().blocks[1]
    x = torch.randn(2, 32, 29)
    for conv in (block.branch[0], block.branch[3]):
        torch.nn.init.zeros_(conv.gain)
    torch.testing.assert_close(block(x), functional.relu(x))


def test_eval_is_deterministic_and_training_is_not() -> None:
    model, windows = tcn(), torch.randn(4, 96, 7)
    assert torch.equal(model(windows), model(windows))
    torch.testing.assert_close(model(windows)[:1], model(windows[:1]))
    model.train()
    assert not torch.equal(model(windows), model(windows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon = 0 is out of range; accepted: a whole number from 1"),
        ({"width": 3.5}, "width = 3.5"),
        ({"dropout": 1.0}, "dropout = 1.0 is out of range; accepted: a number from 0 and below 1"),
        ({"init": "zeros"}, "init = 'zeros' is out of range; accepted: one of reference, paper"),
        ({"depth": 3}, "tcn has no option depth; it accepts context, horizon"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        backbone("tcn", **{"context": 96, "horizon": 24, "channels": 7, **options})


def test_unknown_backbones_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        OptionError, match="no backbone 'lstm'; accepted: tcn, autoformer, autoformer-canonical, gpt4ts"
    ):
        backbone("lstm", 96, 24, 7)
