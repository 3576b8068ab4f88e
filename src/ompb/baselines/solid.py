"""SOLID: before each forecast, fit the last layer to past windows that resemble the present one, then forget it.

Chen et al., "Calibration of Time-Series Forecasting: Detecting and Adapting Context-Driven Distribution Shift", KDD
2024. SOLID++ keeps the retrieval and trains the whole network without forgetting: the strong form of it in Zhao and
Shen, "Proactive Model Adaptation Against Concept Drift for Online Time Series Forecasting" (PROCEED), KDD 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.func import functional_call

from ompb import checks
from ompb.baselines.network import array, forecast, known_mse, load_network, needs_network, tensor, trainable
from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.errors import NotFiniteError, TooShortError
from ompb.forecasters.torch.base import Backbone
from ompb.types import Floats

BINS = 50  # of the published detector's histograms
WEEKLY = 52  # season of weekly data


@dataclass(frozen=True, slots=True)
class SolidSettings:
    """Options of SOLID; the defaults are those of the authors' scripts for ETTh2."""

    candidates: int = 1000  # N: the newest windows with an outcome, among which is searched
    neighbours: int = 10  # n: how many of them are learned from
    phase_tolerance: float = 0.1  # lambda_P, as a share of the season
    # The paper speaks of a small difference in phase; the published numbers were made with a remainder that only
    # lets candidates through which are a little more than whole seasons old. True accepts a little less as well.
    two_sided: bool = False
    # The rate 1e-4 of the authors' trainings times a factor: ETTh1 100, ETTh2 20, ETTm1 and Weather 5, ILI 2.
    learning_rate: float = 1e-4 * 20

    @classmethod
    def published(cls, season: int | None) -> SolidSettings:
        """What the authors' scripts say for ILI where data are weekly, else for ETTh2."""
        return cls(candidates=200, neighbours=3, learning_rate=1e-4 * 2) if season == WEEKLY else cls()

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "neighbours")
        checks.check_fields(self, partial(checks.count, least=self.neighbours), "candidates")
        checks.number("phase_tolerance", self.phase_tolerance, "a number from 0 to 1", 0, 1, ends=(True, True))
        checks.check_fields(self, checks.flag, "two_sided")
        checks.check_fields(self, checks.positive, "learning_rate")


@dataclass(frozen=True, slots=True)
class SolidPlusPlusSettings(SolidSettings):
    """Options of SOLID++; the defaults are PROCEED's for a TCN on ETTh2, of whose two rates (1e-4 too) the lower."""

    learning_rate: float = 1e-5  # of Adam

    @classmethod
    def published(cls, season: int | None) -> SolidPlusPlusSettings:
        """SOLID's search with PROCEED's rate."""
        search = SolidSettings.published(season)
        return cls(candidates=search.candidates, neighbours=search.neighbours)


