"""Trivial corrections that every comparison shows beside the real ones.

Each is stepped once per origin t, right after row t became known, with the window that ends in row t and the
frozen forecaster's base forecast of origin t. It is shown nothing else, so it cannot leak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ompb.errors import OptionError
from ompb.forecasters import SeasonalProfile
from ompb.types import Floats


class Reference(Protocol):
    """One forecast per row."""

    def step(self, row: Floats, window: Floats, base: Floats) -> Floats:
        """Forecast (H, C) of origin t from row t (C,), its window (context, C) and base forecast (H, C)."""


class Original:
    """The base forecast as it is."""

    def step(self, row: Floats, window: Floats, base: Floats) -> Floats:  # noqa: ARG002
        """Return ``base``, (H, C)."""
        return base


@dataclass(frozen=True, slots=True)
class Profile:
    """The window's seasonal profile instead of the base forecast."""

    season: int

    def step(self, row: Floats, window: Floats, base: Floats) -> Floats:  # noqa: ARG002
        """Mean over the window's whole seasons, tiled to (H, C)."""
        return np.asarray(SeasonalProfile(len(base), self.season)(window[None])[0])


class LastValue:
    """The window's last row instead of the base forecast."""

    def step(self, row: Floats, window: Floats, base: Floats) -> Floats:  # noqa: ARG002
        """Row t at every lead, (H, C)."""
        return np.tile(window[-1], (len(base), 1))


class RunningBias:
    r"""The base forecast plus an exponentially weighted mean of its past errors, per lead and channel.

    .. math:: b_h \leftarrow b_h + \text{rate}\,(x_t - z_{t-h,h} - b_h), \qquad \hat y_{t+h} = z_{t,h} + b_h

    where z_{k,h} is lead h of the base forecast of origin k. Starts at 0; missing values are not learned.

    >>> reference = RunningBias(rate=0.5)
    >>> window, base = np.zeros((1, 1)), np.zeros((2, 1))
    >>> for row in (7.0, 8.0, 8.0):  # the first row has no forecast yet, the second only one of lead 1
    ...     print(reference.step(np.array([row]), window, base).ravel())
    [0. 0.]
    [4. 0.]
    [6. 4.]
    """

    def __init__(self, rate: float = 0.05) -> None:
        if not 0 < rate <= 1:
            raise OptionError(f"rate = {rate} is not in (0, 1]; pass something like 0.05.")
        self.rate = rate
        self._residuals: _Residuals | None = None
        self._bias: Floats | None = None

    def step(self, row: Floats, window: Floats, base: Floats) -> Floats:  # noqa: ARG002
        """Learn the leads that ``row`` reveals, then correct ``base``, (H, C)."""
        if self._residuals is None or self._bias is None:
            self._residuals, self._bias = _Residuals(base.shape), np.zeros(base.shape)
        surprise = self._residuals.reveal(row) - self._bias
        self._bias += self.rate * np.where(np.isnan(surprise), 0.0, surprise)
        self._residuals.issue(base)
        return base + self._bias


class CopyResidual:
    r"""The base forecast plus the newest residual that is fully revealed, that of origin t - H.

    .. math:: \hat y_{t+h} = z_{t,h} + (x_{t-H+h} - z_{t-H,h})

    Before the first outcome is complete, and in missing cells, nothing is added.
    """

    def __init__(self) -> None:
        self._residuals: _Residuals | None = None

    def step(self, row: Floats, window: Floats, base: Floats) -> Floats:  # noqa: ARG002
        """Correct ``base``, (H, C), by the residual that ``row`` completes."""
        if self._residuals is None:
            self._residuals = _Residuals(base.shape)
        self._residuals.reveal(row)
        residual = self._residuals.oldest()
        self._residuals.issue(base)
        return base + np.where(np.isnan(residual), 0.0, residual)


class _Residuals:
    """The last H base forecasts, whose cells turn into residuals in place as rows reveal them.

    ``cells[k % H]`` belongs to origin k. NaN means never issued or never revealed, so the start of the stream
    needs no special case.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        horizon = shape[0]
        self.cells = np.full((horizon, *shape), np.nan)
        self.leads = np.arange(1, horizon + 1)
        self.origin = 0

    def reveal(self, row: Floats) -> Floats:
        """Residuals (H, C) that the new row reveals: lead h of origin t - h."""
        due = (self.origin - self.leads) % len(self.cells), self.leads - 1
        self.cells[due] = row - self.cells[due]
        return np.asarray(self.cells[due])

    def oldest(self) -> Floats:
        """Residuals (H, C) of origin t - H, whose outcome is now complete."""
        return np.array(self.cells[self.origin % len(self.cells)])

    def issue(self, base: Floats) -> None:
        """Remember the base forecast of origin t in the place of origin t - H."""
        self.cells[self.origin % len(self.cells)] = base
        self.origin += 1


def references(season: int) -> dict[str, Reference]:
    """A fresh instance of every reference, by the name that tables show.

    >>> list(references(season=24))
    ['original', 'seasonal profile', 'last value', 'running bias', 'copied residual']
    """
    return {
        "original": Original(),
        "seasonal profile": Profile(season),
        "last value": LastValue(),
        "running bias": RunningBias(),
        "copied residual": CopyResidual(),
    }
