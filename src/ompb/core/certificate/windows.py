"""The certificate windows, and how a mixture is read on windows whose outcomes are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from ompb.core.arrays import Array, contiguous, dot, namespace, over_series
from ompb.core.certificate.disagreement import drawn_pairs, expected_pair, pair_statistics
from ompb.core.features import View
from ompb.core.mixture import Mixture, States
from ompb.floor.shapes import Dim, Shape


@dataclass(frozen=True)
class CertificateWindows:
    """n windows of N lanes with their outcomes, as the mixture's members see them.

    Where an outcome is missing the base forecast stands in for it: that leaves the differences between voices as they
    are, and its weight in the risk is zero.
    """

    seen: Annotated[tuple[Annotated[Array, Shape("N m ?")], ...], Dim("members")]  # what each member needs of them
    residual: Annotated[Array, Shape("N m H")]  # outcome less base forecast
    weight: Annotated[Array, Shape("N m H", least=0)]  # of each lead in the series' mean squared error times C

    @classmethod
    def of(cls, mixture: Mixture, view: View, outcomes: Array, channels: int) -> CertificateWindows:
        """Windows with their outcomes (N, n, H), NaN where missing; one without any known one counts nothing."""
        xp = namespace(outcomes)
        known = xp.isfinite(outcomes)
        residual = xp.where(known, outcomes - view.base, 0.0)
        cells = over_series(xp.sum(xp.astype(known, outcomes.dtype), axis=-1), channels)  # (S, n), per channel
        shared = xp.repeat(xp.where(cells > 0, cells, 1.0), channels, axis=0)[..., None]
        weight = xp.where(known, 1 / shared, 0.0)
        return cls(tuple(contiguous(seen) for seen in mixture.see(view)), contiguous(residual), contiguous(weight))

    def __len__(self) -> int:
        return int(self.residual.shape[1])

    def part(self, first: int, last: int) -> CertificateWindows:
        """The windows first .. last - 1."""
        here = slice(first, last)
        seen = tuple(one[:, here] for one in self.seen)
        return CertificateWindows(seen, self.residual[:, here], self.weight[:, here])

    def among(self, chosen: Array) -> CertificateWindows:
        """Those of the windows (n,) that are chosen, in arrays of their own."""
        seen = tuple(contiguous(one[:, chosen]) for one in self.seen)
        return CertificateWindows(seen, contiguous(self.residual[:, chosen]), contiguous(self.weight[:, chosen]))

    def known(self, channels: int) -> Array:
        """Which windows of each series have a known outcome, (S, n)."""
        xp = namespace(self.weight)
        lanes = xp.max(self.weight, axis=-1) > 0
        return xp.any(lanes.reshape((lanes.shape[0] // channels, channels, len(self))), axis=1)


@dataclass(frozen=True)
class Reader:
    """Reads a mixture on windows: its risk, its disagreement, how far it has moved. All in closed form."""

    mixture: Mixture
    channels: int
    uniforms: Array  # numbers that draw voices, drawn once: (draws, N); none = expectation in closed form

    @cached_property
    def mean_noise(self) -> Array:
        """Mean of each voice's variance over the leads, (N, K)."""
        return namespace(self.mixture.noise).mean(self.mixture.noise, axis=-1)

    def look(self, windows: CertificateWindows, states: States) -> tuple[Array, Array]:
        """Expected squared error of every voice (N, n, K) and pair statistics (S, n, C, Q).

        A voice's error is that of its mean plus its own variance.
        """
        xp = namespace(windows.residual)
        chorus = self.mixture.speak(states, windows.seen)
        errors = windows.residual[:, None] - chorus.corrections  # (N, K, n, H)
        statistics = pair_statistics(errors, chorus.leverage, self.channels)
        errors *= errors  # nobody needs them any more, and there are many
        squared = dot(errors, windows.weight[:, None])  # (N, K, n)
        noise = xp.matmul(self.mixture.noise, windows.weight.mT)  # (N, K, n)
        return contiguous((squared + chorus.leverage * noise).mT), statistics

    def risk(self, squared: Array, belief: Array) -> Array:
        """Gibbs risk E||y - h||^2 / (H C) over the known cells, (S, n), from the voices' expected squared errors."""
        xp = namespace(belief)
        return over_series(xp.matmul(squared, belief[..., None])[..., 0], self.channels)

    def expected_pair(self, belief: Array) -> Array:
        """Coefficients (S, C Q, 1) of the expected gap."""
        return expected_pair(belief, self.mean_noise, self.channels)

    def pairs(self, belief: Array) -> Array:
        """Coefficients (S, C Q, pairs) of the law over pairs; without draws the expectation, as one "pair"."""
        if self.uniforms.shape[0] == 0:
            return self.expected_pair(belief)
        return drawn_pairs(belief, self.mean_noise, self.uniforms, self.channels)

    def posterior_shift(self, states: States, belief: Array) -> Array:
        """KL(rho_t || source posterior) of a series, (S,): at most KL(belief || prior) + sum_i belief_i KL_i."""
        xp = namespace(belief)
        ratio = xp.where(belief > 0, belief, 1.0) / xp.where(belief > 0, self.mixture.prior, 1.0)
        moved = dot(belief, xp.log(ratio) + self.mixture.shift(states))
        return self.channels * over_series(moved, self.channels)
