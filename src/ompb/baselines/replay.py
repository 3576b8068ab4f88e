"""Plain online gradient descent, and two forms that replay a small memory of the stream against forgetting.

GD is the naive online learner that every publication compares with. ER: Chaudhry et al., "On Tiny Episodic Memories in
Continual Learning", 2019. DER++: Buzzega et al., "Dark Experience for General Continual Learning", NeurIPS 2020. Both
as later papers on online forecasting run them (FSNet, ICLR 2023; OneNet, NeurIPS 2023; PROCEED, KDD 2025).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ompb.baselines.network import Forecasts, batch, known_mse, load_network, needs_network, trainable
from ompb.baselines.options import with_options
from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.bench.protocols import Clock
from ompb.floor import checks
from ompb.forecasters.torch.base import Backbone
from ompb.forecasters.torch.routine import Routine, adam


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Options of all three; with both weights 0 nothing is remembered. The defaults are PROCEED's for a TCN on ETTh2.

    Continual-learning papers tune the weights per data set; the forecasting papers use 0.2 throughout. The rates:

    ===================================== ============ ===========
    what is learned before forecast t     H <= 24      H > 24
    ===================================== ============ ===========
    complete outcomes up to t - H         1e-5         1e-5
    outcomes that are not over: a leak    1e-4         3e-4
    ===================================== ============ ===========

    Those under a leak are published of GD; ER and DER++, which are GD with a term more, get them here, too.
    """

    rate: float = 1e-5  # of Adam
    label_weight: float = 0.0  # of the error on remembered outcomes
    output_weight: float = 0.0  # of the distance to remembered forecasts
    capacity: int = 500  # windows remembered
    drawn: int = 8  # windows replayed at each step

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.positive, "rate")
        checks.check_fields(self, checks.not_negative, "label_weight", "output_weight")
        checks.check_fields(self, checks.count, "capacity", "drawn")

    def under(self, protocol: str, horizon: int) -> ReplaySettings:
        """The same with the rate that is published for what a protocol shows."""
        if not Clock(protocol, horizon).leaks:
            return dataclasses.replace(self, rate=1e-5)
        return dataclasses.replace(self, rate=1e-4 if horizon <= 24 else 3e-4)

    @property
    def remembers(self) -> bool:
        """Whether anything is replayed."""
        return self.label_weight > 0 or self.output_weight > 0


GD = ReplaySettings()
ER = ReplaySettings(label_weight=0.2)
# The forecasting papers' DER++ has remembered forecasts only. The original adds remembered labels from a second draw:
# pass label_weight=0.2 as well for that.
DER_PLUS_PLUS = ReplaySettings(output_weight=0.2)


class Experience(NamedTuple):
    """One window, or several stacked, with the outcome and what the network forecast when it was learned."""

    window: Tensor  # (context, C)
    outcome: Tensor  # (H, C)
    output: Tensor  # (H, C)


@dataclass(slots=True, eq=False)
class Reservoir:
    r"""A uniform sample of all that was offered, of bounded size.

    The i-th offered (from 1) is kept for certain while there is room, and later with probability capacity / i in place
    of a random one: so each of the i is held with probability min(1, capacity / i).
    """

    capacity: int
    random: np.random.Generator
    offered: int = 0
    held: list[Experience] = field(default_factory=list)

    def offer(self, experience: Experience) -> None:
        """Keep it, or not."""
        self.offered += 1
        if len(self.held) < self.capacity:
            self.held.append(experience)
            return
        place = int(self.random.integers(self.offered))
        if place < self.capacity:
            self.held[place] = experience

    def draw(self, count: int) -> Experience:
        """So many different ones, stacked, or all if there are fewer; at least one must be held."""
        places = self.random.choice(len(self.held), size=min(count, len(self.held)), replace=False)
        return Experience(*(torch.stack(parts) for parts in zip(*(self.held[p] for p in places), strict=True)))


