"""SOLID: before each forecast, fit the last layer to past windows that resemble the present one, then forget it.

Chen et al., "Calibration of Time-Series Forecasting: Detecting and Adapting Context-Driven Distribution Shift", KDD
2024. SOLID++ keeps the retrieval and trains the whole network without forgetting: the strong form of it in Zhao and
Shen, "Proactive Model Adaptation Against Concept Drift for Online Time Series Forecasting" (PROCEED), KDD 2025.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.func import functional_call

from ompb.baselines.network import (
    Forecasts,
    array,
    known_mse,
    load_forecaster,
    load_network,
    needs_network,
    tensor,
    trainable,
)
from ompb.baselines.options import with_options
from ompb.baselines.retrieval import Pool, SearchSettings
from ompb.bench.contract import Conditions, Method, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.errors import NotFiniteError, TooShortError
from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone
from ompb.forecasters.torch.routine import Routine, adam
from ompb.types import Floats

BINS = 50  # of the published detector's histograms
WEEKLY = 52  # season of weekly data


@dataclass(frozen=True, slots=True, kw_only=True)
class SolidSettings(SearchSettings):
    """Options of SOLID; the defaults are those of the authors' scripts for ETTh2.

    The rate is a factor times the rate at which the backbone itself was trained. Published factors: ETTh1 100, ETTh2
    20, weather 5, ILI 2. A task does not say which data it is of: weekly data get ILI's, all other ETTh2's, and weather
    needs ``factor=5``. On a network without normalisation whose data have moved far, 100 makes forecasts diverge.
    """

    factor: float = 20.0
    rate: float | None = None  # eta; None: factor x the backbone's own rate. If given, it decides, and not the factor
    keeps: bool = False  # whether each step goes on from the one before, and not from the trained weights

    @classmethod
    def published(cls, season: int | None) -> SolidSettings:
        """What the authors' scripts say for ILI where data are weekly, else for ETTh2."""
        return cls(candidates=200, neighbours=3, factor=2.0) if season == WEEKLY else cls()

    @classmethod
    def continual(cls, season: int | None) -> SolidSettings:
        """The same with steps that are kept, at the rates that the authors' factors gave on their own networks.

        Those were trained at 1e-4 on ETTh2 and at 2.5e-3 on ILI. No publication has this form.
        """
        rate = 2 * 2.5e-3 if season == WEEKLY else 20 * 1e-4
        return dataclasses.replace(cls.published(season), rate=rate, keeps=True)

    def __post_init__(self) -> None:
        SearchSettings.__post_init__(self)
        checks.check_fields(self, checks.positive, "factor", *(() if self.rate is None else ("rate",)))
        checks.check_fields(self, checks.flag, "keeps")

    def on(self, training_rate: float) -> SolidSettings:
        """With both the rate and the factor that it is of the backbone's own."""
        if self.rate is None:
            return dataclasses.replace(self, rate=self.factor * training_rate)
        return dataclasses.replace(self, factor=self.rate / training_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolidPlusPlusSettings(SearchSettings):
    """Options of SOLID++; the defaults are PROCEED's for a TCN on ETTh2, of whose two rates (1e-4 too) the lower."""

    rate: float = 1e-5  # of Adam

    @classmethod
    def published(cls, season: int | None) -> SolidPlusPlusSettings:
        """SOLID's search with PROCEED's rate."""
        search = SolidSettings.published(season)
        return cls(candidates=search.candidates, neighbours=search.neighbours)

    def __post_init__(self) -> None:
        SearchSettings.__post_init__(self)
        checks.check_fields(self, checks.positive, "rate")


def summed_mse(forecasts: Tensor, outcomes: Tensor) -> Tensor:
    """Sum over samples (n, H, C) of each one's mean squared error over the cells that are known."""
    known = ~torch.isnan(outcomes)
    squares = torch.where(known, forecasts - torch.where(known, outcomes, 0.0), 0.0) ** 2
    return (squares.sum(dim=(1, 2)) / known.sum(dim=(1, 2)).clamp(min=1)).sum()


def one_linear_layer(model: Backbone) -> dict[str, nn.Parameter]:
    """Weight and bias of the one linear layer that is adapted, by name.

    Of an Autoformer with two heads that is the seasonal one: the trend's path is never touched. For GPT4TS no layer is
    published; it is the one that maps all tokens to all leads.
    """
    inside = f"{model.last_layer[0]}."
    return {name: weights for name, weights in model.last_layer_parameters().items() if name.startswith(inside)}


@dataclass(slots=True, eq=False)
class Solid:
    r"""One gradient step of the last layer theta for each forecast, always from the trained weights.

    .. math:: \theta' = \theta - \eta \sum_{i=1}^{n} \nabla_\theta \mathrm{MSE}(f_\theta(X_i), Y_i)

    over the pairs retrieved, n or fewer; the forecast is that of theta'. While none qualifies it is that of theta.
    With ``keeps``, theta' takes the place of theta.
    """

    settings: SolidSettings
    model: Backbone  # changed in the last layer only, and only where steps are kept
    last_layer: dict[str, nn.Parameter]
    pool: Pool
    forecast: Forecasts = field(init=False)
    forecast_stepped: Routine[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.forecast, self.forecast_stepped = Forecasts(self.model), Routine(self._forecast_stepped)

    @classmethod
    def start(cls, task: Task, settings: SolidSettings) -> Solid:
        """Before the stream. Freezes all but the last layer, so that no graph is kept for the rest."""
        trained = load_forecaster(task)
        model = trained.model.requires_grad_(False)
        last_layer = one_linear_layer(model)
        for parameter in last_layer.values():
            parameter.requires_grad_(True)
        return cls(settings.on(trained.training.learning_rate), model, last_layer, Pool.start(task, settings))

    @property
    def rate(self) -> float:
        """The rate of its steps."""
        assert self.settings.rate is not None  # it is known once there is a backbone
        return self.settings.rate

    def set_rate(self, rate: float) -> None:
        """Step at this rate from now on."""
        self.settings = dataclasses.replace(self.settings, rate=rate).on(self.rate / self.settings.factor)
        self.forecast_stepped.forget()

    def step(self, snapshot: Snapshot) -> Prediction:
        """Retrieve, step the last layer, forecast with it."""
        retrieved = self.pool.take_in_and_retrieve(snapshot)
        if retrieved is None:
            return Prediction(self.forecast(snapshot.window) if self.settings.keeps else snapshot.base)
        tensors = (self._tensor(values) for values in (*retrieved, snapshot.window[None]))
        return Prediction(array(self.forecast_stepped(*tensors)[0]))

    def _forecast_stepped(self, windows: Tensor, outcomes: Tensor, newest: Tensor) -> Tensor:
        """The forecast (1, H, C) of the newest window, (1, context, C), by theta'."""
        stepped = self.stepped(windows, outcomes)
        with torch.no_grad():
            if self.settings.keeps:
                for name, weights in stepped.items():
                    self.last_layer[name].copy_(weights)
            forecasts: Tensor = functional_call(self.model, stepped, newest)
        return forecasts

    def stepped(self, windows: Tensor, outcomes: Tensor) -> dict[str, Tensor]:
        """The last layer theta', by name, after the step on pairs (n, context, C) and (n, H, C)."""
        loss = summed_mse(self.model(windows), outcomes)
        gradients = torch.autograd.grad(loss, list(self.last_layer.values()))
        return {
            name: weights.detach() - self.rate * gradient
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
    forecast: Forecasts = field(init=False)
    descend: Routine[None] = field(init=False)

    def __post_init__(self) -> None:
        self.forecast, self.descend = Forecasts(self.model), Routine(self._descend)

    @classmethod
    def start(cls, task: Task, settings: SolidPlusPlusSettings) -> SolidPlusPlus:
        """Before the stream."""
        model = load_network(task)
        optimiser = adam(trainable(model), settings.rate)
        return cls(settings, model, optimiser, Pool.start(task, settings))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Retrieve, train if any pair qualifies, forecast."""
        retrieved = self.pool.take_in_and_retrieve(snapshot)
        if retrieved is not None:
            like = next(self.model.parameters())
            self.descend(*(tensor(values, like) for values in retrieved))
        return Prediction(self.forecast(snapshot.window))

    def _descend(self, windows: Tensor, outcomes: Tensor) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        known_mse(self.model(windows), outcomes).backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()


def _not_continued(conditions: Conditions) -> str | None:
    if not conditions.continues:
        return "the stream does not go on where the source ends, so the source has no candidates for it"
    return needs_network(conditions)


@method("solid", unfit=needs_network)
def solid(task: Task, **options: Any) -> Method:
    """SOLID with the published settings."""
    return Solid.start(task, with_options(SolidSettings.published(task.season), options))


@method("solid+history", unfit=_not_continued)
def solid_with_history(task: Task, **options: Any) -> Method:
    """SOLID whose first candidates are the source's newest windows, for a stream that goes on from it."""
    made = Solid.start(task, with_options(SolidSettings.published(task.season), options))
    made.pool.fill(task)
    return made


@method("solid-continual", unfit=needs_network)
def solid_continual(task: Task, **options: Any) -> Method:
    """SOLID's steps, kept."""
    return Solid.start(task, with_options(SolidSettings.continual(task.season), options))


@method("solid++", unfit=needs_network)
def solid_plus_plus(task: Task, **options: Any) -> Method:
    """SOLID++ with the published settings."""
    return SolidPlusPlus.start(task, with_options(SolidPlusPlusSettings.published(task.season), options))


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
