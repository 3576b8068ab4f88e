"""The paper's two stages with the paper's numbers: fit offline once, then J Adam steps for every revealed outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ompb import checks
from ompb.core.certificate.kinds import Kind
from ompb.errors import DtypeError, NotFiniteError, ShapeError, StaleRowError
from ompb.forecasters.torch.recipes import usable_device
from ompb.forecasters.torch.training import Progress
from ompb.gradient.head import Head, as_inputs
from ompb.gradient.objective import Objective, Terms
from ompb.types import Floats

# Forecasts drawn to choose the disagreement's scale: 496 pairs, so that the choice hardly depends on the seed.
SCALE_DRAWS = 32


@dataclass(frozen=True)
class PaperPreset:
    """Settings of both stages; the defaults are those behind the paper's tables, but for ILI.

    There the paper took batches of 32, offline and of the replay windows, of which here every step takes all.
    """

    # offline
    epochs: int = 20
    batch: int = 256
    offline_rate: float = 1e-3  # of Adam
    logit: float = 0.0  # of the gate before training: s = 0.5
    log_sd: float = 0.0  # of every weight before training

    # online
    steps: int = 5  # J, per outcome
    online_rate: float = 5e-3  # of one Adam for the whole stream
    draws: int = 5  # K
    replay: int = 256  # source windows kept as the anchor, drawn once
    ring: int = 64  # target windows the disagreement looks back on
    kind: str = "freedman"
    delta: float = 0.05
    # "auto" is the root of the replay windows' median gap ||h - h'||^2 / (H C) when the stream starts. The paper's
    # software divides the plain sum ||h - h'||^2 by 5^2 instead: pass 5 / sqrt(H C) for that.
    disagreement_scale: Literal["auto"] | float = "auto"

    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "batch", "steps", "replay", "ring")
        checks.check_fields(self, partial(checks.count, least=0), "epochs")
        checks.check_fields(self, partial(checks.count, least=2), "draws")
        checks.check_fields(self, checks.positive, "offline_rate", "online_rate")
        checks.check_fields(self, checks.share, "delta")
        checks.check_fields(self, checks.seed, "seed")
        checks.choice("kind", self.kind, Kind.tags)
        if self.disagreement_scale != "auto":
            accepted = "'auto', or a positive number"
            checks.number("disagreement_scale", self.disagreement_scale, accepted, 0, math.inf, ends=(False, False))


@dataclass(frozen=True, eq=False)
class GradientHead:
    """The head as the source left it, with its replay windows. Every stream starts from here."""

    head: Head
    inputs: Tensor  # of the replay windows, in time order: (C, m, H + 1)
    outcomes: Tensor  # (C, m, H)
    settings: PaperPreset
    losses: tuple[float, ...]  # mean training loss of each epoch

    @classmethod
    def fit(
        cls,
        base: ArrayLike,
        outcomes: ArrayLike,
        settings: PaperPreset | None = None,
        progress: Progress | None = None,
    ) -> GradientHead:
        r"""Train the head on N source windows in time order: base forecasts and outcomes, each (N, H, C), standardised.

        .. math:: \tfrac1{HC}\, \mathrm{mean}_w \lVert y - \bar h(w) \rVert^2 + \mathrm{KL}(\rho \Vert \pi) / N

        The likelihood sees the mean forecast only, so the KL alone moves the standard deviations, up towards the
        prior's. ``progress(done, total)`` is called after every batch. The seed decides the result, on a CPU to the
        bit; torch's own random state is neither used nor changed.
        """
        settings = settings or PaperPreset()
        device = usable_device(settings.device)
        z, y = _tensor(base, "base", device), _tensor(outcomes, "outcomes", device)
        if z.ndim != 3 or z.shape != y.shape or z.numel() == 0:
            raise ShapeError(
                f"base has shape {tuple(z.shape)}, outcomes {tuple(y.shape)}; pass both as (N, H, C), with N from 1."
            )
        inputs, by_channel = as_inputs(z), y.permute(2, 0, 1).contiguous()
        generator = torch.Generator().manual_seed(settings.seed)
        kept = torch.randperm(len(z), generator=generator)[: settings.replay].sort().values.to(device)
        head = Head.fresh(z.shape[2], z.shape[1], settings.log_sd, settings.logit, device)
        losses = _train(head, inputs, by_channel, settings, generator, progress)
        return cls(head, inputs[:, kept], by_channel[:, kept], settings, losses)

    def start(self) -> OnlineGradientHead:
        """A stream of its own: this head is never changed by it."""
        return OnlineGradientHead(self)


class OnlineGradientHead:
    """The head on a stream: forecast a window, learn a labelled one, in whatever order the protocol allows."""

    def __init__(self, source: GradientHead) -> None:
        settings = self._settings = source.settings
        self._head, device = source.head.copy(), source.inputs.device
        self._adam = torch.optim.Adam(self._head.parameters(), lr=settings.online_rate, fused=True)
        channels, _, size = source.inputs.shape
        self._shape = size - 1, channels
        self._generator = torch.Generator(device).manual_seed(settings.seed)
        self._ring = torch.empty((channels, settings.ring, size), device=device)  # squared inputs
        self._seen = 0
        tau_d = None if settings.disagreement_scale == "auto" else float(settings.disagreement_scale)
        with torch.no_grad():
            law = self._head.law()
            self._residual_variance = (source.outcomes - law.forecast(source.inputs)).square().mean(dim=1)  # (C, H)
            self._objective = Objective.at_start(
                law, source.inputs, source.outcomes, self._noise(SCALE_DRAWS), tau_d, settings.kind, settings.delta
            )

    @property
    def gate(self) -> float:
        """s, in (0, 1)."""
        return torch.sigmoid(self._head.logit).item()

    def forecast(self, base: ArrayLike) -> tuple[Floats, Floats]:
        """Mean and standard deviation, each (H, C), for a window's base forecast (H, C), which enters the ring first.

        The variance is the head's own plus, per lead and channel, the mean squared error of the offline head on
        the replay windows.
        """
        inputs = as_inputs(self._window(base, "base")[None])  # (C, 1, H + 1)
        squares = inputs.square()
        self._ring[:, self._seen % self._settings.ring] = squares[:, 0]
        self._seen += 1
        with torch.no_grad():
            law = self._head.law()
            mean, variance = law.forecast(inputs)[:, 0], law.output_variance(squares)[:, 0]
            sd = (variance + self._residual_variance).sqrt()
        return _array(mean), _array(sd)

    def learn(self, base: ArrayLike, outcome: ArrayLike) -> Terms:
        """Take J Adam steps on the loss with this outcome (H, C) of a base forecast; returns its terms before them."""
        inputs = as_inputs(self._window(base, "base")[None])
        target = self._window(outcome, "outcome").T[:, None]  # (C, 1, H)
        if self._seen == 0:
            raise StaleRowError("an outcome came before any forecast; call forecast() on the stream's window first.")
        probes = torch.cat([self._objective.squares, self._ring[:, : self._seen]], dim=1)
        terms = [self._step(probes, inputs, target) for _ in range(self._settings.steps)]
        return terms[0]

    def _step(self, probes: Tensor, inputs: Tensor, outcome: Tensor) -> Terms:
        """One Adam step; returns the terms before it."""
        terms = self._objective.terms(self._head, probes, self._noise(self._settings.draws), inputs, outcome)
        self._adam.zero_grad()
        terms.loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        return Terms(*(term.detach() for term in terms))

    def _noise(self, draws: int) -> Tensor:
        """Standard normals (draws, C, H)."""
        shape = (draws, *self._residual_variance.shape)
        return torch.randn(shape, generator=self._generator, device=self._ring.device)

    def _window(self, values: ArrayLike, name: str) -> Tensor:
        tensor = _tensor(values, name, self._ring.device)
        if tensor.shape != self._shape:
            raise ShapeError(
                f"{name} has shape {tuple(tensor.shape)}; this head was fitted for (H, C) = {self._shape}."
            )
        return tensor


def _train(
    head: Head,
    inputs: Tensor,
    outcomes: Tensor,
    settings: PaperPreset,
    generator: torch.Generator,
    progress: Progress | None,
) -> tuple[float, ...]:
    """Adam over all windows once an epoch, in random order; returns the mean loss of each epoch."""
    windows = inputs.shape[1]
    adam = torch.optim.Adam(head.parameters(), lr=settings.offline_rate, fused=True)
    cuts = list(range(settings.batch, windows, settings.batch))  # the last batch may be smaller
    losses = []
    for epoch in range(settings.epochs):
        total = torch.zeros((), device=inputs.device)
        batches = torch.randperm(windows, generator=generator).to(inputs.device).tensor_split(cuts)
        for done, batch in enumerate(batches, start=epoch * len(batches) + 1):
            law = head.law()
            error = (outcomes[:, batch] - law.forecast(inputs[:, batch])).square().mean()
            loss = error + (law.kl() + head.gate_penalty()) / windows
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
            total += loss.detach() * len(batch)
            if progress is not None:
                progress(done, settings.epochs * len(batches))
        losses.append(total.item() / windows)
    return tuple(losses)


def _tensor(values: ArrayLike, name: str, device: torch.device) -> Tensor:
    """A float32 copy of finite values."""
    try:
        array = np.array(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"{name} does not hold numbers; pass an array of floats.") from error
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name} is missing or infinite somewhere; this head needs every value of a window.")
    return torch.from_numpy(array).to(device)


def _array(by_channel: Tensor) -> Floats:
    """(C, H) as an (H, C) array in float64."""
    return by_channel.T.double().cpu().numpy()
