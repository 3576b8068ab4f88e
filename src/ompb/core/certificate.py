r"""PB(t) and its terms: a reading of the risk on the stream, before any of its outcomes is known.

.. math:: PB(t) = R_S(t) + \Gamma_m + \tfrac12 \, \big| D_S(t) - D_T(t) \big|

R_S is the proxy risk of the present posterior on the certificate windows, D_S its disagreement there, D_T its
disagreement over the ring of the newest target windows (the present one included: it is an input). Both disagreements
are read under one belief, so that their difference is a difference of windows and not of beliefs.

The certificate windows took no part in any learning, so the present posterior is a legitimate *prior* for them
and the KL inside Gamma is zero. Every `reread` steps that many of them are read again, in time order and in turn, and
all terms of the source are taken under the belief of that moment. So each window's reading belongs to heads at most
about m steps old; since all of those are independent of the windows, the bound holds for the average of their risks.
V is read once a sweep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ompb.core.arrays import Array, namespace, over_series
from ompb.core.complexity import C0, KINDS, B, predictable_variance
from ompb.core.disagreement import bounded, drawn_pairs, expected_pair, makings
from ompb.core.posterior import Posterior, gaussian_kl
from ompb.core.source import Views
from ompb.settings import Settings


@dataclass(frozen=True)
class Probe:
    """Windows on which a posterior can be read: n windows of N lanes, K members.

    Where an outcome is missing the base forecast stands in for it: that leaves the differences between members as they
    are, and its weight in the risk is zero.
    """

    phi: Array  # whitened features: (N, n, F)
    still: Array  # errors of the members that never move (backbone, profile, regression): (N, I, n, H)
    weight: Array  # of each lead in the series' mean squared error times C, 0 where missing: (N, n, H)

    def part(self, first: int, last: int) -> Probe:
        """The windows first .. last - 1."""
        here = slice(first, last)
        return Probe(self.phi[:, here], self.still[:, :, here], self.weight[:, here])


def probe_of(views: Views, outcomes: Array, channels: int) -> Probe:
    """Views of n windows with their outcomes (N, n, H), NaN where missing; each window has a known one."""
    xp = namespace(outcomes)
    known = xp.isfinite(outcomes)
    still = xp.concat(views.still, axis=1)
    stand_in = xp.where(known, outcomes, still[:, 0])
    cells = over_series(xp.sum(xp.astype(known, outcomes.dtype), axis=-1), channels)  # (S, n), per channel
    weight = xp.where(known, 1 / xp.repeat(cells, channels, axis=0)[..., None], 0.0)
    return Probe(views.phi, stand_in[:, None] - still, weight)


@dataclass(frozen=True)
class Scales:
    """What turns squared errors and gaps into proxies in [0, 1]; fixed before the stream starts."""

    tau_y: float
    tau_d: float
    null_ratio: float  # |D_S - D_T| / D_S that is rarely exceeded without shift


@dataclass(frozen=True)
class Reader:
    """Reads a posterior on windows: its risk, its disagreement, how far it has moved."""

    channels: int
    noise: Array  # sigma_h^2: (N, H)
    mean_noise: Array  # its mean over leads times the posterior scale: (N, 1)
    prior: Array  # belief before any outcome: (K,)
    uniforms: Array  # numbers that draw members, drawn once: (draws, N); none = expectation in closed form
    scales: Scales
    settings: Settings

    @classmethod
    def build(cls, channels: int, noise: Array, has_profile: bool, uniforms: Array, settings: Settings) -> Reader:
        """A reader whose scales are still to be chosen."""
        xp = namespace(noise)
        others = len(settings.discounts) + (2 if has_profile else 1)  # heads, regression, profile
        backbone = settings.backbone_prior
        prior = xp.asarray([backbone, *[(1 - backbone) / others] * others], dtype=noise.dtype)
        mean_noise = settings.posterior_scale * xp.mean(noise, axis=-1, keepdims=True)
        return cls(channels, noise, mean_noise, prior, uniforms, Scales(1.0, 1.0, 1.0), settings)

    def look(self, probe: Probe, posterior: Posterior) -> tuple[Array, Array]:
        """Expected squared error of every member (N, n, K), makings of the disagreement, on windows with outcomes.

        Both in closed form, no sampling: a head's error is that of its mean plus its output variance.
        """
        xp = namespace(probe.phi)
        heads = probe.still[:, :1] - posterior.correction(probe.phi)
        errors = xp.permute_dims(xp.concat([probe.still, heads], axis=1), (0, 2, 1, 3))  # (N, n, K, H)
        leverage = xp.matrix_transpose(posterior.leverage(probe.phi))  # (N, n, M)
        squared = xp.matmul(errors * errors, probe.weight[..., None])[..., 0]
        noise = self.settings.posterior_scale * xp.matmul(probe.weight, self.noise[..., None])  # (N, n, 1)
        squared[..., squared.shape[-1] - leverage.shape[-1] :] += leverage * noise
        return squared, makings(errors, leverage)

    def risk(self, squared: Array, belief: Array) -> Array:
        """Gibbs risk E||y - h||^2 / (H C) over the known cells, (S, n), from the members' expected squared errors."""
        xp = namespace(belief)
        return over_series(xp.matmul(squared, belief[..., None])[..., 0], self.channels)

    def pairs(self, belief: Array) -> Array:
        """Coefficients (N, K * K + M, pairs) of the law over pairs; without draws the one "pair" is the expectation."""
        heads = len(self.settings.discounts)
        if self.uniforms.shape[0] == 0:
            return expected_pair(belief, self.mean_noise, heads)
        return drawn_pairs(belief, self.mean_noise, heads, self.uniforms)

    def gaps(self, made: Array, pairs: Array) -> Array:
        """||h - h'||^2 / (H C) of each pair on windows of these makings, (S, n, pairs)."""
        return over_series(namespace(made).matmul(made, pairs), self.channels)

    def disagreement(self, made: Array, pairs: Array) -> Array:
        """D of each window, (S, n): the mean over pairs of the bounded gap."""
        xp = namespace(made)
        scaled = bounded(self.gaps(made, pairs), self.scales.tau_d, self.settings.disagreement)
        return scaled[..., 0] if scaled.shape[-1] == 1 else xp.mean(scaled, axis=-1)

    def posterior_shift(self, posterior: Posterior, belief: Array) -> Array:
        """KL(rho_t || source posterior) of a series, (S,): at most KL(belief || prior) + sum_i belief_i KL_i."""
        xp = namespace(belief)
        ratio = xp.where(belief > 0, belief, 1.0) / xp.where(belief > 0, self.prior, 1.0)
        weights = xp.vecdot(belief, xp.log(ratio))
        heads = gaussian_kl(posterior.mean - posterior.source[:, None], posterior.covariance, self.noise)
        moved = xp.vecdot(belief[:, belief.shape[1] - heads.shape[1] :], heads)
        return self.channels * over_series(weights + moved, self.channels)


