import json
import math
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ompb.errors import FormatError, OptionError
from ompb.forecasters.torch import GPT4TS, GPT4TSConfig, backbone
from ompb.forecasters.torch.gpt4ts import GPT2

torch.set_num_threads(1)

REPOSITORY = Path(__file__).parents[2]
TINY: dict[str, Any] = {"width": 16, "heads": 2, "positions": 32}
MATRICES = {f"h.{block}.mlp.{name}.weight" for block in (0, 1) for name in ("c_fc", "c_proj")}


@pytest.fixture(scope="session")
def partial_file() -> Path:
    """Real GPT-2 tensors without MLP matrices, in OMPB_WEIGHTS, by default ../shared/weights beside the repository."""
    folder = REPOSITORY / os.environ.get("OMPB_WEIGHTS", "../shared/weights")
    file = folder / "gpt2_two_blocks_without_mlp.safetensors"
    if not file.is_file():
        pytest.skip(f"partial GPT-2 weights not found as {file}; set OMPB_WEIGHTS to their folder")
    return file


def tiny_gpt4ts(weights: str = "random", **options: Any) -> GPT4TS:
    torch.manual_seed(0)
    model = backbone("gpt4ts", 96, 24, 3, weights=weights, **TINY, **options).eval()
    assert isinstance(model, GPT4TS)
    return model


@pytest.fixture
def hugging_face(tmp_path: Path) -> Path:
    """A directory as the hub hands it out: three blocks, a token table, and prefixed names."""
    torch.manual_seed(7)
    tensors = GPT2(GPT4TSConfig(96, 24, 3, "random", blocks=3, **TINY)).state_dict()
    tensors = {f"transformer.{name}": torch.randn_like(tensor) for name, tensor in tensors.items()}
    tensors["transformer.wte.weight"] = torch.randn(50, 16)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"n_embd": 16, "n_head": 2, "n_positions": 32, "n_layer": 3}))
    return tmp_path


def trainable(model: GPT4TS) -> dict[str, int]:
    return {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize(
    ("context", "channels", "horizon", "out"), [(96, 7, 24, 221_208), (96, 7, 96, 884_832), (24, 11, 48, 110_640)]
)
def test_parameter_counts_are_the_papers(context: int, channels: int, horizon: int, out: int) -> None:
    with torch.device("meta"):
        model = GPT4TS(GPT4TSConfig(context, horizon, channels, "random"))
    learning = trainable(model)
    assert sum(n for name, n in learning.items() if ".ln_" in name) == 7_680
    assert learning["gpt2.wpe.weight"] == 786_432
    assert sum(n for name, n in learning.items() if name.startswith("embedding.")) == 13_056
    assert sum(p.numel() for p in model.last_layer_parameters().values()) == out
    assert sum(learning.values()) == 7_680 + 786_432 + 13_056 + out
    assert sum(p.numel() for p in model.parameters() if not p.requires_grad) == 14_169_600


def test_adding_a_constant_shifts_the_forecast() -> None:
    model, windows = tiny_gpt4ts(), torch.randn(2, 96, 3)
    shift = torch.tensor([5.0, -3.0, 0.0])
    torch.testing.assert_close(model(windows + shift), model(windows) + shift, rtol=0, atol=1e-4)


def test_scaling_scales_the_forecast() -> None:
    model, windows = tiny_gpt4ts(), torch.randn(2, 96, 3)
    torch.testing.assert_close(model(1000 * windows), 1000 * model(windows), rtol=1e-3, atol=0.1)


def test_channels_do_not_see_each_other() -> None:
    model, windows = tiny_gpt4ts(), torch.randn(2, 96, 3)
    changed = windows.clone()
    changed[:, :, 1] = torch.randn(2, 96)
    torch.testing.assert_close(model(changed)[:, :, [0, 2]], model(windows)[:, :, [0, 2]])


def test_normalisation_carries_no_gradient() -> None:
    """The statistics are constants: only the direct path and the patches pass a gradient."""
    model, windows = tiny_gpt4ts(), torch.randn(1, 96, 3, requires_grad=True)
    torch.nn.init.zeros_(model.head.weight)
    (gradient,) = torch.autograd.grad(model(windows).sum(), windows)
    assert not gradient.any()


@pytest.mark.parametrize(("context", "tokens"), [(96, 12), (24, 3)])
def test_patches(context: int, tokens: int) -> None:
    assert GPT4TSConfig(context, 24, 7, "random").tokens == tokens
    assert backbone("gpt4ts", context, 24, 2, weights="random", **TINY)(torch.randn(1, context, 2)).shape == (1, 24, 2)


def test_attention_is_causal() -> None:
    gpt2, x = tiny_gpt4ts().gpt2, torch.randn(1, 12, 16)
    changed = x.clone()
    changed[:, 7:] += 1
    torch.testing.assert_close(gpt2(changed)[:, :7], gpt2(x)[:, :7])


def test_block_equals_the_published_formulas() -> None:
    block: Any = tiny_gpt4ts().gpt2.h[0]
    x = torch.randn(5, 16)

    def norm(y: Tensor) -> Tensor:
        return (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()

    q, k, v = (norm(x) @ block.attn.c_attn.weight).reshape(5, 3, 2, 8).permute(1, 2, 0, 3)
    scores = (q @ k.transpose(1, 2) / math.sqrt(8)).masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf)
    y = x + (scores.softmax(-1) @ v).transpose(0, 1).reshape(5, 16) @ block.attn.c_proj.weight
    u = norm(y) @ block.mlp.c_fc.weight
    gelu = 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))
    torch.testing.assert_close(block(x[None])[0], y + gelu @ block.mlp.c_proj.weight)


