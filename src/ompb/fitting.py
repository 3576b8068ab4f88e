"""How a calibrator is fitted: one pass over the learning windows and one over the certificate windows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ompb import checks
from ompb.calibrator import Calibrator, Progress, mixture_of, online_rules, reader_of
from ompb.core.certificate.scales import Scales
from ompb.core.certificate.windows import CertificateWindows
from ompb.core.evidence import Usual
from ompb.core.features import FeatureMap
from ompb.core.members.contract import Member
from ompb.core.members.memory import Memory, span_lengths
from ompb.core.online import Online
from ompb.core.record import BLOCK, BLOCKS, Record
from ompb.core.source import SourceFit, SourceLearner
from ompb.core.warnings import SourceSignals, level_span, signal_names
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

# Learning windows the scales are read off, spread evenly.
SPREAD = 512
# Rows at the end of the source that are rehearsed for the record of the warnings; the first ones only warm up.
REHEARSED = (BLOCKS + 2) * BLOCK


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
    remembers = span_lengths(context, season, settings.spans)[-1]
    table = Source(forecaster, rows, covariates, scaler, context, horizon, remembers)
    leads = np.arange(horizon, dtype=np.float64)
    features = FeatureMap.build(leads, season, context, settings.basis, settings.profile)
    stride = settings.stride or horizon
    spoken = spoken_origins(table, split)
    learner = SourceLearner(features, settings.members, settings.member_options())
    learner.read(*(np.ascontiguousarray(scaler.standardise(part[:split]).T) for part in (table.filled, rows.values)))
    spread = read_learning(table, spoken, every, learner, progress)
    members = learner.members()
    mixture = mixture_of(members, settings, learner.base_variance())

    def seen(batch: Batch) -> CertificateWindows:
        view = features.view(batch.rows, batch.base, batch.known)
        return CertificateWindows.of(mixture, view, batch.outcomes, len(rows.names))

    scales = Scales.of(reader_of(mixture, settings, len(rows.names)), seen(spread), settings.tau_d_factor)
    certificate, unlearned = read_certificate(table, split, stride, every)
    usual = usual_distance(unlearned, features, members)
    names = signal_names(mixture.has_head, usual is not None)
    signals = SourceSignals.of(spread.rows[..., -context:], level_span(season, context), len(names))
    fitted = SourceFit(features, members, learner.base_variance(), usual, seen(certificate), scales, signals)
    uncertified = online_rules(fitted, replace(settings, certificate=False), len(rows.names), season)
    fitted = replace(fitted, signals=signals._replace(record=rehearsed_record(uncertified, table)))
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
) -> Batch:
    """Show the learner every so many windows once; some of them, spread evenly, are kept."""
    thinned = spoken[one_of_every(every, len(spoken))]
    kept = evenly(thinned)
    spread: list[Batch] = []
    done = 0
    for batch in table.batches(thinned):
        learner.add(learner.features.view(batch.rows, batch.base, batch.known), batch.outcomes)
        spread.append(batch.take(np.isin(batch.origins, kept)))
        done += len(batch)
        if progress is not None:
            progress(done, len(thinned))
    known = Batch.join(spread).with_outcome()
    if not len(known):
        raise NotFiniteError(
            "no outcome is known in the part of the source that is learned from; pass a source whose first part is not "
            "missing, or say with unseen= which part to keep."
        )
    return known


def evenly(origins: Origins) -> Origins:
    """At most `SPREAD` of them, spread evenly."""
    places = np.unique(np.linspace(0, len(origins) - 1, min(SPREAD, len(origins))).astype(int))
    return np.asarray(origins[places])


def one_of_every(every: int, count: int) -> Origins:
    r"""Places 0 .. count - 1, one of every so many: i every + floor(every {i (sqrt(5) - 1) / 2}), up to the last.

    The steps are uneven, since even ones would meet the same phases of a season again and again.

    >>> one_of_every(1, 4), one_of_every(5, 21)
    (array([0, 1, 2, 3]), array([ 0,  8, 11, 19, 20]))
    """
    numbers = np.arange(-(-count // every))
    share = (numbers * (math.sqrt(5) - 1) / 2) % 1
    return np.minimum(numbers * every + (every * share).astype(np.int64), count - 1)


def read_certificate(table: Source, split: int, stride: int, every: int) -> tuple[Batch, Batch]:
    """Windows that lie, outcome and all, after the split: those at least ``stride`` rows apart, and the spread ones."""
    rows = len(table.rows.values)
    spoken = table.origins(split + table.context - 1, rows - table.horizon)
    chosen: list[int] = []
    for origin in spoken.tolist():
        if not chosen or origin - chosen[-1] >= stride:
            chosen.append(origin)
    spread = evenly(spoken[one_of_every(every, len(spoken))])
    batches = list(table.batches(np.union1d(np.asarray(chosen, dtype=np.int64), spread)))
    asked = Batch.join(batches) if batches else None
    known = None if asked is None else asked.take(np.isin(asked.origins, chosen)).with_outcome()
    if asked is None or known is None or not len(known):
        raise NotFiniteError(
            f"rows {split} to {rows - 1} of the source, kept for the certificate, have no forecast whose outcome is "
            "known; pass a source whose end is not missing, or say with unseen= which part to keep."
        )
    return known, asked.take(np.isin(asked.origins, spread))


def usual_distance(unlearned: Batch, features: FeatureMap, members: tuple[Member, ...]) -> Usual | None:
    """How far base forecasts and memory are apart on windows that nothing was learned from; None without memory."""
    memory = next((member for member in members if isinstance(member, Memory)), None)
    return None if memory is None else Usual.of(memory, features, unlearned.rows, unlearned.base)


def rehearsed_record(rules: Online, table: Source) -> Record:
    """What signals do when nothing has changed: the record of a stream over the last rows of the source.

    It may look at the certificate windows: no forecast and no certificate depends on it.
    """
    last = len(table.rows.values) - table.horizon
    first = max(table.context - 1, last - REHEARSED)
    values = table.scaler.standardise(table.rows.values)
    state, row = rules.start(), first
    for batch in table.batches(table.origins(first, last)):
        for place, origin in enumerate(batch.origins.tolist()):
            while row <= origin:  # those between, at which the forecaster is silent
                state = rules.reveal(state, row - first, values[row], state.guard)
                if row < origin:
                    state = rules.pass_over(state, row - first)
                row += 1
            _, state = rules.issue(state, origin - first, batch.rows[:, place], batch.base[:, place], origin + 1)
    return state.warnings.record.whole_blocks()
