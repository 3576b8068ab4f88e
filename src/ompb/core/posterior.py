r"""The Gaussian law of the head and its exact recursion.

Per lane, discount (lambda) and lead h the residual of the source head is modelled as phi^T w_h + noise. Features
are whitened so that the source's word is the standard normal: rho = N(w_h, sigma_h^2 P), start w_h = 0, P = I.
Each origin k adds, once its lead-h row is known, one label and one *pseudo-label*:

.. math:: w_h(t) = \arg\min_w \sum_{k} \lambda^{t-h-k} \big[ m_{k,h} (r_{k,h} - \phi_k^T w)^2
          + \omega_k (a_k^T w)^2 \big] + \lambda^{n} \lVert w \rVert^2

m says whether the label has arrived. Every `EVERY`-th origin puts back, in one direction, what forgetting takes from
the source's word: a_k walks through the unit vectors and omega_k = 1 - lambda^(EVERY F), else omega_k = 0.
Hence P never exceeds I / lambda^(EVERY F): a stream without excitation cannot wind the recursion up.

Gains depend on inputs only. While every label of a lane arrives on time all leads share one covariance, shifted
in time: O(F^2 + F H) a row. A lane with a *hole* (a label that should have arrived) carries one covariance per
lead until the hole is filled, because each lead then has a history of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ompb.core.arrays import Array, namespace
from ompb.core.ledger import OriginRing

# Rows between two pseudo-labels: fewer cost time, more let the source's word fade further before it is put back.
EVERY = 4


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
    r"""KL( N(w_h, sigma_h^2 P) || N(0, sigma_h^2 I) ) summed over leads, (N, M).

    .. math:: \tfrac12 \sum_h \big[ \mathrm{tr} P - F - \ln\det P + \lVert w_h \rVert^2 / \sigma_h^2 \big]

    mean (N, M, H, F), covariance (N, M, F, F), noise = sigma_h^2 (N, H).
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
    refill: Array  # omega = 1 - lambda^(EVERY F), what one round through the directions takes away: (M,)
    mean: Array  # w: (N, M, H, F)
    covariance: Array  # P after every origin so far: (N, M, F, F)
    phi: OriginRing  # (N, 2D, F)
    gains: OriginRing  # of the labels: (N, M, 2D, F)
    anchor_gains: OriginRing  # of the pseudo-labels: (N, M, 2D, F)
    first: int  # the first origin taken in; -1 before it
    holes: Array  # labels that should have arrived and have not: (N,) int
    irregular: Array  # lanes with holes: (n,) int
    own: Array  # their covariances, one per lead: (n, M, H, F, F)

    @classmethod
    def start(cls, like: Array, lanes: int, leads: int, size: int, discounts: Array, patience: int) -> Posterior:
        """The source's word: w = 0, P = I."""
        xp = namespace(like)
        heads = discounts.shape[0]
        depth = leads + patience + 1

        def zeros(*shape: int) -> Array:
            return xp.zeros(shape, dtype=like.dtype)

        return cls(
            discounts=discounts,
            refill=1 - discounts ** (EVERY * size),
            mean=zeros(lanes, heads, leads, size),
            covariance=zeros(lanes, heads, size, size) + xp.eye(size, dtype=like.dtype),
            phi=OriginRing(zeros(lanes, 2 * depth, size)),
            gains=OriginRing(zeros(lanes, heads, 2 * depth, size)),
            anchor_gains=OriginRing(zeros(lanes, heads, 2 * depth, size)),
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
        if self._is_anchor(origin):
            self._refill(origin)
        return q

    def absorb(self, row: int, residual: Array, heard: Array) -> None:
        """Row ``row`` has arrived on time: residual (N, H) of lead h of origin row - h; heard (N, H) is 1 where there
        is one, else 0.
        """  # noqa: D205
        if self.first < 0:
            return
        xp = namespace(residual)
        self._open_holes(row, heard[:, 0] == 0)
        places = self._anchor_places(row)
        gains = self.gains.before(row, self.leads)
        anchor_gains = self.anchor_gains.before(row, self.leads)[:, :, places]
        if self.irregular.shape[0]:
            gains, anchor_gains = self._own_gains(row, heard, gains, anchor_gains)
        said = xp.vecdot(self.mean, self.phi.before(row, self.leads)[:, None])
        self.mean += gains * ((residual[:, None] - said) * heard[:, None])[..., None]
        at_anchors = self.mean[:, :, places]
        at_anchors -= anchor_gains * self._along_anchors(row, places)[..., None]

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

    def _is_anchor(self, origin: int) -> bool:
        """Whether an origin puts the source's word back."""
        return origin >= self.first and (origin - self.first) % EVERY == 0

    def _axis(self, origin: int) -> int:
        """The direction in which it does."""
        return (origin - self.first) // EVERY % self.size

    def _refill(self, origin: int) -> None:
        """Take in the pseudo-label of an origin."""
        axis = self._axis(origin)
        q = self.covariance[..., axis, axis]
        gain, covariance = rank_one(self.covariance, self.covariance[..., axis], q, self.refill)
        self.covariance = symmetric(covariance)
        self.anchor_gains.push(origin, gain)

    def _anchor_places(self, row: int) -> slice:
        """Places of the leads (of H) at which origins row-1 .. row-H put the source's word back."""
        return slice((row - 1 - self.first) % EVERY, None, EVERY)

    def _along_anchors(self, row: int, places: slice) -> Array:
        """a^T w_h at those places, (N, M, places)."""
        xp = namespace(self.mean)
        chosen = self.mean[:, :, places]
        lead = xp.arange(chosen.shape[2])
        # the direction falls by one from anchor to anchor back in time
        axis = (self._axis(row - 1 - places.start) - lead) % self.size
        flat = xp.reshape(chosen, (*chosen.shape[:2], -1))
        return xp.take(flat, lead * self.size + axis, axis=-1)

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
        steps = []
        for place in range(self.leads):
            origin = row - 1 - place
            if origin >= self.first:
                f = phi[:, :, place]
                precision = precision - f[..., :, None] * f[..., None, :]
                if self._is_anchor(origin):
                    axis = self._axis(origin)
                    precision[..., axis, axis] -= self.refill
                precision = precision / self.discounts[:, None, None]
            steps.append(precision)
        return xp.linalg.inv(xp.stack(steps, axis=2))

    def _own_gains(self, row: int, heard: Array, gains: Array, anchor_gains: Array) -> tuple[Array, Array]:
        """Gains of labels (N, M, H, F) and pseudo-labels with those of the lanes with holes put in.

        One row for each of their leads: discount, label (where it arrived), pseudo-label (at its places).
        """
        xp = namespace(self.mean)
        gains, anchor_gains = xp.asarray(gains, copy=True), xp.asarray(anchor_gains, copy=True)
        origins = xp.arange(row - 1, row - 1 - self.leads, -1)
        discount = xp.where(origins >= self.first, self.discounts[:, None], 1.0)
        phi = self.phi.before(row, self.leads)[self.irregular][:, None]
        own = self.own / discount[..., None, None]
        u = xp.matmul(own, phi[..., None])[..., 0]
        gains[self.irregular], own = rank_one(own, u, xp.vecdot(u, phi), heard[self.irregular][:, None])
        places = self._anchor_places(row)
        anchors = [row - 1 - place for place in range(places.start, self.leads, EVERY)]
        for number, origin in enumerate(anchors):
            if not self._is_anchor(origin):
                break
            place, axis = row - 1 - origin, self._axis(origin)
            one = own[:, :, place]
            gain, own[:, :, place] = rank_one(one, one[..., axis], one[..., axis, axis], self.refill)
            anchor_gains[self.irregular, :, number] = gain
        self.own = symmetric(own)
        return gains, anchor_gains
