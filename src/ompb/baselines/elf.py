r"""ELF: a linear forecaster learnt on the stream in Fourier space, mixed with the frozen one by exponential weights.

Thomas L. Lee et al., "Lightweight Online Adaption for Time Series Foundation Model Forecasts", ICML 2025. Needs numpy
only and works with any forecaster. Every channel has its own regression and its own weights.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ompb.bench.contract import Method, Pair, Pairs, Prediction, Snapshot, Task
from ompb.bench.methods import method
from ompb.floor import checks
from ompb.types import Floats

Complex: TypeAlias = NDArray[np.complex128]


@dataclass(frozen=True)
class ElfSettings:
    """The published defaults, one set for all data.

    Before the first update it is an even mix of the backbone and the newest row; a stream shorter than ``every`` stays
    so.
    """

    band: float = 0.9  # share of the frequencies that is kept, the lowest
    ridge: float = 20.0
    every: int = 200  # steps from one update to the next
    rate: float = 0.5  # of the exponential weights
    recent: int = 5  # blocks that the fast weights remember

    def __post_init__(self) -> None:
        checks.check_fields(self, partial(checks.share, whole=True), "band")
        checks.check_fields(self, checks.positive, "ridge", "rate")
        checks.check_fields(self, checks.count, "every", "recent")


@dataclass
class FourierRidge:
    r"""Ridge regression from spectra to spectra, one for each channel, that forgets nothing.

    .. math:: W = P\, X^* Y, \qquad P = (X^* X + \lambda I)^{-1}

    The rows of X (n, F) and Y (n, B) are examples. New rows change P by the Woodbury identity:

    .. math:: P \leftarrow P - P X^* (I + X P X^*)^{-1} X P
    """

    inverse: Complex  # P: (C, F, F)
    cross: Complex  # X* Y: (C, F, B)
    weights: Complex  # W: (C, F, B)

    @classmethod
    def start(cls, channels: int, inputs: int, outputs: int, ridge: float) -> FourierRidge:
        """Without an example: W = 0."""
        inverse = np.tile(np.eye(inputs, dtype=np.complex128) / ridge, (channels, 1, 1))
        nothing = np.zeros((channels, inputs, outputs), dtype=np.complex128)
        return cls(inverse, nothing, nothing)

    def learn(self, inputs: Complex, outputs: Complex) -> None:
        """Take in examples (C, n, F) and (C, n, B); a row of zeros is none."""
        adjoint = inputs.conj().swapaxes(1, 2)  # X*
        projected = inputs @ self.inverse  # X P
        inner = np.eye(inputs.shape[1]) + projected @ adjoint
        self.inverse = self.inverse - self.inverse @ adjoint @ np.linalg.solve(inner, projected)
        self.cross = self.cross + adjoint @ outputs
        self.weights = self.inverse @ self.cross


def low_band(length: int, share: float) -> NDArray[np.intp]:
    """Places, in the DFT of ``length`` rows, of the lowest frequencies: k / length <= share / 2 or >= 1 - share / 2.

    >>> low_band(8, 0.5)
    array([0, 1, 2, 6, 7])
    """
    places = np.arange(length)
    return np.flatnonzero(np.minimum(places, length - places) <= share / 2 * length)


@dataclass
class LinearForecaster:
    """The ridge, between the spectrum of a window and that of its outcome, both without the window's last value."""

    horizon: int
    input_band: NDArray[np.intp]  # frequencies of a window that are used
    output_bins: int  # frequencies of an outcome that are forecast; the higher ones are zero
    ridge: FourierRidge
    fitted: bool = False

    @classmethod
    def start(cls, task: Task, settings: ElfSettings) -> LinearForecaster:
        """Before the first example."""
        input_band = low_band(task.context, settings.band)
        output_bins = int(settings.band / 2 * task.horizon) + 1  # the same rule for the half spectrum of an outcome
        ridge = FourierRidge.start(task.source.shape[1], len(input_band), output_bins, settings.ridge)
        return cls(task.horizon, input_band, output_bins, ridge)

    def learn(self, pairs: Sequence[Pair]) -> None:
        """Take in pairs; a channel whose outcome has a hole leaves that pair out."""
        windows = np.stack([pair.window for pair in pairs])  # (n, context, C)
        outcomes = np.stack([pair.outcome for pair in pairs]) - windows[:, -1:]  # (n, H, C)
        whole = ~np.isnan(outcomes).any(axis=1, keepdims=True)  # (n, 1, C)
        outcomes = np.where(whole, outcomes, 0.0)
        targets = np.fft.rfft(outcomes, axis=1, norm="ortho")[:, : self.output_bins]
        examples = np.where(whole, self.spectra(windows), 0.0)
        self.ridge.learn(examples.transpose(2, 0, 1), targets.transpose(2, 0, 1))
        self.fitted = True

    def spectra(self, windows: Floats) -> Complex:
        """Orthonormal DFT of windows (n, context, C) less their last value, the low band of it: (n, F, C)."""
        levelled = windows - windows[:, -1:]
        return np.asarray(np.fft.fft(levelled, axis=1, norm="ortho")[:, self.input_band])

    def forecast(self, window: Floats) -> Floats:
        """Its forecast (H, C) of a window (context, C)."""
        spectrum = self.spectra(window[None]).transpose(2, 0, 1) @ self.ridge.weights  # (C, 1, B)
        rows = np.fft.irfft(spectrum[:, 0], n=self.horizon, axis=1, norm="ortho")  # (C, H): zeros fill the upper bins
        return np.asarray(window[-1] + rows.T)