@dataclass(slots=True, eq=False)
class Pool:
    r"""The newest N windows of the stream that have an outcome, and the search among them.

    For the window of origin t, the candidate of origin k is in phase if

    .. math:: (t - k) \bmod p \le \lambda_P\, p,

    two-sided: if that remainder or p less it is. Of those in phase, the n with the least Euclidean distance
    :math:`\lVert X_t - X_k \rVert` over all rows and channels are retrieved.
    """

    settings: SolidSettings
    season: int  # p; 1 lets every candidate through
    pairs: Pairs
    windows: Floats  # (N, context, C), a ring
    outcomes: Floats  # (N, H, C)
    origins: NDArray[np.int64]  # (N,)
    added: int = 0

    @classmethod
    def start(cls, task: Task, settings: SolidSettings) -> Pool:
        """An empty one: a new domain has no matured windows before its stream starts."""
        size, channels = settings.candidates, task.source.shape[1]
        windows, outcomes = (np.zeros((size, rows, channels)) for rows in (task.context, task.horizon))
        pairs = Pairs(task.horizon)
        return cls(settings, task.season or 1, pairs, windows, outcomes, np.zeros(size, dtype=np.int64))

    def take_in_and_retrieve(self, snapshot: Snapshot) -> tuple[Floats, Floats] | None:
        """Take in the pairs that a snapshot completes, then `retrieve`."""
        for pair in self.pairs.completed(snapshot):
            self.add(pair)
        return self.retrieve(snapshot)

    def add(self, pair: Pair) -> None:
        """Take a pair in, in place of the oldest if full. One without any known cell has nothing to teach."""
        if np.isnan(pair.outcome).all():
            return
        place = self.added % len(self.origins)
        self.windows[place], self.outcomes[place], self.origins[place] = pair.window, pair.outcome, pair.origin
        self.added += 1

    def retrieve(self, snapshot: Snapshot) -> tuple[Floats, Floats] | None:
        """Windows (n, context, C) and outcomes (n, H, C), nearest first; None if fewer than n are in phase."""
        (places,) = np.nonzero(self._in_phase(snapshot.origin))
        if len(places) < self.settings.neighbours:
            return None
        gaps = (self.windows[places] - snapshot.window).reshape(len(places), -1)  # (candidates, context * C)
        squares = np.einsum("ij,ij->i", gaps, gaps)
        nearest = places[np.argsort(squares, kind="stable")[: self.settings.neighbours]]
        return self.windows[nearest], self.outcomes[nearest]

    def _in_phase(self, origin: int) -> NDArray[np.bool_]:
        remainder = (origin - self.origins[: self.added]) % self.season
        if self.settings.two_sided:
            remainder = np.minimum(remainder, self.season - remainder)
        return remainder <= self.settings.phase_tolerance * self.season


def summed_mse(forecasts: Tensor, outcomes: Tensor) -> Tensor:
    """Sum over samples (n, H, C) of each one's mean squared error over the cells that are known."""
    known = ~torch.isnan(outcomes)
    squares = torch.where(known, forecasts - torch.where(known, outcomes, 0.0), 0.0) ** 2
    return (squares.sum(dim=(1, 2)) / known.sum(dim=(1, 2)).clamp(min=1)).sum()


@dataclass(slots=True, eq=False)
class Solid:
    r"""One gradient step of the last layer theta for each forecast, always from the trained weights.

    .. math:: \theta' = \theta - \eta \sum_{i=1}^{n} \nabla_\theta \mathrm{MSE}(f_\theta(X_i), Y_i)

    over the n retrieved pairs; the forecast is that of theta'. While fewer than n pairs qualify it is the
    base forecast.
    """

    settings: SolidSettings
    model: Backbone  # never changed
    last_layer: dict[str, nn.Parameter]
    pool: Pool

    @classmethod
    def start(cls, task: Task, settings: SolidSettings) -> Solid:
        """Before the stream. Freezes all but the last layer, so that no graph is kept for the rest."""
        model = load_network(task).requires_grad_(False)
        last_layer = model.last_layer_parameters()
        for parameter in last_layer.values():
            parameter.requires_grad_(True)
        return cls(settings, model, last_layer, Pool.start(task, settings))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Retrieve, step the last layer, forecast with it."""
        retrieved = self.pool.take_in_and_retrieve(snapshot)
        if retrieved is None:
            return Prediction(snapshot.base)
        stepped = self.stepped(*retrieved)
        with torch.inference_mode():
            mean: Tensor = functional_call(self.model, stepped, self._tensor(snapshot.window[None]))[0]
        return Prediction(array(mean))

    def stepped(self, windows: Floats, outcomes: Floats) -> dict[str, Tensor]:
        """The last layer theta', by name, after the step on pairs (n, context, C) and (n, H, C)."""
        loss = summed_mse(self.model(self._tensor(windows)), self._tensor(outcomes))
        gradients = torch.autograd.grad(loss, list(self.last_layer.values()))
        rate = self.settings.learning_rate
        return {
            name: weights.detach() - rate * gradient
            for (name, weights), gradient in zip(self.last_layer.items(), gradients, strict=True)
        }

    def _tensor(self, values: Floats) -> Tensor:
        return tensor(values, like=next(iter(self.last_layer.values())))


