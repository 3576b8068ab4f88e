r"""The sum of the products of all windows of a stretch of rows, without going through them.

With n windows of M rows and the H rows ahead of them, that start at rows 0 .. n - 1,

.. math:: P_{ij} = \sum_s w_{s+i}\, w_{s+j},\qquad P_{i+1,j+1} = P_{ij} + w_{n+i}\, w_{n+j} - w_i\, w_j
"""

from __future__ import annotations

from ompb.core.arrays import Array, namespace, zeros


def slid_products(rows: Array, length: int, ahead: int) -> Array:
    """P (N, M, M + H) of rows (N, T): products of a window's rows with them and those ahead."""
    xp = namespace(rows)
    width = length + ahead
    count = rows.shape[1] - width + 1
    products = zeros(rows, rows.shape[0], length, width)
    for lag in range(width):
        products[:, 0, lag] = xp.vecdot(rows[:, :count], rows[:, lag : lag + count])
    products[:, 1:, 0] = products[:, 0, 1:length]
    leaving, entering = rows[:, : width - 1], rows[:, count:]
    for place in range(length - 1):
        slid = products[:, place, :-1] + entering * entering[:, place, None]
        products[:, place + 1, 1:] = slid - leaving * leaving[:, place, None]
    return products
