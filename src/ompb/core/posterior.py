r"""The Gaussian law of the head and its exact recursion.

Per lane, discount (lambda) and lead h the residual of the base forecast is modelled as phi^T w_h + noise. Features are
whitened so that the source's word has unit covariance: rho = N(w_h, sigma_h^2 P), from w_h = v_h (source head), P = I.
Each origin k that issued a forecast adds one label, and now and then the source's word is put back:

.. math:: w_h(t) = \arg\min_w \sum_{k} \lambda^{t-h-k} \big[ m_k (r_{k,h} - \phi_k^T w)^2
          + \omega_k \lVert w - v_h \rVert^2 \big] + \lambda^{n} \lVert w - v_h \rVert^2

m says whether origin k issued a forecast. Every `REFILL_EVERY`-th origin puts back what forgetting has taken from the
source's word: omega_k = 1 - lambda^REFILL_EVERY there, else 0. Hence P never exceeds I / lambda^REFILL_EVERY: a stream
without excitation cannot wind the recursion up.

Gains depend on inputs only: g_k is fixed when origin k issues, and lead h takes its label in when row k + h arrives,

.. math:: w_h \leftarrow w_h + g_k (r_{k,h} - \phi_k^T w_h),

so all leads share one covariance, shifted in time: O(F^2 + F H) a row. It is kept as a square root, P = S S^T, which no
rounding error can make indefinite. A *missing* label counts as one that came as the head itself forecast it
(innovation 0); that value is kept. If the label comes after all, *late*, its exact effect is linear: delta = g_k s with
the surprise s = r - imputed, carried through what has happened to that lead since. With P_j the covariance after origin
j, that is I - g_j phi_j^T = lambda P_j P_{j-1}^{-1} for each later origin, and I - omega P_j = P_j (P_j^{-1} - omega I)
at a refill. So all in between cancels. While row n is the newest, lead h has heard of origin n - h, and

.. math:: \delta_h = \lambda^{n-h-k} P_{n-h} \phi_k s.

Of the gains since, P follows as a sum of positive terms, where q = phi^T P phi / lambda is the leverage:

.. math:: P_{j-1} = \lambda \bigl( P_j + (1 + q_j)\, g_j g_j^T \bigr),\qquad \frac{1}{1 + q_j} = 1 - \phi_j^T g_j.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ompb.core.arrays import Array, at_least, contiguous, dot, namespace, scaled, small_product, zeros
from ompb.core.counts import Form, along
from ompb.core.fusing import fused
from ompb.core.holes import Holes
from ompb.core.members.contract import MemberState
from ompb.core.rings import SLACK, place_of, push, vectors_from
from ompb.floor.shapes import Shape

# Origins between two refills of the source's word: fewer cost time, more let it fade further.
REFILL_EVERY = 64


def rank_one(root: Array, phi: Array) -> tuple[Array, Array, Array]:
    r"""Add phi phi^T (..., F) to a precision with P = S S^T (..., F, F): leverage (...), gain (..., F) and new root.

    .. math:: f = S^T \phi,\quad q = f^T f = \phi^T P \phi,\quad g = \frac{S f}{1 + q},\quad
       S' = S - \frac{S f f^T}{1 + q + \sqrt{1 + q}}
    """
    xp = namespace(root)
    f = small_product(phi[..., None, :], root)  # as a row
    u = small_product(root, f.mT)[..., 0]
    q = dot(f, f)  # (..., 1)
    more = 1.0 + q
    return q[..., 0], u / more, root - (u / (more + xp.sqrt(more)))[..., None] * f


def said(mean: Array, phi: Array) -> Array:
    """phi^T w_h, (N, M, n, H), of w (N, M, H, F) and whitened features (N, n, F)."""
    return small_product(mean, phi.mT[:, None]).mT


@fused
def taken_in(mean: Array, root: Array, fading: Array, phi: Array) -> tuple[Array, Array, Array, Array]:
    """phi^T w_h (N, M, 1, H) of an origin's features (N, F), and its leverage, gain and root after the past faded."""
    return said(mean, phi[:, None]), *rank_one(root * fading, phi[:, None])


