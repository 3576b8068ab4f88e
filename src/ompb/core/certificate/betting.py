r"""Betting on losses in [0, 1]: an upper bound on their average conditional mean, whatever they depend on.

A gambler who guesses g_i before the i-th loss and stakes lambda on it being smaller multiplies the capital by
1 + lambda (g_i - l_i), and in the mean, given the past, by

.. math:: 1 + \lambda (g_i - \mu_i) \le e^{\lambda (g_i - \mu_i)}, \qquad \mu_i = E[l_i \mid past]

so with the *winnings short of the guess*

.. math:: A_n(\lambda) = \sum_i \lambda g_i - \ln\{1 + \lambda (g_i - l_i)\}

exp{lambda sum mu_i - A_n(lambda)} is a supermartingale: under any dependence, changing means and any adaptation, and
without an estimate of a variance. So is its mean over a grid of lambdas with weights w_j, and by Ville's inequality,
with probability 1 - delta and for all n at once, the average mu of the mu_i satisfies

.. math:: \textstyle\sum_j w_j \exp\{\lambda_j n \mu - A_n(\lambda_j)\} \le 1 / \delta

whose left side rises with mu: the bound is its root.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from ompb.core.arrays import Array, at_least, dot, namespace

# Small lambdas serve many losses, large ones few or small losses; beyond 2 a guess has to be too high to be of use.
GRID = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9, 1.3, 1.9)
# The guess before any loss, worth one of them.
FIRST_GUESS = 0.5
# Share of the capital that a single loss may take: what is left keeps the logarithm finite.
MOST_AT_STAKE = 0.98
# Newton's steps: as good as exact at any price that a delta below 4/5 asks for.
STEPS = 5


class Stakes(NamedTuple):
    """The grid, as arrays (J,)."""

    stake: Array  # lambda
    log_weight: Array  # ln w
    least_guess: Array  # below it a loss of 1 would take more than there is

    @classmethod
    def like(cls, array: Array) -> Stakes:
        """Of the type and on the device of an array."""
        return _stakes(namespace(array), array.dtype, array.device)


@lru_cache(maxsize=16)
def _stakes(xp: Any, dtype: Any, device: Any) -> Stakes:
    stake = xp.asarray(GRID, dtype=dtype, device=device)
    return Stakes(stake, xp.full_like(stake, -math.log(len(GRID))), at_least(1 - MOST_AT_STAKE / stake, 0.0))


def shortfalls(losses: Array, guesses: Array, stakes: Stakes) -> Array:
    """Lambda g - ln(1 + lambda (g - l)) of each loss and lambda: (..., J)."""
    xp = namespace(losses)
    stake, _, least = stakes
    guess = xp.maximum(guesses[..., None], least)
    return stake * guess - xp.log1p(stake * (guess - losses[..., None]))


def upper_mean(price: Array, shortfall: Array, count: Array) -> Array:
    """The root mu (...) of ln sum_j w_j exp(lambda_j n mu - A_j) = price, from A (..., J) and n; at most 1.

    By Newton's steps from a point above it: the function is convex and rises, so they fall to the root and never below,
    and wherever they end there is a bound. Down to the root the sum is at least 1, and no term of it is above 1.
    """
    xp = namespace(shortfall)
    stake, log_weight, _ = Stakes.like(shortfall)
    level = log_weight - shortfall - price[..., None]
    total = xp.min(-level / stake, axis=-1)  # one lambda alone reaches the price here; it is n mu
    ones = xp.ones_like(stake)
    for _ in range(STEPS):
        shares = xp.exp(level + stake * total[..., None])
        mass = dot(shares, ones)
        total = total - xp.log(mass) * mass / dot(shares, stake)
    return xp.clip(total / count, 0.0, 1.0)
