r"""What the gate will ask of forecasts once their row comes: two sums a row, not every forecast.

Row r is forecast at leads h = 1 .. H. With w_h what lead h counts, the squared errors of one voice's forecasts f_h are

.. math:: \sum_h w_h (y - f_h)^2 = \sum_h w_h (f_h - c)^2 - 2 (y - c) \sum_h w_h (f_h - c) + (y - c)^2 \sum_h w_h

relative to any number c near them: the first mean issued for the row, or where there was none that for the row before
(0 for the rows that the first forecast of all speaks of), so that few digits are lost. So two sums of each of V
forecasts that are compared grow as leads speak of a row.

A *tally* holds them for the rows to come, (N, 2 V + 1, H), place h - 1 for the row h ahead: the first sums, the second
ones, and c.
"""

from __future__ import annotations

from ompb.core.arrays import Array, at_least, namespace, zeros


def empty(like: Array, compared: int) -> Array:
    """Nothing was said of any row; ``like`` is any (N, H) array, ``compared`` is V."""
    lanes, horizon = like.shape
    return zeros(like, lanes, 2 * compared + 1, horizon)


def issued(tally: Array, base: Array, corrections: tuple[Array, ...], mean: Array, leads: Array) -> Array:
    """The tally a row later, once forecasts base + correction, (N, H) and (N, V, H), were issued, and the mean (N, H).

    The corrections may come in parts, voices after voices; ``leads`` (H,) is what each lead counts.
    """
    xp, moved = namespace(tally), _moved_on(tally, mean[:, -1])
    off = xp.concat(corrections, axis=1)
    off += (base - moved[:, -1])[:, None]
    first = off * leads
    off *= first
    # as one array: a sum of whole arrays costs a fraction of sums of their parts
    moved += xp.concat([first, off, zeros(tally, tally.shape[0], 1, tally.shape[2])], axis=1)
    return moved


def passed_over(tally: Array) -> Array:
    """The tally a row later, at which nothing was issued."""
    return _moved_on(tally, tally[:, -1, -1])


def _moved_on(tally: Array, centre: Array) -> Array:
    """The tally a row later, with nothing said of the row that is now the last one but what is near it, (N,)."""
    last = zeros(tally, *tally.shape[:2], 1)
    last[:, -1, 0] = centre
    return namespace(tally).concat([tally[:, :, 1:], last], axis=2)


def losses(sums: Array, values: Array, counted: Array, share: Array) -> Array:
    """The means over leads of (y - f_h)^2, (N, V), for a row's sums (N, 2 V + 1) and its cells y (N,).

    ``counted`` (N,) is the sum of w_h over the leads that spoke of a known cell, ``share`` (N,) is 1 over it, or 0
    where it is 0: so are the means there.
    """
    compared = int(sums.shape[1]) // 2
    off = (values - sums[:, -1])[:, None]
    total = sums[:, compared:-1] + off * (off * counted[:, None] - 2.0 * sums[:, :compared])
    return share[:, None] * at_least(total, 0.0)  # rounding may have put it below 0
