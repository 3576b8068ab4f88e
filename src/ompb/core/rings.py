"""Rings of vectors by origin, (..., D, F), newest first, so that "lead h of row r" is a contiguous view.

Its first `SLACK` places are filled from the last to the first; when all are full, everything moves back by as many, to
a ring of its own. So a ring has `SLACK - 1` places more than it needs, each vector is kept once, a push writes only to
a dead place, and an earlier state stays good.
"""

from __future__ import annotations

from ompb.core.arrays import Array, namespace

# Places filled between two moves: the more, the less is moved, and the more is kept.
SLACK = 3


def push(ring: Array, origin: int, vectors: Array | float) -> Array:
    """The ring with the vectors (..., F) of an origin; each origin from 0 on is pushed, one after the other."""
    place = -1 - origin % SLACK + SLACK
    if place == SLACK - 1:
        moved = namespace(ring).empty_like(ring)
        moved[..., :SLACK, :] = 0.0
        moved[..., SLACK:, :] = ring[..., :-SLACK, :]
        ring = moved
    ring[..., place, :] = vectors
    return ring


def place_of(origin: int, newest: int) -> int:
    """Where an origin lies in a ring, of which the newest is ``newest``; those before it follow."""
    return SLACK - 1 - newest % SLACK + newest - origin


def vectors_from(ring: Array, place: int | Array, count: int) -> Array:
    """So many vectors from a place on: (..., count, F), a view; of a place as an array () they are gathered."""
    if isinstance(place, int):
        return ring[..., place : place + count, :]
    xp = namespace(ring)
    return xp.take(ring, place + xp.arange(count, device=ring.device), axis=-2)
