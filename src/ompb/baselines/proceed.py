"""PROCEED: weights that are shifted, before each forecast, by the drift between recent training data and the present.

Zhao and Shen, "Proactive Model Adaptation Against Concept Drift for Online Time Series Forecasting", KDD 2025.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.optim import Adam

from ompb.baselines.network import batch, known_mse, load_network, needs_network, tensor, trainable
from ompb.bench.contract import Method, Moment, Pairs, Prediction, Task
from ompb.bench.methods import method
from ompb.errors import ForecasterError, NotFiniteError, OptionError, TooShortError
from ompb.forecasters.torch.autoformer import CircularConv
from ompb.forecasters.torch.gpt4ts import Projection
from ompb.forecasters.torch.recipes import usable_device
from ompb.forecasters.torch.tcn import CausalConv

Layer: TypeAlias = nn.Linear | nn.Conv1d | CausalConv | Projection


@dataclass(frozen=True)
class ProceedSettings:
    """PROCEED's settings, the paper's (KDD 2025) unless a comment says otherwise; see `published`.

    The offline phase was published with up to 25 epochs. Each ends in an online run over the validation stream, so that
    25 would take seven minutes on one CPU core with a TCN and 13,800 source windows; the cap here keeps it near two.
    The published runs hold out separate months to validate on; here it is the end of the source.
    """

    concept: int = 200  # numbers that describe a concept; the scripts tune 50 to 200 by data set
    bottleneck: int = 32
    batch: int = 16
    epochs: int = 8
    patience: int = 3  # epochs without a better validation
    offline_rate: float = 3e-3
    steady_epochs: int = 3  # before the offline rate shrinks
    shrinkage: float = 0.9  # of the offline rate, per epoch after those
    online_rate: float = 3e-5
    validation: float = 0.1  # share of the source, the newest rows; ours

    def __post_init__(self) -> None:
        for name in ("concept", "bottleneck", "batch", "epochs", "patience", "steady_epochs"):
            if (count := getattr(self, name)) < 1:
                raise OptionError(f"{name} = {count!r} is not a positive number; pass 1 or more.")
        for name in ("offline_rate", "online_rate"):
            if not 0 < (rate := getattr(self, name)) < math.inf:
                raise OptionError(f"{name} = {rate!r} is not a learning rate; pass something like 1e-4.")
        for name in ("shrinkage", "validation"):
            if not 0 < (share := getattr(self, name)) < 1:
                raise OptionError(f"{name} = {share!r} is not between 0 and 1; pass something like 0.1.")

    @classmethod
    def published(cls, horizon: int) -> ProceedSettings:
        """The general defaults, with the online rate of the published TCN on ETTh2."""
        return cls(online_rate=3e-5 if horizon <= 24 else 3e-6)

    def offline_rate_of(self, epoch: int) -> float:
        """Constant at first, then shrinking; epochs count from 0."""
        return self.offline_rate * self.shrinkage ** max(0, epoch + 1 - self.steady_epochs)


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
    r"""Coefficients of a group of n layers alike, from the drift: two shared matrices, biases for each layer.

    .. math:: a_l = W_2\, \sigma(W_1 \delta + b_{1,l}) + b_{2,l}

    All are 0 at the start, since W2 and b2 are.
    """

    def __init__(self, layers: int, coefficients: int, settings: ProceedSettings) -> None:
        super().__init__()
        bound = 1 / math.sqrt(settings.concept)
        self.inner = nn.Linear(settings.concept, settings.bottleneck, bias=False)  # W1
        self.inner_bias = nn.Parameter(torch.empty(layers, settings.bottleneck).uniform_(-bound, bound))  # b1
        self.outer = nn.Linear(settings.bottleneck, coefficients, bias=False)  # W2
        self.outer_bias = nn.Parameter(torch.zeros(layers, coefficients))  # b2
        nn.init.zeros_(self.outer.weight)

    def forward(self, drift: Tensor) -> Tensor:
        """Map (B, concept) to (B, n, coefficients)."""
        hidden = torch.sigmoid(self.inner(drift)[:, None] + self.inner_bias)  # (B, n, bottleneck)
        coefficients: Tensor = self.outer(hidden) + self.outer_bias
        return coefficients


class Adapted(nn.Module):
    r"""A linear layer or convolution whose inputs, outputs and bias are shifted by coefficients, sample by sample.

    .. math:: y = W_\text{eff}\, x + b + a_\text{bias}, \qquad
              W_\text{eff} = \mathrm{diag}(1 + a_\text{out})\, W\, \mathrm{diag}(1 + a_\text{in})

    W is what the layer applies: for a weight-normalised one the kernel g v / |v|. The scales act on the layer's input
    and output, which is the same and serves one sample as well as many, each with a drift of its own. The layer's bias
    b is frozen: the generator has one of its own in its place. With coefficients 0 it is the layer as it was.
    """

    coefficients: Tensor  # (samples, out + in, and + out if there is a bias); replaced in each forward pass
    bias: Tensor | None

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        self.outputs, self.inputs = sizes(layer)
        self.channels_first = isinstance(layer, nn.Conv1d | CausalConv) and not isinstance(layer, CircularConv)
        size = self.outputs + self.inputs + (0 if layer.bias is None else self.outputs)
        # Not a plain attribute: tensors with a graph behind them could neither be copied nor pickled.
        self.register_buffer("coefficients", next(layer.parameters()).new_zeros(1, size), persistent=False)
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach().clone())
        if layer.bias is not None:  # it must not be scaled: it is added after the layer
            layer.bias = nn.Parameter(torch.zeros_like(layer.bias), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map what the layer maps; the first axis holds the samples, in order, each in one or more places."""
        outward, inward, shift = self.coefficients.tensor_split([self.outputs, self.outputs + self.inputs], dim=1)
        y: Tensor = self.layer(x * self._spread(1 + inward, x))
        scale = self._spread(1 + outward, y)
        return y * scale if self.bias is None else torch.addcmul(self._spread(self.bias + shift, y), y, scale)

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


