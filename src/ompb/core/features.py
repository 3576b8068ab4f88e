r"""What the head sees: a short vector of features per lane, from the window and the base forecast alone.

With B an orthonormal basis over the horizon (level, trend, harmonics of the season), z the base forecast, p the
seasonal profile of the window tiled over the horizon, and l the window's level:

.. math:: \phi = [\,1,\; B^T (z - l),\; B^T (p - l)\,]

Taking everything relative to the level means that a level shift of the inputs need not be learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ompb.core.arrays import Array, namespace

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


@dataclass(frozen=True)
class FeatureMap:
    """From windows (N, n, L) and base forecasts (N, n, H) to features (N, n, F).

    Everything is linear in the window and the base forecast, so it is kept as matrices: with l = w a the level and
    p = w R the profile, phi = [1, (z - l) B, (w R - l) B].
    """

    from_window: Array  # (L, F), with the profile's (L, H) beside it: (L, F + H) where there is one
    from_base: Array  # (H, F)
    has_profile: bool

    @classmethod
    def build(cls, leads: Array, season: int | None, context: int, basis_size: int, use_profile: bool) -> FeatureMap:
        """The map for leads 0 .. H-1; the profile needs a whole season in the window."""
        xp = namespace(leads)
        basis = horizon_basis(leads, season, basis_size)
        level = level_weights(leads, season, context)
        through_level = level[:, None] * xp.sum(basis, axis=0)
        one_w, one_z = xp.zeros_like(through_level[:, :1]), xp.zeros_like(basis[:, :1])
        if season is None or season > context or not use_profile:
            return cls(xp.concat([one_w, -through_level], axis=1), xp.concat([one_z, basis], axis=1), False)
        profile = seasonal_profile(leads, season, context)
        from_window = [one_w, -through_level, xp.matmul(profile, basis) - through_level, profile]
        return cls(xp.concat(from_window, axis=1), xp.concat([one_z, basis, xp.zeros_like(basis)], axis=1), True)

    @property
    def size(self) -> int:
        """F, the number of features."""
        return int(self.from_base.shape[1])

    def __call__(self, windows: Array, base: Array) -> tuple[Array, Array | None]:
        """Features (N, n, F) and, where there is one, the profile (N, n, H)."""
        xp = namespace(windows)
        seen = xp.matmul(windows, self.from_window)
        phi = seen[..., : self.size] + xp.matmul(base, self.from_base)
        phi[..., 0] = 1.0
        return phi, seen[..., self.size :] if self.has_profile else None


def seasonal_profile(leads: Array, season: int, context: int) -> Array:
    """R (L, H) with w R = mean of the newest whole seasons of the window, tiled over the leads in phase."""
    xp = namespace(leads)
    whole = context // season
    place = xp.astype(xp.arange(context), leads.dtype)[:, None]
    same_phase = (leads[None, :] - (place - context)) % season == 0
    return xp.where((place >= context - whole * season) & same_phase, 1 / whole, xp.zeros_like(place * leads))


def level_weights(like: Array, season: int | None, context: int) -> Array:
    """Weights a (L,): w a is the mean of the newest whole seasons of the window, or its last value if none fits."""
    xp = namespace(like)
    span = 1 if season is None or season > context else context // season * season
    place = xp.arange(context)
    return xp.where(place >= context - span, xp.full((context,), 1 / span, dtype=like.dtype), 0.0)
