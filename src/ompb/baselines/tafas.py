"""TAFAS and PETSA: calibration of what goes into a frozen forecaster and of what comes out, learned block by block.

At the end of each block of windows, earlier blocks whose outcomes are complete and the part of the outcome of the
block's first window that is known by then are learned; every forecast is issued at its origin with the parameters of
that moment. As published, the end of a block also re-issues the rows still to come of all the block's forecasts. A
method that answers once at each origin cannot express that, so published scores are not comparable with ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ompb.baselines.network import array, known_mse, load_network, needs_network, tensor, trainable
from ompb.baselines.options import with_options
from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.floor import checks
from ompb.forecasters.torch.training import own_random_state
from ompb.types import Floats


@dataclass(frozen=True)
class TafasSettings:
    """TAFAS (Kim et al., AAAI 2025) as published for all data sets, save where a comment says otherwise."""

    gate: float = 0.01  # g at the start; published values are tuned per case, this is the common one
    rate: float = 1e-3  # of Adam; 1e-4 was used for PatchTST
    weight_decay: float = 0.0  # 0 or 1e-4, by case
    steps: int = 1  # of Adam on each block, and on each partial outcome
    periods: int = 1  # in a block
    flat_period: int = 24  # the period of a window without one
    calibrates_input: bool = True  # without it the forecaster is never run, and nothing is differentiated through it

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "steps", "periods", "flat_period")
        checks.check_fields(self, checks.positive, "rate")
        checks.check_fields(self, checks.not_negative, "weight_decay")
        checks.check_fields(self, checks.flag, "calibrates_input")

    def calibration(self, rows: int, channels: int) -> nn.Module:
        """A calibration module for (rows, channels) that changes nothing yet."""
        return GatedCalibration(rows, channels, self.gate)

    def loss(self, forecast: Tensor, outcome: Tensor) -> Tensor:
        """What each step descends, from (n, rows, C) each."""
        return known_mse(forecast, outcome)


@dataclass(frozen=True)
class PetsaSettings(TafasSettings):
    """PETSA (Medeiros et al., PUT workshop at ICML 2025): TAFAS's blocks, with fewer parameters and another loss."""

    rank: int = 16  # 8 to 128 were studied
    huber_delta: float = 0.5
    frequency_weight: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_fields(self, checks.count, "rank")
        checks.check_fields(self, checks.positive, "huber_delta")

    def calibration(self, rows: int, channels: int) -> nn.Module:
        """A calibration module for (rows, channels) that changes nothing yet."""
        return LowRankCalibration(rows, channels, self.rank, self.gate)

    def loss(self, forecast: Tensor, outcome: Tensor) -> Tensor:
        """What each step descends, from (n, rows, C) each."""
        return petsa_loss(forecast, outcome, self.huber_delta, self.frequency_weight)


class GatedCalibration(nn.Module):
    r"""TAFAS's module, for each channel c of x in R^{T x C}.

    .. math:: x_c + \tanh(g_c)\,(W_c^\top x_c + \beta_c), \qquad W_c = 0,\ \beta_c = 0 \text{ at the start.}
    """

    def __init__(self, rows: int, channels: int, gate: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels, rows, rows))  # W
        self.shift = nn.Parameter(torch.zeros(rows, channels))  # beta
        self.gate = nn.Parameter(torch.full((channels,), gate))  # g

    def forward(self, x: Tensor) -> Tensor:
        """Calibrate (n, T, C)."""
        mixed = torch.einsum("cio,nic->noc", self.weight, x)  # W^T x
        return x + torch.tanh(self.gate) * (mixed + self.shift)


class LowRankCalibration(nn.Module):
    r"""PETSA's module, for each channel c of x in R^{T x C}.

    .. math:: x_c + (A B_c)^\top \tanh(g_c x_c) + \beta_c, \qquad B_c = 0,\ \beta_c = 0 \text{ at the start,}

    with A in R^{T x r} shared by the channels and B_c in R^{r x T}.
    """

    def __init__(self, rows: int, channels: int, rank: int, gate: float) -> None:
        super().__init__()
        self.shared = nn.Parameter(torch.empty(rows, rank))  # A
        nn.init.kaiming_uniform_(self.shared, a=math.sqrt(5))  # uniform on +-1 / sqrt(rank)
        self.own = nn.Parameter(torch.zeros(rank, rows, channels))  # B
        self.shift = nn.Parameter(torch.zeros(rows, channels))  # beta
        self.gate = nn.Parameter(torch.full((channels,), gate))  # g

    def forward(self, x: Tensor) -> Tensor:
        """Calibrate (n, T, C)."""
        read = torch.einsum("ir,nic->nrc", self.shared, torch.tanh(self.gate * x))  # A^T tanh(g x)
        return x + torch.einsum("roc,nrc->noc", self.own, read) + self.shift


