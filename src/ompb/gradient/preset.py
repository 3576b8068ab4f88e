"""The paper's two stages with the paper's numbers: fit offline once, then J Adam steps for every revealed outcome."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ompb.errors import ShapeError, StaleRowError
from ompb.forecasters.torch.recipes import usable_device
from ompb.forecasters.torch.routine import Routine, adam
from ompb.forecasters.torch.training import Progress
from ompb.gradient.head import Head, as_inputs
from ompb.gradient.moving import MovingHead, finite
from ompb.gradient.objective import Terms
from ompb.gradient.settings import PaperPreset
from ompb.types import Floats


@dataclass(frozen=True, eq=False)
class GradientHead:
    """The head as the source left it, with its replay windows. Every stream starts from here."""

    head: Head
    places: Tensor  # of the replay windows among those of the source, in time order: (m,)
    inputs: Tensor  # of the replay windows: (C, m, H + 1)
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
        z, y = finite(base, "base", device), finite(outcomes, "outcomes", device)
        if z.ndim != 3 or z.shape != y.shape or z.numel() == 0:
            raise ShapeError(
                f"base has shape {tuple(z.shape)}, outcomes {tuple(y.shape)}; pass both as (N, H, C), with N from 1."
            )
        inputs, by_channel = as_inputs(z), y.permute(2, 0, 1).contiguous()
        generator = torch.Generator().manual_seed(settings.seed)
        kept = torch.randperm(len(z), generator=generator)[: settings.replay].sort().values.to(device)
        head = Head.fresh(z.shape[2], z.shape[1], settings.log_sd, settings.logit, device, settings.gated)
        losses = _train(head, inputs, by_channel, settings, generator, progress)
        return cls(head, kept, inputs[:, kept], by_channel[:, kept], settings, losses)

    def start(self) -> OnlineGradientHead:
        """A stream of its own: this head is never changed by it."""
        return OnlineGradientHead(self)


class OnlineGradientHead:
    """The head on a stream: forecast a window, learn a labelled one, in whatever order the protocol allows."""

    def __init__(self, source: GradientHead) -> None:
        moving = self._moving = MovingHead(source.head, source.inputs, source.outcomes, source.settings)
        self._step = Routine(partial(moving.step, moving.objective))
        channels, _, size = source.inputs.shape
        self._ring = torch.empty((channels, source.settings.ring, size), device=source.inputs.device)  # squared inputs
        self._seen = 0

    @property
    def gate(self) -> float:
        """s, in (0, 1)."""
        return self._moving.gate

    def forecast(self, base: ArrayLike) -> tuple[Floats, Floats]:
        """Mean and standard deviation, each (H, C), for a window's base forecast (H, C), which enters the ring first.

        The variance is the head's own plus, per lead and channel, the mean squared error of the offline head on
        the replay windows.
        """
        inputs = as_inputs(self._moving.window(base, "base")[None])  # (C, 1, H + 1)
        self._ring[:, self._seen % self._ring.shape[1]] = inputs[:, 0].square()
        self._seen += 1
        return self._moving.forecast(inputs)

    def learn(self, base: ArrayLike, outcome: ArrayLike) -> Terms:
        """Take J Adam steps on the loss with this outcome (H, C) of a base forecast; returns its terms before them."""
        moving = self._moving
        inputs = as_inputs(moving.window(base, "base")[None])
        target = moving.window(outcome, "outcome").T[:, None]  # (C, 1, H)
        if self._seen == 0:
            raise StaleRowError("an outcome came before any forecast; call forecast() on the stream's window first.")
        probes = torch.cat([moving.objective.squares, self._ring[:, : self._seen]], dim=1)
        terms = [self._step(moving.noise(), probes, inputs, target) for _ in range(moving.looks)]
        return terms[0]


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
    optimiser = adam(head.parameters(), settings.offline_rate)

    def descend(inputs: Tensor, outcomes: Tensor) -> Tensor:
        law = head.law()
        error = (outcomes - law.forecast(inputs)).square().mean()
        loss = error + (law.kl() + head.gate_penalty()) / windows
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.detach()

    step = Routine(descend)
    cuts = list(range(settings.batch, windows, settings.batch))  # the last batch may be smaller
    losses = []
    for epoch in range(settings.epochs):
        total = torch.zeros((), device=inputs.device)
        batches = torch.randperm(windows, generator=generator).to(inputs.device).tensor_split(cuts)
        for done, batch in enumerate(batches, start=epoch * len(batches) + 1):
            total += step(inputs[:, batch], outcomes[:, batch]) * len(batch)
            if progress is not None:
                progress(done, settings.epochs * len(batches))
        losses.append(total.item() / windows)
    return tuple(losses)
