r"""The memory: a regression on more rows than the forecaster's window, of all channels together and of each one.

With w the newest M rows of a lane, l = w a their level (that of the window) and x = w - l,

.. math:: \hat y_h = l + (x U) V_h

The U of M x RANK is found on all channels together: it spans what matters most to the forecasts of the ridge solution
W = (sum x x^T + (RIDGE tr/M + WEIGHT) I)^{-1} sum x (y - l)^T. On it stand two regressions: *pooled*, which carries
over to another site, and the *channel*'s own, in which the pooled one counts as `POOLED` windows.

M is the longest of a few nested *spans* that is known so far, so a stream gets better as it remembers more. Neither
regression moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from ompb.core.arrays import Array, contiguous, namespace, product, zeros
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Learner, Member, MemberOptions, Speech, Voices
from ompb.core.members.slides import slid_products
from ompb.core.members.sums import Sums
from ompb.core.members.triangles import Triangle
from ompb.floor.shapes import Shape

NAMES = ("memory", "memory of the channel")
# What a window's rows are reduced to. Half of it costs ETTh's own source half a per cent; beyond it nothing is gained.
RANK = 32
# On the diagonal of the windows' products: a share of its mean, and a constant.
RIDGE, WEIGHT = 3e-3, 50.0
# Windows that the pooled regression counts as in the channel's own.
POOLED = 50.0
# Numbers among the windows' products that are held at a time, and windows with missing labels.
AT_ONCE, BLOCK = 4_000_000, 1024


@dataclass(frozen=True)
class Span:
    """The regressions on the newest M rows of S series. The last feature is the level, which is added as it is."""

    reads: Annotated[Array, Shape("S ? f")]  # U, less what the level takes out of it, and a: (S, M, RANK + 1)
    pooled: Annotated[Array, Shape("S f H")]  # V and ones
    own: Annotated[Array, Shape("N f H")]  # the same for each channel

    @property
    def rows(self) -> int:
        """M."""
        return int(self.reads.shape[1])

    def forecasts(self, rows: Array) -> Array:
        """Of both regressions, (N, n, 2 H), from the newest rows (N, n, at least M)."""
        features = self._features(rows)
        own = product(features.reshape((*rows.shape[:2], -1)), self.own)
        return namespace(rows).concat([self._pooled(features, rows), own], axis=-1)

    def pooled_forecasts(self, rows: Array) -> Array:
        """Of the pooled regression alone, (N, n, H)."""
        return self._pooled(self._features(rows), rows)

    def _pooled(self, features: Array, rows: Array) -> Array:
        return product(features, self.pooled[:, None]).reshape((*rows.shape[:2], -1))

    def _features(self, rows: Array) -> Array:
        """What the regressions know of windows, (S, C, n, f): lane by lane, so that none depends on the others."""
        lanes, windows, _ = rows.shape
        series = int(self.reads.shape[0])
        newest = rows[..., -self.rows :].reshape((series, lanes // series, windows, self.rows))
        return product(newest, self.reads[:, None])


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
        return self.lengths[-1]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Of the spans, in rows."""
        return tuple(span.rows for span in self.spans)

    def longest(self, known: int) -> int:
        """The place among the lengths of the longest that so many known rows fill."""
        return sum(length <= known for length in self.lengths[1:])

    def see(self, view: View) -> Array:
        """What both add to the base forecast, once and for all: (N, n, 2 H)."""
        places = [self.longest(known) for known in view.known]
        *windows, leads = view.base.shape
        if len(set(places)) == 1:
            said = self.spans[places[0]].forecasts(view.rows)
        else:
            said = zeros(view.base, *windows, 2 * leads)
            for chosen in set(places):
                here = namespace(said).asarray([place == chosen for place in places])
                said[:, here] = self.spans[chosen].forecasts(view.rows[:, here])
        both = said.reshape((*windows, 2, leads))  # a view
        both -= view.base[:, :, None]
        return said

    def speak(self, state: None, seen: Array) -> Speech:
        """What they saw, without any doubt."""
        del state
        lanes, windows, leads = seen.shape
        if windows == 1:
            return Speech(seen.reshape((lanes, 2, 1, leads // 2)), None)
        both = seen.reshape((lanes, windows, 2, leads // 2))
        return Speech(namespace(seen).permute_dims(both, (0, 2, 1, 3)), None)


@dataclass
class _MemoryLearner(Learner):
    features: FeatureMap
    lengths: tuple[int, ...]  # of the spans; none for that of a window
    spans: tuple[Span, ...] = ()

    def read(self, rows: Array, outcomes: Array) -> None:
        lengths = self.lengths or (int(self.features.level.shape[0]),)
        self.spans = tuple(fit_span(self.features, rows, outcomes, length) for length in lengths)

    def finish(self) -> Memory:
        return Memory(self.spans)


def fit_span(features: FeatureMap, rows: Array, outcomes: Array, length: int) -> Span:
    """The regressions on so many rows, from rows (S, C, T) and outcomes (S, C, T), the same but NaN where missing."""
    xp = namespace(rows)
    series, channels, _ = rows.shape
    at_once = max(1, AT_ONCE // (channels * length * (length + features.horizon)))
    parts = []
    for first in range(0, series, at_once):
        here = slice(first, first + at_once)
        parts.append(_fit_span(features, rows[here], outcomes[here], length))
    return Span(*(xp.concat(same, axis=0) for same in zip(*parts, strict=True)))


def _fit_span(features: FeatureMap, rows: Array, outcomes: Array, length: int) -> tuple[Array, Array, Array]:
    """Reads, pooled and own of a `Span`."""
    xp = namespace(rows)
    series, channels, known = rows.shape
    level = xp.concat([zeros(rows, length - int(features.level.shape[0])), features.level])
    by_lane = rows.reshape((series * channels, known))
    products = _relative(slid_products(by_lane, length, features.horizon), level)
    subspace, penalty = _subspace(xp.sum(products.reshape((series, channels, *products.shape[1:])), axis=1))
    sums = _sums(products, xp.repeat(subspace, channels, axis=0), known - length - features.horizon + 1)
    _leave_out(sums, by_lane, outcomes.reshape(by_lane.shape), subspace, level, features.horizon)
    pooled, own = _regressions(sums, penalty, channels)
    levels = zeros(rows, series, length, 1) + level[:, None]
    return (
        contiguous(xp.concat([subspace - level[:, None] * xp.sum(subspace, axis=1)[:, None], levels], axis=2)),
        contiguous(xp.concat([pooled, xp.ones_like(pooled[:, :1])], axis=1)),
        contiguous(xp.concat([own, xp.ones_like(own[:, :1])], axis=1)),
    )


def _relative(products: Array, level: Array) -> Array:
    """Sums of x x^T, then of x (y - l)^T, from those (N, M, M + H) of w w^T and w y^T."""
    xp = namespace(products)
    rows = int(products.shape[1])
    through = xp.matmul(level, products)  # sum l w^T, then sum l y^T: (N, M + H)
    squared_level = xp.sum(through[:, :rows] * level, axis=1)
    relative = products - through[:, None]
    relative -= through[:, :rows, None] - squared_level[:, None, None]
    return relative


def _subspace(products: Array) -> tuple[Array, Array]:
    r"""U (S, M, r), in which the windows' products with their ridge are the unit matrix, and the ridge there (S, r, r).

    With S = sum x x^T + ridge I = C C^T and W = S^{-1} sum x (y - l)^T, U = C^{-T} Q, where Q are the first left
    singular vectors of C^T W.
    """
    xp = namespace(products)
    rows = int(products.shape[1])
    gram, cross = products[..., :rows], products[..., rows:]
    ridge = (RIDGE * xp.linalg.trace(gram) / rows + WEIGHT)[:, None, None]
    root = Triangle.of(xp.linalg.cholesky(gram + ridge * xp.eye(rows, dtype=gram.dtype, device=gram.device)))
    vectors = xp.linalg.svd(root.solve(cross), full_matrices=False)[0]  # of C^T W
    features = root.solve_transposed(vectors[..., :RANK])
    return features, ridge * xp.matmul(xp.matrix_transpose(features), features)


def _sums(products: Array, subspace: Array, windows: int) -> Sums:
    """What a regression on x U needs, from the windows' products (N, M, M + H) and U (N, M, r): every label counts."""
    xp = namespace(products)
    rows, turned = int(products.shape[1]), xp.matrix_transpose(subspace)
    through = xp.matmul(turned, products)
    leads = through[:, 0, rows:]
    return Sums(
        windows=windows,
        gram=xp.matmul(through[..., :rows], subspace),
        cross=contiguous(through[..., rows:]),
        squared=xp.zeros_like(leads),
        known=xp.full_like(leads, float(windows)),
    )


def _leave_out(sums: Sums, rows: Array, outcomes: Array, subspace: Array, level: Array, ahead: int) -> None:
    """Take labels off that are missing in the outcomes (N, T), and for which the rows (N, T) have something else."""
    xp = namespace(rows)
    length, lanes = int(level.shape[0]), rows.shape[0]
    missing = xp.astype(~xp.isfinite(outcomes[:, length:]), rows.dtype)
    so_far = xp.concat([zeros(rows, lanes, 1), xp.cumulative_sum(missing, axis=1)], axis=1)
    is_hit = so_far[:, ahead:] > so_far[:, : sums.windows]  # windows with a missing label
    for lane in range(lanes):
        hit = [int(start) for start in xp.nonzero(is_hit[lane])[0]]
        for first in range(0, len(hit), BLOCK):
            starts = hit[first : first + BLOCK]
            windows = xp.stack([rows[lane, start : start + length] for start in starts])
            levels = xp.matmul(windows, level)[:, None]
            phi = xp.matmul(windows - levels, subspace[lane * subspace.shape[0] // lanes])
            labels = xp.stack([rows[lane, start + length : start + length + ahead] for start in starts]) - levels
            gone = xp.stack([missing[lane, start : start + ahead] for start in starts])
            sums.cross[lane] -= xp.matmul(xp.matrix_transpose(phi), gone * labels)
            sums.known[lane] -= xp.sum(gone, axis=0)


def _regressions(sums: Sums, penalty: Array, channels: int) -> tuple[Array, Array]:
    """V pooled (S, r, H) and of each channel (N, r, H)."""
    xp = namespace(penalty)
    pooled = sums.pooled(channels)
    gram, cross = pooled.means(0.0)
    usual = gram + penalty / pooled.windows
    together = xp.linalg.solve(usual, cross)
    own_gram, own_cross = sums.means(0.0)
    share = POOLED / sums.windows
    through = xp.matmul(usual, together)
    own_gram, own_cross = (
        own + share * xp.repeat(common, channels, axis=0) for own, common in ((own_gram, usual), (own_cross, through))
    )
    return together, xp.linalg.solve(own_gram, own_cross)
