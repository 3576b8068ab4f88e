"""Autoformer: series decomposition and auto-correlation, in the OMPB paper's simplified form and the canonical one.

Both share the layers; neither uses calendar features. The paper's tables call the
`SimplifiedAutoformer` Autoformer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone, BackboneConfig


@dataclass(frozen=True)
class AutoformerConfig(BackboneConfig):
    """Sizes of an Autoformer; the defaults are the OMPB paper's."""

    canonical: ClassVar[bool]  # which edge rule, lag selection and place of dropout

    width: int = 64
    heads: int = 4
    hidden: int = 256
    encoder_layers: int = 2
    decoder_layers: int = 1
    average: int = 25  # rows of the moving average: one day and one, for hourly rows
    factor: float = 3.0  # floor(factor ln n) lags are kept of n
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.count("context", self.context, least=2)  # the decoder starts from half of it
        if self.width % self.heads:
            raise checks.refuse("width", self.width, f"a multiple of heads = {self.heads}")
        if self.average % 2 == 0:
            raise checks.refuse("average", self.average, "an odd number of rows, so that one is in the middle")
        # below 2, short sequences would keep no lag at all
        checks.number("factor", self.factor, "a number from 2", 2.0, math.inf, ends=(True, False))

    @property
    def start(self) -> int:
        """Newest rows of the window the decoder starts from: half of it."""
        return self.context // 2


@dataclass(frozen=True)
class SimplifiedAutoformerConfig(AutoformerConfig):
    """The simplified variant behind the OMPB paper's tables."""

    backbone: ClassVar[str] = "autoformer"
    canonical: ClassVar[bool] = False


@dataclass(frozen=True)
class CanonicalAutoformerConfig(AutoformerConfig):
    """The model as first published, without its calendar embedding."""

    backbone: ClassVar[str] = "autoformer-canonical"
    canonical: ClassVar[bool] = True


def decompose(x: Tensor, average: int, canonical: bool) -> tuple[Tensor, Tensor]:
    """Split (B, n, D) in (seasonal, trend), trend being the centred moving average of ``average`` rows.

    Beyond the ends the canonical rule repeats the first and last row; the simplified one takes zeros and still
    divides by ``average``, so that the trend of a constant 1 ends on 13/25 = 0.52.
    """
    side = average // 2
    lanes = x.transpose(1, 2)  # (B, D, n)
    padded = functional.pad(lanes, (side, side), mode="replicate" if canonical else "constant")
    trend = functional.avg_pool1d(padded, average, stride=1).transpose(1, 2)  # (B, n, D)
    return x - trend, trend


def correlate(a: Tensor, b: Tensor) -> Tensor:
    r"""Circular cross-correlation along dimension 1, :math:`R(\tau) = \sum_t a_{(t+\tau) \bmod n}\, b_t`, by FFT."""
    spectrum = torch.fft.rfft(a, dim=1) * torch.fft.rfft(b, dim=1).conj()
    correlation: Tensor = torch.fft.irfft(spectrum, n=a.shape[1], dim=1)
    return correlation


def lag_weights(score: Tensor, keep: int, shared: bool) -> Tensor:
    """Softmax over the ``keep`` largest lags (dimension 1) of a score, zero at all others; same shape.

    ``shared`` picks one set of lags for the whole batch, by the mean score; the weights stay per sample.
    """
    ranking = score.mean(dim=0, keepdim=True).expand_as(score) if shared else score
    lags = ranking.topk(keep, dim=1).indices
    return torch.zeros_like(score).scatter(1, lags, score.gather(1, lags).softmax(dim=1))


