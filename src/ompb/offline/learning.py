"""What series of one shape teach, all at once: a pass over the learning windows, one over the certificate windows.

Nothing of a series depends on the others at its side, not even in its last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import mixture_of, reader_of
from ompb.core.certificate.scales import Scales
from ompb.core.certificate.windows import CertificateWindows
from ompb.core.evidence import Usual
from ompb.core.features import FeatureMap
from ompb.core.intervals import half_widths_of
from ompb.core.members.contract import Member
from ompb.core.members.memory import Memory
from ompb.core.members.spans import lengths_that_pay, span_lengths
from ompb.core.mixture import Mixture
from ompb.core.record import Record
from ompb.core.source import SourceFit, SourceLearner
from ompb.core.warnings import SourceSignals, level_span, signal_names
from ompb.errors import NotFiniteError
from ompb.live.lanes import taken
from ompb.offline.rehearsal import Tail, rehearsed
from ompb.rows.windows import Origins
from ompb.seam.sources import Batch, Sources, in_parts
from ompb.settings import Settings
from ompb.types import Floats

# Learning windows the scales are read off, spread evenly.
SPREAD = 512
# Lanes whose windows are looked at together, and lanes that are rehearsed at once: enough to share the cost of a row,
# few enough for their states to fit.
AT_ONCE, REHEARSED_AT_ONCE = 32, 256


@dataclass(frozen=True)
class Plan:
    """How series are learned from; the same for all that are learned from together."""

    split: int  # the row at which the certificate part begins
    spoken: Origins  # where the forecaster speaks, of all that have a window and an outcome
    season: int | None
    stride: int  # rows between certificate windows
    every: int  # one of so many windows is learned from
    settings: Settings

    def learned(self, horizon: int) -> Origins:
        """Origins that are learned from: window and outcome lie before the split."""
        before = self.spoken[self.spoken < self.split - horizon]
        return np.asarray(before[one_of_every(self.every, len(before))])

    def later(self, context: int) -> Origins:
        """Origins whose window and outcome lie after the split."""
        return self.spoken[self.spoken >= self.split + context - 1]

    def kept(self, later: Origins) -> Origins:
        """Those of the certificate, at least ``stride`` rows apart."""
        chosen: list[int] = []
        for origin in later.tolist():
            if not chosen or origin - chosen[-1] >= self.stride:
                chosen.append(origin)
        return np.asarray(chosen, dtype=np.int64)


@dataclass(frozen=True)
class Part:
    """What some series of one shape, whose memories keep the same spans, taught before any record."""

    places: Sequence[int]  # of the series, among those that were to be learned from
    tail: Tail
    judged: NDArray[np.bool_]  # certificate windows that have an outcome: (S, m)

    def alone(self, records: Sequence[Record]) -> Iterator[tuple[int, SourceFit]]:
        """Place and fit of each of them, with its own certificate windows and its record."""
        for place, (judged, record) in enumerate(zip(self.judged, records, strict=True)):
            one = taken(self.tail.fit, len(self.judged), [place])
            windows = one.windows if judged.all() else one.windows.among(judged)
            yield self.places[place], replace(one, windows=windows, signals=one.signals._replace(record=record))


def learn(sources: Sources, places: Sequence[int], plan: Plan, told: Callable[[int], None]) -> Iterator[Part]:
    """What series of one shape taught; ``told`` hears how many windows were learned from since it was last called."""
    first = sources.first
    leads, settings = np.arange(first.horizon, dtype=np.float64), plan.settings
    features = FeatureMap.build(leads, plan.season, first.context, settings.basis, settings.profile)
    spans = _spans(sources, plan, features)
    for alike in dict.fromkeys(spans):
        same = [place for place, one in enumerate(spans) if one == alike]
        for some in in_parts(same, AT_ONCE // sources.channels):
            own = [places[place] for place in some]
            yield _learn_alike(sources.take(some), own, plan, features, alike, told)


def with_records(parts: Sequence[Part], settings: Settings, season: int | None) -> Iterator[tuple[int, SourceFit]]:
    """Place and fit of every series, in any order, with the record of a rehearsal: of all whose last rows are alike."""
    first = parts[0].tail.sources.first
    longest = max(span_lengths(first.context, season, settings.spans))
    groups: dict[tuple[object, ...], list[Part]] = {}
    for part in sorted(parts, key=lambda part: part.tail.spans):  # memories that are alike side by side
        groups.setdefault(part.tail.shape(longest), []).append(part)
    for alike in groups.values():
        for some in _of_lanes(alike, REHEARSED_AT_ONCE):
            records = iter(rehearsed([part.tail for part in some], settings, season))
            for part in some:
                yield from part.alone(list(islice(records, len(part.judged))))


def _of_lanes(parts: Sequence[Part], most: int) -> Iterator[list[Part]]:
    """Some parts at a time, of at most so many lanes where one part is not more."""
    some: list[Part] = []
    lanes = 0
    for part in parts:
        more = len(part.judged) * part.tail.sources.channels
        if some and lanes + more > most:
            yield some
            some, lanes = [], 0
        some.append(part)
        lanes += more
    yield some


def _spans(sources: Sources, plan: Plan, features: FeatureMap) -> list[tuple[int, ...]]:
    """The spans of memory that pay, of each series."""
    if Memory.tag not in plan.settings.members:
        return [()] * len(sources)
    lengths = span_lengths(sources.first.context, plan.season, plan.settings.spans)
    found: list[tuple[int, ...]] = []
    for some in in_parts(range(len(sources)), AT_ONCE // sources.channels):
        found += lengths_that_pay(features, *_learning_rows(sources.take(some), plan), lengths)
    return found


def _learning_rows(sources: Sources, plan: Plan) -> tuple[Floats, Floats]:
    """The rows before the split with missing cells filled, and as they are: (S, C, T)."""
    filled, measured = (np.ascontiguousarray(rows[..., : plan.split]) for rows in (sources.filled, sources.measured))
    return filled, measured


def _learn_alike(
    sources: Sources,
    places: Sequence[int],
    plan: Plan,
    features: FeatureMap,
    spans: tuple[int, ...],
    told: Callable[[int], None],
) -> Part:
    """What series taught whose memories keep the same spans."""
    settings, channels, context = plan.settings, sources.channels, sources.first.context
    learner = SourceLearner(features, settings.members, settings.member_options(spans))
    learner.read(*_learning_rows(sources, plan))
    origins, base = read_learning(sources, plan, learner, told)
    members = learner.members()
    mixture = mixture_of(members, settings, learner.base_variance())
    reach = max(context, mixture.reach)
    spread = sources.batch(origins, base, reach)
    look = Looking(features, mixture, channels)
    learned = look.at(spread)
    known = learned.known(channels)
    _require(
        sources,
        known,
        "no outcome is known in the part of the source that is learned from; pass a source whose first part is not "
        "missing, or say with unseen= which part to keep.",
    )
    half_widths = half_widths_of(spread.outcomes - spread.base, windows=1 + np.ptp(origins) / sources.first.horizon)
    scales = Scales.of(reader_of(mixture, settings, channels), learned, settings.tau_d_factor)
    certificate, unlearned = read_certificate(sources, plan, reach)
    windows = look.at(certificate)
    judged = windows.known(channels)
    rows = len(sources.first.rows.values)
    _require(
        sources,
        judged,
        f"rows {plan.split} to {rows - 1} of the source, kept for the certificate, have no forecast whose outcome is "
        "known; pass a source whose end is not missing, or say with unseen= which part to keep.",
    )
    usual = usual_distance(unlearned, members)
    names = signal_names(mixture.has_head, usual is not None)
    signals = SourceSignals.of(spread.rows[..., -context:], known, level_span(plan.season, context), len(names))
    fit = SourceFit(features, members, learner.base_variance(), half_widths, usual, windows, scales, signals)
    return Part(places, Tail(sources, plan.spoken, fit), judged)


@dataclass(frozen=True)
class Looking:
    """How the members of a mixture see windows."""

    features: FeatureMap
    mixture: Mixture
    channels: int

    def at(self, batch: Batch) -> CertificateWindows:
        """What they see of these."""
        view = self.features.view(batch.rows, batch.base, batch.known)
        return CertificateWindows.of(self.mixture, view, batch.outcomes, self.channels)


def _require(sources: Sources, known: NDArray[np.bool_], otherwise: str) -> None:
    """Refuse series none of whose windows (S, n) has a known outcome."""
    for source, one in zip(sources.each, known, strict=True):
        if not one.any():
            raise NotFiniteError(source.called + otherwise)


def read_learning(
    sources: Sources, plan: Plan, learner: SourceLearner, told: Callable[[int], None]
) -> tuple[Origins, Floats]:
    """Show the learner its windows once; some of their origins, spread evenly, and what was said there (N, n, H)."""
    origins = plan.learned(sources.first.horizon)
    kept = evenly(origins)
    base: list[Floats] = []
    for batch in sources.batches(origins, sources.first.context):
        learner.add(learner.features.view(batch.rows, batch.base, batch.known), batch.outcomes)
        base.append(batch.base[:, np.isin(batch.origins, kept)])
        told(len(batch) * len(sources))
    return kept, np.concatenate(base, axis=1)


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


def read_certificate(sources: Sources, plan: Plan, reach: int) -> tuple[Batch, Batch]:
    """Windows that lie, outcome and all, after the split: those of the certificate, and some spread evenly."""
    later = plan.later(sources.first.context)
    chosen, spread = plan.kept(later), evenly(later[one_of_every(plan.every, len(later))])
    asked = sources.batch_at(np.union1d(chosen, spread), reach)
    return asked.at(chosen), asked.at(spread)


def usual_distance(unlearned: Batch, members: Sequence[Member]) -> Usual | None:
    """How far base forecasts and memory are apart on windows that nothing was learned from; None without memory."""
    memory = next((member for member in members if isinstance(member, Memory)), None)
    return None if memory is None else Usual.of(memory, unlearned.rows, unlearned.base)