def adapt(backbone: nn.Module) -> dict[tuple[str, int], list[str]]:
    """Wrap every layer in place; their names, those together that have the same last name and number of coefficients.

    Norms and embeddings stay as they are, and weights that were frozen before, as those of GPT-2, remain so.
    """
    groups: dict[tuple[str, int], list[str]] = {}
    for name, layer in list(backbone.named_modules()):
        if isinstance(layer, Layer):
            parent, _, last = name.rpartition(".")
            adapted = Adapted(layer)
            setattr(backbone.get_submodule(parent), last, adapted)
            groups.setdefault((last, adapted.coefficients.shape[1]), []).append(name)
    return groups


class ProactiveModel(nn.Module):
    r"""A backbone whose layers follow the drift from the concept of recent pairs to that of a window.

    .. math:: \delta = \mathrm{clip}\Bigl(E'(X_t) - \frac1m \sum_{k \in \text{recent}} E(X_k \Vert Y_k)\Bigr)
    """

    def __init__(self, backbone: nn.Module, context: int, horizon: int, settings: ProceedSettings) -> None:
        super().__init__()
        self.window_concept = ConceptEncoder(context, settings.concept)  # E'
        self.pair_concept = ConceptEncoder(context + horizon, settings.concept)  # E
        self.groups = adapt(backbone)
        self.generators = nn.ModuleList(Generator(len(names), n, settings) for (_, n), names in self.groups.items())
        self.backbone = backbone

    def forward(self, windows: Tensor, recent: Tensor) -> Tensor:
        """Forecast windows (B, context, C) after recent stretches (m, context + horizon, C)."""
        drift = clipped(self.window_concept(windows) - self.pair_concept(recent).mean(dim=0))
        coefficients = {
            f"{name}.coefficients": values
            for names, generator in zip(self.groups.values(), self.generators, strict=True)
            for name, values in zip(names, generator(drift).unbind(dim=1), strict=True)
        }
        forecasts: Tensor = functional_call(self.backbone, coefficients, windows, tie_weights=False)
        return forecasts

    def fast(self) -> list[nn.Parameter]:
        """What goes on learning online: the backbone's weights and b2, which stands for its biases."""
        return [*trainable(self.backbone), *(p for name, p in self.named_parameters() if name.endswith("outer_bias"))]

    def slow(self) -> list[nn.Parameter]:
        """What then stands still: both encoders, W1, b1 and W2."""
        others = (p for name, p in self.generators.named_parameters() if not name.endswith("outer_bias"))
        return [*self.window_concept.parameters(), *self.pair_concept.parameters(), *others]