# Terms that are read off the source, in the order of `Certifier.source_terms`.
SOURCE_TERMS = ("source_risk", "gamma", "source_disagreement", "log_term", "variance", "scale", "posterior_shift")


@dataclass
class Certifier:
    """What is known of the certificate windows and of the ring of target windows, for S series of N lanes in all."""

    squared: Array  # expected squared error of each member on each certificate window: (N, m, K)
    source_made: Array  # makings of the disagreement on the certificate windows: (N, m, K * K + M)
    ring_made: Array  # ... and on the newest target windows: (N, R, K * K + M)
    pairs: Array  # coefficients of the belief at the last reading: (N, K * K + M, pairs)
    ring: Array  # disagreement on the newest target windows under it: (S, R)
    source_terms: Array  # as last read: (terms, S)
    position: int  # the next certificate window to be read again
    steps: int  # forecasts certified so far

    @classmethod
    def start(cls, windows: int, reader: Reader) -> Certifier:
        """Nothing read yet."""
        xp = namespace(reader.noise)
        lanes, series = reader.noise.shape[0], reader.noise.shape[0] // reader.channels
        members, heads, ring = reader.prior.shape[0], len(reader.settings.discounts), reader.settings.ring
        size = members * members + heads
        shapes = [
            (lanes, windows, members),
            (lanes, windows, size),
            (lanes, ring, size),
            (lanes, size, 1),
            (series, ring),
            (len(SOURCE_TERMS), series),
        ]
        arrays = [xp.zeros(shape, dtype=reader.noise.dtype) for shape in shapes]
        return cls(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], arrays[5], 0, 0)

    @property
    def windows(self) -> int:
        """m, the number of certificate windows."""
        return int(self.squared.shape[1])

    def delta(self, settings: Settings) -> float:
        """Confidence spent on the present reading of the source, delta / (j (j + 1)) on the j-th.

        The shares of all readings together stay within delta: the certificate holds at all times at once.
        """
        reading = 1 + (self.steps - 1) // settings.reread
        return settings.delta / (reading * (reading + 1))

    def step(
        self,
        reader: Reader,
        probe: Probe,
        posterior: Posterior,
        belief: Array,
        moves: Array,
        leverage: Array,
    ) -> dict[str, Array]:
        """Terms of the certificate, each (S,), for what the members say of the present window.

        ``moves`` (N, K, H) are their forecasts less the base forecast, ``leverage`` (N, M) is the window's.
        """
        xp = namespace(belief)
        self.steps += 1
        if (self.steps - 1) % reader.settings.reread == 0:
            self._reread(reader, probe, posterior, belief)
        place = (self.steps - 1) % reader.settings.ring
        made = makings(moves[:, None], leverage[:, None])
        self.ring_made[:, place] = made[:, 0]
        self.ring[:, place] = reader.disagreement(made, self.pairs)[:, 0]
        terms = dict(zip(SOURCE_TERMS, self.source_terms, strict=True))
        target = xp.sum(self.ring, axis=-1) / min(self.steps, reader.settings.ring)
        terms["target_disagreement"] = target
        terms["disagreement"] = xp.abs(terms["source_disagreement"] - target)
        return terms

    def _reread(self, reader: Reader, probe: Probe, posterior: Posterior, belief: Array) -> None:
        """Read the next certificate windows (all of them the first time), then every term under the present belief."""
        xp = namespace(belief)
        settings, windows, first = reader.settings, self.windows, self.position
        last = min(first + (windows if self.steps == 1 else settings.reread), windows)
        part = probe.part(first, last)
        self.squared[:, first:last], self.source_made[:, first:last] = reader.look(part, posterior)
        self.position = last % windows
        self.pairs = reader.pairs(belief)
        seen = min(self.steps - 1, settings.ring)
        self.ring[:, :seen] = reader.disagreement(self.ring_made[:, :seen], self.pairs)
        losses = xp.minimum(reader.risk(self.squared, belief) / reader.scales.tau_y**2, 1.0)
        variance, scale = self.source_terms[4], self.source_terms[5]
        if self.position == 0:  # V walks through all windows in time order: once a sweep is often enough
            variance, scale = predictable_variance(losses)
            variance, scale = settings.variance_factor * variance, settings.variance_factor**0.5 * scale
            scale = xp.full_like(scale, B / 3) if settings.kind == "freedman" else scale
        kappa = xp.full_like(variance, math.log(C0 * windows**0.5 / self.delta(settings)))
        self.source_terms = xp.stack(
            [
                xp.mean(losses, axis=-1),
                KINDS[settings.kind](kappa, variance, scale, windows),
                xp.mean(reader.disagreement(self.source_made, self.pairs), axis=-1),
                kappa,
                variance,
                scale,
                reader.posterior_shift(posterior, belief),
            ]
        )