@dataclass(slots=True, eq=False)
class SolidPlusPlus:
    r"""One Adam step of every trainable weight theta before each forecast, on the retrieved pairs.

    .. math:: \theta_t = \mathrm{Adam}\Bigl(\theta_{t-1},\;
              \nabla_\theta \frac{1}{n} \sum_{i=1}^{n} \mathrm{MSE}(f_\theta(X_i), Y_i)\Bigr)

    Weights and Adam's moments are kept along the stream. The publication starts from the moments of training, which a
    forecaster's file does not hold, so here they start at zero; and it steps with dropout, which is off here.
    """

    settings: SolidPlusPlusSettings
    model: Backbone
    optimiser: torch.optim.Adam
    pool: Pool

    @classmethod
    def start(cls, task: Task, settings: SolidPlusPlusSettings) -> SolidPlusPlus:
        """Before the stream."""
        model = load_network(task)
        optimiser = torch.optim.Adam(trainable(model), lr=settings.learning_rate, fused=True)
        return cls(settings, model, optimiser, Pool.start(task, settings))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Retrieve, train if enough pairs qualify, forecast."""
        retrieved = self.pool.take_in_and_retrieve(snapshot)
        if retrieved is not None:
            self._learn(*retrieved)
        return Prediction(forecast(self.model, snapshot.window))

    def _learn(self, windows: Floats, outcomes: Floats) -> None:
        like = next(self.model.parameters())
        self.optimiser.zero_grad(set_to_none=True)
        loss = known_mse(self.model(tensor(windows, like)), tensor(outcomes, like))
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()


@method("solid", unfit=needs_network)
def solid(task: Task) -> Method:
    """SOLID with the published settings."""
    return Solid.start(task, SolidSettings.published(task.season))


@method("solid++", unfit=needs_network)
def solid_plus_plus(task: Task) -> Method:
    """SOLID++ with the published settings."""
    return SolidPlusPlus.start(task, SolidPlusPlusSettings.published(task.season))


def reconditionor(residuals: ArrayLike, season: int, bins: int = BINS) -> float:
    r"""How much the law of a forecaster's residuals depends on the phase of the season, in nats.

    .. math:: \frac{1}{p} \sum_{j=0}^{p-1} \mathrm{KL}(P_j \,\Vert\, P)

    with P the histogram of all residuals, on equal bins from the least to the greatest, and P_j that of the windows
    whose index modulo p is j. Where phases are equally frequent this is the mutual information of residual and phase,
    from 0 (independent) to log p. Large means that adapting to the context is worth it. It is looked at once per data
    set, on the source's windows, and does not switch single forecasts on or off.

    ``residuals`` (n, ...) are forecast less outcome by window in time order; NaN is left out. Raises `TooShortError`
    if a phase has no residual, `NotFiniteError` for an infinite one, `OptionError` for a season or bins below 1.

    >>> round(reconditionor([0.0, 1.0, 0.0, 1.0], season=2), 4)  # log 2
    0.6931
    >>> reconditionor([0.0, 0.0, 1.0, 1.0], season=2)
    0.0
    """
    checks.count("season", season)
    checks.count("bins", bins)
    values = np.asarray(residuals, dtype=np.float64)
    if np.isinf(values).any():
        raise NotFiniteError("residuals are infinite in places; pass finite numbers, with NaN for missing ones.")
    groups = [values[phase::season] for phase in range(season)]
    if any(np.isnan(group).all() for group in groups):  # true of an empty one, too
        raise TooShortError(
            f"{len(values)} windows leave some of the {season} phases without residuals; pass at least one of each."
        )
    ends = (float(np.nanmin(values)), float(np.nanmax(values)))
    counts = np.stack([np.histogram(group, bins, ends)[0] for group in groups])  # (p, bins); NaN falls in no bin
    by_phase = counts / counts.sum(axis=1, keepdims=True)
    overall = counts.sum(axis=0) / counts.sum()
    filled = by_phase > 0  # 0 log 0 = 0
    ratios = np.divide(by_phase, overall, out=np.ones_like(by_phase), where=filled)
    return float((by_phase * np.log(ratios)).sum(axis=1).mean())