class Learner:
    """The model, what it saw last, and Adam's two halves: their moments are carried from phase to phase."""

    def __init__(self, model: ProactiveModel, context: int, recent: Tensor) -> None:
        self.model, self.context, self.recent = model.eval(), context, recent
        # The moments of the first training are not kept with a network; for wrapped layers they were not used either.
        self.fast, self.slow = (Adam(parameters, fused=True) for parameters in (model.fast(), model.slow()))

    def set_rate(self, rate: float) -> None:
        """Learn at this rate from now on."""
        for group in (*self.fast.param_groups, *self.slow.param_groups):
            group["lr"] = rate

    def fit(self, stretches: Tensor) -> None:
        """One offline step of everything on (B, context + horizon, C), which then are the recent ones."""
        self._descend(stretches, self.fast, self.slow)
        self.recent = stretches

    def learn(self, stretch: Tensor) -> None:
        """One online step of the fast half on (1, context + horizon, C), which then is the recent one.

        Cells of the outcome may be NaN: unknown. The concept needs them all; for those the forecast stands in.
        """
        said = self._descend(stretch, self.fast)
        filled = torch.where(torch.isnan(stretch[:, self.context :]), said, stretch[:, self.context :])
        self.recent = torch.cat([stretch[:, : self.context], filled], dim=1)

    def tune(self, stretch: Tensor) -> None:
        """One step of the slow half on (1, context + horizon, C)."""
        self._descend(stretch, self.slow)

    def forecast(self, windows: Tensor) -> Tensor:
        """What it says of windows (B, context, C)."""
        with torch.inference_mode():
            said: Tensor = self.model(windows, self.recent)
        return said

    def _descend(self, stretches: Tensor, *halves: Adam) -> Tensor:
        """A step of some parameters; returns the forecast before it."""
        windows, outcomes = stretches.tensor_split([self.context], dim=1)
        said: Tensor = self.model(windows, self.recent)
        moved = [parameter for half in halves for group in half.param_groups for parameter in group["params"]]
        known_mse(said, outcomes).backward(inputs=moved)  # type: ignore[no-untyped-call]
        for half in halves:
            half.step()
            half.zero_grad(set_to_none=True)
        return said.detach()


@dataclass(frozen=True, eq=False)
class Source:
    """All stretches of the source, in time order, and which of them are for training and for validation."""

    stretches: Tensor  # (n, context + horizon, C), a view
    context: int
    horizon: int
    held_out: int  # newest rows that no training stretch reaches into

    @classmethod
    def of(cls, task: Task, settings: ProceedSettings, device: torch.device) -> Source:
        """The source of a task. Raises `NotFiniteError` if cells are missing, `TooShortError` if rows are."""
        if np.isnan(task.source).any():
            raise NotFiniteError("the source has missing values, and concepts are learnt of whole rows; fill them.")
        span, held_out = task.context + task.horizon, round(settings.validation * len(task.source))
        if len(task.source) - held_out < span or held_out < task.horizon:
            raise TooShortError(
                f"the source has {len(task.source)} rows, {held_out} of them to validate on; these must be "
                f"{task.horizon} or more, and the others {span} or more: pass a longer source."
            )
        stretches = tensor(task.source, torch.empty(0, device=device)).unfold(0, span, 1).transpose(1, 2)
        return cls(stretches, task.context, task.horizon, held_out)

    @property
    def training(self) -> int:
        """How many stretches, from the oldest, are for training."""
        return len(self.stretches) - self.held_out

    def shuffled(self, size: int) -> Iterator[Tensor]:
        """Training stretches in batches, by torch's random state."""
        order = torch.randperm(self.training).to(self.stretches.device)
        for first in range(0, self.training, size):
            yield self.stretches[order[first : first + size]]

    def online(self) -> Iterator[tuple[Tensor | None, Tensor]]:
        """The validation stream, origin by origin: its stretch, and the one whose outcome has just become complete.

        Past the last origin with an outcome in the source there is no stretch, but outcomes go on becoming complete.
        """
        first = self.training - 1  # its outcome ends where the validation rows begin
        for done in range(first, len(self.stretches)):
            now = done + self.horizon
            yield (self.stretches[now, None] if now < len(self.stretches) else None), self.stretches[done, None]