def petsa_loss(forecast: Tensor, outcome: Tensor, huber_delta: float, frequency_weight: float) -> Tensor:
    r"""PETSA's loss of (n, rows, C) each, with series y_hat and y along the rows.

    .. math::
        \mathrm{Huber}_\delta + w\,\overline{\lvert \mathcal F \hat y - \mathcal F y \rvert}
        - \mathrm{Pearson} + \overline{\lvert \bar{\hat y} - \bar y \rvert}

    Huber's part takes every known cell. The others need whole series: one with a missing cell is left out of them. All
    run along time, which is what the formulas mean. The publication adds a divergence between softmaxed series; as its
    software weighs it, a mean over all cells of probabilities, its gradient is a thousandth of the others' and it is
    left out.
    """
    known = ~torch.isnan(outcome)
    if not known.any():
        return forecast.sum() * 0.0  # nothing to learn, but something to differentiate
    pointwise = functional.huber_loss(forecast[known], outcome[known], delta=huber_delta)
    whole = known.all(dim=1)  # (n, C)
    if not whole.any():
        return pointwise
    forecasts, outcomes = (values.transpose(1, 2)[whole] for values in (forecast, outcome))  # (series, rows)
    return pointwise + frequency_weight * _frequency_gap(forecasts, outcomes) + _shape_gap(forecasts, outcomes)


def _frequency_gap(forecasts: Tensor, outcomes: Tensor) -> Tensor:
    """Mean distance of the Fourier coefficients of (series, rows)."""
    gap: Tensor = torch.fft.rfft(forecasts, dim=1) - torch.fft.rfft(outcomes, dim=1)
    return gap.abs().mean()


def _shape_gap(forecasts: Tensor, outcomes: Tensor) -> Tensor:
    """-Pearson over all cells + mean distance of time means, of (series, rows)."""
    centred, expected = forecasts - forecasts.mean(), outcomes - outcomes.mean()
    pearson = functional.cosine_similarity(centred.flatten(), expected.flatten(), dim=0)
    return -pearson + (forecasts.mean(dim=1) - outcomes.mean(dim=1)).abs().mean()


def dominant_period(window: Floats, flat: int) -> int:
    r"""Rows of the strongest period of a window (L, C), in the channel with the largest mean power.

    .. math:: P = \lfloor L / \arg\max_k \lvert \mathcal F (x_c - \bar x_c) \rvert_k^2 \rfloor

    It is ``flat`` where the strongest bin is the zeroth: the window is constant.
    """
    power = np.abs(np.fft.rfft(window - window.mean(axis=0), axis=0)) ** 2  # (bins, C)
    strongest = int(power[:, power.mean(axis=0).argmax()].argmax())
    return len(window) // strongest if strongest else flat


@dataclass(slots=True, eq=False)
class Block:
    """Consecutive windows ``first`` .. ``last`` that are learned together."""

    first: int
    last: int
    window: Floats  # (L, C), of ``first``
    base: Floats  # (H, C), of ``first``
    rows: list[Floats] = field(default_factory=list)  # (C,) each, after ``first``, up to ``last``
    pairs: list[Pair] = field(default_factory=list)  # those of its windows that are complete

    @property
    def is_complete(self) -> bool:
        """Whether the outcomes of all its windows are known."""
        return len(self.pairs) == self.last - self.first + 1


