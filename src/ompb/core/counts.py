"""Whole numbers of the clock, on the host and on a device.

The host schedules by them and finds places in rings. What a device is given once and then plays again, a program or a
recording, must not have them inside: there they are arrays. A *count* is a number with its array.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from ompb.core.arrays import Array

# What, beside arrays, decides how a row is computed.
Form: TypeAlias = Hashable


class Count(int):
    """A whole number that a device knows, too. What is computed from it on the host is a plain one."""

    there: Array  # (), on the device

    @classmethod
    def of(cls, number: int, there: Array) -> Count:
        """That number, with its array."""
        count = cls(number)
        count.there = there
        return count


def along(number: int, count: int) -> int | Array:
    """A number that moves with a count: as an array () where a device knows the count, else as it is.

    How far they are apart is then fixed, and part of the `Form` of whatever it decides.

    >>> along(7, 5), along(7, Count.of(5, there=25))
    (7, 27)
    """
    if not isinstance(count, Count):
        return number
    return count.there if number == count else count.there + (number - count)
