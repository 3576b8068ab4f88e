"""Losses in [0, 1] under any dependence, by betting."""

from __future__ import annotations

import math

from ompb.core.arrays import Array, namespace
from ompb.core.certificate.betting import FIRST_GUESS, Stakes, shortfalls, upper_mean
from ompb.core.certificate.kinds.contract import Kind


class Betting(Kind, tag="betting"):
    """Gamma = the upper bound of `ompb.core.certificate.betting` less the mean loss, at the price kappa.

    A loss is guessed by the mean of those before it.
    """

    def summary(self, losses: Array, factor: float) -> Array:
        """The mean loss and A_m(lambda) of each lambda: (..., 1 + J). There is no variance to be scaled."""
        del factor
        xp = namespace(losses)
        before = xp.arange(losses.shape[-1], dtype=losses.dtype, device=losses.device)
        guesses = (FIRST_GUESS + xp.cumulative_sum(losses, axis=-1) - losses) / (1 + before)
        mean = xp.mean(losses, axis=-1)
        short = xp.sum(shortfalls(losses, guesses, Stakes.like(losses)), axis=-2)
        return xp.concat([mean[..., None], short], axis=-1)

    def gamma(self, kappa: Array, summary: Array, windows: int) -> Array:
        """(...)."""
        return upper_mean(kappa, summary[..., 1:], windows) - summary[..., 0]

    def log_term(self, windows: int, delta: float) -> float:
        """Ln(1 / delta): a mixture of capitals needs no more."""
        del windows
        return math.log(1 / delta)
