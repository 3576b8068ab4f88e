"""OneNet: the backbone and an FSNet side by side, both trained online, under weights that follow their errors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

from ompb.baselines.fsnet import FSNet, FSNetSettings
from ompb.baselines.fsnet_training import in_bulk, parts, pretrain, set_rate
from ompb.baselines.network import (
    array,
    batch,
    known_mse,
    load_network,
    needs_network,
    source_pairs,
    tensor,
    trainable,
)
from ompb.baselines.options import with_options
from ompb.bench.contract import Method, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone, probability
from ompb.forecasters.torch.routine import Routine, adam, adamw
from ompb.forecasters.torch.training import own_random_state

LongTerm: TypeAlias = Literal["adam", "exponentiated"]


@dataclass(frozen=True)
class OneNetSettings:
    """OneNet (Wen et al., OneNet: Enhancing Time Series Forecasting Models under Concept Drift, NeurIPS 2023).

    The form that takes any backbone: its two branches are the backbone and an FSNet under RevIN, each trained offline
    on its own. Published after that is a joint phase of up to 25 epochs. The losses of the branches do not meet there,
    so for them it is more of the same training: it is left out, and the weights alone are trained for one epoch. Nor is
    a validation stream replayed: every row before the stream belongs to the source. What optimisers remember goes with
    them from phase to phase, save the backbone's, of which no file holds it.
    """

    # Of AdamW, for both branches. Around a foreign backbone 1e-7 to 3e-6 are published (on ETTh2 3e-6 with PatchTST and
    # 1e-7 with iTransformer); 3e-4, "onenet-fsnet-rate", is of two FSNets. None: as in the original, whose rate halves
    # after each epoch of FSNet's training, and online is what is left of it.
    rate: float | None = 3e-6
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
        checks.check_fields(self, checks.positive, *(() if self.rate is None else ("rate",)), "weight_rate", "exponent")
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
        self.network_optimiser = adam(self.network.parameters(), settings.weight_rate)
        self.long = nn.Parameter(torch.zeros(channels, device=device))  # w, (C,)
        self.long_optimiser = adam([self.long], settings.weight_rate)
        self.short = torch.zeros_like(self.long.data)  # b, (C,): of the newest pair

    def start(self) -> None:
        """Trust both alike, in the long and in the short term; what the network and both optimisers know stays."""
        self.long.data.zero_()
        self.short.zero_()

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
        self.short.copy_(short.detach()[-1])

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
    optimisers: tuple[torch.optim.Optimizer, torch.optim.Optimizer]  # of the backbone and of FSNet
    pairs: Pairs

    def __post_init__(self) -> None:
        self._descend, self._forward = Routine(self._learn), Routine(self._forecast)

    @classmethod
    def start(cls, task: Task, settings: OneNetSettings) -> OneNet:
        """Train FSNet and then the weights on the source; the backbone comes trained."""
        if settings.rate is None:
            settings = dataclasses.replace(settings, fsnet=dataclasses.replace(settings.fsnet, halves=True))
        backbone = load_network(task)
        like = next(backbone.parameters())
        windows, outcomes = (tensor(np.ascontiguousarray(part), like) for part in source_pairs(task))
        channels = task.source.shape[1]
        with own_random_state(task.seed, like.device):
            fsnet = FSNet(task.context, task.horizon, channels, settings.fsnet).to(like.device)
            fsnet_optimiser = pretrain(fsnet, windows[:, -fsnet.rows :], outcomes, settings.fsnet)
            weights = Weights(task.horizon, channels, settings, like.device)
            forecasts = tensor(np.array(task.source_base), like), in_bulk(fsnet, windows)
            _train_weights(weights, *forecasts, outcomes)
        left = float(fsnet_optimiser.param_groups[0]["lr"])
        optimisers = adamw(trainable(backbone), left), fsnet_optimiser
        made = cls(settings, backbone, fsnet, weights, optimisers, Pairs(task.horizon))
        made.set_rate(left if settings.rate is None else settings.rate)
        return made

    @property
    def rate(self) -> float:
        """The rate of its online steps."""
        assert self.settings.rate is not None  # it is known once FSNet is trained
        return self.settings.rate

    def set_rate(self, rate: float) -> None:
        """Let both branches learn at this rate from now on."""
        self.settings = dataclasses.replace(self.settings, rate=rate)
        for optimiser in self.optimisers:
            set_rate(optimiser, rate)
        self._descend.forget()

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn the pairs that are newly complete, then forecast."""
        for pair in self.pairs.completed(snapshot):
            if not np.isnan(pair.outcome).all():  # else an optimiser would move by its momentum alone
                self._descend(*batch([pair], self.weights.long))
        return Prediction(array(self._forward(tensor(snapshot.window, self.weights.long)[None])[0]))

    def _learn(self, window: Tensor, outcome: Tensor) -> None:
        r"""One step on both branches, then on the weights under what the branches had forecast before it.

        .. math:: \min \lVert y_1 - y \rVert^2 + \lVert y_2 - y \rVert^2
        """
        first, second = self._branches(window)
        for optimiser, forecast in zip(self.optimisers, (first, second), strict=True):  # which share no weight
            _descend(optimiser, known_mse(forecast, outcome))
        self.fsnet.refresh(online=True)
        self.weights.learn(first.detach(), second.detach(), outcome)

    def _forecast(self, windows: Tensor) -> Tensor:
        with torch.no_grad():
            return self.weights.mix(*self._branches(windows))

    def _branches(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """What the backbone and FSNet forecast of windows (B, context, C): (B, H, C) each."""
        return cast(Tensor, self.backbone(windows)), cast(Tensor, self.fsnet(windows))


def _train_weights(weights: Weights, first: Tensor, second: Tensor, outcomes: Tensor) -> None:
    """Visit every source window in random order, as often as the settings say; then start them for the stream."""
    weights.network.train()
    learn = Routine(weights.learn)
    for _ in range(weights.settings.weight_epochs):
        for places in parts(torch.randperm(len(outcomes)), weights.settings.batch):
            learn(first[places], second[places], outcomes[places])
    weights.network.eval()
    weights.start()


@method("onenet", unfit=needs_network)
def onenet(task: Task, **options: Any) -> Method:
    """OneNet with the published settings."""
    return OneNet.start(task, with_options(OneNetSettings(), options))


@method("onenet-fsnet-rate", unfit=needs_network)
def onenet_fsnet_rate(task: Task, **options: Any) -> Method:
    """OneNet with the online rate that is published for two FSNets."""
    return OneNet.start(task, with_options(OneNetSettings(rate=3e-4), options))
