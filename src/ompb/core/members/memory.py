r"""The memory: a regression on more rows than the forecaster's window, of all channels together and of each one.

With w the newest M rows of a lane, l = w a their level (that of the window) and x = w - l,

.. math:: \hat y_h = l + (x U) V_h

The U of M x RANK is found on all channels together: it spans what matters most to the forecasts of the ridge solution
W = (sum x x^T + (RIDGE tr/M + WEIGHT) I)^{-1} sum x (y - l)^T. On it stand two regressions: *pooled*, which carries
over to another site, and the *channel*'s own, in which the pooled one counts as `POOLED` windows.

M is the longest of a few nested *spans* that is known so far, so a stream gets better as it remembers more. Only spans
are kept that forecast the last part of the learning rows better than every shorter one does. Neither regression moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from ompb.core.arrays import Array, contiguous, namespace, reshaped, zeros
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Learner, Member, MemberOptions, Speech, Voices
from ompb.core.members.slides import slid_products, slides
from ompb.core.members.sums import Sums
from ompb.shapes import Shape

NAMES = ("memory", "memory of the channel")
# What a window's rows are reduced to. Half of it costs ETTh's own source half a per cent; beyond it nothing is gained.
RANK = 32
# On the diagonal of the windows' products: a share of its mean, and a constant.
RIDGE, WEIGHT = 3e-3, 50.0
# Windows that the pooled regression counts as in the channel's own.
POOLED = 50.0
# Share of the learning rows that says which spans pay, and windows of it that are asked at most.
JUDGED, ASKED = 0.2, 512
# A season of more windows than this is not remembered.
LONGEST_SEASON = 8
# Windows taken in at a time.
BLOCK = 1024


@dataclass(frozen=True)
class Span:
    """The regressions on the newest M rows. The last feature is the level, which is added as it is."""

    reads: Annotated[Array, Shape("? f")]  # U, less what the level takes out of it, and a: (M, RANK + 1)
    pooled: Annotated[Array, Shape("f H")]  # V and ones
    own: Annotated[Array, Shape("N f H")]  # the same for each channel

    @property
    def rows(self) -> int:
        """M."""
        return int(self.reads.shape[0])

    def forecasts(self, rows: Array) -> Array:
        """Of both regressions, (N, n, 2 H), from the newest rows (N, n, at least M)."""
        xp = namespace(rows)
        leads = self.pooled.shape[1]
        features = xp.matmul(rows[..., -self.rows :], self.reads)
        said = zeros(rows, *features.shape[:2], 2 * leads)
        said[..., :leads] = xp.matmul(features, self.pooled)
        said[..., leads:] = xp.matmul(features, self.own)
        return said


@dataclass(frozen=True)
class Memory(Member, Voices, tag="memory"):
    """Two voices, pooled and of the channel, that never move."""

    spans: tuple[Span, ...]  # the shortest is a window's

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner:
        """Least squares over the rows themselves: the forecaster has no part in it."""
        return _MemoryLearner(features, options.spans)

    def voices(self, options: MemberOptions) -> Voices:
        """Itself."""
        del options
        return self

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Pooled, and of the channel."""
        return NAMES

    @cached_property
    def reach(self) -> int:  # type: ignore[override]
        """The longest span."""
        return self.spans[-1].rows

    def longest(self, known: int) -> int:
        """The place of the longest span that so many known rows fill."""
        return max(place for place, span in enumerate(self.spans) if place == 0 or span.rows <= known)

    def see(self, view: View) -> Array:
        """What both add to the base forecast, once and for all: (N, n, 2 H)."""
        places = [self.longest(known) for known in view.known]
        leads = view.base.shape[-1]
        if len(set(places)) == 1:
            said = self.spans[places[0]].forecasts(view.rows)
        else:
            said = zeros(view.base, *view.base.shape[:2], 2 * leads)
            for chosen in set(places):
                here = namespace(said).asarray([place == chosen for place in places])
                said[:, here] = self.spans[chosen].forecasts(view.rows[:, here])
        said[..., :leads] -= view.base
        said[..., leads:] -= view.base
        return said

    def speak(self, state: None, seen: Array) -> Speech:
        """What they saw, without any doubt."""
        del state
        lanes, windows, leads = seen.shape
        if windows == 1:
            return Speech(reshaped(seen, (lanes, 2, 1, leads // 2)), None)
        both = reshaped(seen, (lanes, windows, 2, leads // 2))
        return Speech(namespace(seen).permute_dims(both, (0, 2, 1, 3)), None)


class _MemoryLearner(Learner):
    def __init__(self, features: FeatureMap, multiples: tuple[int, ...]) -> None:
        self.level, self.horizon = features.level, features.horizon
        self.lengths = span_lengths(int(features.level.shape[0]), features.season, multiples)
        self.spans: tuple[Span, ...] = ()

    def read(self, rows: Array, outcomes: Array) -> None:
        self.spans = tuple(self._span(rows, outcomes, length) for length in self._that_pay(rows, outcomes))

    def finish(self) -> Memory:
        return Memory(self.spans)

    def _that_pay(self, rows: Array, outcomes: Array) -> list[int]:
        """The shortest length, and those with a lower error than every shorter one."""
        known = math.ceil((1 - JUDGED) * rows.shape[1])
        later = range(known - 1, rows.shape[1] - self.horizon)
        asked = list(later[:: max(1, math.ceil(len(later) / ASKED))])
        pay, least = self.lengths[:1], math.inf
        for length in self.lengths:
            if asked and length + self.horizon <= known:
                span = self._span(rows[:, :known], outcomes[:, :known], length)
                error = self._error(span, rows, outcomes, asked)
                if error < least:
                    pay, least = [*(shorter for shorter in pay if shorter < length), length], error
        return pay

    def _error(self, span: Span, rows: Array, outcomes: Array, origins: list[int]) -> float:
        """Mean squared error of the pooled regression at these origins."""
        xp = namespace(rows)
        said = span.forecasts(xp.stack([rows[:, o + 1 - span.rows : o + 1] for o in origins], axis=1))
        truth = xp.stack([outcomes[:, o + 1 : o + 1 + self.horizon] for o in origins], axis=1)
        known = xp.isfinite(truth)
        squared = xp.where(known, truth - said[..., : self.horizon], 0.0) ** 2
        return float(xp.sum(squared)) / max(float(xp.sum(xp.astype(known, rows.dtype))), 1.0)

    def _span(self, rows: Array, outcomes: Array, length: int) -> Span:
        """The regressions on so many rows, from rows (N, T) and outcomes (N, T), NaN where missing."""
        xp = namespace(rows)
        older = zeros(rows, length - int(self.level.shape[0]))
        level = xp.concat([older, self.level])
        features, penalty = _subspace(slid_products(rows, length, self.horizon), level)
        reads = xp.concat([features - level[:, None] * xp.sum(features, axis=0), level[:, None]], axis=1)
        sums = Sums()
        for windows, ahead in slides(rows, outcomes, length, self.horizon, BLOCK):
            seen = xp.matmul(windows, reads)
            sums.add(seen[..., :-1], ahead - seen[..., -1:])
        pooled, own = _regressions(sums, penalty)
        ones = xp.ones_like(own[:, :1])
        return Span(
            contiguous(reads),
            contiguous(xp.concat([pooled, ones[0]], axis=0)),
            contiguous(xp.concat([own, ones], axis=1)),
        )


def span_lengths(context: int, season: int | None, multiples: tuple[int, ...]) -> list[int]:
    """Lengths that are tried: multiples of a window, and a season and a window where no season fits into a window.

    >>> span_lengths(96, 24, (1, 2, 4)), span_lengths(24, 52, (1, 2, 4))
    ([96, 192, 384], [24, 48, 76, 96])
    """
    lengths = {multiple * context for multiple in multiples}
    if season is not None and context < season <= LONGEST_SEASON * context and len(multiples) > 1:
        lengths.add(season + context)
    return sorted(lengths)


def _subspace(products: Array, level: Array) -> tuple[Array, Array]:
    r"""U (M, r), in which the windows' products with their ridge are the unit matrix, and the ridge there (r, r).

    With S = sum x x^T + ridge I = C C^T and W = S^{-1} sum x (y - l)^T, U = C^{-T} Q, where Q are the first
    eigenvectors of (C^T W) (C^T W)^T.
    """
    xp = namespace(products)
    rows = int(products.shape[0])
    through = xp.matmul(level, products)  # sum l w^T, then sum l y^T
    squared_level = xp.sum(through[:rows] * level)
    # x = w - l: products of x with x and with y - l
    relative = products - through
    relative[:, :rows] -= through[:rows][:, None] - squared_level
    relative[:, rows:] -= through[:rows][:, None] - squared_level
    gram, cross = relative[:, :rows], relative[:, rows:]
    ridge = RIDGE * xp.linalg.trace(gram) / rows + WEIGHT
    root = xp.linalg.cholesky(gram + ridge * xp.eye(rows, dtype=gram.dtype, device=gram.device))
    weighted = xp.linalg.solve(root, cross)  # C^T W
    _, vectors = xp.linalg.eigh(xp.matmul(weighted, xp.matrix_transpose(weighted)))
    first = vectors[:, -min(RANK, int(cross.shape[1])) :]
    features = xp.linalg.solve(xp.matrix_transpose(root), first)
    return features, ridge * xp.matmul(xp.matrix_transpose(features), features)


def _regressions(sums: Sums, penalty: Array) -> tuple[Array, Array]:
    """V pooled (r, H) and of each channel (N, r, H)."""
    xp = namespace(penalty)
    pooled = sums.pooled()
    gram, cross = pooled.means(0.0)
    together = xp.linalg.solve(gram[0] + penalty / pooled.windows, cross[0])
    own_gram, own_cross = sums.means(0.0)
    share = POOLED / sums.windows
    usual = gram[0] + penalty / pooled.windows
    own = xp.linalg.solve(own_gram + share * usual, own_cross + share * xp.matmul(usual, together))
    return together, own
