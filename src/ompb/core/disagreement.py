r"""Label-free mismatch: how much forecasts drawn from the posterior differ from each other on a window.

The posterior is a mixture per lane and group of leads: member i with belief b_i, mean forecast f_i, and for the heads a
variance sigma^2 q. All of it is in output space, no weight is ever drawn. On a group, two draws that chose members i
and j differ by

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = G_{ii} + G_{jj} - 2 G_{ij} + \bar\sigma^2 (q_i + q_j),
   \qquad G_{ij} = \tfrac1H f_i^T f_j,\quad \bar\sigma^2 = \tfrac1H \textstyle\sum_h \sigma_h^2

with sums over the group's leads; groups add up. So a window is summed up by its *makings*, G of each group and q, and a
law over pairs by its coefficients: any number of windows can be read again under a new belief by one product. In
expectation over pairs:

.. math:: \tfrac1H E\lVert h - h' \rVert^2 = 2 \big(\textstyle\sum_i b_i G_{ii} - b^T G b\big)
   + 2 \bar\sigma^2 \sum_i b_i q_i

The first part, between members, is the one that warns: members that fit the source alike part ways on inputs it never
showed.
"""

from __future__ import annotations

from ompb.core.arrays import Array, namespace
from ompb.settings import DisagreementMode


def makings(forecasts: Array, leverage: Array, groups: Array) -> Array:
    """G and q of windows, (N, n, size), from members' forecasts (N, n, K, H) and the heads' leverage (N, n, M).

    ``groups`` (G, H) says which leads make up a group. Only differences between members matter, so forecasts may be
    taken relative to anything, outcomes included.
    """
    xp = namespace(forecasts)
    lanes, windows, _, leads = forecasts.shape
    apart = forecasts[:, :, None] * groups[:, None]  # (N, n, G, K, H), 0 outside the group
    gram = xp.matmul(apart, xp.matrix_transpose(forecasts)[:, :, None]) / leads
    return xp.concat([xp.reshape(gram, (lanes, windows, -1)), leverage], axis=-1)


def makings_size(groups: int, members: int, heads: int) -> int:
    """How many numbers a window's makings are."""
    return groups * members * members + heads


def expected_pair(belief: Array, noise: Array, heads: int) -> Array:
    """Coefficients (N, size, 1) of the expected gap: belief (N, G, K), noise (N, G) the mean sigma^2 of each group."""
    xp = namespace(belief)
    lanes, _, members = belief.shape
    twice = 2 * belief
    between = xp.reshape(-twice[..., None] * belief[..., None, :], (*belief.shape[:2], members * members))
    between[..., :: members + 1] += twice  # the diagonal
    within = xp.sum(noise[..., None] * twice[..., members - heads :], axis=1)
    return xp.concat([xp.reshape(between, (lanes, -1)), within], axis=-1)[..., None]


def drawn_pairs(belief: Array, noise: Array, heads: int, uniforms: Array) -> Array:
    """Coefficients (N, size, pairs) of all pairs of drawn forecasts; uniforms (draws, N, G) choose their members.

    The heads' noise enters by its expectation: over H C independent values it hardly differs from it.
    """
    xp = namespace(belief)
    lanes, _, members = belief.shape
    upper = xp.cumulative_sum(belief, axis=-1)
    chosen = xp.astype((uniforms[..., None] >= upper - belief) & (uniforms[..., None] < upper), belief.dtype)
    pairs = []
    for first in range(chosen.shape[0]):
        for second in range(first + 1, chosen.shape[0]):
            difference, both = chosen[first] - chosen[second], chosen[first] + chosen[second]
            between = xp.reshape(difference[..., None] * difference[..., None, :], (lanes, -1))
            within = xp.sum(noise[..., None] * both[..., members - heads :], axis=1)
            pairs.append(xp.concat([between, within], axis=-1))
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
