"""FSNet: a dilated convolutional forecaster whose kernels are scaled by a controller that reads their own gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ompb.errors import TooShortError
from ompb.floor import checks
from ompb.forecasters.torch.base import probability

KERNEL = 3  # taps of a convolution
CENTRE = 1  # the tap in the middle
REVIN_FLOOR = 1e-5  # added to a window's variance
REVIN_GUARD = 1e-10  # added to the gain that is divided by
NORM_FLOOR = 1e-12  # the least a gradient is divided by

Conv: TypeAlias = tuple[Tensor, Tensor]  # kernel (outputs, inputs, taps) and bias (outputs,)


@dataclass(frozen=True)
class FSNetSettings:
    """FSNet (Pham et al., Learning Fast and Slow for Online Time Series Forecasting, ICLR 2023) as OneNet uses it.

    Sizes, rates of the averages and of the memory are the published ones, on the encoder of TS2Vec. Published for the
    offline stage: AdamW 1e-3 to 3e-3, batches of 32, up to 15 epochs (25 where it joins another backbone), patience 3.
    """

    rows: int = 60  # newest rows it looks at; all of a shorter window
    width: int = 64
    representation: int = 320  # width of the last block
    blocks: int = 11
    controller: int = 64  # hidden units
    slots: int = 32  # of a convolution's memory
    read: int = 2  # slots that are read and written
    slow: float = 0.9  # share of the old value in the slow average of gradients
    fast: float = 0.3  # the same in the fast average, and in that of the factors
    turn: float = -0.75  # the memory is asked below this cosine between the fast and the slow average
    temperature: float = 0.5  # of the attention to slots
    keep: float = 0.75  # share of the factors that stays when the memory is read, and of a slot when it is written
    dropout: float = 0.1  # offline only: an online step sees one window, where dropout would only add noise
    rate: float = 1e-3  # of AdamW, offline
    halves: bool = False  # whether the rate halves after each epoch
    batch: int = 32
    epochs: int = 8  # at most; fewer than published, to stay within two minutes on one core for 13,800 windows
    patience: int = 3  # epochs without a better held-out error
    held_out: float = 0.1  # newest share of the source

    def __post_init__(self) -> None:
        counts = ("rows", "width", "representation", "controller", "slots", "batch", "epochs", "patience")
        checks.check_fields(self, checks.count, *counts)
        if self.representation % self.width:  # else a controller cannot share its factors out
            raise checks.refuse("representation", self.representation, f"a multiple of width = {self.width}")
        reaching = math.ceil(math.log2(self.rows))  # the last two dilations must reach past the rows
        checks.check_fields(self, partial(checks.count, least=reaching + 2), "blocks")
        checks.check_fields(self, partial(checks.count, most=self.slots), "read")
        checks.check_fields(self, checks.positive, "rate", "temperature")
        checks.check_fields(self, probability, "slow", "fast", "keep", "dropout")
        checks.check_fields(self, checks.share, "held_out")
        checks.check_fields(self, checks.flag, "halves")

    def rate_of(self, epoch: int) -> float:
        """The offline rate of an epoch, counted from 0."""
        return self.rate * 0.5**epoch if self.halves else self.rate


class RevIN(nn.Module):
    r"""Takes a window's level and scale away, and gives them back to its forecast.

    .. math:: n(x) = \gamma \frac{x - \mu}{\sigma} + \beta, \qquad
              n^{-1}(y) = \frac{y - \beta}{\gamma + 10^{-10}}\, \sigma + \mu

    with the mean μ of each channel over the window and σ² its population variance plus 1e-5.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))  # gamma
        self.shift = nn.Parameter(torch.zeros(channels))  # beta

    def normalise(self, windows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised windows (B, rows, C), with their level and scale, (B, 1, C) each."""
        variance, level = torch.var_mean(windows, dim=1, keepdim=True, correction=0)
        scale = (variance + REVIN_FLOOR).sqrt()
        return (windows - level) / scale * self.gain + self.shift, level, scale

    def restore(self, normalised: Tensor, level: Tensor, scale: Tensor) -> Tensor:
        """The inverse, for forecasts (B, H, C)."""
        return (normalised - self.shift) / (self.gain + REVIN_GUARD) * scale + level


class AdaptiveConvs(nn.Module):
    r"""FSNet convolutions of one shape, side by side, each with its own controller and memory.

    The controller reads the slow average g of the kernel's gradient, cut into one chunk per input channel a, and gives
    factors u: one per tap (α) for that channel, and its share of those of the biases (β) and outputs (φ):

    .. math:: u_a = V\, \mathrm{SiLU}(U g_a + c) + e, \qquad
              y_o = φ_o \Bigl( β_o b_o + \sum_{a,j} α_{a,j} K_{o,a,j}\, x_{a,\,t+(j-1)d} \Bigr)

    which is an ordinary convolution with the kernel φ α K and the bias φ β b: that is what this module gives.

    A convolution whose dilation is no less than the window meets only padding at its outer taps. With ``taps`` = 1 it
    holds what belongs to the centre tap alone: outer taps have no gradient, so they would change neither an output nor
    what the controller sees. Factors of the outer taps are kept, since the memory is addressed with them, too.
    """

    slow: Tensor  # g, (n, outputs * inputs * taps)
    fast: Tensor  # f, the same
    address: Tensor  # q, (n, inputs * factors)
    memory: Tensor  # M, (n, inputs * factors, slots)
    own: Tensor  # share of the controller in the factors, (n, 1, 1): 1 where the memory is not in use
    recalled: Tensor  # what the memory adds to the factors, (n, inputs, factors)
    factors: Tensor  # as the newest step left them, (n, inputs, factors)

    def __init__(self, count: int, inputs: int, outputs: int, taps: int, settings: FSNetSettings) -> None:
        super().__init__()
        self.settings, self.taps, self.share = settings, taps, outputs // inputs
        factors, hidden, chunk = KERNEL + 2 * self.share, settings.controller, outputs * KERNEL
        self.kernel = _uniform((count, outputs, inputs, taps), fan_in=inputs * KERNEL)  # K
        self.bias = nn.Parameter(torch.zeros(count, outputs))  # b
        self.inner = _uniform((count, outputs * taps, hidden), fan_in=chunk)  # U
        self.inner_bias = _uniform((count, 1, hidden), fan_in=chunk)  # c
        self.outer = _uniform((count, hidden, factors), fan_in=hidden)  # V
        self.outer_bias = _uniform((count, 1, factors), fan_in=hidden)  # e
        self.register_buffer("slow", torch.zeros(count, outputs * inputs * taps))
        self.register_buffer("fast", torch.zeros(count, outputs * inputs * taps))
        self.register_buffer("address", torch.zeros(count, inputs * factors))
        self.register_buffer("memory", _at_most_unit(torch.randn(count, inputs * factors, settings.slots)))
        self.register_buffer("own", torch.ones(count, 1, 1))
        self.register_buffer("recalled", torch.zeros(count, inputs, factors))
        self.register_buffer("factors", self.controlled().detach())

    def controlled(self) -> Tensor:
        """The factors that the controllers ask for, u: (n, inputs, factors)."""
        chunks = self.slow.view(len(self.slow), self.recalled.shape[1], -1)  # (n, inputs, outputs * taps)
        hidden = functional.silu(torch.baddbmm(self.inner_bias, chunks, self.inner))
        return torch.baddbmm(self.outer_bias, hidden, self.outer)

    def forward(self) -> tuple[Tensor, Tensor]:
        """Kernels (n, outputs, inputs, taps) and biases (n, outputs), with all factors in them."""
        # Factors change in a step only: where no gradient is asked for, those it left need not be made again.
        return self.scaled(self._blended(self.controlled()) if torch.is_grad_enabled() else self.factors)

    def _blended(self, controlled: Tensor) -> Tensor:
        """Factors of the controllers and, where it is in use, of the memory."""
        return torch.addcmul(self.recalled, self.own, controlled)

    def scaled(self, factors: Tensor) -> tuple[Tensor, Tensor]:
        """Kernels and biases under given factors (n, inputs, KERNEL + 2 share)."""
        weight, bias, output = factors.tensor_split([KERNEL, KERNEL + self.share], dim=2)
        if self.taps == 1:
            weight = weight[..., CENTRE : CENTRE + 1]
        output = output.flatten(1)  # (n, outputs): chunk a speaks for outputs a * share ... (a + 1) * share - 1
        return self.kernel * weight[:, None] * output[..., None, None], self.bias * bias.flatten(1) * output

    @torch.no_grad()
    def refresh(self, *, online: bool) -> None:
        r"""Take in the gradient of the step that was just made; call it after each step of the optimiser.

        .. math:: \bar\nabla = \nabla_K \text{ over its norm across inputs}, \quad g ← .9 g + .1 \bar\nabla, \quad
                  f ← .3 f + .7 \bar\nabla, \quad q ← .3 q + .7 u(g)

        Online, a convolution with cos(f, g) < -0.75 asks its memory; what it recalls holds until the next step.
        """
        assert self.kernel.grad is not None  # a step was made
        gradient = _across_inputs(self.kernel.grad).flatten(1)
        self.slow.lerp_(gradient, 1 - self.settings.slow)
        self.fast.lerp_(gradient, 1 - self.settings.fast)
        controlled = self.controlled()
        self.address.lerp_(controlled.flatten(1), 1 - self.settings.fast)
        if online:
            self._recall(functional.cosine_similarity(self.fast, self.slow, dim=1) < self.settings.turn)
        else:
            self.own.fill_(1.0)
            self.recalled.zero_()
        self.factors.copy_(self._blended(controlled))

    def _recall(self, turned: Tensor) -> None:
        r"""Read the memories of convolutions that have turned (n,), then write to the slots that were read.

        .. math:: a = \mathrm{softmax}(q M / 0.5), \quad r = \sum_{k ∈ \text{top } 2} a_k M_k, \quad
                  u ← .75 u + .25 r, \quad M_k ← .75 M_k + .25\, a_k r

        and a memory longer than 1, in Frobenius norm over all slots, is cut to length 1. The public code reads with the
        *numbers* of the slots in place of their attention, which is taken for a slip. A memory begins at random, with
        length 1.
        """
        keep, turned = self.settings.keep, turned[:, None, None]
        attention = torch.softmax(self.address[:, None] @ self.memory / self.settings.temperature, dim=2)
        strength, chosen = attention.topk(self.settings.read)  # (n, 1, read)
        places = chosen.expand(-1, self.memory.shape[1], -1)
        slots = self.memory.gather(2, places)  # (n, inputs * factors, read)
        read = (slots * strength).sum(dim=2, keepdim=True)
        written = self.memory.scatter(2, places, keep * slots + (1 - keep) * read * strength)
        self.memory.copy_(torch.where(turned, _at_most_unit(written), self.memory))
        self.own.copy_(torch.where(turned, keep, 1.0))
        self.recalled.copy_(torch.where(turned, (1 - keep) * read.view_as(self.recalled), 0.0))


class FSNet(nn.Module):
    r"""Residual blocks of growing dilation on the normalised window; a linear layer reads all leads off the newest row.

    .. math:: x ← \mathrm{conv}_2(\mathrm{GELU}(\mathrm{conv}_1(\mathrm{GELU}(x)))) + s(x), \quad d = 1, 2, 4, …, 2^{10}

    with zeros on both sides and s the identity, in the last and wider block a linear map. Calendar features are left
    out: the windows have none.

    Only the newest row is read. It depends on the block of dilation d only through the rows 0, d, 2d, … back from it,
    among which that block is a convolution of dilation 1. So each block is given those rows alone, and its second
    convolution makes every other one, for the next block; from d = 64 on, for windows of 60 rows, the newest row is
    the only one. This changes nothing but the cost: 119 + 60 rows are convolved with three taps in place of 2 x 660.
    """

    def __init__(self, context: int, horizon: int, channels: int, settings: FSNetSettings) -> None:
        super().__init__()
        if context < 2:
            raise TooShortError(f"FSNet cannot normalise windows of {context} row; pass windows of 2 rows or more.")
        self.rows, self.shape = min(settings.rows, context), (horizon, channels)
        width, wide = settings.width, settings.representation
        reaching = math.ceil(math.log2(self.rows))  # blocks whose dilation is shorter than the window
        self.revin = RevIN(channels)
        self.embed = nn.Linear(channels, width)
        self.dilated = AdaptiveConvs(2 * reaching, width, width, KERNEL, settings)
        self.pointwise = AdaptiveConvs(2 * (settings.blocks - 1 - reaching), width, width, 1, settings)
        self.widen = AdaptiveConvs(1, width, wide, 1, settings)
        self.last = AdaptiveConvs(1, wide, wide, 1, settings)
        self.shortcut = nn.Linear(width, wide)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(wide, horizon * channels)

    def forward(self, windows: Tensor) -> Tensor:
        """Forecast standardised windows (B, context, C) as (B, H, C)."""
        normalised, level, scale = self.revin.normalise(windows[:, -self.rows :])
        state = self.dropout(self.represent(normalised))
        return self.revin.restore(self.head(state).view(-1, *self.shape), level, scale)

    def represent(self, rows: Tensor) -> Tensor:
        """What the blocks make of the newest of the rows (B, rows, C): (B, representation)."""
        x = self.embed(rows).transpose(1, 2)  # (B, width, rows)
        for first, second in _blocks(*self.dilated()):
            x = _dilated_block(x, first, second)
        x = x[..., 0]  # (B, width): the newest row is all that is left
        for first, second in _blocks(*self.pointwise()):
            x = x + _pointwise_branch(x, first, second)
        (widen,), (last,) = _convs(*self.widen()), _convs(*self.last())
        return _pointwise_branch(x, widen, last) + cast(Tensor, self.shortcut(x))

    def refresh(self, *, online: bool) -> None:
        """Show every convolution the gradient of the step that was just made."""
        for bank in (self.dilated, self.pointwise, self.widen, self.last):
            bank.refresh(online=online)


def _convs(kernels: Tensor, biases: Tensor) -> list[Conv]:
    return list(zip(kernels.unbind(), biases.unbind(), strict=True))


def _blocks(kernels: Tensor, biases: Tensor) -> list[tuple[Conv, Conv]]:
    """First and second convolution of each block."""
    convs = _convs(kernels, biases)
    return list(zip(convs[::2], convs[1::2], strict=True))


def _dilated_block(x: Tensor, first: Conv, second: Conv) -> Tensor:
    """One block on the rows it needs, (B, width, n), made for every other one back from the newest: half as many."""
    rows = x.shape[2]
    inner = functional.gelu(functional.conv1d(functional.gelu(x), *first, padding=CENTRE))
    branch = functional.conv1d(functional.pad(inner, (rows % 2, CENTRE)), *second, stride=2)
    return branch + x[..., (rows - 1) % 2 :: 2]


def _pointwise_branch(x: Tensor, first: Conv, second: Conv) -> Tensor:
    """The two convolutions of a block that meets only the newest row, (B, width)."""
    for kernel, bias in (first, second):
        x = functional.linear(functional.gelu(x), kernel[..., 0], bias)
    return x


def _uniform(shape: tuple[int, ...], fan_in: int) -> nn.Parameter:
    """The framework's own start of linear layers and convolutions."""
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def _across_inputs(gradient: Tensor) -> Tensor:
    """A gradient (n, outputs, inputs, taps) over its norm across inputs; 0 where that is 0."""
    return gradient * gradient.square().sum(dim=2, keepdim=True).clamp(min=NORM_FLOOR**2).rsqrt()


def _at_most_unit(memories: Tensor) -> Tensor:
    """Memories (..., size, slots), each one longer than 1 as a whole (in Frobenius norm) cut to length 1."""
    return memories / memories.square().sum(dim=(-2, -1), keepdim=True).sqrt().clamp(min=1.0)
