"""GPT4TS: patches of one channel read by the first blocks of GPT-2, most of which stays frozen."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn import functional

from ompb.errors import FormatError, OptionError
from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone, BackboneConfig

Weights: TypeAlias = Literal["gpt2", "gpt2-partial", "random"]

GPT2_DEPTH = 12  # blocks of GPT-2 small; its residual projections start smaller by sqrt(2 * depth)
GPT2_SD = 0.02  # of GPT-2's initial weights
EPSILON = 1e-5  # added to a variance, by GPT-2's LayerNorm and by the window normalisation alike


@dataclass(frozen=True)
class GPT4TSConfig(BackboneConfig):
    """Sizes of GPT4TS and where its blocks come from; the default sizes are GPT-2 small's, cut to two blocks.

    ``weights`` must be chosen: "gpt2" reads every tensor of the blocks; "gpt2-partial" reads all but the MLP
    matrices, which are drawn as GPT-2 draws them; "random" draws everything. All but the first are named in
    ``label``. ``checkpoint`` is a directory in the Hugging Face layout, a .safetensors file, or a hub name.
    """

    backbone: ClassVar[str] = "gpt4ts"

    weights: Weights
    checkpoint: str = "openai-community/gpt2"
    patch: int = 16
    stride: int = 8
    blocks: int = 2
    width: int = 768
    heads: int = 12
    positions: int = 1024
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("weights", self.weights, get_args(Weights))
        if self.width % self.heads:
            raise checks.refuse("width", self.width, f"a multiple of heads = {self.heads}")
        if not 1 <= self.tokens <= self.positions:
            raise OptionError(
                f"context = {self.context} makes {self.tokens} patches; "
                f"between 1 and positions = {self.positions} are accepted: change context, patch or stride."
            )

    @property
    def tokens(self) -> int:
        """Patches of a window, floor((context - patch) / stride) + 2: 12 for 96 rows."""
        return (self.context - self.patch) // self.stride + 2

    @property
    def label(self) -> str:
        """The name, with what stands in for pre-trained weights."""
        return self.backbone if self.weights == "gpt2" else f"{self.backbone}[{self.weights}]"


class Projection(nn.Module):
    """x W + b, with W stored (inputs, outputs) as GPT-2 stores it, and drawn as GPT-2 draws it."""

    def __init__(self, inputs: int, outputs: int, residual: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.weight, std=GPT2_SD / math.sqrt(2 * GPT2_DEPTH) if residual else GPT2_SD)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        return x @ self.weight + self.bias


class Attention(nn.Module):
    """Causal self-attention: each patch sees itself and older ones."""

    def __init__(self, config: GPT4TSConfig) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.c_attn = Projection(config.width, 3 * config.width)
        self.c_proj = Projection(config.width, config.width, residual=True)

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, n, width) to the same shape."""
        split = self.c_attn(x).unflatten(2, (3, self.heads, -1))  # (N, n, 3, heads, width / heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)  # each (N, heads, n, width / heads)
        dropout = self.dropout if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        y: Tensor = self.c_proj(mixed.transpose(1, 2).flatten(2))  # (N, n, width)
        return y


class MLP(nn.Module):
    """Two projections, four times as wide between, with the tanh form of GELU."""

    def __init__(self, config: GPT4TSConfig) -> None:
        super().__init__()
        self.c_fc = Projection(config.width, 4 * config.width)
        self.c_proj = Projection(4 * config.width, config.width, residual=True)

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, n, width) to the same shape."""
        y: Tensor = self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))
        return y


class Block(nn.Module):
    """x + attention(LN(x)), then x + MLP(LN(x))."""

    def __init__(self, config: GPT4TSConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width, eps=EPSILON)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.width, eps=EPSILON)
        self.mlp = MLP(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, n, width) to the same shape."""
        x = x + self.dropout(self.attn(self.ln_1(x)))
        y: Tensor = x + self.dropout(self.mlp(self.ln_2(x)))
        return y


class GPT2(nn.Module):
    """The first blocks of GPT-2, fed with embeddings. Its parameters bear the names of the public checkpoints."""

    def __init__(self, config: GPT4TSConfig) -> None:
        super().__init__()
        self.wpe = nn.Embedding(config.positions, config.width)
        nn.init.normal_(self.wpe.weight, std=GPT2_SD)
        self.dropout = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.ln_f = nn.LayerNorm(config.width, eps=EPSILON)
        for projection in self.modules():
            if isinstance(projection, Projection):
                projection.requires_grad_(False)  # only positions and LayerNorms are trained

    def forward(self, embedded: Tensor) -> Tensor:
        """Map (N, n, width) to the same shape."""
        x = self.dropout(embedded + self.wpe.weight[: embedded.shape[1]])
        for block in self.h:
            x = block(x)
        y: Tensor = self.ln_f(x)
        return y


