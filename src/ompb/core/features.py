r"""What the head sees: a short vector of features per lane, from the window and the base forecast alone.

With B an orthonormal basis over the horizon (level, trend, harmonics of the season), z the base forecast, p the
seasonal profile of the window tiled over the horizon, l the window's level, and d how far its newest rows are off the
profile:

.. math:: \phi = [\,1,\; B^T (p - l),\; d,\; B^T (z - l)\,]

Taking everything relative to the level means that a level shift of the inputs need not be learned. If no season fits
into the window there is no profile: the level, its last value, takes its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, contiguous, namespace, product
from ompb.floor.shapes import Dim, Shape

# A basis function that adds less than this share of itself to the others is left out.
INDEPENDENT = 1e-3


def horizon_basis(leads: Array, season: int | None, size: int) -> Array:
    """Basis B over the leads 0 .. H-1, shape (H, K), K <= size, columns of mean square 1/H.

    Level and trend first, then cosine and sine of the season's harmonics (of a half-period cosine series when
    there is no season). Functions that depend on earlier ones are skipped, so short horizons get fewer columns.
    """
    xp = namespace(leads)
    horizon = leads.shape[0]
    candidates = [xp.ones_like(leads), leads - xp.mean(leads)]
    for order in range(1, horizon + 1):
        if season is None:
            candidates.append(xp.cos(math.pi * (order + 1) * (leads + 0.5) / horizon))
        else:
            angle = 2 * math.pi * order * leads / season
            candidates += [xp.cos(angle), xp.sin(angle)]
    columns: list[Array] = []
    for candidate in candidates:
        length = xp.sqrt(xp.sum(candidate**2))
        if length < INDEPENDENT:
            continue
        rest = candidate / length
        for column in columns:
            rest = rest - column * xp.sum(column * rest)
        remaining = xp.sqrt(xp.sum(rest**2))
        if remaining > INDEPENDENT:
            columns.append(rest / remaining)
        if len(columns) == size:
            break
    return xp.stack(columns, axis=-1) / math.sqrt(horizon)


class View(NamedTuple):
    """What all members see of n windows of N lanes, standardised."""

    base: Array  # what the forecaster says of the rows ahead: (N, n, H)
    features: Array  # phi: (N, n, F)
    profile: Array  # the seasonal profile, or the level where there is none: (N, n, H)
    rows: Array  # the newest rows, oldest first, of which the last L are the window: (N, n, at least L)
    known: tuple[int, ...]  # how many rows were known at each of the n windows; of those before, `rows` says nothing


@dataclass(frozen=True)
class FeatureMap:
    """From windows (N, n, L) and base forecasts (N, n, H) to what members see of them.

    Everything is linear in the window and the base forecast, so it is kept as matrices: with l = w a the level,
    p = w R the profile and d = w D, phi = [1, (w R - l) B, w D, (z - l) B].
    """

    from_window: Annotated[Array, Shape("L F+H")]  # the features' part, then R
    from_base: Annotated[Array, Shape("H F")]
    of_window: Annotated[int, Dim("G")]  # the first so many features know the window alone
    has_profile: bool  # else R repeats the level
    level: Annotated[Array, Shape("L")]  # a
    season: int | None

    @classmethod
    def build(cls, leads: Array, season: int | None, context: int, basis_size: int, use_profile: bool) -> FeatureMap:
        """The map for leads 0 .. H-1; the profile needs a whole season in the window."""
        xp = namespace(leads)
        has_profile = season is not None and season <= context and use_profile
        basis = horizon_basis(leads, season, basis_size)
        level = level_weights(leads, season, context)
        through_level = level[:, None] * xp.sum(basis, axis=0)
        blank, deviations = xp.zeros_like(level[:, None]), deviation_weights(leads, season, context)
        if has_profile:
            assert season is not None
            profile = seasonal_profile(leads, season, context)
            of_window = [blank, xp.matmul(profile, basis) - through_level, deviations]
        else:
            profile = level[:, None] * xp.ones_like(leads)
            of_window = [blank, deviations]
        from_window = xp.concat([*of_window, -through_level, profile], axis=1)
        count = sum(part.shape[1] for part in of_window)
        from_base = xp.concat([xp.zeros((leads.shape[0], count), dtype=leads.dtype), basis], axis=1)
        return cls(contiguous(from_window), contiguous(from_base), count, has_profile, contiguous(level), season)

    @property
    def size(self) -> int:
        """F, the number of features."""
        return int(self.from_base.shape[1])

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.from_base.shape[0])

    def view(self, rows: Array, base: Array, known: tuple[int, ...] | None = None) -> View:
        """What members see of the newest rows (N, n, L or more) and base forecasts (N, n, H), both standardised.

        ``known`` says how many rows were known at each window, if not just those that are given.
        """
        context = int(self.level.shape[0])
        seen = product(rows[..., -context:], self.from_window)
        phi = seen[..., : self.size] + product(base, self.from_base)
        phi[..., 0] = 1.0
        return View(base, phi, seen[..., self.size :], rows, known or (int(rows.shape[-1]),) * int(rows.shape[1]))


def seasonal_profile(leads: Array, season: int, context: int) -> Array:
    """R (L, H) with w R = mean of the newest whole seasons of the window, tiled over the leads in phase."""
    xp = namespace(leads)
    whole = context // season
    place = xp.astype(xp.arange(context), leads.dtype)[:, None]
    same_phase = (leads[None, :] - (place - context)) % season == 0
    return xp.where((place >= context - whole * season) & same_phase, 1 / whole, xp.zeros_like(place * leads))


def deviation_weights(like: Array, season: int | None, context: int) -> Array:
    """D (L, 2 or 3): w D says how far the newest rows are off their phase's mean, or off the last row without a season.

    First the newest row by itself (nothing to say without a season), then exponentially weighted means whose memory is
    a quarter of a season and a season; of the window, where no season fits into it.
    """
    xp = namespace(like)
    place = xp.astype(xp.arange(context), like.dtype)
    newest = xp.where(place == context - 1, xp.ones_like(place), 0.0)
    if season is None or season > context:
        span, columns = context, []
        usual = newest[:, None] * xp.ones_like(place)  # w usual repeats the last row
    else:
        span, columns = season, [newest]
        whole = context // season
        same_phase = (place[:, None] - place) % season == 0
        usual = xp.where((place >= context - whole * season)[:, None] & same_phase, 1 / whole, xp.zeros_like(place))
    for memory in (span / 4, span):
        fading = xp.exp((place - context) / memory)
        columns.append(fading / xp.sum(fading))
    weights = xp.stack(columns, axis=-1)
    return weights - xp.matmul(usual, weights)


def level_weights(like: Array, season: int | None, context: int) -> Array:
    """Weights a (L,): w a is the mean of the newest whole seasons of the window, or its last value if none fits."""
    xp = namespace(like)
    span = 1 if season is None or season > context else context // season * season
    place = xp.arange(context)
    return xp.where(place >= context - span, xp.full((context,), 1 / span, dtype=like.dtype), 0.0)
