"""Calibrator: the offline stage. One immutable artefact, fitted once, saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ompb import archive
from ompb.core.arrays import Array, namespace
from ompb.core.certificate.certifier import Certifier, Reading
from ompb.core.certificate.realised import RealisedRisks
from ompb.core.certificate.source_bound import SourceBound
from ompb.core.certificate.windows import Reader
from ompb.core.evidence import CALM, Evidence, Novelty
from ompb.core.expected import ExpectedErrors
from ompb.core.gate import Gate
from ompb.core.guard import Guard
from ompb.core.intervals import IntervalRule
from ompb.core.members.contract import Member
from ompb.core.members.memory import Memory
from ompb.core.mixture import Mixture
from ompb.core.online import Online
from ompb.core.quantiles import OwnShape
from ompb.core.source import SourceFit
from ompb.core.warnings import Warnings
from ompb.floor import checks
from ompb.floor.cards import card, facts, some
from ompb.floor.shapes import Dim
from ompb.floor.times import Grid
from ompb.rows.scaler import Scaler
from ompb.seam.given import Given
from ompb.seam.query import AnyForecaster, as_forecaster
from ompb.settings import Settings
from ompb.types import Certificate, Floats

if TYPE_CHECKING:
    from ompb.stream import Stream

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Calibrator:
    """What the source taught: scaler, members of the mixture, certificate windows and their scales.

    >>> import numpy as np, ompb
    >>> hours = np.arange(600)
    >>> load = (10 + np.sin(2 * np.pi * hours / 24) + 0.1 * np.random.default_rng(0).normal(size=600))[:, None]
    >>> forecaster = ompb.SeasonalProfile(horizon=12, season=24)
    >>> cal = ompb.Calibrator.fit(forecaster, load, context=48, horizon=12, season=24)
    >>> cal
    Calibrator(1 channel, context 48, horizon 12, season 24, 8 certificate windows, in sample)
    >>> stream = cal.stream(forecaster)
    >>> forecasts = [stream.step(row) for row in load[:100] + 3.0]
    >>> forecasts[46] is None, forecasts[47].mean.shape
    (True, (12, 1))
    """

    context: Annotated[int, Dim("L")]
    horizon: Annotated[int, Dim("H")]
    season: int | None
    names: Annotated[tuple[str, ...], Dim("N")]  # of the channels
    scaler: Scaler  # of the learning part
    grid: Grid | None  # the steps of time, if times were given
    in_sample: bool  # the forecaster may have been trained on the certificate windows
    stride: int  # rows between certificate windows
    record: str  # of the forecaster it was fitted with, see `Forecaster.record`
    quantiles: tuple[float, ...]  # that the forecaster gives, see `Forecaster.quantiles`
    settings: Settings
    source: SourceFit

    @classmethod
    def fit(
        cls,
        forecaster: AnyForecaster,
        source: Any,
        *,
        context: int,
        horizon: int,
        season: int | Literal["auto"] | None = "auto",
        unseen: int | float | None = None,
        times: Any = None,
        future: Any = None,
        every: int = 1,
        progress: Progress | None = None,
        **options: Any,
    ) -> Calibrator:
        """Learn the head from a source in time order.

        Args:
            forecaster: callable from windows (n, context, C) to forecasts (n, horizon, C) in the user's units, or an
                `ompb.Forecaster`, which is also told origins, times and covariates, and may give quantiles. It is
                called, never changed.
            source: (T, C) array or pandas/polars frame; NaN means missing. A frame brings its own times.
            context: rows in a window.
            horizon: rows in a forecast.
            season: rows in a season, None for no season, "auto" to find it from the source's autocorrelation.
            unseen: rows (int) or share (float) at the end of the source that the forecaster was not trained on; they
                become the certificate windows. Without it the certificate says ``in_sample=True``.
            times: one for each row, evenly spaced but for gaps, which count as missing rows.
            future: covariates known ahead, (T, K): those of rows t + 1 .. t + horizon go with the window of row t.
            every: learn from every so many windows only, for a forecaster that takes long.
            progress: called with (windows done, windows in all).
            **options: fields of `ompb.Settings`.

        Raises:
            InputError, TooShortError: the source cannot be used.
            OptionError: an option does not exist or is out of range.
            ForecasterError: the forecaster broke its contract.
        """
        from ompb.offline.fitting import Order, fit  # which makes a calibrator

        given = Given(as_forecaster(forecaster), source, times, future)
        order = Order.of(context, horizon, season, unseen, every, options)
        return fit([given], order, progress)[0]

    def __repr__(self) -> str:
        channels = f"{self.channels} channel{'s' * (self.channels > 1)}"
        season = f"season {self.season}" if self.season else "no season"
        windows = f"{len(self.source.windows)} certificate windows"
        seen = ", in sample" if self.in_sample else ""
        return f"Calibrator({channels}, context {self.context}, horizon {self.horizon}, {season}, {windows}{seen})"

    def _repr_html_(self) -> str:
        lines = {
            "channels": some(self.names),
            "context, horizon": f"{self.context} rows, {self.horizon} rows",
            "season": f"{self.season} rows" if self.season else "none",
            "times": self.grid or "none",
            "certificate": f"one for all channels, from {len(self.source.windows)} windows"
            + (" that the forecaster may have been trained on" if self.in_sample else ""),
            "voices": some(self.online.mixture.names),
            "changed options": self.settings.changed(),
        }
        return card("Calibrator", facts(lines))

    @property
    def channels(self) -> int:
        """C."""
        return len(self.names)

    @property
    def centre(self) -> Floats:
        """Mean of the learning part, per channel, (C,)."""
        return self.scaler.centre

    @property
    def scale(self) -> Floats:
        """Its population standard deviation, (C,); 1 for a constant channel."""
        return self.scaler.scale

    @cached_property
    def online(self) -> Online:
        """The rules of the online stage."""
        return online_rules(self.source, self.settings, self.channels, self.season, self.quantiles)

    @cached_property
    def bounds(self) -> Floats | None:
        """What no value of a channel can lie below or above, (2, C); None if neither was given."""
        settings = self.settings
        if settings.lower is None and settings.upper is None:
            return None
        bounds = np.empty((2, self.channels))
        for end, given, free in ((0, settings.lower, -np.inf), (1, settings.upper, np.inf)):
            bounds[end] = [free if bound is None else bound for bound in given or (None,)]
        bounds.flags.writeable = False
        return bounds

    @property
    def remembers(self) -> int:
        """Rows that a stream keeps: those of the forecaster's window, or more if a member looks further back."""
        return max(self.context, self.online.mixture.reach)

    def stream(
        self,
        forecaster: AnyForecaster | None = None,
        *,
        history: Any = None,
        times: Any = None,
        replay: bool = False,
    ) -> Stream:
        """A fresh online stage for one live series. Without a forecaster each step is handed its base forecast.

        ``history`` are rows known before the first one, an array or frame, with ``times`` if a frame does not bring
        them. They fill the window and the memory, so that the first row is forecast from; nothing is learned from
        them, unless ``replay`` steps through them as if they were live.
        """
        from ompb.stream import Stream  # the stream imports the calibrator

        stream = Stream(self, forecaster)
        if history is not None:
            stream.remember(history, times=times, replay=checks.flag("replay", replay))
        return stream

    def certificate(self, reading: Reading) -> Certificate:
        """What the core has read for one series, with all that is fixed about it."""
        source, scales, settings = reading.source, self.source.scales, self.settings
        kl, log_term = float(source.kl[0]), float(source.log_term[0])
        risks = source.risks[0]
        risks.flags.writeable = False  # of this view
        of_source, of_target = float(source.source_disagreement[0]), float(reading.target_disagreement[0])
        return Certificate(
            source_risk=float(source.source_risk[0]),
            gamma=float(source.gamma[0]),
            disagreement=max(of_target - of_source, 0.0),
            disagreement_change=of_target - of_source,
            source_disagreement=of_source,
            target_disagreement=of_target,
            kl=kl,
            log_term=log_term,
            windows=len(self.source.windows),
            delta=float(source.delta[0]),
            uniform=settings.uniform,
            tau_y=float(scales.tau_y[0]),
            tau_d=float(scales.tau_d[0]),
            draws=settings.draws,
            posterior_shift=float(source.posterior_shift[0]),
            kind=settings.kind,
            stride=self.stride,
            horizon=self.horizon,
            in_sample=self.in_sample,
            source=SourceBound(risks, kl + log_term, settings.kind, settings.variance_factor),
        )

    @cached_property
    def fingerprint(self) -> str:
        """The same for calibrators that would be saved alike, and for no others."""
        return archive.fingerprint(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file; see `ompb.archive` for the format."""
        archive.write(path, "calibrator", self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibrator:
        """Read a saved calibrator, bit for bit."""
        return archive.read(path, "calibrator", cls)


def mixture_of(members: tuple[Member, ...], settings: Settings, like: Array) -> Mixture:
    """The members online; ``like`` is any (N, H) array."""
    return Mixture.of(members, settings.backbone_prior, settings.member_options(), like)


def reader_of(mixture: Mixture, settings: Settings, channels: int) -> Reader:
    """Reads the mixture on windows, by its expectation or by drawn voices."""
    xp = namespace(mixture.prior)
    # a fixed seed: a calibrator is a function of its inputs, whatever other series are at its side
    uniforms = np.random.default_rng(0).uniform(size=(settings.draws, channels))
    drawn = xp.asarray(
        np.tile(uniforms, int(mixture.noise.shape[0]) // channels),
        dtype=mixture.prior.dtype,
        device=mixture.prior.device,
    )
    return Reader(mixture, channels, drawn)


def novelty_of(source: SourceFit, mixture: Mixture) -> Novelty | None:
    """How far base forecast and memory are apart; nothing without memory."""
    memory = next((member for member in source.members if isinstance(member, Memory)), None)
    if memory is None or source.usual is None:
        return None
    return Novelty(source.usual, memory, mixture.names.index(memory.names[0]))


def online_rules(
    source: SourceFit, settings: Settings, channels: int, season: int | None, quantiles: tuple[float, ...] = ()
) -> Online:
    """The online stage, put together from what the source left and each stage's own options."""
    mixture = mixture_of(source.members, settings, source.base_variance)
    reader = reader_of(mixture, settings, channels)
    horizon = int(source.base_variance.shape[1])
    gate = Gate.of(mixture.prior, mixture.backbone_place, horizon, channels, settings.gate_options())
    novelty = novelty_of(source, mixture)
    certifier = Certifier(reader, source.windows, source.scales, settings.certificate_options())
    return Online(
        features=source.features,
        mixture=mixture,
        gate=gate,
        novelty=novelty,
        evidence=Evidence(season or CALM, settings.evidence_options()),
        intervals=IntervalRule.tags[settings.intervals](settings.interval_options(), source.base_variance),
        shape=OwnShape.of(quantiles, source.base_variance) if quantiles else None,
        guard=Guard(settings.guard_options()),
        certifier=certifier if settings.certificate else None,
        realised=RealisedRisks(channels, source.scales.tau_y, settings.patience),
        expected=ExpectedErrors(gate.leads),
        warnings=Warnings(source.signals, channels, mixture.has_head, novelty is not None, settings.warning_options()),
        base_variance=source.base_variance,
        half_widths=source.half_widths,
        patience=settings.patience,
        learns=settings.online,
    )
