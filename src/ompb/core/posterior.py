r"""The Gaussian law of the head and its exact recursion.

Per lane, discount (lambda) and lead h the residual of the base forecast is modelled as phi^T w_h + noise. Features are
whitened so that the source's word has unit covariance: rho = N(w_h, sigma_h^2 P), from w_h = v_h (source head), P = I.
Each origin k adds, once its lead-h row is known, one label, and now and then the source's word again:

.. math:: w_h(t) = \arg\min_w \sum_{k} \lambda^{t-h-k} \big[ m_{k,h} (r_{k,h} - \phi_k^T w)^2
          + \omega_k \lVert w - v_h \rVert^2 \big] + \lambda^{n} \lVert w - v_h \rVert^2

m says whether the label has arrived. Every `EVERY`-th origin puts back what forgetting has taken from the source's
word: omega_k = 1 - lambda^EVERY there, else 0. Hence P never exceeds I / lambda^EVERY: a stream without excitation
cannot wind the recursion up.

Gains depend on inputs only. While every label of a lane arrives on time all leads share one covariance, shifted
in time: O(F^2 + F H) a row. A lane with a *hole* (a label that should have arrived) carries one covariance per
lead until the hole is filled, for good if it never is, because each lead then has a history of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace
from ompb.core.ledger import OriginRing

# Origins between two refills of the source's word: fewer cost time, more let it fade further.
EVERY = 64


def rank_one(covariance: Array, u: Array, q: Array, weight: Array | float) -> tuple[Array, Array]:
    r"""Add weight * phi phi^T to a precision, given u = P phi (..., F) and q = phi^T u (...): gain and covariance.

    .. math:: g = \frac{\omega u}{1 + \omega q},\qquad P' = P - g u^T
    """
    gain = u * (weight / (1 + weight * q))[..., None]
    return gain, covariance - gain[..., :, None] * u[..., None, :]


def symmetric(covariance: Array) -> Array:
    """The symmetric part. Rounding leaves an antisymmetric rest that forgetting would blow up, 1 / lambda a row."""
    xp = namespace(covariance)
    return (covariance + xp.matrix_transpose(covariance)) / 2


def gaussian_kl(mean: Array, covariance: Array, noise: Array) -> Array:
    r"""KL( N(w_h, sigma_h^2 P) || N(v_h, sigma_h^2 I) ) summed over leads, (N, M).

    .. math:: \tfrac12 \sum_h \big[ \mathrm{tr} P - F - \ln\det P + \lVert w_h - v_h \rVert^2 / \sigma_h^2 \big]

    mean = w - v (N, M, H, F), covariance (N, M, F, F), noise = sigma_h^2 (N, H).
    """
    xp = namespace(mean)
    leads, size = mean.shape[-2:]
    moved = xp.vecdot(xp.vecdot(mean, mean), 1 / noise[:, None, :])
    log_volume = xp.linalg.slogdet(covariance)[1]
    return 0.5 * (leads * (xp.linalg.trace(covariance) - size - log_volume) + moved)


@dataclass
class Posterior:
    """Law of M heads (one per discount) on N lanes; see the module's equation."""

    discounts: Array  # (M,)
    omega: Array  # 1 - lambda^EVERY, what forgetting takes between two refills: (M,)
    source: Array  # v, the source head: (N, H, F)
    mean: Array  # w: (N, M, H, F)
    covariance: Array  # P after every origin so far: (N, M, F, F)
    phi: OriginRing  # (N, 2D, F)
    gains: OriginRing  # (N, M, 2D, F)
    pulls: Array  # omega P after each of the newest refills, by number modulo their count: (N, M, refills, F, F)
    first: int  # the first origin taken in; -1 before it
    holes: Array  # labels that should have arrived and have not: (N,) int
    irregular: Array  # lanes with holes: (n,) int
    own: Array  # their covariances, one per lead: (n, M, H, F, F)

    @classmethod
    def start(cls, source: Array, discounts: Array, patience: int) -> Posterior:
        """The source's word, v (N, H, F), with P = I."""
        xp = namespace(source)
        (lanes, leads, size), heads = source.shape, discounts.shape[0]
        depth = leads + patience + 1

        def zeros(*shape: int) -> Array:
            return xp.zeros(shape, dtype=source.dtype)

        return cls(
            discounts=discounts,
            omega=1 - discounts**EVERY,
            source=source,
            mean=zeros(lanes, heads, leads, size) + source[:, None],
            covariance=zeros(lanes, heads, size, size) + xp.eye(size, dtype=source.dtype),
            phi=OriginRing(zeros(lanes, 2 * depth, size)),
            gains=OriginRing(zeros(lanes, heads, 2 * depth, size)),
            pulls=zeros(lanes, heads, leads // EVERY + 2, size, size),
            first=-1,
            holes=xp.zeros((lanes,), dtype=xp.int64),
            irregular=xp.zeros((0,), dtype=xp.int64),
            own=zeros(0, heads, leads, size, size),
        )

    @property
    def leads(self) -> int:
        """H."""
        return int(self.mean.shape[2])

    @property
    def size(self) -> int:
        """F."""
        return int(self.mean.shape[3])

    def correction(self, phi: Array) -> Array:
        """phi^T w_h: (N, M, n, H) for whitened features (N, n, F)."""
        xp = namespace(phi)
        return xp.matrix_transpose(xp.matmul(self.mean, xp.matrix_transpose(phi)[:, None]))

    def leverage(self, phi: Array) -> Array:
        """phi^T P phi: (N, M, n) for whitened features (N, n, F)."""
        xp = namespace(phi)
        return xp.vecdot(xp.matmul(phi[:, None], self.covariance), phi[:, None])

    def take_in(self, origin: int, phi: Array) -> Array:
        """The inputs of an origin, whitened (N, F): fixes its gains. Returns the leverage phi^T P phi (N, M)."""
        xp = namespace(phi)
        if self.first < 0:
            self.first = origin
        discounted = self.covariance / self.discounts[:, None, None]
        u = xp.matmul(discounted, phi[:, None, :, None])[..., 0]
        q = xp.vecdot(u, phi[:, None])
        gain, self.covariance = rank_one(discounted, u, q, 1.0)
        self.phi.push(origin, phi)
        self.gains.push(origin, gain)
        if self._refills(origin):
            self.covariance = self._refilled(self.covariance)
            self.pulls[:, :, self._number(origin)] = self.omega[:, None, None] * self.covariance
        return q

    def absorb(self, row: int, residual: Array, heard: Array) -> None:
        """Row ``row`` has arrived on time: residual (N, H) of lead h of origin row - h; heard (N, H) is 1 where there
        is one, else 0.
        """  # noqa: D205
        if self.first < 0:
            return
        xp = namespace(residual)
        self._open_holes(row, heard[:, 0] == 0)
        gains = self.gains.before(row, self.leads)
        if self.irregular.shape[0]:
            gains = self._with_own_gains(row, heard, gains)
        said = xp.vecdot(self.mean, self.phi.before(row, self.leads)[:, None])
        self.mean += gains * ((residual[:, None] - said) * heard[:, None])[..., None]
        for origin in self._refills_before(row):
            place = row - 1 - origin
            moved = self.mean[:, :, place] - self.source[:, None, place]
            self.mean[:, :, place] -= xp.matmul(self._pull(row, origin), moved[..., None])[..., 0]

    def absorb_late(self, row: int, newest: int, residual: Array, heard: Array) -> None:
        """Cells of an older row arrived while ``newest`` is the newest row; the order of arrival does not matter."""
        xp = namespace(residual)
        places = [i for i, lane in enumerate(self.irregular) if bool(heard[int(lane), 0])]
        if not places:
            return
        here = xp.asarray(places, dtype=xp.int64)
        lanes = self.irregular[here]
        phi = self.phi.before(row, self.leads)[lanes][:, None]
        u = xp.matmul(self.own[here], phi[..., None])[..., 0]
        weight = (self.discounts ** (newest - row))[:, None]
        gain, self.own[here] = rank_one(self.own[here], u, xp.vecdot(u, phi), weight)
        innovation = (residual[lanes][:, None] - xp.vecdot(self.mean[lanes], phi)) * heard[lanes][:, None]
        self.mean[lanes] = self.mean[lanes] + gain * innovation[..., None]
        self.holes[lanes] = self.holes[lanes] - 1
        self._close_holes()

    def _refills(self, origin: int) -> bool:
        """Whether an origin puts the source's word back."""
        return (origin - self.first) % EVERY == 0

    def _refills_before(self, row: int) -> range:
        """The origins row-H .. row-1 that do."""
        oldest = max(self.first, row - self.leads)
        return range(oldest + (self.first - oldest) % EVERY, row, EVERY)

    def _number(self, origin: int) -> int:
        """Place of a refill among those kept."""
        return (origin - self.first) // EVERY % int(self.pulls.shape[2])

    def _refilled(self, covariance: Array) -> Array:
        """(P^-1 + omega I)^-1, with P (..., M, F, F)."""
        xp = namespace(covariance)
        unit = self.omega[:, None, None] * xp.eye(self.size, dtype=covariance.dtype)
        return symmetric(xp.linalg.inv(xp.linalg.inv(covariance) + unit))

    def _pull(self, row: int, origin: int) -> Array:
        """The pull omega P on the lead that a refill now reaches, (N, M, F, F): the shared one, or a lane's own."""
        xp = namespace(self.mean)
        shared = self.pulls[:, :, self._number(origin)]
        if not self.irregular.shape[0]:
            return shared
        place = row - 1 - origin
        self.own[:, :, place] = self._refilled(self.own[:, :, place])
        pull = xp.asarray(shared, copy=True)
        pull[self.irregular] = self.omega[:, None, None] * self.own[:, :, place]
        return pull

    def _open_holes(self, row: int, missing: Array) -> None:
        """Give every lane whose label did not arrive covariances of its own."""
        xp = namespace(self.mean)
        if not bool(xp.any(missing)):
            return
        self.holes += xp.astype(missing, self.holes.dtype)
        known = {int(lane) for lane in self.irregular}
        new = [lane for lane in range(missing.shape[0]) if bool(missing[lane]) and lane not in known]
        if new:
            lanes = xp.asarray(new, dtype=xp.int64)
            self.irregular = xp.concat([self.irregular, lanes])
            self.own = xp.concat([self.own, self._per_lead_covariance(row, lanes)])

    def _close_holes(self) -> None:
        """Lanes whose holes are all filled share their covariance between leads again."""
        xp = namespace(self.mean)
        still = [i for i, lane in enumerate(self.irregular) if int(self.holes[int(lane)]) > 0]
        if len(still) < self.irregular.shape[0]:
            keep = xp.asarray(still, dtype=xp.int64)
            self.irregular, self.own = self.irregular[keep], self.own[keep]

    def _per_lead_covariance(self, row: int, lanes: Array) -> Array:
        """P as it was after origin row-1-h, for every lead h: (n, M, H, F, F). Walks the precision back in time."""
        xp = namespace(self.mean)
        phi = self.phi.before(row, self.leads)[lanes][:, None]
        precision = xp.linalg.inv(self.covariance[lanes])
        unit = self.omega[:, None, None] * xp.eye(self.size, dtype=phi.dtype)
        steps = []
        for place in range(self.leads):
            origin = row - 1 - place
            if origin >= self.first:
                f = phi[:, :, place]
                added = f[..., :, None] * f[..., None, :] + (unit if self._refills(origin) else 0.0)
                precision = (precision - added) / self.discounts[:, None, None]
            steps.append(precision)
        return xp.linalg.inv(xp.stack(steps, axis=2))

    def _with_own_gains(self, row: int, heard: Array, gains: Array) -> Array:
        """Gains (N, M, H, F) with those of the lanes with holes put in, each of whose leads moves on by one row."""
        xp = namespace(self.mean)
        gains = xp.asarray(gains, copy=True)
        origins = xp.arange(row - 1, row - 1 - self.leads, -1)
        discount = xp.where(origins >= self.first, self.discounts[:, None], 1.0)
        phi = self.phi.before(row, self.leads)[self.irregular][:, None]
        own = self.own / discount[..., None, None]
        u = xp.matmul(own, phi[..., None])[..., 0]
        gains[self.irregular], own = rank_one(own, u, xp.vecdot(u, phi), heard[self.irregular][:, None])
        self.own = symmetric(own)
        return gains