def train(learner: Learner, source: Source, settings: ProceedSettings) -> Learner:
    """The offline phase: shuffled batches, so that each drifts from the one before; the epoch best online is kept."""
    best, least, waited = learner, math.inf, 0
    for epoch in range(settings.epochs):
        learner.set_rate(settings.offline_rate_of(epoch))
        learner.model.train()
        for stretches in source.shuffled(settings.batch):
            learner.fit(stretches)
        learner.model.eval()
        trial = copy.deepcopy(learner)
        trial.set_rate(settings.online_rate)
        error = validate(trial, source)
        if error < least:
            best, least, waited = copy.deepcopy(learner), error, 0
        elif (waited := waited + 1) == settings.patience:
            break
    if not math.isfinite(least):
        raise ForecasterError(
            f"PROCEED's offline phase diverged; pass an offline_rate below {settings.offline_rate} in its settings."
        )
    return best


def validate(learner: Learner, source: Source) -> float:
    """Mean squared error of the validation stream, forecast online."""
    errors = []
    for now, done in source.online():
        learner.learn(done)
        if now is not None:
            said = learner.forecast(now[:, : source.context])
            errors.append(functional.mse_loss(said, now[:, source.context :]))
    return float(torch.stack(errors).mean())


def replay(learner: Learner, source: Source) -> None:
    """Go online through the validation stream, the slow half learning as well.

    It learns from outcomes that a live run would not have yet. All end inside the source, so none is of the stream.
    """
    for now, done in source.online():
        learner.learn(done)
        if now is not None:
            learner.tune(now)


@dataclass
class Proceed:
    """PROCEED in its online stage."""

    learner: Learner
    pairs: Pairs
    options: ProceedSettings

    @classmethod
    def start(cls, task: Task, settings: ProceedSettings) -> Proceed:
        """Train on the source, replay its end, and be ready for the stream."""
        device = usable_device(task.device)
        source = Source.of(task, settings, device)
        with own_random_state(task.seed, device):  # of initial weights, batches and, offline only, dropout
            model = ProactiveModel(load_network(task), task.context, task.horizon, settings).to(device)
            learner = Learner(model, task.context, recent=next(source.shuffled(settings.batch)))
            learner = train(learner, source, settings)
        learner.set_rate(settings.online_rate)
        replay(learner, source)
        return cls(learner, Pairs(task.horizon), settings)

    @property
    def settings(self) -> Mapping[str, Any]:
        """What it runs with."""
        return dataclasses.asdict(self.options)

    def step(self, moment: Moment) -> Prediction:
        """Learn the pair that is complete, make it the recent one, then forecast by the drift from it."""
        like = self.learner.recent
        for pair in self.pairs.completed(moment):
            if not np.isnan(pair.outcome).all():  # else there is neither an error nor a concept
                self.learner.learn(torch.cat(batch([pair], like), dim=1))
        said = self.learner.forecast(tensor(moment.window, like)[None])[0]
        return Prediction(np.asarray(said.cpu().numpy(), dtype=np.float64))


@contextmanager
def own_random_state(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators, and give them back as they were."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@method("proceed", unfit=needs_network)
def proceed(task: Task) -> Method:
    """PROCEED as published."""
    return Proceed.start(task, ProceedSettings.published(task.horizon))