@dataclass(slots=True, eq=False)
class Replay:
    r"""One Adam step on each pair as its outcome is complete, with remembered ones beside it.

    .. math:: \mathrm{MSE}(f_\theta(X), Y) + \alpha\, \mathrm{MSE}(f_\theta(X'), Y')
              + \beta\, \mathrm{MSE}(f_\theta(X''), \hat Y'')

    with (X', Y') and (X'', Y''-hat) two draws from the reservoir, Y''-hat being the forecast when X'' was learned. GD
    has neither term, ER the first, DER++ as published for forecasting the second. Weights and Adam's moments are kept
    along the stream. The publications start from the moments of training, which a forecaster's file does not hold, so
    here they start at zero.
    """

    settings: ReplaySettings
    model: Backbone
    optimiser: torch.optim.Adam
    pairs: Pairs
    memory: Reservoir
    forecast: Forecasts = field(init=False)
    descend: Routine[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.forecast, self.descend = Forecasts(self.model), Routine(self._descend)

    @classmethod
    def start(cls, task: Task, settings: ReplaySettings) -> Replay:
        """Before the stream."""
        model = load_network(task)
        optimiser = adam(trainable(model), settings.rate)
        memory = Reservoir(settings.capacity, np.random.default_rng(task.seed))
        return cls(settings, model, optimiser, Pairs(task.horizon), memory)

    def step(self, snapshot: Snapshot) -> Prediction:
        """Learn the pairs that are complete, then forecast."""
        for pair in self.pairs.completed(snapshot):
            if not np.isnan(pair.outcome).all():  # else Adam would still move, by its moments alone
                self._learn(pair)
        return Prediction(self.forecast(snapshot.window))

    def _learn(self, pair: Pair) -> None:
        windows, outcomes = batch([pair], like=next(self.model.parameters()))
        output = self.descend(windows, outcomes, *self._replayed())
        if self.settings.remembers:
            self.memory.offer(Experience(windows[0], outcomes[0], output))

    def _descend(self, *drawn: Tensor) -> Tensor:
        """A step on windows (n, context, C) and targets (n, H, C), then more of both; the first forecast (H, C)."""
        windows, targets = drawn[::2], drawn[1::2]
        # One pass for all terms: the network treats windows apart from each other.
        forecasts: tuple[Tensor, ...] = self.model(torch.cat(windows)).split([len(some) for some in windows])
        weights = (1.0, *(weight for weight in (self.settings.label_weight, self.settings.output_weight) if weight))
        errors = map(known_mse, forecasts, targets)
        losses = [weight * error for weight, error in zip(weights, errors, strict=False)]  # at first nothing is drawn
        self.optimiser.zero_grad(set_to_none=True)
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        # A copy of its own, not a view that would keep the whole pass.
        return forecasts[0][0].detach().clone()

    def _replayed(self) -> list[Tensor]:
        """Windows and targets of the terms with a weight, each with a draw of its own; none before any is held."""
        settings, drawn = self.settings, list[Tensor]()
        if self.memory.held and settings.label_weight:
            past = self.memory.draw(settings.drawn)
            drawn += [past.window, past.outcome]
        if self.memory.held and settings.output_weight:
            past = self.memory.draw(settings.drawn)
            drawn += [past.window, past.output]
        return drawn


def _published(task: Task, settings: ReplaySettings, options: Mapping[str, Any]) -> Replay:
    return Replay.start(task, with_options(settings.under(task.protocol, task.horizon), options))


@method("gd", unfit=needs_network)
def gd(task: Task, **options: Any) -> Method:
    """Online gradient descent."""
    return _published(task, GD, options)


@method("er", unfit=needs_network)
def er(task: Task, **options: Any) -> Method:
    """Experience replay."""
    return _published(task, ER, options)


@method("der++", unfit=needs_network)
def der_plus_plus(task: Task, **options: Any) -> Method:
    """Dark experience replay."""
    return _published(task, DER_PLUS_PLUS, options)
