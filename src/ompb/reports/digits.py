"""How many digits of a forecast mean something."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.types import Floats

# The last digit that is kept is at most this share of a source standard deviation.
RESOLUTION = 1e-3
# Outcomes are the user's own: so many decimals more.
OUTCOME, MORE = "y", 2
# Shares and certificates, which lie about between 0 and 1.
PLAIN = {"gate": 4, "certificate": 4}


def decimals_for(scale: float) -> int:
    """Decimals of values whose source standard deviation is ``scale``; none are taken before the point.

    >>> decimals_for(8.3), decimals_for(0.02), decimals_for(1e6)
    (3, 5, 0)
    """
    return max(0, math.ceil(-math.log10(RESOLUTION * scale))) if scale > 0 else 3


def rounded(columns: Iterable[tuple[str, NDArray[Any]]], scale: Floats) -> dict[str, NDArray[Any]]:
    """Columns of as many lines for each of the C channels, one channel after the other, whose scales are (C,)."""
    found = {}
    for name, values in columns:
        if values.dtype.kind != "f":
            found[name] = values
        elif name in PLAIN:
            found[name] = np.round(values, PLAIN[name])
        else:
            more = MORE * (name == OUTCOME)
            blocks = zip(values.reshape(len(scale), -1), scale.tolist(), strict=True)
            each = [np.round(block, decimals_for(one) + more) for block, one in blocks]
            found[name] = np.concatenate(each)
    return found
