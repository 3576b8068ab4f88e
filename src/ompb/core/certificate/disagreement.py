r"""Label-free mismatch: how much forecasts drawn from the posterior differ from each other on a window.

The posterior is a mixture per lane: voice i with belief b_i, mean forecast f_i, and variance sigma_i^2 q_i where it has
leverage. All of it is in output space, no weight is ever drawn. A pair of draws that chose voices i and j differs by

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = d_{ij} + \bar\sigma_i^2 q_i + \bar\sigma_j^2 q_j,
   \qquad d_{ij} = \tfrac1H \lVert f_i - f_j \rVert^2

so a window is summed up by its *pair statistics*, the Q = K (K + 1) / 2 numbers d (i < j) and q of each of its C lanes,
and a law over pairs by as many coefficients, in which the mean over lanes is contained: any number of windows can be
read under a belief by one product. In expectation over pairs:

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = \sum_{i < j} 2 b_i b_j \, d_{ij} + \sum_i 2 b_i \bar\sigma_i^2 q_i

The first part, between voices, is the one that warns: voices that fit the source alike part ways on inputs it never
showed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from ompb.core.arrays import Array, at_most, contiguous, dot, gram, is_compiling, namespace, small_product

DisagreementMode = Literal["clipped", "normalised", "unclipped"]


def pair_statistics(forecasts: Array, leverage: Array, channels: int) -> Array:
    """Statistics d and q of windows, (S, n, C, Q), from voices' forecasts (N, K, n, H) and leverage (N, K, n).

    Only differences between voices matter, so forecasts may be taken relative to anything, outcomes included.
    """
    xp = namespace(forecasts)
    lanes, _, windows, _ = forecasts.shape
    by_lane = lane_statistics(xp.permute_dims(forecasts, (0, 2, 1, 3)), leverage.mT, differences(forecasts))
    by_series = by_lane.reshape((lanes // channels, channels, windows, -1))
    return contiguous(xp.permute_dims(by_series, (0, 2, 1, 3)))


def lane_statistics(forecasts: Array, leverage: Array, of_products: Array) -> Array:
    """The same, (N, ..., Q), from forecasts (N, ..., K, H) and leverage (N, ..., K): d from products G = f f^T.

    ``of_products`` are the `differences` of these forecasts. Compiled code goes pair by pair: all of them are sums that
    one pass over the forecasts makes.
    """
    xp = namespace(forecasts)
    if is_compiling(forecasts):
        return xp.concat([_by_pair(forecasts), leverage], axis=-1)
    lanes, *windows, voices, _ = forecasts.shape
    products = gram(forecasts).reshape((lanes, -1, voices * voices))
    between = xp.matmul(products, of_products).reshape((lanes, *windows, -1))
    return xp.concat([between, leverage], axis=-1)


def _by_pair(forecasts: Array) -> Array:
    """The gaps d as they are defined: (N, ..., pairs)."""
    *_, voices, leads = forecasts.shape
    apart = [forecasts[..., i, :] - forecasts[..., j, :] for i in range(voices) for j in range(i + 1, voices)]
    return namespace(forecasts).stack([dot(gap, gap) / leads for gap in apart], axis=-1)


def differences(forecasts: Array) -> Array:
    """What makes d_ij = (G_ii + G_jj - G_ij - G_ji) / H of all products of forecasts (N, K, ..., H): (K K, pairs)."""
    voices, leads = int(forecasts.shape[1]), int(forecasts.shape[-1])
    return _differences(voices, leads, namespace(forecasts), forecasts.dtype, forecasts.device)


@lru_cache(maxsize=64)
def _places(voices: int) -> tuple[list[int], list[int]]:
    """The voices i and j of each pair, i < j."""
    pairs = [(i, j) for i in range(voices) for j in range(i + 1, voices)]
    return [i for i, _ in pairs], [j for _, j in pairs]


@lru_cache(maxsize=64)
def _differences(voices: int, leads: int, xp: Any, dtype: Any, device: Any) -> Array:
    first, second = _places(voices)
    marks = [[0.0] * len(first) for _ in range(voices * voices)]
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        marks[i * voices + i][pair] = marks[j * voices + j][pair] = 1 / leads
        marks[i * voices + j][pair] = marks[j * voices + i][pair] = -1 / leads
    return xp.asarray(marks, dtype=dtype, device=device).reshape((voices * voices, len(first)))


def gaps(statistics: Array, pairs: Array) -> Array:
    """||h - h'||^2 / (H C) of each pair, (S, n, pairs), on windows of statistics (S, n, C, Q)."""
    return small_product(statistics.reshape((*statistics.shape[:2], -1)), pairs)


def expected_pair(belief: Array, noise: Array, channels: int) -> Array:
    """Coefficients (S, C Q, 1) of the expected gap: belief (N, K), noise (N, K) mean sigma^2 of each voice."""
    first, second = _places(int(belief.shape[1]))
    twice = 2 * belief
    between = twice[:, first] * belief[:, second]
    return _over_lanes(namespace(belief).concat([between, noise * twice], axis=-1)[..., None], channels)


def drawn_pairs(belief: Array, noise: Array, uniforms: Array, channels: int) -> Array:
    """Coefficients (S, C Q, pairs) of all pairs of drawn forecasts; uniforms (draws, N) choose their voices.

    The voices' own noise enters by its expectation: over H C independent values it hardly differs from it.
    """
    xp = namespace(belief)
    i, j = _places(int(belief.shape[1]))
    upper = xp.cumulative_sum(belief, axis=-1)
    chosen = xp.astype((uniforms[..., None] >= upper - belief) & (uniforms[..., None] < upper), belief.dtype)
    pairs = []
    for first in range(chosen.shape[0]):
        for second in range(first + 1, chosen.shape[0]):
            one, other = chosen[first], chosen[second]
            between = one[:, i] * other[:, j] + one[:, j] * other[:, i]
            pairs.append(xp.concat([between, noise * (one + other)], axis=-1))
    return _over_lanes(xp.stack(pairs, axis=-1), channels)


def _over_lanes(pairs: Array, channels: int) -> Array:
    """Coefficients of a series' mean over its lanes, (S, C Q, pairs), from those of each lane (N, Q, pairs)."""
    lanes, _, count = pairs.shape
    return pairs.reshape((lanes // channels, -1, count)) / channels


def bounded(gap: Array, unit: Array | float, mode: DisagreementMode) -> Array:
    """D from squared gaps (S, ...): min(1, x), x / (1 + x), or x itself, with x = gap / unit, unit (S, 1, ...).

    The unclipped mode leaves [0, 1] and is a diagnostic only.
    """
    scaled = gap / unit
    if mode == "clipped":
        return at_most(scaled, 1.0)
    if mode == "normalised":
        return scaled / (1 + scaled)
    return scaled