def seasonal_naive(window: Floats, horizon: int, season: int | None) -> Floats:
    """The newest season of a window (context, C), repeated; its last row where it holds no season."""
    span = 1 if season is None or season > len(window) else season
    return window[len(window) - span + np.arange(horizon) % span]


@dataclass
class Weigher:
    r"""Weights of two experts by the exponential of minus their losses, at three places.

    .. math:: w = \frac{e^{-\eta L_1}}{e^{-\eta L_1} + e^{-\eta L_2}}

    L is the sum over blocks of the mean loss in a block: over all blocks for the slow weight of the frozen model
    (against the linear one), over the newest few for the fast one, over all for the weight of the fast mixture
    (against the slow).
    """

    rate: float
    recent: deque[Floats]  # L of the model less L of the linear forecaster, (C,), in each of the newest blocks
    all: Floats  # its sum over all blocks, (C,)
    mixtures: Floats  # L of the fast mixture less L of the slow one, (C,)

    @classmethod
    def start(cls, channels: int, settings: ElfSettings) -> Weigher:
        """Every weight is a half."""
        return cls(settings.rate, deque(maxlen=settings.recent), np.zeros(channels), np.zeros(channels))

    def learn(self, losses: Floats) -> None:
        """Mean losses of a block, (4, C): of the model, the linear forecaster, the fast and the slow mixture."""
        model, linear, fast, slow = losses
        self.recent.append(model - linear)
        self.all = self.all + (model - linear)
        self.mixtures = self.mixtures + (fast - slow)

    @property
    def fast(self) -> Floats:
        """Weight of the model in the fast mixture, (C,)."""
        return self._weight(sum(self.recent, np.zeros_like(self.all)))

    @property
    def slow(self) -> Floats:
        """Weight of the model in the slow mixture, (C,)."""
        return self._weight(self.all)

    @property
    def fast_share(self) -> Floats:
        """Weight of the fast mixture in what is issued, (C,)."""
        return self._weight(self.mixtures)

    def _weight(self, excess: Floats) -> Floats:
        return np.asarray(expit(-self.rate * excess))


@dataclass
class Elf:
    r"""The method: issue a mixture of mixtures; every M steps learn the windows that have matured since.

    .. math:: \hat y = \beta\, m(w_{fast}) + (1 - \beta)\, m(w_{slow}), \qquad
       m(w) = w\, \hat y_{model} + (1 - w)\, \hat y_{linear}

    A loss is the squared error of what was issued. Steps count from the first origin; until the first update, when
    context + H rows exist, the linear forecaster is the seasonal naive one.
    """

    season: int | None
    settings: ElfSettings
    linear: LinearForecaster
    weigher: Weigher
    pairs: Pairs
    issued: dict[int, Floats] = field(default_factory=dict)  # (4, H, C) of the origins that are not complete
    fresh: list[Pair] = field(default_factory=list)  # matured since the last update
    squares: list[Floats] = field(default_factory=list)  # of their errors, (4, H, C)
    steps: int = 0

    @classmethod
    def start(cls, task: Task, settings: ElfSettings) -> Elf:
        """Nothing is learnt from the source."""
        weigher = Weigher.start(task.source.shape[1], settings)
        return cls(task.season, settings, LinearForecaster.start(task, settings), weigher, Pairs(task.horizon))

    def step(self, snapshot: Snapshot) -> Prediction:
        """Note what has matured, update when it is time, then forecast."""
        for pair in self.pairs.completed(snapshot):
            self.fresh.append(pair)
            self.squares.append((self.issued.pop(pair.origin) - pair.outcome) ** 2)
        if self.steps % self.settings.every == 0 and self.fresh:
            self._update()
        self.steps += 1
        return Prediction(self._forecast(snapshot))

    def _update(self) -> None:
        squares = np.stack(self.squares)  # (n, 4, H, C)
        known = ~np.isnan(squares)
        count = np.maximum(known.sum(axis=(0, 2)), 1)  # a channel without a label counts as no loss
        self.weigher.learn(np.where(known, squares, 0.0).sum(axis=(0, 2)) / count)
        self.linear.learn(self.fresh)
        self.fresh, self.squares = [], []

    def _forecast(self, snapshot: Snapshot) -> Floats:
        base, weigher = snapshot.base, self.weigher
        if self.linear.fitted:
            linear = self.linear.forecast(snapshot.window)
        else:
            linear = seasonal_naive(snapshot.window, len(base), self.season)
        fast, slow = (weight * base + (1 - weight) * linear for weight in (weigher.fast, weigher.slow))
        self.issued[snapshot.origin] = np.stack([base, linear, fast, slow])
        share = weigher.fast_share
        return np.asarray(share * fast + (1 - share) * slow)


@method("elf")
def elf(task: Task) -> Method:
    """ELF with its published settings."""
    return Elf.start(task, ElfSettings())
