r"""Label-free mismatch: how much forecasts drawn from the posterior differ from each other on a window.

The posterior is a mixture per lane: member i with belief b_i, mean forecast f_i, and for the heads a variance
sigma^2 q. All of it is in output space, no weight is ever drawn. A pair of draws that chose members i and j differs by

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = G_{ii} + G_{jj} - 2 G_{ij} + \bar\sigma^2 (q_i + q_j),
   \qquad G_{ij} = \tfrac1H f_i^T f_j

so a window is summed up by its *makings*, G and q, and a law over pairs by its coefficients: any number of windows can
be read again under a new belief by one product. In expectation over pairs:

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = 2 \big(\textstyle\sum_i b_i G_{ii} - b^T G b\big)
   + 2 \bar\sigma^2 \sum_i b_i q_i

The first part, between members, is the one that warns: members that fit the source alike part ways on inputs it never
showed.
"""

from __future__ import annotations

from ompb.core.arrays import Array, namespace
from ompb.settings import DisagreementMode


def makings(forecasts: Array, leverage: Array) -> Array:
    """G and q of windows, (N, n, K * K + M), from members' forecasts (N, n, K, H) and the heads' leverage (N, n, M).

    Only differences between members matter, so forecasts may be taken relative to anything, outcomes included.
    """
    xp = namespace(forecasts)
    lanes, windows, members, leads = forecasts.shape
    gram = xp.matmul(forecasts, xp.matrix_transpose(forecasts)) / leads
    return xp.concat([xp.reshape(gram, (lanes, windows, members * members)), leverage], axis=-1)


def expected_pair(belief: Array, noise: Array, heads: int) -> Array:
    """Coefficients (N, K * K + M, 1) of the expected gap: belief (N, K), noise (N, 1) the heads' mean sigma^2."""
    xp = namespace(belief)
    lanes, members = belief.shape
    twice = 2 * belief
    between = xp.reshape(-twice[:, :, None] * belief[:, None], (lanes, members * members))
    between[:, :: members + 1] += twice  # the diagonal
    return xp.concat([between, noise * twice[:, members - heads :]], axis=-1)[..., None]


def drawn_pairs(belief: Array, noise: Array, heads: int, uniforms: Array) -> Array:
    """Coefficients (N, K * K + M, pairs) of all pairs of drawn forecasts; uniforms (draws, N) choose their members.

    The heads' noise enters by its expectation: over H C independent values it hardly differs from it.
    """
    xp = namespace(belief)
    lanes, members = belief.shape
    upper = xp.cumulative_sum(belief, axis=-1)
    chosen = xp.astype((uniforms[..., None] >= upper - belief) & (uniforms[..., None] < upper), belief.dtype)
    pairs = []
    for first in range(chosen.shape[0]):
        for second in range(first + 1, chosen.shape[0]):
            difference, both = chosen[first] - chosen[second], chosen[first] + chosen[second]
            between = xp.reshape(difference[:, :, None] * difference[:, None], (lanes, -1))
            pairs.append(xp.concat([between, noise * both[:, members - heads :]], axis=-1))
    return xp.stack(pairs, axis=-1)


def bounded(gap: Array, tau: float, mode: DisagreementMode) -> Array:
    """D from a squared gap: min(1, x), x / (1 + x), or x itself, with x = gap / tau^2.

    The unclipped mode leaves [0, 1] and is a diagnostic only.
    """
    xp = namespace(gap)
    scaled = gap / tau**2
    if mode == "clipped":
        return xp.minimum(scaled, 1.0)
    if mode == "normalised":
        return scaled / (1 + scaled)
    return scaled
