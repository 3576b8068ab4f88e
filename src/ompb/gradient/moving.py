"""The head as Adam moves it along a stream, whoever makes its inputs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ompb.errors import DtypeError, NotFiniteError, ShapeError
from ompb.forecasters.torch.routine import Routine, adam
from ompb.gradient.head import Head
from ompb.gradient.objective import Objective, Terms
from ompb.gradient.settings import PaperPreset
from ompb.types import Floats

# Forecasts drawn to choose the disagreement's scale: 496 pairs, so that the choice hardly depends on the seed.
SCALE_DRAWS = 32


class MovingHead:
    """A copy of the offline head, one Adam for the whole stream, and what the replay windows fix once it starts.

    ``beside`` are other parameters that the same Adam moves.
    """

    def __init__(
        self, head: Head, inputs: Tensor, outcomes: Tensor, settings: PaperPreset, beside: Iterable[Tensor] = ()
    ) -> None:
        self.settings = settings
        self._head, self._device = head.copy(), inputs.device
        self._adam = adam([*self._head.parameters(), *beside], settings.online_rate)
        self._law = Routine(self._forecast)
        self._shape = inputs.shape[2] - 1, inputs.shape[0]
        self._generator = torch.Generator(self._device).manual_seed(settings.seed)
        tau_d = None if settings.disagreement_scale == "auto" else float(settings.disagreement_scale)
        with torch.no_grad():
            law = self._head.law()
            self._residual_variance = (outcomes - law.forecast(inputs)).square().mean(dim=1)  # (C, H)
            self.objective = Objective.at_start(
                law,
                inputs,
                outcomes,
                self._noise(SCALE_DRAWS),
                tau_d,
                settings.kind,
                settings.delta,
                tau_d_factor=settings.tau_d_factor,
                variance_factor=settings.variance_factor,
                mode=settings.disagreement,
            )

    @property
    def gate(self) -> float:
        """s, in (0, 1)."""
        return self._head.gate.item()

    def forecast(self, inputs: Tensor) -> tuple[Floats, Floats]:
        """Mean and standard deviation, each (H, C), for the inputs (C, 1, H + 1) of a window."""
        mean, sd = self._law(inputs).mT.double().cpu().numpy()
        return mean, sd

    def _forecast(self, inputs: Tensor) -> Tensor:
        """Both as one, (2, C, H)."""
        with torch.no_grad():
            law = self._head.law()
            mean, variance = law.forecast(inputs)[:, 0], law.output_variance(inputs.square())[:, 0]
            return torch.stack([mean, (variance + self._residual_variance).sqrt()])

    @property
    def looks(self) -> int:
        """How often the loss of an outcome is read: once for each step, and once if there are none."""
        return max(1, self.settings.steps)

    def noise(self) -> Tensor:
        """What the forecasts of a step are drawn with, (K, C, H)."""
        return self._noise(self.settings.draws)

    def step(self, objective: Objective, noise: Tensor, probes: Tensor, inputs: Tensor, outcome: Tensor) -> Terms:
        """One Adam step, if any are to be taken; returns the terms before it. See `Objective.terms` for the shapes."""
        terms = objective.terms(self._head, probes, noise, inputs, outcome)
        if self.settings.steps:
            self._adam.zero_grad()
            loss = terms.loss if self.settings.certified else terms.supervised
            loss.backward()  # type: ignore[no-untyped-call]
            self._adam.step()
        return Terms(*(term.detach() for term in terms))

    def window(self, values: ArrayLike, name: str) -> Tensor:
        """Values (H, C), checked, on the device."""
        tensor = finite(values, name, self._device)
        if tensor.shape != self._shape:
            raise ShapeError(
                f"{name} has shape {tuple(tensor.shape)}; this head was fitted for (H, C) = {self._shape}."
            )
        return tensor

    def _noise(self, draws: int) -> Tensor:
        """Standard normals (draws, C, H)."""
        shape = (draws, *self._residual_variance.shape)
        return torch.randn(shape, generator=self._generator, device=self._device)


def finite(values: ArrayLike, name: str, device: torch.device) -> Tensor:
    """A float32 copy of finite values."""
    try:
        array = np.array(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"{name} does not hold numbers; pass an array of floats.") from error
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name} is missing or infinite somewhere; this head needs every value of a window.")
    return torch.from_numpy(array).to(device)