def test_random_weights_are_drawn_as_gpt2_draws_them() -> None:
    torch.manual_seed(0)
    gpt2 = GPT2(GPT4TSConfig(96, 24, 3, "random", width=192, heads=4, blocks=1))
    block: Any = gpt2.h[0]
    assert gpt2.wpe.weight.detach().std() == pytest.approx(0.02, rel=0.02)
    assert block.mlp.c_fc.weight.detach().std() == pytest.approx(0.02, rel=0.02)
    for residual in (block.attn.c_proj, block.mlp.c_proj):
        assert residual.weight.detach().std() == pytest.approx(0.02 / math.sqrt(24), rel=0.02)
        assert not residual.bias.any()


def test_only_positions_norms_and_both_linears_learn() -> None:
    model = tiny_gpt4ts().train()
    model(torch.randn(2, 96, 3)).square().sum().backward()
    assert {name.split(".")[-2] for name in trainable(model)} == {"ln_1", "ln_2", "ln_f", "wpe", "embedding", "head"}
    gradient = model.gpt2.wpe.weight.grad
    assert gradient is not None
    assert (gradient.abs().sum(dim=1) > 0).tolist() == [True] * 12 + [False] * 20


def test_eval_is_deterministic_and_does_not_depend_on_the_batch() -> None:
    model, windows = tiny_gpt4ts(), torch.randn(4, 96, 3)
    assert torch.equal(model(windows), model(windows))
    torch.testing.assert_close(model(windows)[:1], model(windows[:1]))


@pytest.mark.parametrize("single_file", [False, True])
def test_checkpoints_are_read_by_their_public_names(hugging_face: Path, single_file: bool) -> None:
    stored = load_file(hugging_face / "model.safetensors")
    model = tiny_gpt4ts("gpt2", checkpoint=str(hugging_face / "model.safetensors" if single_file else hugging_face))
    for name, tensor in model.gpt2.state_dict().items():
        assert torch.equal(tensor, stored[f"transformer.{name}"]), name
    assert model.config.label == "gpt4ts"
    assert "gpt2.h.0.mlp.c_fc.weight" not in trainable(model)


def test_partial_weights_draw_the_mlp_matrices_only(hugging_face: Path) -> None:
    stored = load_file(hugging_face / "model.safetensors")
    save_file({k: t for k, t in stored.items() if ".mlp.c_" not in k or "bias" in k}, hugging_face / "cut.safetensors")
    cut = str(hugging_face / "cut.safetensors")
    model = tiny_gpt4ts("gpt2-partial", checkpoint=cut)
    same = {name for name, t in model.gpt2.state_dict().items() if torch.equal(t, stored[f"transformer.{name}"])}
    assert model.gpt2.state_dict().keys() - same == MATRICES
    assert model.gpt2.state_dict()["h.0.mlp.c_fc.weight"].std() == pytest.approx(0.02, rel=0.1)
    assert model.config.label == "gpt4ts[gpt2-partial]"
    with pytest.raises(FormatError, match=r"lacks h\.0\.mlp\.c_fc\.weight.*h\.1\.mlp\.c_proj\.weight; .*gpt2-partial"):
        tiny_gpt4ts("gpt2", checkpoint=cut)