class AutoCorrelation(nn.Module):
    r"""Attention over lags in place of steps.

    .. math:: R(\tau) = \sum_t q_{t+\tau} k_t, \qquad
              y_t = \sum_{\tau \in \text{top } \lfloor 3 \ln n \rfloor} \mathrm{softmax}(R)_\tau\, v_{t+\tau}

    with indices modulo n. Since y is itself the correlation of v with the sparse weights, both sums are the same FFT.
    Canonical: keys are cut or zero-padded to the queries' length, R is averaged over heads and channels, a training
    batch shares its lags, dropout comes last. Simplified: all are zero-padded to the longer length, each sample and
    head has lags of its own, dropout comes before the output layer.
    """

    def __init__(self, config: AutoformerConfig) -> None:
        super().__init__()
        self.config = config
        self.query, self.key, self.value, self.out = (nn.Linear(config.width, config.width) for _ in range(4))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """Let (B, n, width) attend to (B, m, width); the result has the shape of ``x``."""
        canonical, length = self.config.canonical, x.shape[1]
        n = length if canonical else max(length, memory.shape[1])
        q, k, v = (self._heads(y, n) for y in (self.query(x), self.key(memory), self.value(memory)))
        score = correlate(q, k).mean(dim=(2, 3) if canonical else (3,), keepdim=True)  # (B, n, 1 or heads, 1)
        keep = min(n, math.floor(self.config.factor * math.log(n)))
        weights = lag_weights(score, keep, shared=canonical and self.training)
        mixed = correlate(v, weights)[:, :length].flatten(2)  # (B, length, width)
        y: Tensor = self.dropout(self.out(mixed)) if canonical else self.out(self.dropout(mixed))
        return y

    def _heads(self, y: Tensor, n: int) -> Tensor:
        resized = functional.pad(y, (0, 0, 0, n - y.shape[1]))  # a negative pad cuts
        return resized.reshape(*resized.shape[:2], self.config.heads, -1)  # (B, n, heads, width / heads)


def feed_forward(config: AutoformerConfig) -> nn.Sequential:
    """Two linear layers with GELU between; the canonical ones have no bias."""
    bias = not config.canonical
    return nn.Sequential(
        nn.Linear(config.width, config.hidden, bias=bias),
        nn.GELU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.hidden, config.width, bias=bias),
        nn.Dropout(config.dropout),
    )


class EncoderLayer(nn.Module):
    """Auto-correlation, then feed-forward; after each only the seasonal part goes on."""

    def __init__(self, config: AutoformerConfig) -> None:
        super().__init__()
        self.config = config
        self.attention = AutoCorrelation(config)
        self.feed_forward = feed_forward(config)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, context, width) to the same shape."""
        average, canonical = self.config.average, self.config.canonical
        x, _ = decompose(x + self.attention(x, x), average, canonical)
        x, _ = decompose(x + self.feed_forward(x), average, canonical)
        return x


class DecoderLayer(nn.Module):
    """Self and cross auto-correlation, then feed-forward; the trends split off after each are summed."""

    def __init__(self, config: AutoformerConfig) -> None:
        super().__init__()
        self.config = config
        self.self_attention = AutoCorrelation(config)
        self.cross_attention = AutoCorrelation(config)
        self.feed_forward = feed_forward(config)

    def forward(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Map (B, start + horizon, width) to (seasonal, sum of trends), both of that shape."""
        average, canonical = self.config.average, self.config.canonical
        x, trend1 = decompose(x + self.self_attention(x, x), average, canonical)
        x, trend2 = decompose(x + self.cross_attention(x, memory), average, canonical)
        x, trend3 = decompose(x + self.feed_forward(x), average, canonical)
        return x, trend1 + trend2 + trend3


def decoder_start(windows: Tensor, config: AutoformerConfig) -> tuple[Tensor, Tensor]:
    """Seasonal and trend (B, start + horizon, C): half a window's parts, then zeros and the window's mean."""
    seasonal, trend = decompose(windows, config.average, config.canonical)
    mean = windows.mean(dim=1, keepdim=True).expand(-1, config.horizon, -1)
    return (
        torch.cat([seasonal[:, -config.start :], torch.zeros_like(mean)], dim=1),
        torch.cat([trend[:, -config.start :], mean], dim=1),
    )


class Autoformer(Backbone):
    """What both have in common but their layers."""

    def low_rank_layers(self) -> tuple[str, ...]:
        """The projections of every auto-correlation, 16 by default."""
        attention = (name for name, module in self.named_modules() if isinstance(module, AutoCorrelation))
        return tuple(f"{name}.{layer}" for name in attention for layer in ("query", "key", "value", "out"))


