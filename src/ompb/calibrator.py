"""Calibrator: the offline stage. One immutable artefact, fitted once, saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ompb import archive
from ompb.core.certificate import Probe, Reader, Scales, probe_of
from ompb.core.disagreement import expected_pair
from ompb.core.features import FeatureMap
from ompb.core.lanes import Lanes, SourceLaw
from ompb.core.posterior import Posterior
from ompb.core.source import Moments, SourceHead, view
from ompb.errors import NotFiniteError, OptionError, TooShortError
from ompb.inputs import as_rows
from ompb.query import Query, as_forecaster, ask
from ompb.scaler import Scaler
from ompb.season import find_season
from ompb.settings import Settings
from ompb.types import Floats, Forecaster
from ompb.windows import fill_forward

if TYPE_CHECKING:
    from ompb.stream import Stream

Progress = Callable[[int, int], None]
# Windows handed to the forecaster at a time.
BLOCK = 256
# Learning windows the scales are read off: this many spread evenly, and this many newest ones in a row.
SPREAD, NEWEST = 512, 512
# Quantiles of the scales: tau_y leaves a tenth of the source saturated, tau_d is the median, the null a rare event.
# A source without error or disagreement still gets scales to divide by.
LEAST_SCALE, TINY = 1e-9, 1e-300
# High enough that stationary streams stay below it in 95 % of their steps, which the statistical tests hold it to.
LEAST_NULL = 2.0
TAU_Y_QUANTILE, TAU_D_QUANTILE, NULL_QUANTILE = 0.9, 0.5, 0.99


@dataclass(frozen=True)
class Calibrator:
    """What the source taught: scaler, source head, certificate windows and their scales.

    >>> import numpy as np, ompb
    >>> hours = np.arange(600)
    >>> load = (10 + np.sin(2 * np.pi * hours / 24) + 0.1 * np.random.default_rng(0).normal(size=600))[:, None]
    >>> forecaster = ompb.SeasonalProfile(horizon=12, season=24)
    >>> cal = ompb.Calibrator.fit(forecaster, load, context=48, horizon=12, season=24)
    >>> stream = cal.stream(forecaster)
    >>> forecasts = [stream.step(row) for row in load[:100] + 3.0]
    >>> forecasts[46] is None, forecasts[47].mean.shape
    (True, (12, 1))
    """

    context: int
    horizon: int
    season: int | None
    names: tuple[str, ...]  # of the channels
    centre: Floats  # mean of the learning part, per channel
    scale: Floats  # its population standard deviation; 1 for a constant channel
    in_sample: bool  # the forecaster may have been trained on the certificate windows
    stride: int  # rows between certificate windows
    law: SourceLaw

    @classmethod
    def fit(
        cls,
        forecaster: Forecaster,
        source: Any,
        *,
        context: int,
        horizon: int,
        season: int | Literal["auto"] | None = "auto",
        unseen: int | float | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Calibrator:
        """Learn the head from a source in time order.

        Args:
            forecaster: callable, or object with a ``forecast`` method, from windows (n, context, C) to forecasts
                (n, horizon, C) in the user's units. It is called, never changed.
            source: (T, C) array or pandas/polars frame; NaN means missing.
            context: rows in a window.
            horizon: rows in a forecast.
            season: rows in a season, None for no season, "auto" to find it from the source's autocorrelation.
            unseen: rows (int) or share (float) at the end of the source that the forecaster was not trained on; they
                become the certificate windows. Without it the certificate says ``in_sample=True``.
            progress: called with (windows done, windows in all).
            **options: fields of `ompb.Settings`.

        Raises:
            InputError, TooShortError: the source cannot be used.
            OptionError: an option does not exist or is out of range.
            ForecasterError: the forecaster broke its contract.
        """
        settings = Settings.of(**options)
        context, horizon = _rows("context", context), _rows("horizon", horizon)
        rows = as_rows(source, "source")
        values, names = rows.values, rows.names
        split = _certificate_start(len(values), unseen, settings, context + horizon)
        learning = values[:split]
        season = _season(season, learning)
        centre, scale = _scaler(learning)
        data = _Source(forecaster, values, names, split, context, horizon, centre, scale)
        leads = np.arange(horizon, dtype=np.float64)
        features = FeatureMap.build(leads, season, context, settings.basis, settings.profile)
        stride = settings.stride or horizon
        spread, newest, head = data.read_learning(features, settings.anchor, progress)
        law = SourceLaw(
            channels=values.shape[1],
            settings=settings,
            features=features,
            head=head,
            probe=_probe(head, features, data.read_certificate(stride)),
            reader=Reader.build(
                values.shape[1],
                head.noise,
                features.has_profile,
                # a fixed seed: a calibrator is a function of its inputs
                np.random.default_rng(0).uniform(size=(settings.draws, values.shape[1])),
                settings,
            ),
        )
        law = _with_scales(law, _probe(head, features, spread), newest)
        return cls(context, horizon, season, names, centre, scale, unseen is None, stride, law)

    @property
    def channels(self) -> int:
        """C."""
        return len(self.names)

    @property
    def settings(self) -> Settings:
        """The options it was fitted with."""
        return self.law.settings

    def stream(self, forecaster: Forecaster) -> Stream:
        """A fresh online stage for one live series."""
        from ompb.stream import Stream  # the stream imports the calibrator

        return Stream(self, forecaster)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file; see `ompb.archive` for the format."""
        archive.write(path, "calibrator", self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibrator:
        """Read a saved calibrator, bit for bit."""
        return archive.read(path, "calibrator", cls)


@dataclass(frozen=True)
class _Batch:
    """Standardised windows (N, n, L), base forecasts (N, n, H) and outcomes (N, n, H; NaN = missing)."""

    windows: Floats
    base: Floats
    outcomes: Floats


@dataclass(frozen=True)
class _Source:
    """The source as batches of windows: learning part before ``split``, certificate part after it."""

    forecaster: Forecaster
    values: Floats
    names: tuple[str, ...]
    split: int
    context: int
    horizon: int
    centre: Floats
    scale: Floats

    def read_learning(
        self, features: FeatureMap, anchor: float, progress: Progress | None
    ) -> tuple[_Batch, _Batch, SourceHead]:
        """Every learning window once: the spread and the newest ones kept, the source head of all."""
        lanes = self.values.shape[1]
        moments, window_moments = (
            Moments.empty(self.values, lanes, size, self.horizon) for size in (features.size, features.of_window)
        )
        count = self.split - self.context - self.horizon + 1
        kept = np.unique(np.linspace(0, count - 1, min(SPREAD, count)).astype(int))
        spread: list[_Batch] = []
        newest: list[_Batch] = []
        for first, batch in self._batches(range(self.context - 1, self.context - 1 + count)):
            raw, profile = features(batch.windows, batch.base)
            moments.add(raw, batch.outcomes - batch.base)
            window_moments.add(raw[..., : features.of_window], batch.outcomes - profile)
            done = first + batch.base.shape[1]
            here = kept[(kept >= first) & (kept < done)] - first
            spread.append(_take(batch, here))
            newest.append(_take(batch, np.arange(max(0, count - NEWEST - first), done - first)))
            if progress is not None:
                progress(done, count)
        spread_batch = _join(spread)
        known = np.flatnonzero(np.isfinite(spread_batch.outcomes).any(axis=(0, 2)))
        head = SourceHead.from_moments(moments, window_moments, anchor)
        return _take(spread_batch, known), _join(newest), head

    def read_certificate(self, stride: int) -> _Batch:
        """Windows that lie, outcome and all, after the split."""
        first = self.split + self.context - 1
        origins = range(first, len(self.values) - self.horizon, stride)
        batch = _join([batch for _, batch in self._batches(origins)])
        known = np.flatnonzero(np.isfinite(batch.outcomes).any(axis=(0, 2)))
        if len(known) == 0:
            raise NotFiniteError(
                f"rows {self.split} to {len(self.values) - 1} of the source, kept for the certificate, have no known "
                "outcome; pass a source whose end is not missing, or say with unseen= which part to keep."
            )
        return _take(batch, known)

    def _batches(self, origins: range) -> Iterator[tuple[int, _Batch]]:
        filled = fill_forward(self.values, self.centre)
        asked, scaler = as_forecaster(self.forecaster), Scaler(self.centre, self.scale)
        for first in range(0, len(origins), BLOCK):
            part = origins[first : first + BLOCK]
            ends = np.asarray(part)
            windows = filled[ends[:, None] + np.arange(1 - self.context, 1)]
            outcomes = self.values[ends[:, None] + np.arange(1, self.horizon + 1)]
            base = ask(asked, Query(windows, ends), self.horizon, scaler, self.names)
            lanes = ((x - self.centre) / self.scale for x in (windows, base, outcomes))
            yield first, _Batch(*(np.moveaxis(x, -1, 0).copy() for x in lanes))


def _take(batch: _Batch, places: np.ndarray[Any, np.dtype[np.int64]]) -> _Batch:
    return _Batch(batch.windows[:, places], batch.base[:, places], batch.outcomes[:, places])


def _join(batches: list[_Batch]) -> _Batch:
    return _Batch(
        np.concatenate([b.windows for b in batches], axis=1),
        np.concatenate([b.base for b in batches], axis=1),
        np.concatenate([b.outcomes for b in batches], axis=1),
    )


def _probe(head: SourceHead, features: FeatureMap, batch: _Batch) -> Probe:
    return probe_of(view(head, features, batch.windows, batch.base), batch.outcomes, len(batch.outcomes))


def _with_scales(law: SourceLaw, spread: Probe, newest: _Batch) -> SourceLaw:
    """tau_y, tau_d and the null of the disagreement, from learning windows under the posterior a stream starts with."""
    settings, reader = law.settings, law.reader
    lanes = law.head.weights.shape[0]
    posterior = Posterior.start(law.head.weights, np.asarray(settings.discounts), 0)
    belief = np.zeros((lanes, 1)) + reader.prior
    squared, made = reader.look(spread, posterior)
    tau_y = float(np.sqrt(np.quantile(reader.risk(squared, belief), TAU_Y_QUANTILE)))
    # the expected pair even where pairs are drawn: a few draws of a mixture mostly choose the same member twice
    gaps = reader.gaps(made, expected_pair(belief, reader.mean_noise, len(settings.discounts)))
    tau_d = settings.tau_d_factor * float(np.sqrt(np.quantile(gaps, TAU_D_QUANTILE)))
    scales = Scales(max(tau_y, LEAST_SCALE), max(tau_d, LEAST_SCALE), 1.0)
    law = replace(law, reader=replace(reader, scales=scales))
    if not settings.certificate:
        return law
    ratio = max(LEAST_NULL, float(np.quantile(_replayed_ratios(law, newest), NULL_QUANTILE)))
    return replace(law, reader=replace(reader, scales=replace(scales, null_ratio=ratio)))


def _replayed_ratios(law: SourceLaw, rows: _Batch) -> Floats:
    """|D_S - D_T| / D_S when nothing has changed: a stream over learning windows in a row, once its ring is full.

    The forecaster may have seen these windows, which makes the ratios a little small; hence `LEAST_NULL`.
    """
    lanes = Lanes.start(law)
    ratios = []
    for place in range(rows.base.shape[1]):
        window, base = rows.windows[:, place], rows.base[:, place]
        # the row as it came: lead 1 of the outcome before it, NaN where missing
        lanes.reveal(law, place, rows.outcomes[:, place - 1, 0] if place else window[:, -1])
        terms = lanes.issue(law, place, window, base).terms or {}
        ratios.append(float(terms["disagreement"][0] / max(float(terms["source_disagreement"][0]), TINY)))
    return np.asarray(ratios[min(law.settings.ring, len(ratios) - 1) :])


def _rows(name: str, value: int) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise OptionError(f"{name} = {value!r}; accepted: a whole number of rows from 1.")
    return int(value)


def _certificate_start(rows: int, unseen: int | float | None, settings: Settings, span: int) -> int:
    """The row at which the certificate part begins."""
    if unseen is None:
        kept = round(settings.certificate_share * rows)
    elif isinstance(unseen, float) and 0 < unseen < 1:
        kept = round(unseen * rows)
    elif isinstance(unseen, int | np.integer) and not isinstance(unseen, bool) and unseen >= 1:
        kept = int(unseen)
    else:
        raise OptionError(f"unseen = {unseen!r}; accepted: rows as a whole number, or a share inside (0, 1).")
    if unseen is None:
        kept = max(kept, span)  # a short source still gets one window
    for part, length in (("certificate", kept), ("learning", rows - kept)):
        if length < span:
            raise TooShortError(
                f"the source has {rows} rows, which leaves {max(length, 0)} for the {part} part; it needs at least "
                f"{span} (context + horizon). Pass a longer source, a shorter context or horizon, or change unseen."
            )
    return rows - kept


def _season(season: int | Literal["auto"] | None, learning: Floats) -> int | None:
    if season is None:
        return None
    if season == "auto":
        return find_season(learning)
    if not isinstance(season, int | np.integer) or isinstance(season, bool) or season < 2:
        raise OptionError(f'season = {season!r}; accepted: a whole number of rows from 2, None, or "auto".')
    return int(season)


def _scaler(learning: Floats) -> tuple[Floats, Floats]:
    """Mean and population standard deviation per channel, 1 where it is constant; (0, 1) for one that is missing."""
    known = np.isfinite(learning)
    count = np.maximum(known.sum(0), 1)
    centre = np.where(known, learning, 0.0).sum(0) / count
    scale = np.sqrt(np.where(known, (learning - centre) ** 2, 0.0).sum(0) / count)
    # the deviation of a constant is often not zero but a rounding error
    varies = np.where(known, learning, -np.inf).max(0) > np.where(known, learning, np.inf).min(0)
    return centre, np.where(varies & (scale > 0), scale, 1.0)