@fused
def absorbed(
    mean: Array, phi: Array, gains: Array, place: int, residual: Array, observed: Array
) -> tuple[Array, Array, Array]:
    """The forecasts phi^T w_h (N, M, H) of a row's labels, and w_h + g (r - phi^T w_h) (N, M, H, F), by lead.

    phi and g are rings, in which the origins that spoke begin at a place; r and whether it is known: (N, H). Beside
    them, which lanes have any label: (N,).
    """
    leads = int(mean.shape[2])
    forecast = dot(mean, vectors_from(phi, place, leads)[:, None])
    innovation = (residual[:, None] - forecast) * observed[:, None]
    after = scaled(vectors_from(gains, place, leads), innovation)
    after += mean
    return forecast, after, dot(observed, observed) > 0


def pull(mean: Array, source: Array, pulls: Array, since: int | Array) -> None:
    """Let w_h <- w_h - omega P (w_h - v_h), in place, where lead h is of an origin that refilled.

    The newest of them lies ``since`` origins back, the others `REFILL_EVERY` apart behind it.
    """
    xp, (_, _, leads, size) = namespace(mean), mean.shape
    pulls = pulls.reshape((*pulls.shape[:3], size, size))
    if not isinstance(since, int):
        places = since + REFILL_EVERY * xp.arange(pulls.shape[2], device=mean.device)
        is_lead, places = (places < leads)[:, None], places.clip(max=leads - 1)
        off = is_lead * (xp.take(mean, places, axis=2) - xp.take(source, places, axis=1)[:, None])
        mean.index_add_(2, places, xp.matmul(pulls, off[..., None])[..., 0], alpha=-1)
    elif since < leads:
        pulled = mean[:, :, since::REFILL_EVERY, :, None]  # a view, of columns
        by = pulls[:, :, : pulled.shape[2]]
        pulled -= xp.matmul(by, pulled - source[:, None, since::REFILL_EVERY, :, None])


def told(observed: Array) -> Any:
    """The lanes with a label, of what is 1 where there is one (N, H); all where to look would mean to wait."""
    return np.flatnonzero(observed.any(axis=1)) if type(observed) is np.ndarray else slice(None)


def gaussian_kl(moved: Array, root: Array, noise: Array) -> Array:
    r"""KL( N(w_h, sigma_h^2 P) || N(v_h, sigma_h^2 I) ) summed over leads, (N, M).

    .. math:: \tfrac12 \sum_h \big[ \mathrm{tr} P - F - \ln\det P + \lVert w_h - v_h \rVert^2 / \sigma_h^2 \big]

    moved = w - v (N, M, H, F), root S of P = S S^T (N, M, F, F), noise = sigma_h^2 (N, H).
    """
    xp = namespace(moved)
    leads, size = moved.shape[-2:]
    distance = dot(dot(moved, moved), 1 / noise[:, None, :])
    trace, log_volume = xp.sum(root * root, axis=(-2, -1)), 2 * xp.linalg.slogdet(root)[1]
    return 0.5 * (leads * (trace - size - log_volume) + distance)


@dataclass(frozen=True, slots=True)
class Posterior(MemberState, tag="posterior"):
    """Law of M heads (one per discount) on N lanes, and what late labels need of the past."""

    mean: Annotated[Array, Shape("N M H F")]  # w
    # S with P = S S^T after every origin so far; P never exceeds I / lambda^REFILL_EVERY, and lambda is at least 0.8
    root: Annotated[Array, Shape("N M F F", least=-(2.0**11), most=2.0**11)]
    phi: Annotated[Array, Shape("N D F")]  # features by origin, see `ompb.core.rings`
    gains: Annotated[Array, Shape("N M G F")]  # gains by origin
    pulls: Annotated[Array, Shape("N M refills FF")]  # omega P after each of the newest refills, the newest first
    imputed: Holes  # what the heads forecast of labels that have not come, by row: pages of M H
    first: int | None  # the first origin taken in

    @property
    def covariance(self) -> Array:
        """P, (N, M, F, F)."""
        xp = namespace(self.root)
        return xp.matmul(self.root, self.root.mT)


