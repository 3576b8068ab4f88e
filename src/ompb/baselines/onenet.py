"""OneNet: the backbone and an FSNet side by side, both trained online, under weights that follow their errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

from ompb import checks
from ompb.baselines.fsnet import FSNet, FSNetSettings, in_bulk, parts, pretrain
from ompb.baselines.network import array, batch, known_mse, load_network, needs_network, source_pairs, tensor, trainable
from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.forecasters.torch.base import Backbone, probability
from ompb.forecasters.torch.training import own_random_state
from ompb.types import Floats

LongTerm: TypeAlias = Literal["adam", "exponentiated"]


@dataclass(frozen=True)
class OneNetSettings:
    """OneNet (Wen et al., OneNet: Enhancing Time Series Forecasting Models under Concept Drift, NeurIPS 2023).

    The form that takes any backbone: its two branches are the backbone and an FSNet under RevIN, each trained offline
    on its own. Published after that is a joint phase of up to 25 epochs. The losses of the branches do not meet there,
    so for them it is more of the same training: it is left out, and the weights alone are trained for one epoch. Nor is
    a validation stream replayed: every row before the stream belongs to the source.
    """

    # One rate for both branches. Published for ETTh2 are 3e-4 with FSNet as the backbone (H = 48) and 3e-6 with
    # PatchTST (H = 24). The first, since an FSNet is a branch of every run here and PatchTST of none.
    rate: float = 3e-4  # of AdamW
    # How the long-term weights move: "adam" as in the public code, "exponentiated" as in the paper.
    long_term: LongTerm = "adam"
    weight_rate: float = 1e-3  # of the Adams of the long-term weights and of the short-term network
    exponent: float = 0.5  # of "exponentiated"
    hidden: int = 32  # units in each of two layers of the short-term network
    dropout: float = 0.1  # of the short-term network, offline only
    batch: int = 32  # offline
    weight_epochs: int = 1  # offline
    fsnet: FSNetSettings = field(default_factory=FSNetSettings)

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.positive, "rate", "weight_rate", "exponent")
        checks.check_fields(self, checks.count, "hidden", "batch")
        checks.check_fields(self, partial(checks.count, least=0), "weight_epochs")
        checks.check_fields(self, probability, "dropout")
        checks.choice("long_term", self.long_term, get_args(LongTerm))


def mixture(first: Tensor, second: Tensor, logit: Tensor) -> Tensor:
    r"""Both forecasts (B, H, C) under a logit per channel, (C,) or (B, C).

    .. math:: \hat y = g\, y_1 + (1 - g)\, y_2, \qquad g = σ(\text{logit})
    """
    share = torch.sigmoid(logit).unsqueeze(-2)  # (1, C) or (B, 1, C)
    return share * first + (1 - share) * second


def channel_mse(forecast: Tensor, outcome: Tensor) -> Tensor:
    """Mean squared error of each channel, (C,), over the cells that are known; 0 where none is."""
    known = ~torch.isnan(outcome)
    squares = torch.where(known, forecast - outcome, 0.0) ** 2
    return squares.sum(dim=(0, 1)) / known.sum(dim=(0, 1)).clamp(min=1)


class Weights:
    """What decides between two forecasts, channel by channel: a long-term logit w and a short-term correction b.

    Forecasts that it learns from must carry no gradient.
    """

    def __init__(self, horizon: int, channels: int, settings: OneNetSettings, device: torch.device) -> None:
        self.settings = settings
        hidden, dropout = settings.hidden, settings.dropout
        self.network = nn.Sequential(  # applied to each channel by itself
            nn.Linear(3 * horizon, hidden),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        ).to(device)
        self.network_optimiser = torch.optim.Adam(self.network.parameters(), lr=settings.weight_rate, fused=True)
        self.long = nn.Parameter(torch.zeros(channels, device=device))  # w, (C,)
        self.start()

    def start(self) -> None:
        """Trust both alike, in the long and in the short term; what the short-term network has learned stays."""
        self.long.data.zero_()
        self.short = torch.zeros_like(self.long.data)  # b, (C,): of the newest pair
        self.long_optimiser = torch.optim.Adam([self.long], lr=self.settings.weight_rate)

    def learn(self, first: Tensor, second: Tensor, outcome: Tensor) -> None:
        """Take in forecasts and outcomes (B, H, C): first the short term, under the long-term logit as it was."""
        self._learn_short(first, second, outcome)
        self._learn_long(first, second, outcome)

    def _learn_short(self, first: Tensor, second: Tensor, outcome: Tensor) -> None:
        r"""A step on the short-term network, which sees the outcome, so that at a forecast b is that of the last pair.

        .. math:: b = \mathrm{MLP}[σ(w) y_1;\ (1 - σ(w)) y_2;\ y], \qquad
                  \min_{\mathrm{MLP}} \lVert σ(w + b) y_1 + (1 - σ(w + b)) y_2 - y \rVert^2
        """
        long = self.long.detach()
        share = torch.sigmoid(long)
        # A missing cell is shown as if the mixture had been right, so that it speaks for neither forecast.
        shown = torch.where(torch.isnan(outcome), mixture(first, second, long), outcome)
        seen = torch.cat([share * first, (1 - share) * second, shown], dim=1)  # (B, 3H, C)
        short: Tensor = self.network(seen.transpose(1, 2))[..., 0]  # (B, C)
        _descend(self.network_optimiser, known_mse(mixture(first, second, long + short), outcome))
        self.short = short.detach()[-1]

    def _learn_long(self, first: Tensor, second: Tensor, outcome: Tensor) -> None:
        r"""Move w, leaving b aside: by a step of Adam on the error of its mixture, or by exponentiated gradient.

        .. math:: \min_w \lVert σ(w) y_1 + (1 - σ(w)) y_2 - y \rVert^2, \qquad \text{or} \qquad
                  p_i ← \frac{p_i e^{-\ell_i / 2}}{\sum_j p_j e^{-\ell_j / 2}}

        with :math:`p = (σ(w), 1 - σ(w))` and the mean squared error :math:`\ell_i` of forecast i in the channel. In
        terms of the logit the second is :math:`w ← w - (\ell_1 - \ell_2) / 2`, which cannot overflow.
        """
        if self.settings.long_term == "adam":
            _descend(self.long_optimiser, known_mse(mixture(first, second, self.long), outcome))
        else:
            ahead = channel_mse(first, outcome) - channel_mse(second, outcome)
            self.long.data -= self.settings.exponent * ahead

    def mix(self, first: Tensor, second: Tensor) -> Tensor:
        """The forecast (B, H, C) of both."""
        return mixture(first, second, self.long + self.short)


def _descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step down a loss."""
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