class GPT4TS(Backbone):
    r"""Normalise each channel of a window, cut it in patches, read them with GPT-2, map to all leads, undo the scale.

    .. math:: \hat y = m + s \cdot \mathrm{out}(\mathrm{GPT2}(\mathrm{in}(\mathrm{patches}((x - m) / s)))),
              \qquad s = \sqrt{\mathrm{var}(x) + 10^{-5}}

    with m and var the mean and population variance over the window's rows. Made directly, its blocks are random;
    `pretrained` gives them the weights its configuration names.
    """

    last_layer = ("head",)
    config: GPT4TSConfig

    def __init__(self, config: GPT4TSConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Linear(config.patch, config.width)
        self.gpt2 = GPT2(config)
        self.head = nn.Linear(config.tokens * config.width, config.horizon)

    @classmethod
    def pretrained(cls, config: GPT4TSConfig) -> GPT4TS:
        """The model with the weights its configuration names.

        Raises ``FormatError`` if the checkpoint lacks a tensor or has other sizes, ``OptionError`` if it is not found.
        """
        model = cls(config)
        if config.weights != "random":
            matrices = {f"h.{block}.mlp.{name}.weight" for block in range(config.blocks) for name in ("c_fc", "c_proj")}
            drawn = matrices if config.weights == "gpt2-partial" else set[str]()
            load_gpt2(model.gpt2, locate(config), drawn)
        return model

    def forward(self, windows: Tensor) -> Tensor:
        """Forecast standardised windows."""
        config = self.config
        mean = windows.mean(dim=1, keepdim=True).detach()  # (B, 1, C)
        scale = (windows.var(dim=1, keepdim=True, correction=0) + EPSILON).sqrt().detach()
        lanes = ((windows - mean) / scale).transpose(1, 2).flatten(0, 1)  # (B * C, context)
        extended = functional.pad(lanes, (0, config.stride), mode="replicate")
        patches = extended.unfold(1, config.patch, config.stride)  # (B * C, tokens, patch)
        tokens = self.gpt2(self.embedding(patches))  # (B * C, tokens, width)
        leads: Tensor = self.head(tokens.flatten(1))  # (B * C, horizon)
        return leads.reshape(-1, config.channels, config.horizon).transpose(1, 2) * scale + mean  # (B, horizon, C)


def locate(config: GPT4TSConfig) -> Path:
    """The .safetensors file behind ``config.checkpoint``; the config.json beside it, if any, must agree."""
    path = Path(config.checkpoint)
    if path.is_file():
        return path
    folder = path if path.is_dir() else _download(config.checkpoint)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise FormatError(
                f"{folder} has no {name}; pass a directory with config.json and model.safetensors, "
                f"or a .safetensors file."
            )
    _check_sizes(folder / "config.json", config)
    return folder / "model.safetensors"


def _check_sizes(file: Path, config: GPT4TSConfig) -> None:
    try:
        stated: dict[str, Any] = json.loads(file.read_text())
    except ValueError as error:
        raise FormatError(f"{file} is not readable as JSON ({error}); fetch it again.") from error
    wanted = {"n_embd": config.width, "n_head": config.heads, "n_positions": config.positions}
    wrong = {key: stated.get(key) for key, value in wanted.items() if stated.get(key) != value}
    if wrong:
        raise FormatError(f"{file} states {wrong}, not {wanted}; pass a checkpoint of those sizes.")


def _download(name: str) -> Path:
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise OptionError(
            f"checkpoint {name!r} is neither a directory nor a file, and a hub name needs the package huggingface_hub; "
            f"pass a local directory with config.json and model.safetensors, or install huggingface_hub."
        ) from error
    try:
        return Path(hub.snapshot_download(name, allow_patterns=["config.json", "model.safetensors"]))
    except (OSError, ValueError) as error:
        raise OptionError(
            f"checkpoint {name!r} could not be fetched from the hub ({error}); "
            f"pass a local directory with config.json and model.safetensors."
        ) from error


def load_gpt2(gpt2: GPT2, file: Path, drawn: Collection[str] = ()) -> None:
    """Copy every tensor but the ``drawn`` ones from a file with the public names, or change nothing and raise."""
    own = gpt2.state_dict()
    needed = own.keys() - set(drawn)
    try:
        with safe_open(file, framework="pt") as opened:
            names = {name.removeprefix("transformer."): name for name in opened.keys()}  # noqa: SIM118  # not a dict
            found = {name: opened.get_tensor(names[name]) for name in needed & names.keys()}
    except (SafetensorError, OSError) as error:
        raise FormatError(f"{file} is not a readable .safetensors file ({error}); fetch it again.") from error
    missing = sorted(needed - found.keys())
    if missing:
        raise FormatError(
            f"{file} lacks {', '.join(missing)}; pass a complete GPT-2 checkpoint, or choose "
            f"weights='gpt2-partial' (MLP matrices drawn at random) or weights='random', and report it as that."
        )
    for name, tensor in sorted(found.items()):
        if tensor.shape != own[name].shape:
            raise FormatError(
                f"{name} in {file} has shape {tuple(tensor.shape)}; {tuple(own[name].shape)} is accepted: "
                f"pass a checkpoint of that size."
            )
    gpt2.load_state_dict(own | found)