def test_real_partial_weights(partial_file: Path) -> None:
    model = GPT4TS.pretrained(GPT4TSConfig(96, 24, 7, "gpt2-partial", str(partial_file)))
    tensors = model.gpt2.state_dict()
    assert tensors["wpe.weight"].shape == (1024, 768)
    assert tensors["h.0.attn.c_attn.weight"].shape == (768, 2304)
    torch.testing.assert_close(
        tensors["wpe.weight"][0, :3], torch.tensor([-0.01882, -0.19742, 0.00403]), rtol=0, atol=5e-6
    )
    torch.testing.assert_close(
        tensors["h.0.ln_1.weight"][:3], torch.tensor([0.2232, 0.1820, 0.1534]), rtol=0, atol=5e-5
    )
    assert set(load_file(partial_file)) == tensors.keys() - MATRICES
    assert torch.isfinite(model.eval()(torch.randn(2, 96, 7))).all()


def test_real_partial_weights_do_not_pass_for_gpt2(partial_file: Path) -> None:
    with pytest.raises(FormatError) as caught:
        GPT4TS.pretrained(GPT4TSConfig(96, 24, 7, "gpt2", str(partial_file)))
    assert all(name in str(caught.value) for name in MATRICES)


def test_weights_must_be_chosen() -> None:
    with pytest.raises(OptionError, match="gpt4ts needs weights"):
        backbone("gpt4ts", 96, 24, 7)
    with pytest.raises(OptionError, match="weights = 'bert' is out of range; accepted: one of gpt2, gpt2-partial"):
        backbone("gpt4ts", 96, 24, 7, weights="bert")


def test_other_sizes_are_refused(hugging_face: Path) -> None:
    (hugging_face / "config.json").write_text(json.dumps({"n_embd": 16, "n_head": 4, "n_positions": 32}))
    with pytest.raises(FormatError, match=r"states \{'n_head': 4\}, not"):
        tiny_gpt4ts("gpt2", checkpoint=str(hugging_face))
    file = hugging_face / "model.safetensors"
    save_file({**load_file(file), "transformer.wpe.weight": torch.zeros(8, 16)}, file)
    with pytest.raises(FormatError, match=r"wpe.weight in .* has shape \(8, 16\); \(32, 16\) is accepted"):
        tiny_gpt4ts("gpt2", checkpoint=str(file))


def test_unreadable_checkpoints_are_refused(hugging_face: Path) -> None:
    (hugging_face / "config.json").write_text("not JSON")
    with pytest.raises(FormatError, match="not readable"):
        tiny_gpt4ts("gpt2", checkpoint=str(hugging_face))
    (hugging_face / "config.json").unlink()
    with pytest.raises(FormatError, match=r"has no config\.json"):
        tiny_gpt4ts("gpt2", checkpoint=str(hugging_face))
    (hugging_face / "model.safetensors").write_text("not tensors")
    with pytest.raises(FormatError, match=r"not a readable \.safetensors file"):
        tiny_gpt4ts("gpt2", checkpoint=str(hugging_face / "model.safetensors"))


def test_a_hub_name_needs_the_hub_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(OptionError, match=r"'openai-community/gpt2' is neither .* pass a local directory"):
        tiny_gpt4ts("gpt2")


def test_a_hub_name_is_resolved_by_the_hub_client(monkeypatch: pytest.MonkeyPatch, hugging_face: Path) -> None:
    def snapshot_download(name: str, allow_patterns: list[str]) -> str:
        if name != "openai-community/gpt2":
            raise OSError("offline")
        assert allow_patterns == ["config.json", "model.safetensors"]
        return str(hugging_face)

    hub = types.SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    fetched = tiny_gpt4ts("gpt2").gpt2.state_dict()
    assert torch.equal(fetched["wpe.weight"], load_file(hugging_face / "model.safetensors")["transformer.wpe.weight"])
    with pytest.raises(OptionError, match=r"could not be fetched from the hub \(offline\)"):
        tiny_gpt4ts("gpt2", checkpoint="someone/else")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 5}, "width = 768 is out of range; accepted: a multiple of heads = 5"),
        ({"context": 7}, "context = 7 makes 0 patches"),
        ({"positions": 4}, "context = 96 makes 12 patches; between 1 and positions = 4"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        backbone("gpt4ts", **{"context": 96, "horizon": 24, "channels": 7, "weights": "random", **options})
