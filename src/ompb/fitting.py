"""How a calibrator is fitted: one pass over the learning windows, one over the certificate windows, one rehearsal."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ompb import checks
from ompb.calibrator import Calibrator, Progress, mixture_of, online_rules, reader_of
from ompb.core.certificate.scales import Scales, quantile
from ompb.core.certificate.windows import CertificateWindows
from ompb.core.features import FeatureMap
from ompb.core.online import Online
from ompb.core.source import SourceFit, SourceLearner
from ompb.errors import NotFiniteError, TooShortError
from ompb.inputs import Rows, as_future, as_rows
from ompb.names import in_words
from ompb.query import Forecaster, quantiles_of
from ompb.scaler import LIMIT, Scaler
from ompb.season import find_season
from ompb.settings import Settings
from ompb.sources import Batch, Source
from ompb.times import Grid
from ompb.types import Floats
from ompb.windows import Origins

# Learning windows the scales are read off: this many spread evenly, and this many newest ones in a row.
SPREAD, NEWEST = 512, 512
# The null line of the disagreement is exceeded in one step of a hundred of the rehearsal.
NULL_QUANTILE = 0.99
# Keeps the ratio to a source without disagreement finite.
TINY = 1e-300


def fit(
    forecaster: Forecaster,
    source: Any,
    *,
    context: int,
    horizon: int,
    season: int | Literal["auto"] | None,
    unseen: int | float | None,
    times: Any,
    future: Any,
    every: int,
    progress: Progress | None,
    settings: Settings,
) -> Calibrator:
    """See `Calibrator.fit`."""
    rows = as_rows(source, "source", times)
    span = context + horizon
    split = certificate_start(len(rows.values), unseen, settings.certificate_share, span)
    learning = rows.values[:split]
    require_sane(rows, split)
    require_within(rows, settings)
    scaler = Scaler.fit(learning)
    season = season_of(season, learning)
    covariates = None if future is None else as_future(future, len(rows.values), "future")
    table = Source(forecaster, rows, covariates, scaler, context, horizon)
    leads = np.arange(horizon, dtype=np.float64)
    features = FeatureMap.build(leads, season, context, settings.basis, settings.profile)
    stride = settings.stride or horizon
    spoken = spoken_origins(table, split)
    learner = SourceLearner(features, settings.members, settings.member_options())
    spread, newest = read_learning(table, spoken, every, learner, progress)
    members = learner.members()
    mixture = mixture_of(members, settings, learner.base_variance())

    def seen(batch: Batch) -> CertificateWindows:
        view = features.view(batch.windows, batch.base)
        return CertificateWindows.of(mixture, view, batch.outcomes, len(rows.names))

    scales = Scales.of(reader_of(mixture, settings, len(rows.names)), seen(spread), settings.tau_d_factor)
    fitted = SourceFit(features, members, learner.base_variance(), seen(read_certificate(table, split, stride)), scales)
    if settings.certificate:
        rules = online_rules(fitted, settings, len(rows.names))
        ratio = quantile(rehearsed_ratios(rules, spoken[-NEWEST:], newest, settings.ring), NULL_QUANTILE)
        fitted = replace(fitted, scales=replace(scales, null_ratio=max(scales.null_ratio, ratio)))
    return Calibrator(
        context=context,
        horizon=horizon,
        season=season,
        names=rows.names,
        scaler=scaler,
        grid=None if rows.times is None else Grid.of(rows.times, "source"),
        in_sample=unseen is None,
        stride=stride,
        record=forecaster.record,
        quantiles=quantiles_of(forecaster),
        settings=settings,
        source=fitted,
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


def spoken_origins(table: Source, split: int) -> Origins:
    """Origins whose window and outcome lie before the split, where the forecaster speaks."""
    spoken = table.origins(table.context - 1, split - table.horizon)
    if not spoken.size:
        raise TooShortError(
            f"the forecaster speaks at none of the first {split} rows of the source, which are learned from; bring "
            "forecasts for them, or a longer source."
        )
    return spoken


def read_learning(
    table: Source, spoken: Origins, every: int, learner: SourceLearner, progress: Progress | None
) -> tuple[Batch, Batch]:
    """Show the learner every so many windows once; the spread and the newest ones are kept."""
    thinned, newest = spoken[one_of_every(every, len(spoken))], spoken[-NEWEST:]
    kept = thinned[np.unique(np.linspace(0, len(thinned) - 1, min(SPREAD, len(thinned))).astype(int))]
    asked = np.union1d(thinned, newest)
    spread: list[Batch] = []
    last: list[Batch] = []
    done = 0
    for origins, batch in table.batches(asked):
        taught = batch.take(np.isin(origins, thinned))
        if taught.base.shape[1]:
            learner.add(learner.features.view(taught.windows, taught.base), taught.outcomes)
        spread.append(batch.take(np.isin(origins, kept)))
        last.append(batch.take(np.isin(origins, newest)))
        done += len(origins)
        if progress is not None:
            progress(done, len(asked))
    known = Batch.join(spread).known()
    if not known.base.shape[1]:
        raise NotFiniteError(
            "no outcome is known in the part of the source that is learned from; pass a source whose first part is not "
            "missing, or say with unseen= which part to keep."
        )
    return known, Batch.join(last)


def one_of_every(every: int, count: int) -> Origins:
    r"""Places 0 .. count - 1, one of every so many: i every + floor(every {i (sqrt(5) - 1) / 2}), up to the last.

    The steps are uneven, since even ones would meet the same phases of a season again and again.

    >>> one_of_every(1, 4), one_of_every(5, 21)
    (array([0, 1, 2, 3]), array([ 0,  8, 11, 19, 20]))
    """
    numbers = np.arange(-(-count // every))
    share = (numbers * (math.sqrt(5) - 1) / 2) % 1
    return np.minimum(numbers * every + (every * share).astype(np.int64), count - 1)


def read_certificate(table: Source, split: int, stride: int) -> Batch:
    """Windows that lie, outcome and all, after the split, at least ``stride`` rows apart."""
    rows = len(table.rows.values)
    spoken = table.origins(split + table.context - 1, rows - table.horizon)
    chosen: list[int] = []
    for origin in spoken.tolist():
        if not chosen or origin - chosen[-1] >= stride:
            chosen.append(origin)
    batches = [batch for _, batch in table.batches(np.asarray(chosen, dtype=np.int64))]
    known = Batch.join(batches).known() if batches else None
    if known is None or not known.base.shape[1]:
        raise NotFiniteError(
            f"rows {split} to {rows - 1} of the source, kept for the certificate, have no forecast whose outcome is "
            "known; pass a source whose end is not missing, or say with unseen= which part to keep."
        )
    return known


def rehearsed_ratios(rules: Online, origins: Origins, batch: Batch, ring: int) -> Floats:
    """|D_S - D_T| / D_S when nothing has changed: a stream over learning windows in a row, once its ring is full.

    The forecaster may have seen these windows, which makes the ratios a little small; hence `LEAST_NULL`.
    """
    state = rules.start()
    ratios = []
    for place, origin in enumerate((origins - origins[0]).tolist()):
        if place:
            # rows since the last origin, as they came: its first outcomes, NaN where missing
            before = int(origins[place - 1] - origins[0])
            for row in range(before + 1, origin + 1):
                lead = row - before - 1
                known = lead < batch.outcomes.shape[2]
                values = batch.outcomes[:, place - 1, lead] if known else np.full(batch.base.shape[0], np.nan)
                state = rules.reveal(state, row, values, state.guard)
                if row < origin:
                    state = rules.pass_over(state, row)
        issued, state = rules.issue(state, origin, batch.windows[:, place], batch.base[:, place])
        reading = issued.certificate
        assert reading is not None  # there is a certifier
        ratios.append(float(reading.disagreement[0] / max(float(reading.source.source_disagreement[0]), TINY)))
    return np.asarray(ratios[min(ring, len(ratios) - 1) :])