@dataclass
class OneNet:
    """Both branches and their weights, in the online stage."""

    settings: OneNetSettings
    backbone: Backbone
    fsnet: FSNet
    weights: Weights
    optimiser: torch.optim.Optimizer
    pairs: Pairs

    @classmethod
    def start(cls, task: Task, settings: OneNetSettings) -> OneNet:
        """Train FSNet and then the weights on the source; the backbone comes trained."""
        backbone = load_network(task)
        like = next(backbone.parameters())
        windows, outcomes = (tensor(np.ascontiguousarray(part), like) for part in source_pairs(task))
        channels = task.source.shape[1]
        with own_random_state(task.seed, like.device):
            fsnet = FSNet(task.context, task.horizon, channels, settings.fsnet).to(like.device)
            pretrain(fsnet, windows[:, -fsnet.rows :], outcomes, settings.fsnet)
            weights = Weights(task.horizon, channels, settings, like.device)
            forecasts = tensor(np.array(task.source_base), like), in_bulk(fsnet, windows)
            _train_weights(weights, *forecasts, outcomes)
        # It starts afresh: no file holds the state of the optimiser that trained the backbone. Weight decay is AdamW's.
        both = [*trainable(backbone), *fsnet.parameters()]
        optimiser = torch.optim.AdamW(both, lr=settings.rate, fused=True)
        return cls(settings, backbone, fsnet, weights, optimiser, Pairs(task.horizon))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn the pairs that are newly complete, then forecast."""
        for pair in self.pairs.completed(snapshot):
            if not np.isnan(pair.outcome).all():  # else an optimiser would move by its momentum alone
                self._learn(pair)
        return Prediction(self._forecast(snapshot.window))

    def _learn(self, pair: Pair) -> None:
        r"""One step on both branches, then on the weights under what the branches had forecast before it.

        .. math:: \min \lVert y_1 - y \rVert^2 + \lVert y_2 - y \rVert^2
        """
        window, outcome = batch([pair], self.weights.long)
        first, second = self._branches(window)
        _descend(self.optimiser, known_mse(first, outcome) + known_mse(second, outcome))
        self.fsnet.refresh(online=True)
        self.weights.learn(first.detach(), second.detach(), outcome)

    def _forecast(self, window: Floats) -> Floats:
        with torch.inference_mode():
            forecast = self.weights.mix(*self._branches(tensor(window, self.weights.long)[None]))[0]
        return array(forecast)

    def _branches(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """What the backbone and FSNet forecast of windows (B, context, C): (B, H, C) each."""
        return cast(Tensor, self.backbone(windows)), cast(Tensor, self.fsnet(windows))


def _train_weights(weights: Weights, first: Tensor, second: Tensor, outcomes: Tensor) -> None:
    """Visit every source window in random order, as often as the settings say; then start them for the stream."""
    weights.network.train()
    for _ in range(weights.settings.weight_epochs):
        for places in parts(torch.randperm(len(outcomes)), weights.settings.batch):
            weights.learn(first[places], second[places], outcomes[places])
    weights.network.eval()
    weights.start()


@method("onenet", unfit=needs_network)
def onenet(task: Task) -> Method:
    """OneNet with the published settings."""
    return OneNet.start(task, OneNetSettings())
