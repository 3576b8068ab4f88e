"""A network whose layers follow the drift of the data: the model of PROCEED, see `ompb.baselines.proceed`."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from ompb.baselines.network import trainable
from ompb.forecasters.torch.autoformer import CircularConv
from ompb.forecasters.torch.gpt4ts import Projection
from ompb.forecasters.torch.tcn import CausalConv

Layer: TypeAlias = nn.Linear | nn.Conv1d | CausalConv | Projection


class ConceptEncoder(nn.Module):
    r"""What a stretch of rows is like, in a few numbers: an MLP along time, averaged over channels.

    .. math:: c = \frac1C \sum_{j=1}^C \bigl( W_2\, \mathrm{GELU}(W_1 x_{\cdot j} + b_1) + b_2 \bigr)
    """

    def __init__(self, rows: int, concept: int) -> None:
        super().__init__()
        self.inner = nn.Linear(rows, concept)
        self.outer = nn.Linear(concept, concept)

    def forward(self, stretches: Tensor) -> Tensor:
        """Map (B, rows, C) to (B, concept)."""
        hidden = functional.gelu(self.inner(stretches.transpose(1, 2)))  # (B, C, concept)
        concepts: Tensor = self.outer(hidden.mean(dim=1))  # the outer layer is linear: its mean is that of the mean
        return concepts


def clipped(drift: Tensor) -> Tensor:
    """Drifts (B, concept), those longer than 1 shortened to 1."""
    norms: Tensor = torch.linalg.vector_norm(drift, dim=1, keepdim=True)
    return drift / norms.clamp(min=1)


class Generator(nn.Module):
    r"""Parts of a group of n layers alike, from the drift: two shared matrices, biases for each layer.

    .. math:: p_l = p_l^0 + a_l, \qquad a_l = W_2\, \sigma(W_1 \delta + b_{1,l}) + b_{2,l}

    At the start all a are 0, since W2 and b2 are.
    """

    unmoved: Tensor  # p^0, (n, parts of a layer)

    def __init__(self, unmoved: Tensor, concept: int, bottleneck: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(concept)
        layers, parts = unmoved.shape
        self.register_buffer("unmoved", unmoved)
        self.inner = nn.Linear(concept, bottleneck, bias=False)  # W1
        self.inner_bias = nn.Parameter(torch.empty(layers, bottleneck).uniform_(-bound, bound))  # b1
        self.outer = nn.Linear(bottleneck, parts, bias=False)  # W2
        self.outer_bias = nn.Parameter(torch.zeros(layers, parts))  # b2
        nn.init.zeros_(self.outer.weight)

    def forward(self, drift: Tensor) -> Tensor:
        """Map (B, concept) to (B, n, parts)."""
        hidden = torch.sigmoid(self.inner(drift)[:, None] + self.inner_bias)  # (B, n, bottleneck)
        moves: Tensor = self.outer(hidden) + self.outer_bias
        return self.unmoved + moves


class Adapted(nn.Module):
    r"""A linear layer or convolution whose inputs and outputs are scaled, and bias replaced, sample by sample.

    .. math:: y = W_\text{eff}\, x + b + a_\text{bias}, \qquad
              W_\text{eff} = \mathrm{diag}(1 + a_\text{out})\, W\, \mathrm{diag}(1 + a_\text{in})

    W is what the layer applies: for a weight-normalised one the kernel g v / |v|. The scales act on the layer's input
    and output, which is the same and serves one sample as well as many, each with a drift of its own. The layer's bias
    b is frozen: the generator has one of its own in its place. Where all a are 0 it is the layer as it was.
    """

    parts: Tensor  # (samples, out + in + out): 1 + a_out, 1 + a_in and, if the layer has a bias, b + a_bias

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        outputs, inputs = sizes(layer)
        self.sizes = [outputs, inputs] if layer.bias is None else [outputs, inputs, outputs]
        self.channels_first = isinstance(layer, nn.Conv1d | CausalConv) and not isinstance(layer, CircularConv)
        unmoved = next(layer.parameters()).new_ones(outputs + inputs)
        if layer.bias is not None:
            unmoved = torch.cat([unmoved, layer.bias.detach()])
            # It must not be scaled: it is added after the layer.
            layer.bias = nn.Parameter(torch.zeros_like(layer.bias), requires_grad=False)
        # Not a plain attribute: tensors with a graph behind them could neither be copied nor pickled.
        self.register_buffer("parts", unmoved[None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map what the layer maps; the first axis holds the samples, in order, each in one or more places."""
        outward, inward, *bias = self.parts.split_with_sizes(self.sizes, dim=1)
        y: Tensor = self.layer(x * self._spread(inward, x))
        y = y * self._spread(outward, y)
        return y + self._spread(bias[0], y) if bias else y

    def _spread(self, values: Tensor, like: Tensor) -> Tensor:
        """Values (samples, channels) in the axes of a tensor; GPT4TS makes a row of every channel of a sample."""
        if 1 < len(values) < len(like):
            values = values.repeat_interleave(len(like) // len(values), dim=0)
        between = [1] * (like.ndim - 2)
        samples, channels = values.shape
        return values.view(samples, channels, *between) if self.channels_first else values.view(samples, *between, -1)


def sizes(layer: Layer) -> tuple[int, int]:
    """Output and input channels of a layer."""
    match layer:
        case nn.Linear():
            return layer.out_features, layer.in_features
        case nn.Conv1d():
            return layer.out_channels, layer.in_channels
        case CausalConv():
            return layer.direction.shape[0], layer.direction.shape[1]
        case Projection():
            return layer.weight.shape[1], layer.weight.shape[0]


def adapt(backbone: nn.Module) -> list[list[str]]:
    """Wrap every layer in place; their names, those together that have the same last name and number of parts.

    Norms and embeddings stay as they are, and weights that were frozen before, as those of GPT-2, remain so.
    """
    groups: dict[tuple[str, int], list[str]] = {}
    for name, layer in list(backbone.named_modules()):
        if isinstance(layer, Layer):
            parent, _, last = name.rpartition(".")
            adapted = Adapted(layer)
            setattr(backbone.get_submodule(parent), last, adapted)
            groups.setdefault((last, adapted.parts.shape[1]), []).append(name)
    return list(groups.values())


class ProactiveModel(nn.Module):
    r"""A backbone whose layers follow the drift from the concept of recent pairs to that of a window.

    .. math:: \delta = \mathrm{clip}\Bigl(E'(X_t) - \frac1m \sum_{k \in \text{recent}} E(X_k \Vert Y_k)\Bigr)
    """

    def __init__(self, backbone: nn.Module, context: int, horizon: int, concept: int, bottleneck: int) -> None:
        super().__init__()
        self.window_concept = ConceptEncoder(context, concept)  # E'
        self.pair_concept = ConceptEncoder(context + horizon, concept)  # E
        self.groups = adapt(backbone)
        unmoved = (torch.cat([backbone.get_buffer(f"{name}.parts") for name in names]) for names in self.groups)
        self.generators = nn.ModuleList(Generator(parts, concept, bottleneck) for parts in unmoved)
        self.backbone = backbone

    def forward(self, windows: Tensor, recent: Tensor) -> Tensor:
        """Forecast windows (B, context, C) after recent stretches (m, context + horizon, C)."""
        drift = clipped(self.window_concept(windows) - self.pair_concept(recent).mean(dim=0))
        parts = {
            f"{name}.parts": values
            for names, generator in zip(self.groups, self.generators, strict=True)
            for name, values in zip(names, generator(drift).unbind(dim=1), strict=True)
        }
        forecasts: Tensor = functional_call(self.backbone, parts, windows, tie_weights=False)
        return forecasts

    def fast(self) -> list[nn.Parameter]:
        """What goes on learning online: the backbone's weights and b2, which stands for its biases."""
        return [*trainable(self.backbone), *(p for name, p in self.named_parameters() if name.endswith("outer_bias"))]

    def slow(self) -> list[nn.Parameter]:
        """What then stands still: both encoders, W1, b1 and W2."""
        others = (p for name, p in self.generators.named_parameters() if not name.endswith("outer_bias"))
        return [*self.window_concept.parameters(), *self.pair_concept.parameters(), *others]