@dataclass(frozen=True)
class Recursion:
    """How the law of M heads moves; see the module's equations."""

    source: Array  # v, the source head: (N, H, F)
    discounts: Array  # lambda: (M,)
    patience: int  # rows that a label may be late

    def start(self) -> Posterior:
        """The source's word, with P = I."""
        xp = namespace(self.source)
        (lanes, leads, size), heads = self.source.shape, int(self.discounts.shape[0])
        kept = (leads - 1) // REFILL_EVERY + 1
        unit = xp.eye(size, dtype=self.source.dtype, device=self.source.device)
        return Posterior(
            mean=zeros(self.source, lanes, heads, leads, size) + self.source[:, None],
            root=zeros(self.source, lanes, heads, size, size) + unit,
            phi=zeros(self.source, lanes, leads + self.patience + SLACK, size),
            gains=zeros(self.source, lanes, heads, leads + SLACK - 1, size),
            pulls=zeros(self.source, lanes, heads, kept, size * size),
            imputed=Holes.none(self.source, heads * leads, self.patience),
            first=None,
        )

    @property
    def leads(self) -> int:
        """H."""
        return int(self.source.shape[1])

    @cached_property
    def omega(self) -> Array:
        """What forgetting takes between two refills, by head: (M, 1, 1)."""
        return (1 - self.discounts**REFILL_EVERY)[:, None, None]

    @cached_property
    def fading(self) -> Array:
        """What a row does to the root of P, 1 / sqrt(lambda), by head: (M, 1, 1)."""
        return (1 / namespace(self.discounts).sqrt(self.discounts))[:, None, None]

    def correction(self, state: Posterior, phi: Array) -> Array:
        """phi^T w_h: (N, M, n, H) for whitened features (N, n, F)."""
        return said(state.mean, phi)

    def leverage(self, state: Posterior, phi: Array) -> Array:
        """phi^T P phi: (N, M, n) for whitened features (N, n, F)."""
        xp = namespace(phi)
        projected = xp.matmul(phi[:, None], state.root)
        return dot(projected, projected)

    def take_in(self, state: Posterior, origin: int, phi: Array) -> tuple[Array, Array, Posterior]:
        """The inputs of an origin, whitened (N, F), fix its gains.

        Returns phi^T w_h (N, M, 1, H) and the leverage phi^T P phi (N, M), too.
        """
        correction, q, gain, root = taken_in(state.mean, state.root, self.fading, phi)
        phis, gains = push(state.phi, origin, phi), push(state.gains, origin, gain)
        return correction, q, self._moved_on(state, origin, root, phis, gains)

    def pass_over(self, state: Posterior, origin: int) -> Posterior:
        """No forecast at this origin: the past fades, and nothing is taken in."""
        phi, gains = push(state.phi, origin, 0.0), push(state.gains, origin, 0.0)
        if state.first is None:
            return replace(state, phi=phi, gains=gains)
        return self._moved_on(state, origin, state.root * self.fading, phi, gains)

    def form(self, state: Posterior, row: int) -> Form | None:
        """Of a row that is absorbed and then taken in; None where a refill is due."""
        return None if state.first is None or self._refills(row, state.first) else (row % SLACK, state.first)

    def absorb(self, state: Posterior, row: int, residual: Array, observed: Array) -> Posterior:
        """The newest row has arrived: residual (N, H) of lead h of origin row - h; observed (N, H) is 1 where known."""
        if state.first is None:
            return state
        place = place_of(row - 1, row - 1)
        forecast, mean, known = absorbed(state.mean, state.phi, state.gains, place, residual, observed)
        pull(mean, self.source, state.pulls, along(row - 1 - state.first, row) % REFILL_EVERY)
        imputed = state.imputed.after(row, self.patience, known, forecast)
        return Posterior(mean, state.root, state.phi, state.gains, state.pulls, imputed, state.first)

    def absorb_late(self, state: Posterior, row: int, newest: int, residual: Array, observed: Array) -> Posterior:
        """Labels of an older row arrived while ``newest`` is the newest one: as if they had come on time."""
        if state.first is None:
            return state
        lanes = told(observed)
        _, imputed = state.imputed.of(row)
        imputed = imputed[lanes].reshape((-1, *state.mean.shape[1:3]))
        surprise = (residual[lanes][:, None] - imputed) * observed[lanes][:, None]
        phi = vectors_from(state.phi, place_of(row - 1, newest), self.leads)[lanes][:, None]
        gain = self.discounts[:, None, None] ** (newest - row) * self._then(state, lanes, newest, phi)
        excess = at_least(self._excess(gain, phi, state.first, row, newest), 1.0)
        mean = namespace(gain).asarray(state.mean, copy=True)
        mean[lanes] += gain * (surprise / excess)[..., None]
        return replace(state, mean=mean)

    def _excess(self, gain: Array, phi: Array, first: int, row: int, newest: int) -> Array:
        r"""How many times late gains g (n, M, H, F) are too large, (n, M, H): more than once by rounding alone.

        With c origins since the last refill P <= I / lambda^c, and lambda^(n-h-k) phi phi^T is a part of P^-1. Hence

        .. math:: g^T \phi \le 1,\qquad \lVert g \rVert^2 \le \lambda^{n-h-k-c}.
        """
        xp = namespace(gain)
        since = (newest - 1 - first - xp.arange(self.leads, device=gain.device)) % REFILL_EVERY  # c, by lead
        longest = self.discounts[:, None] ** (xp.astype(newest - row - since, gain.dtype) / 2)
        least = float(xp.finfo(gain.dtype).smallest_normal)
        return xp.maximum(dot(gain, phi), xp.sqrt(dot(gain, gain)) / at_least(longest, least))

    def _then(self, state: Posterior, lanes: Any, newest: int, vectors: Array) -> Array:
        """P after origin newest - h of n lanes, times a vector x_h: (n, M, H, F) for vectors (n, 1, H, F)."""
        assert state.first is not None  # else nothing has been taken in
        xp = namespace(vectors)
        place = place_of(newest, newest)
        gains, phi = (vectors_from(ring, place, self.leads)[lanes] for ring in (state.gains, state.phi))
        least = float(xp.finfo(gains.dtype).eps)
        grown = gains / at_least(1 - dot(gains, phi[:, None]), least)[..., None]  # (1 + q) g
        root = state.root[lanes]
        covariance, products, place = xp.matmul(root, root.mT), [], 0
        count = (newest - state.first) % REFILL_EVERY  # origins after the newest refill
        while True:
            part = slice(place, place + count)
            covariance, some = self._back(covariance, gains[:, :, part], grown[:, :, part], vectors[:, :, part])
            products.append(some)
            place += count
            if place >= self.leads:
                return xp.concat(products, axis=2)
            covariance, count = self._emptied(covariance), REFILL_EVERY

    def _back(self, covariance: Array, gains: Array, grown: Array, vectors: Array) -> tuple[Array, Array]:
        r"""P before the last of n origins without a refill, whose g and (1 + q) g are given, newest first.

        .. math:: P_{n-h} = \lambda^h \Bigl( P_n + \sum_{a<h} \lambda^{-a} (1 + q_{n-a})\, g_{n-a} g_{n-a}^T \Bigr)

        And all P_{n-h} x_h: (N, M, n, F).
        """
        xp, rate, count = namespace(vectors), self.discounts[:, None, None], int(vectors.shape[2])
        ages = xp.arange(count, dtype=gains.dtype, device=gains.device)[:, None]
        grown = grown * rate**-ages
        along = xp.tril(xp.matmul(vectors, gains.mT))
        products = rate ** (ages + 1) * (xp.matmul(vectors, covariance) + xp.matmul(along, grown))
        return rate**count * (covariance + xp.matmul(gains.mT, grown)), products

    def _moved_on(self, state: Posterior, origin: int, root: Array, phi: Array, gains: Array) -> Posterior:
        """The state after an origin, with the source's word put back where that is due."""
        xp = namespace(root)
        first, pulls = int(origin) if state.first is None else state.first, state.pulls
        if self._refills(origin, first):
            root = self._refilled(root)
            newest = self.omega * xp.matmul(root, root.mT)
            pulls = xp.concat([newest.reshape((*newest.shape[:2], 1, -1)), pulls[:, :, :-1]], axis=2)
        return Posterior(state.mean, root, phi, gains, pulls, state.imputed, first)

    def _refilled(self, root: Array) -> Array:
        r"""The root of (P^-1 + omega I)^-1 = S (I + omega S^T S)^-1 S^T: S L^-T with L L^T = I + omega S^T S."""
        xp = namespace(root)
        turned = root.mT
        unit = xp.eye(root.shape[-1], dtype=root.dtype, device=root.device)
        lower = xp.linalg.cholesky(unit + self.omega * xp.matmul(turned, root))
        return contiguous(xp.matrix_transpose(xp.linalg.solve(lower, turned)))

    def _emptied(self, covariance: Array) -> Array:
        """What P was before a refill: (P^-1 - omega I)^-1 = (I - omega P)^-1 P."""
        xp = namespace(covariance)
        unit = xp.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
        return xp.linalg.solve(unit - self.omega * covariance, covariance)

    def _refills(self, origin: int, first: int) -> bool:
        """Whether the source's word is put back at an origin; the ``first`` is the first that was taken in."""
        return (origin - first) % REFILL_EVERY == 0
