"""Which spans of the memory pay: those that forecast the last part of the learning rows better than every shorter one.

The source decides, so two series may keep different spans.
"""

from __future__ import annotations

import math

from ompb.core.arrays import Array, at_least, namespace
from ompb.core.features import FeatureMap
from ompb.core.members.memory import Span, fit_span

# Share of the learning rows that says which spans pay, and windows of it that are asked at most.
JUDGED, ASKED = 0.2, 512
# A season of more windows than this is not remembered.
LONGEST_SEASON = 8


def span_lengths(context: int, season: int | None, multiples: tuple[int, ...]) -> list[int]:
    """Lengths that are tried: multiples of a window, and a season and a window where no season fits into a window.

    >>> span_lengths(96, 24, (1, 2, 4)), span_lengths(24, 52, (1, 2, 4))
    ([96, 192, 384], [24, 48, 76, 96])
    """
    lengths = {multiple * context for multiple in multiples}
    if season is not None and context < season <= LONGEST_SEASON * context and len(multiples) > 1:
        lengths.add(season + context)
    return sorted(lengths)


def lengths_that_pay(features: FeatureMap, rows: Array, outcomes: Array, lengths: list[int]) -> list[tuple[int, ...]]:
    """Of each series: the shortest length, and those with a lower error than every shorter one.

    From learning rows (S, C, T) with missing cells filled, and as they are, NaN where missing.
    """
    known = math.ceil((1 - JUDGED) * rows.shape[2])
    later = range(known - 1, rows.shape[2] - features.horizon)
    asked = list(later[:: max(1, math.ceil(len(later) / ASKED))])
    pay, least = [[lengths[0]] for _ in range(rows.shape[0])], [math.inf] * rows.shape[0]
    for length in lengths:
        if not asked or length + features.horizon > known:
            continue
        span = fit_span(features, rows[..., :known], outcomes[..., :known], length)
        for one, error in enumerate(_errors(span, rows, outcomes, asked)):
            if error < least[one]:
                pay[one], least[one] = [*(shorter for shorter in pay[one] if shorter < length), length], error
    return [tuple(one) for one in pay]


def _errors(span: Span, rows: Array, outcomes: Array, origins: list[int]) -> list[float]:
    """Mean squared error of each series' pooled regression at these origins."""
    xp = namespace(rows)
    series, leads = int(rows.shape[0]), int(span.pooled.shape[2])
    rows, outcomes = (part.reshape((-1, part.shape[2])) for part in (rows, outcomes))
    said = span.pooled_forecasts(xp.stack([rows[:, o + 1 - span.rows : o + 1] for o in origins], axis=1))
    truth = xp.stack([outcomes[:, o + 1 : o + 1 + leads] for o in origins], axis=1)
    known = xp.isfinite(truth)
    squared = xp.where(known, truth - said, 0.0) ** 2
    cells = xp.astype(known, rows.dtype)
    total, count = (xp.sum(part.reshape((series, -1)), axis=1) for part in (squared, cells))
    return [float(one) for one in total / at_least(count, 1.0)]
