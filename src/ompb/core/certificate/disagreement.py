r"""Label-free mismatch: how much forecasts drawn from the posterior differ from each other on a window.

The posterior is a mixture per lane: voice i with belief b_i, mean forecast f_i, and variance sigma_i^2 q_i where it has
leverage. All of it is in output space, no weight is ever drawn. A pair of draws that chose voices i and j differs by

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = G_{ii} + G_{jj} - 2 G_{ij} + \bar\sigma_i^2 q_i + \bar\sigma_j^2 q_j,
   \qquad G_{ij} = \tfrac1H f_i^T f_j

so a window is summed up by its *pair statistics*, the Q = K K + K numbers G and q of each of its C lanes, and a law
over pairs by as many coefficients, in which the mean over lanes is contained: any number of windows can be read under a
belief by one product. In expectation over pairs:

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = 2 \big(\textstyle\sum_i b_i G_{ii} - b^T G b\big)
   + 2 \sum_i b_i \bar\sigma_i^2 q_i

The first part, between voices, is the one that warns: voices that fit the source alike part ways on inputs it never
showed.
"""

from __future__ import annotations

from typing import Literal

from ompb.core.arrays import Array, contiguous, namespace, reshaped

DisagreementMode = Literal["clipped", "normalised", "unclipped"]


def pair_statistics(forecasts: Array, leverage: Array, channels: int) -> Array:
    """G and q of windows, (S, n, C, Q), from voices' forecasts (N, K, n, H) and their leverage (N, K, n).

    Only differences between voices matter, so forecasts may be taken relative to anything, outcomes included.
    """
    xp = namespace(forecasts)
    lanes, voices, windows, leads = forecasts.shape
    by_window = xp.permute_dims(forecasts, (0, 2, 1, 3))
    gram = xp.matmul(by_window, by_window.mT) / leads
    between = reshaped(gram, (lanes, windows, voices * voices))
    by_lane = xp.concat([between, leverage.mT], axis=-1)
    by_series = reshaped(by_lane, (lanes // channels, channels, windows, -1))
    return contiguous(xp.permute_dims(by_series, (0, 2, 1, 3)))


def enter_statistics(statistics: Array, place: int, forecasts: Array, leverage: Array) -> None:
    """The same of one window (n = 1), written straight to a place of statistics (S, ring, C, Q)."""
    xp = namespace(forecasts)
    _, voices, _, leads = forecasts.shape
    series, _, channels, _ = statistics.shape
    said = forecasts[:, :, 0]
    gram = xp.matmul(said, said.mT)
    gram /= leads
    between = voices * voices
    statistics[:, place, :, :between] = reshaped(gram, (series, channels, between))
    statistics[:, place, :, between:] = reshaped(leverage, (series, channels, voices))


def gaps(statistics: Array, pairs: Array) -> Array:
    """||h - h'||^2 / (H C) of each pair, (S, n, pairs), on windows of statistics (S, n, C, Q)."""
    xp = namespace(statistics)
    return xp.matmul(reshaped(statistics, (*statistics.shape[:2], -1)), pairs)


def expected_pair(belief: Array, noise: Array, channels: int) -> Array:
    """Coefficients (S, C Q, 1) of the expected gap: belief (N, K), noise (N, K) mean sigma^2 of each voice."""
    xp = namespace(belief)
    lanes, voices = belief.shape
    twice = 2 * belief
    between = reshaped(-twice[:, :, None] * belief[:, None], (lanes, voices * voices))
    between[:, :: voices + 1] += twice  # the diagonal
    return _over_lanes(xp.concat([between, noise * twice], axis=-1)[..., None], channels)


def drawn_pairs(belief: Array, noise: Array, uniforms: Array, channels: int) -> Array:
    """Coefficients (S, C Q, pairs) of all pairs of drawn forecasts; uniforms (draws, N) choose their voices.

    The voices' own noise enters by its expectation: over H C independent values it hardly differs from it.
    """
    xp = namespace(belief)
    lanes = belief.shape[0]
    upper = xp.cumulative_sum(belief, axis=-1)
    chosen = xp.astype((uniforms[..., None] >= upper - belief) & (uniforms[..., None] < upper), belief.dtype)
    pairs = []
    for first in range(chosen.shape[0]):
        for second in range(first + 1, chosen.shape[0]):
            difference, both = chosen[first] - chosen[second], chosen[first] + chosen[second]
            between = reshaped(difference[:, :, None] * difference[:, None], (lanes, -1))
            pairs.append(xp.concat([between, noise * both], axis=-1))
    return _over_lanes(xp.stack(pairs, axis=-1), channels)


def _over_lanes(pairs: Array, channels: int) -> Array:
    """Coefficients of a series' mean over its lanes, (S, C Q, pairs), from those of each lane (N, Q, pairs)."""
    lanes, _, count = pairs.shape
    return reshaped(pairs, (lanes // channels, -1, count)) / channels


def bounded(gap: Array, tau: Array | float, mode: DisagreementMode) -> Array:
    """D from squared gaps (S, ...): min(1, x), x / (1 + x), or x itself, with x = gap / tau^2, tau (S, 1, ...).

    The unclipped mode leaves [0, 1] and is a diagnostic only.
    """
    xp = namespace(gap)
    scaled = gap / tau**2
    if mode == "clipped":
        return xp.minimum(scaled, 1.0)
    if mode == "normalised":
        return scaled / (1 + scaled)
    return scaled