class Calibrated(nn.Module):
    """A frozen forecaster between two calibrations, or a calibration of its forecast."""

    def __init__(self, task: Task, settings: TafasSettings) -> None:
        super().__init__()
        channels = task.source.shape[1]
        self.forecaster: nn.Sequential | None = None
        if settings.calibrates_input:
            frozen = load_network(task).requires_grad_(False)
            self.forecaster = nn.Sequential(settings.calibration(task.context, channels), frozen)
        self.output = settings.calibration(task.horizon, channels)

    def forward(self, windows: Tensor, base: Tensor) -> Tensor:
        """Forecast windows (n, L, C) for which the forecaster's own forecasts are ``base`` (n, H, C)."""
        forecasts = base if self.forecaster is None else self.forecaster(windows)
        calibrated: Tensor = self.output(forecasts)
        return calibrated


@dataclass(eq=False)
class BlockAdaptation:
    """Both methods: the settings decide the calibration and the loss."""

    settings: TafasSettings
    model: Calibrated
    optimiser: torch.optim.Adam
    pairs: Pairs
    blocks: list[Block] = field(default_factory=list)  # not yet learned, oldest first; the last may still grow

    @classmethod
    def start(cls, task: Task, settings: TafasSettings) -> BlockAdaptation:
        """The method before the first window; there is no offline stage."""
        with own_random_state(task.seed, torch.device("cpu")):
            # The publications put the forecaster in training mode for updates; here it stays in evaluation mode. They
            # also wrap it in a normalisation of each window; here it is the forecaster that all methods share.
            model = Calibrated(task, settings).to(task.device)
        adam = torch.optim.Adam(trainable(model), lr=settings.rate, weight_decay=settings.weight_decay)
        return cls(settings, model, adam, Pairs(task.horizon))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn if a block ends here, then forecast."""
        block = self._block_of(snapshot)
        for pair in self.pairs.completed(snapshot):
            next(waiting for waiting in self.blocks if pair.origin <= waiting.last).pairs.append(pair)
        if snapshot.origin == block.last:
            self._learn_complete_blocks()
            self._learn_partial_outcome(block)
        with torch.inference_mode():
            mean = self._forecast([snapshot.window], [snapshot.base])[0]
        return Prediction(array(mean))

    def _block_of(self, snapshot: Snapshot) -> Block:
        """The block of the window of a snapshot, which opens one after the end of the block before."""
        if self.blocks and snapshot.origin <= self.blocks[-1].last:
            self.blocks[-1].rows.append(snapshot.row)
        else:
            period = self.settings.periods * dominant_period(snapshot.window, self.settings.flat_period)
            self.blocks.append(Block(snapshot.origin, snapshot.origin + period, snapshot.window, snapshot.base))
        return self.blocks[-1]

    def _learn_complete_blocks(self) -> None:
        """Learn all outcomes of each complete block, oldest first, and forget it."""
        for block in self.blocks[:-1]:
            if block.is_complete:
                windows, base, outcomes = zip(*((p.window, p.base, p.outcome) for p in block.pairs), strict=True)
                self._descend(windows, base, np.stack(outcomes))
        self.blocks = [*(block for block in self.blocks[:-1] if not block.is_complete), self.blocks[-1]]

    def _learn_partial_outcome(self, block: Block) -> None:
        """Learn the leads of the block's first window that have come by the block's last origin."""
        self._descend([block.window], [block.base], np.stack(block.rows)[None])

    def _descend(self, windows: Sequence[Floats], base: Sequence[Floats], outcomes: Floats) -> None:
        """Adam on the leads that both the forecasts of windows and ``outcomes`` (n, rows, C) have."""
        leads = min(outcomes.shape[1], base[0].shape[0])
        known = tensor(outcomes[:, :leads], next(self.model.parameters()))
        for _ in range(self.settings.steps):
            self.optimiser.zero_grad(set_to_none=True)
            self.settings.loss(self._forecast(windows, base)[:, :leads], known).backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()

    def _forecast(self, windows: Sequence[Floats], base: Sequence[Floats]) -> Tensor:
        like = next(self.model.parameters())
        forecast: Tensor = self.model(tensor(windows, like), tensor(base, like))
        return forecast


@method("tafas", unfit=needs_network)
def tafas(task: Task, **options: Any) -> Method:
    """TAFAS, each forecast issued at its origin."""
    return BlockAdaptation.start(task, with_options(TafasSettings(), options))


@method("petsa", unfit=needs_network)
def petsa(task: Task, **options: Any) -> Method:
    """PETSA, each forecast issued at its origin."""
    return BlockAdaptation.start(task, with_options(PetsaSettings(), options))
