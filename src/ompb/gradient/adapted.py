"""The paper's head and a part of the backbone, moved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ompb.errors import ShapeError, StaleRowError
from ompb.forecasters.torch.base import Backbone
from ompb.forecasters.torch.routine import Routine
from ompb.gradient.head import as_inputs
from ompb.gradient.moving import MovingHead, finite
from ompb.gradient.objective import Terms, WindowRisk
from ompb.gradient.preset import GradientHead
from ompb.types import Floats


class OnlineAdaptedHead:
    r"""The head on a stream whose base forecasts move: :math:`z = f_\theta(x)`, and Adam descends in theta, too.

    .. math:: L(t; \rho, \theta) = R + \Gamma + \tfrac12 \big| D_S - D_T \big|
       + \tfrac1{HC} \lVert y_t - \bar h(f_\theta(x_t)) \rVert^2

    with R, D_S and D_T on what the present backbone says of the replay windows and of the ring: all of them are
    forecast again for each of the J steps. One Adam with one rate moves head and theta. Scales and Gamma's summary of
    the source stay those of the start, and the backbone stays in evaluation mode.
    """

    def __init__(
        self, source: GradientHead, backbone: Backbone, adapted: Sequence[nn.Parameter], replay: ArrayLike
    ) -> None:
        """``replay`` are the windows (m, context, C) at ``source.places``, ``adapted`` the parameters theta.

        Both the head's and the backbone's inputs are standardised. The backbone is changed by learning.
        """
        device = source.inputs.device
        self._backbone = backbone.requires_grad_(False).eval()
        for parameter in adapted:
            parameter.requires_grad_()
        self._moving = MovingHead(source.head, source.inputs, source.outcomes, source.settings, adapted)
        self._replay, self._outcomes = finite(replay, "replay", device), source.outcomes
        expected = len(source.places), backbone.config.context, backbone.config.channels
        if self._replay.shape != expected:
            raise ShapeError(f"replay has shape {tuple(self._replay.shape)}; pass the replay windows, {expected}.")
        self._ring = torch.empty((source.settings.ring, *expected[1:]), device=device)
        self._seen = 0
        self._learn, self._forward = Routine(self._step), Routine(self._inputs)

    @property
    def gate(self) -> float:
        """s, in (0, 1)."""
        return self._moving.gate

    def forecast(self, window: ArrayLike) -> tuple[Floats, Floats]:
        """Mean and standard deviation, each (H, C), for a window (context, C), which enters the ring first."""
        rows = self._window(window)
        self._ring[self._seen % len(self._ring)] = rows
        self._seen += 1
        with torch.no_grad():
            inputs = self._forward(rows[None])
        return self._moving.forecast(inputs)

    def learn(self, window: ArrayLike, outcome: ArrayLike) -> Terms:
        """Take J Adam steps on the loss with the outcome (H, C) of a window; returns its terms before them."""
        rows, target = self._window(window), self._moving.window(outcome, "outcome").T[:, None]  # (C, 1, H)
        if self._seen == 0:
            raise StaleRowError("an outcome came before any forecast; call forecast() on the stream's window first.")
        windows = torch.cat([self._replay, self._ring[: self._seen], rows[None]])
        terms = [self._learn(self._moving.noise(), windows, target) for _ in range(self._moving.looks)]
        return terms[0]

    def _step(self, noise: Tensor, windows: Tensor, target: Tensor) -> Terms:
        """One step on the replay windows, the ring and, last, the window whose outcome is the target."""
        inputs = self._inputs(windows)  # (C, m + n + 1, H + 1)
        risk = WindowRisk(inputs[:, : len(self._replay)], self._outcomes)
        objective = replace(self._moving.objective, risk=risk)
        return self._moving.step(objective, noise, inputs[:, :-1].square(), inputs[:, -1:], target)

    def _inputs(self, windows: Tensor) -> Tensor:
        return as_inputs(self._backbone(windows))

    def _window(self, values: ArrayLike) -> Tensor:
        rows = finite(values, "window", self._ring.device)
        if rows.shape != self._ring.shape[1:]:
            raise ShapeError(
                f"window has shape {tuple(rows.shape)}; pass (context, C) = {tuple(self._ring.shape[1:])}."
            )
        return rows
