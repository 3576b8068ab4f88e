r"""What the offline stage learns from the source, in closed form.

With G the mean of phi phi^T over the learning windows (plus a little of its mean diagonal, so that it can be inverted)
and n_0 the anchor in windows, features are whitened by T with T^T T = (n_0 G)^{-1}. In these coordinates the
source's word, worth n_0 windows, is the standard normal around the source head

.. math:: v_h = n_0 \, T \, \overline{\phi\, r_h},\qquad \sigma_h^2 = \overline{(r_h - \phi^T T^T v_h)^2}

The *window regression* is fitted beside it, to what the seasonal profile p leaves over, from the G features that know
the window alone. It never moves. As it is relative to the level it follows a level shift without any outcome.

.. math:: \hat y_h = p_h + \phi_G^T u_h,\qquad u_h = G_{GG}^{-1} \, \overline{\phi_G\, (y_h - p_h)}
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace
from ompb.core.features import FeatureMap

# Share of the mean diagonal of G added to its diagonal.
RIDGE = 1e-3
# Least residual variance of a lane, in squared source standard deviations: a perfect source fit stays finite.
LEAST_NOISE = 1e-6


@dataclass
class Moments:
    """Sums over learning windows, taken in block by block."""

    windows: int
    gram: Array  # sum phi phi^T: (N, F, F)
    cross: Array  # sum phi r_h over known outcomes: (N, F, H)
    squared: Array  # sum r_h^2: (N, H)
    known: Array  # count of known outcomes: (N, H)

    @classmethod
    def empty(cls, like: Array, lanes: int, size: int, horizon: int) -> Moments:
        """No window taken in."""
        xp = namespace(like)
        shapes = [(lanes, size, size), (lanes, size, horizon), (lanes, horizon), (lanes, horizon)]
        gram, cross, squared, known = (xp.zeros(shape, dtype=like.dtype) for shape in shapes)
        return cls(0, gram, cross, squared, known)

    def add(self, phi: Array, residual: Array) -> None:
        """Take in features (N, n, F) and residuals (N, n, H); a missing outcome is NaN and adds nothing."""
        xp = namespace(phi)
        is_known = xp.isfinite(residual)
        clean = xp.where(is_known, residual, 0.0)
        turned = xp.matrix_transpose(phi)
        self.windows += phi.shape[1]
        self.gram += xp.matmul(turned, phi)
        self.cross += xp.matmul(turned, clean)
        self.squared += xp.sum(clean**2, axis=1)
        self.known += xp.sum(xp.astype(is_known, phi.dtype), axis=1)

    def means(self) -> tuple[Array, Array]:
        """G (N, F, F), which can be inverted, and the mean of phi r_h (N, F, H)."""
        xp = namespace(self.gram)
        size = self.gram.shape[-1]
        gram = self.gram / self.windows
        diagonal = RIDGE * xp.linalg.trace(gram)[:, None, None] / size
        known = xp.where(self.known > 0, self.known, 1.0)
        return gram + diagonal * xp.eye(size, dtype=gram.dtype), self.cross / known[:, None, :]


@dataclass(frozen=True)
class SourceHead:
    """The head the source left: N lanes, F features, H leads."""

    whitening: Array  # T transposed: (N, F, F)
    weights: Array  # v: (N, H, F)
    noise: Array  # sigma_h^2, of the source head: (N, H)
    base_variance: Array  # mean squared error of the bare forecaster: (N, H)
    regression: Array  # u, of the window regression: (N, G, H)

    @classmethod
    def from_moments(cls, moments: Moments, window_moments: Moments, anchor: float) -> SourceHead:
        """Solve the equations above: moments of phi and y - z, and of phi_G and y - p."""
        xp = namespace(moments.gram)
        known = xp.where(moments.known > 0, moments.known, 1.0)
        gram, cross = moments.means()
        values, vectors = xp.linalg.eigh(gram)
        whitening = vectors / xp.sqrt(anchor * values)[:, None, :]
        weights = anchor * xp.matmul(xp.matrix_transpose(whitening), cross)
        # mean (r - phi^T u)^2 = mean r^2 - 2 u^T mean(phi r) + u^T G u, with u = T^T v
        raw = xp.matmul(whitening, weights)
        fit = xp.sum(2 * raw * cross - xp.matmul(gram, raw) * raw, axis=1)
        base_variance = moments.squared / known
        noise = xp.maximum(base_variance - fit, LEAST_NOISE)
        weights = xp.asarray(xp.matrix_transpose(weights), copy=True)
        regression = xp.linalg.solve(*window_moments.means())
        return cls(whitening, weights, noise, xp.maximum(base_variance, LEAST_NOISE), regression)

    def whiten(self, phi: Array) -> Array:
        """T phi for features (N, n, F)."""
        xp = namespace(phi)
        return xp.matmul(phi, self.whitening)


@dataclass(frozen=True)
class Views:
    """All that is said of n windows before the head has moved."""

    phi: Array  # whitened: (N, n, F)
    still: tuple[Array, ...]  # forecasts of backbone, profile (where there is one), regression: each (N, 1, n, H)


def view(head: SourceHead, features: FeatureMap, windows: Array, base: Array) -> Views:
    """From windows (N, n, L) and base forecasts (N, n, H), both standardised."""
    raw, profile = features(windows, base)
    regression = profile + namespace(raw).matmul(raw[..., : features.of_window], head.regression)
    habits = (profile, regression) if features.has_profile else (regression,)
    return Views(head.whiten(raw), tuple(forecast[:, None] for forecast in (base, *habits)))
