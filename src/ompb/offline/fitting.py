"""How calibrators are fitted: one for each of many series, and those of one shape all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ompb.calibrator import Calibrator, Progress
from ompb.core.source import SourceFit
from ompb.errors import NotFiniteError, TooShortError
from ompb.floor import checks
from ompb.floor.names import in_words
from ompb.floor.times import Grid
from ompb.offline.learning import Part, Plan, learn, with_records
from ompb.rows.inputs import Rows, as_future, as_rows
from ompb.rows.scaler import LIMIT, Scaler
from ompb.rows.season import find_season
from ompb.seam.given import Given, each_given
from ompb.seam.query import AnyForecaster, quantiles_of
from ompb.seam.sources import Source, Sources, calling
from ompb.settings import Settings
from ompb.types import Floats


def calibrate(
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster],
    sources: Any,
    *,
    context: int,
    horizon: int,
    season: int | Literal["auto"] | None = "auto",
    unseen: int | float | None = None,
    times: Mapping[Any, Any] | None = None,
    future: Mapping[Any, Any] | None = None,
    every: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> dict[Any, Calibrator]:
    """Fit a calibrator to each of many series: what `Calibrator.fit` makes of each, at a fraction of its cost.

    Args:
        forecaster: one for all series, which is asked about windows of several of them at once, or one for each by id.
        sources: what `Calibrator.fit` takes, by id; or a long frame (unique_id, ds, y), each id of which is a series of
            the channel y. Lengths may differ; those of one shape are learned from together.
        context: rows in a window.
        horizon: rows in a forecast.
        season: as in `Calibrator.fit`; "auto" finds one for each series.
        unseen: as in `Calibrator.fit`, for each series.
        times: of the rows, by id.
        future: covariates known ahead, by id.
        every: learn from every so many windows only.
        progress: called with (windows done, windows in all).
        **options: fields of `ompb.Settings`.

    Returns:
        A calibrator for each id, in the order of the sources.

    Raises what `Calibrator.fit` raises; the message begins with the id of the series.

    >>> import ompb
    >>> hours = np.arange(400)[:, None]
    >>> meters = {name: np.sin(2 * np.pi * hours / 24 + phase) for phase, name in enumerate(("north", "south"))}
    >>> calibrate(ompb.SeasonalProfile(horizon=12, season=24), meters, context=48, horizon=12)["south"]
    Calibrator(1 channel, context 48, horizon 12, season 24, 4 certificate windows, in sample)
    """
    given = each_given(forecaster, sources, times, future, "sources")
    order = Order.of(context, horizon, season, unseen, every, options)
    return dict(zip(given, fit([*given.values()], order, progress), strict=True))


@dataclass(frozen=True, eq=False)
class Order:
    """What is asked for, of every series."""

    context: int
    horizon: int
    season: int | Literal["auto"] | None
    unseen: int | float | None
    every: int
    settings: Settings

    @classmethod
    def of(cls, context: Any, horizon: Any, season: Any, unseen: Any, every: Any, options: dict[str, Any]) -> Order:
        """From what the user has passed; the season and what is unseen are checked with the rows."""
        context, horizon, every = (
            checks.count(name, size) for name, size in (("context", context), ("horizon", horizon), ("every", every))
        )
        return cls(context, horizon, season, unseen, every, Settings.of(**options))


@dataclass(frozen=True, eq=False)
class Series:
    """A series that is fit to be learned from, and how."""

    source: Source
    plan: Plan

    @classmethod
    def of(cls, given: Given, order: Order) -> Series:
        """Read and checked."""
        rows = as_rows(given.rows, "source", given.times)
        split = certificate_start(
            len(rows.values), order.unseen, order.settings.certificate_share, order.context + order.horizon
        )
        require_sane(rows, split)
        require_within(rows, order.settings)
        learning = rows.values[:split]
        scaler, season = Scaler.fit(learning), season_of(order.season, learning)
        future = None if given.future is None else as_future(given.future, len(rows.values), "future")
        source = Source(given.forecaster, rows, future, scaler, order.context, order.horizon, given.called)
        spoken = source.origins(order.context - 1, len(rows.values) - order.horizon)
        if not (spoken < split - order.horizon).any():
            raise TooShortError(
                f"the forecaster speaks at none of the first {split} rows of the source, which are learned from; bring "
                "forecasts for them, or a longer source."
            )
        stride = order.settings.stride or order.horizon
        return cls(source, Plan(split, spoken, season, stride, order.every, order.settings))

    @property
    def shape(self) -> tuple[Any, ...]:
        """What series have in common that are learned from together."""
        rows, future, plan = self.source.rows, self.source.future, self.plan
        times = None if rows.times is None else rows.times.dtype
        ahead = None if future is None else future.shape[1]
        return rows.values.shape, times, ahead, plan.split, plan.season, plan.spoken.tobytes()


def fit(given: Sequence[Given], order: Order, progress: Progress | None) -> list[Calibrator]:
    """A calibrator for each series; those of one shape are learned from together."""
    series = []
    for one in given:
        with calling(one.called):
            series.append(Series.of(one, order))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, one_series in enumerate(series):
        groups.setdefault(one_series.shape, []).append(place)
    total, done = sum(len(one.plan.learned(order.horizon)) for one in series), 0

    def told(windows: int) -> None:
        nonlocal done
        done += windows
        if progress is not None:
            progress(done, total)

    by_season: dict[int | None, list[Part]] = {}
    for places in groups.values():
        sources, plan = Sources(tuple(series[place].source for place in places)), series[places[0]].plan
        by_season.setdefault(plan.season, []).extend(learn(sources, places, plan, told))
    found: dict[int, Calibrator] = {}
    for season, parts in by_season.items():
        for place, learned in with_records(parts, order.settings, season):
            found[place] = _calibrator(series[place], learned, order)
    return [found[place] for place in range(len(series))]


def _calibrator(series: Series, learned: SourceFit, order: Order) -> Calibrator:
    source, rows = series.source, series.source.rows
    return Calibrator(
        context=order.context,
        horizon=order.horizon,
        season=series.plan.season,
        names=rows.names,
        scaler=source.scaler,
        grid=None if rows.times is None else Grid.of(rows.times, "source"),
        in_sample=order.unseen is None,
        stride=series.plan.stride,
        record=source.forecaster.record,
        quantiles=quantiles_of(source.forecaster),
        settings=order.settings,
        source=learned,
    )


def certificate_start(rows: int, unseen: Any, share: float, span: int) -> int:
    """The row at which the certificate part begins."""
    accepted = "rows as a whole number, or a share inside (0, 1)"
    if unseen is None:
        kept = max(round(share * rows), span)  # a short source still gets one window
    elif isinstance(unseen, float | np.floating):
        kept = round(checks.number("unseen", unseen, accepted, 0.0, 1.0, ends=(False, False)) * rows)
    else:
        kept = checks.count("unseen", unseen, or_else="a share inside (0, 1), or ")
    for part, length in (("certificate", kept), ("learning", rows - kept)):
        if length < span:
            raise TooShortError(
                f"the source has {rows} rows, which leaves {max(length, 0)} for the {part} part; it needs at least "
                f"{span} (context + horizon). Pass a longer source, a shorter context or horizon, or change unseen."
            )
    return rows - kept


def season_of(season: Any, learning: Floats) -> int | None:
    """Rows in a season, found if asked for."""
    if season is None:
        return None
    if isinstance(season, str):
        if season != "auto":
            raise checks.refuse("season", season, 'a whole number of rows from 2, None, or "auto"')
        return find_season(learning)
    return checks.count("season", season, least=2, or_else='None, "auto", or ')


def require_sane(rows: Rows, split: int) -> None:
    """Refuse a source with a cell that is no measurement: it would be the scale of all others."""
    learning = rows.values[:split]
    for channel, name in enumerate(rows.names):
        known = learning[np.isfinite(learning[:, channel]), channel]
        low, middle, high = np.quantile(known, (0.05, 0.5, 0.95)) if known.size else (0.0, 0.0, 0.0)
        if not high > low:
            continue
        far = np.flatnonzero(np.abs(rows.values[:, channel] - middle) > LIMIT * (high - low))
        if far.size:
            raise NotFiniteError(
                f"source is {rows.values[far[0], channel]:g} at row {far[0]}, {in_words(name)}, more than {LIMIT:g} "
                f"times its usual range ({low:g} to {high:g}); write NaN for a missing value."
            )


def require_within(rows: Rows, settings: Settings) -> None:
    """Refuse bounds that do not fit the channels, or that a value of the source breaks."""
    channels = len(rows.names)
    for name, given, beyond in (("lower", settings.lower, np.less), ("upper", settings.upper, np.greater)):
        if given is None:
            continue
        if len(given) not in (1, channels):
            raise checks.refuse(name, given, f"one number, or one (or None) for each of the {channels} channels")
        ends = np.asarray([np.nan if end is None else end for end in given])  # no comparison with NaN holds
        broken = np.argwhere(beyond(rows.values, ends))
        if len(broken):
            row, channel = broken[0]
            raise checks.refuse(
                name,
                given,
                f"what no value lies beyond, and source is {rows.values[row, channel]:g} at row {row}, "
                f"{in_words(rows.names[channel])}",
            )
