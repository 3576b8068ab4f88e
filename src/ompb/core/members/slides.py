r"""All windows of a stretch of rows: one after the other, and the sum of their products without going through them.

With n windows of M rows and the H rows ahead of them, that start at rows 0 .. n - 1,

.. math:: P_{ij} = \sum_s w_{s+i}\, w_{s+j},\qquad P_{i+1,j+1} = P_{ij} + w_{n+i}\, w_{n+j} - w_i\, w_j
"""

from __future__ import annotations

from collections.abc import Iterator

from ompb.core.arrays import Array, namespace


def slid_products(rows: Array, length: int, ahead: int) -> Array:
    """P (M, M + H), summed over the lanes of rows (N, T): products of a window's rows with them and those ahead."""
    xp = namespace(rows)
    width = length + ahead
    count = rows.shape[1] - width + 1
    first = xp.stack([xp.sum(rows[:, :count] * rows[:, lag : lag + count]) for lag in range(width)])
    leaving, entering = rows[:, :width], rows[:, count:]
    turned = (xp.matrix_transpose(part[:, :length]) for part in (leaving, entering))
    out, into = (xp.matmul(one, part[:, : width - 1]) for one, part in zip(turned, (leaving, entering), strict=True))
    change = into - out
    products = [first]
    for place in range(length - 1):
        products.append(xp.concat([first[place + 1 : place + 2], products[-1][:-1] + change[place]]))
    return xp.stack(products)


def slides(rows: Array, outcomes: Array, length: int, ahead: int, block: int) -> Iterator[tuple[Array, Array]]:
    """Blocks of windows (N, n, M) of rows (N, T), each with the outcomes (N, n, H) ahead of it."""
    xp = namespace(rows)
    count = rows.shape[1] - length - ahead + 1
    for start in range(0, count, block):
        places = range(start, min(start + block, count))
        windows = xp.stack([rows[:, place : place + length] for place in places], axis=1)
        yield windows, xp.stack([outcomes[:, place + length : place + length + ahead] for place in places], axis=1)
