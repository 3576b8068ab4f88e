r"""The heads: exact posteriors of the residual, one per discount, that start from what the source taught.

With G the mean of phi phi^T over the learning windows (plus a little of its diagonal) and n_0 the anchor in windows,
features are whitened by T with T^T T = (n_0 G)^{-1}. In these coordinates the source's word, worth n_0 windows, is the
standard normal around the source head

.. math:: v_h = n_0 \, T \, \overline{\phi\, r_h},\qquad \sigma_h^2 = \overline{(r_h - \phi^T T^T v_h)^2}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from ompb.core.arrays import Array, at_least, contiguous, namespace, product
from ompb.core.counts import Form
from ompb.core.features import FeatureMap, View
from ompb.core.members.contract import Learner, Member, MemberOptions, Speech, Voices
from ompb.core.members.sums import Sums
from ompb.core.posterior import Posterior, Recursion, gaussian_kl
from ompb.floor.shapes import Shape

# Least residual variance of a lane, in squared source standard deviations: a perfect source fit stays finite.
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class SourceHead(Member, tag="head"):
    """The head the source left: N lanes, F features, H leads."""

    whitening: Annotated[Array, Shape("N F F")]  # T transposed
    weights: Annotated[Array, Shape("N H F")]  # v
    noise: Annotated[Array, Shape("N H", positive=True)]  # sigma_h^2

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner:
        """Least squares over the learning windows, worth ``anchor`` of them."""
        del features
        return _HeadLearner(options.anchor)

    def voices(self, options: MemberOptions) -> Voices:
        """One head per discount."""
        return Heads(self, options)


class Heads(Voices):
    """M heads that learn online. What they see of a window are its whitened features, T phi."""

    def __init__(self, source: SourceHead, options: MemberOptions) -> None:
        xp = namespace(source.weights)
        discounts = xp.asarray(options.discounts, dtype=source.weights.dtype, device=source.weights.device)
        self.names = tuple(f"head {discount:g}" for discount in options.discounts)
        self.source = source
        self.recursion = Recursion(source.weights, discounts, options.patience)
        self.scale = options.posterior_scale

    @property
    def noise(self) -> Array:
        """sigma_h^2, (N, H)."""
        return self.source.noise

    def see(self, view: View) -> Array:
        """T phi, (N, n, F)."""
        return product(view.features, self.source.whitening)

    def start(self, like: Array) -> Posterior:
        """The source's word."""
        del like
        return self.recursion.start()

    def speak(self, state: Posterior, seen: Array) -> Speech:
        """phi^T w_h, with the leverage phi^T P phi."""
        return Speech(self.recursion.correction(state, seen), self.scale * self.recursion.leverage(state, seen))

    def issue(self, state: Posterior, origin: int, seen: Array) -> tuple[Speech, Posterior]:
        """The same for a new origin, with the leverage in force before it is taken in."""
        corrections, leverage, after = self.recursion.take_in(state, origin, seen[:, 0])
        return Speech(corrections, self.scale * leverage[..., None]), after

    def form(self, state: Posterior, row: int) -> Form | None:
        """That of the recursion."""
        return self.recursion.form(state, row)

    def pass_over(self, state: Posterior, origin: int) -> Posterior:
        """The past fades."""
        return self.recursion.pass_over(state, origin)

    def learn(self, state: Posterior, row: int, residual: Array, observed: Array) -> Posterior:
        """One label a lead."""
        return self.recursion.absorb(state, row, residual, observed)

    def learn_late(self, state: Posterior, row: int, newest: int, residual: Array, observed: Array) -> Posterior:
        """As if it had come on time."""
        return self.recursion.absorb_late(state, row, newest, residual, observed)

    def shift(self, state: Posterior) -> Array:
        """KL of each head to the source's word, (N, M)."""
        return gaussian_kl(state.mean - self.source.weights[:, None], state.root, self.source.noise)


@dataclass
class _HeadLearner(Learner):
    anchor: float
    sums: Sums = field(default_factory=Sums)

    def add(self, view: View, outcomes: Array) -> None:
        self.sums.add(view.features, outcomes - view.base)

    def finish(self) -> SourceHead:
        gram, cross = self.sums.means()
        xp = namespace(gram)
        values, vectors = xp.linalg.eigh(gram)
        whitening = vectors / xp.sqrt(self.anchor * values)[:, None, :]
        weights = self.anchor * xp.matmul(whitening.mT, cross)
        # mean (r - phi^T u)^2 = mean r^2 - 2 u^T mean(phi r) + u^T G u, with u = T^T v
        raw = xp.matmul(whitening, weights)
        fit = xp.sum(2 * raw * cross - xp.matmul(gram, raw) * raw, axis=1)
        noise = at_least(self.sums.mean_square() - fit, LEAST_NOISE)
        return SourceHead(contiguous(whitening), contiguous(weights.mT), contiguous(noise))
