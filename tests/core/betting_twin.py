"""The bound by betting in plain Python: a sum over losses and lambdas, and a bisection."""

from __future__ import annotations

import math
from collections.abc import Iterable

GRID = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9, 1.3, 1.9)


def betting_twin(losses: Iterable[float], price: float) -> float:
    """The average conditional mean at which the mean capital reaches exp(price); at most 1."""
    shortfall, total, count = dict.fromkeys(GRID, 0.0), 0.0, 0
    for loss in map(float, losses):
        for stake in GRID:
            guess = max((0.5 + total) / (1 + count), 1 - 0.98 / stake)
            shortfall[stake] += stake * guess - math.log(1 + stake * (guess - loss))
        total, count = total + loss, count + 1

    def log_capital(mean: float) -> float:
        exponents = [stake * count * mean - shortfall[stake] for stake in GRID]
        largest = max(exponents)
        return largest + math.log(sum(math.exp(x - largest) for x in exponents) / len(GRID))

    low, high = 0.0, 1.0
    if log_capital(high) <= price:
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_capital(middle) > price else (middle, high)
    return low