class SimplifiedAutoformer(Autoformer):
    """The simplified variant: linear embeddings, no normalisation, a trend that lives in the model's width."""

    last_layer = ("seasonal_head", "trend_head")
    config: SimplifiedAutoformerConfig

    def __init__(self, config: SimplifiedAutoformerConfig) -> None:
        super().__init__()
        self.config = config
        channels, width = config.channels, config.width
        self.encoder_embedding = nn.Linear(channels, width)
        self.decoder_embedding = nn.Linear(channels, width)
        self.encoder = nn.Sequential(*(EncoderLayer(config) for _ in range(config.encoder_layers)))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.trend_mixers = nn.ModuleList(nn.Linear(width, width) for _ in range(config.decoder_layers))
        self.seasonal_head = nn.Linear(width, channels)
        self.trend_head = nn.Linear(width, channels)

    def forward(self, windows: Tensor) -> Tensor:
        """Forecast standardised windows."""
        memory = self.encoder(self.encoder_embedding(windows))  # (B, context, width)
        seasonal, trend = (self.decoder_embedding(part) for part in decoder_start(windows, self.config))
        for layer, mix in zip(self.decoder, self.trend_mixers, strict=True):
            seasonal, new_trend = layer(seasonal, memory)  # (B, start + horizon, width)
            trend = trend + mix(new_trend)
        forecast: Tensor = self.seasonal_head(seasonal) + self.trend_head(trend)  # (B, start + horizon, C)
        return forecast[:, -self.config.horizon :]


class CircularConv(nn.Conv1d):
    """Width-3 convolution along time of (B, n, inputs), the ends joined, without bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, kernel_size=3, padding=1, padding_mode="circular", bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, n, inputs) to (B, n, outputs)."""
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class Embedding(CircularConv):
    """Values (B, n, C) to (B, n, width), started Kaiming-normal."""

    def __init__(self, config: AutoformerConfig) -> None:
        super().__init__(config.channels, config.width)
        nn.init.kaiming_normal_(self.weight, mode="fan_in", nonlinearity="leaky_relu")
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Embed, then drop out."""
        y: Tensor = self.dropout(super().forward(x))
        return y


class SeasonalLayerNorm(nn.LayerNorm):
    """LayerNorm over the width, less its mean over time: what is left has no level."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, n, width) to the same shape."""
        y = super().forward(x)
        return y - y.mean(dim=1, keepdim=True)


class CanonicalAutoformer(Autoformer):
    """The canonical model: convolutional embeddings, seasonal layer norms, a trend that stays in the C channels."""

    last_layer = ("head",)
    config: CanonicalAutoformerConfig

    def __init__(self, config: CanonicalAutoformerConfig) -> None:
        super().__init__()
        self.config = config
        channels, width = config.channels, config.width
        self.encoder_embedding = Embedding(config)
        self.decoder_embedding = Embedding(config)
        self.encoder = nn.Sequential(
            *(EncoderLayer(config) for _ in range(config.encoder_layers)), SeasonalLayerNorm(width)
        )
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.trend_mixers = nn.ModuleList(CircularConv(width, channels) for _ in range(config.decoder_layers))
        self.norm = SeasonalLayerNorm(width)
        self.head = nn.Linear(width, channels)

    def forward(self, windows: Tensor) -> Tensor:
        """Forecast standardised windows."""
        memory = self.encoder(self.encoder_embedding(windows))  # (B, context, width)
        seasonal, trend = decoder_start(windows, self.config)  # (B, start + horizon, C)
        x = self.decoder_embedding(seasonal)  # (B, start + horizon, width)
        for layer, mix in zip(self.decoder, self.trend_mixers, strict=True):
            x, new_trend = layer(x, memory)
            trend = trend + mix(new_trend)
        forecast: Tensor = trend + self.head(self.norm(x))  # (B, start + horizon, C)
        return forecast[:, -self.config.horizon :]
