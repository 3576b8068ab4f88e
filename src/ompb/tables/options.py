"""What a user can say about a table that cannot, or should not, be guessed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a table; each field is the option of the command line with the same name, and may be left out.

    >>> Reading(target=("load",), missing=("-999",)).target
    ('load',)
    """

    time: str | None = None  # the column of times
    id: tuple[str, ...] = ()  # of a long table: the columns that tell its series apart
    value: str | None = None  # of a long table: the column of values
    target: tuple[str, ...] = ()  # columns, or series, to forecast; all by default
    exclude: tuple[str, ...] = ()  # columns, or series, to leave alone
    future: tuple[str, ...] = ()  # columns known ahead of time, such as a calendar
    missing: tuple[str, ...] = ()  # cells that mean "no value", beside the usual ones
    timezone: str | None = None  # the clock of the times, such as Europe/Berlin
    freq: str | None = None  # the step of the times, such as 15min, B or ME
    sep: str | None = None  # between cells of a text file
    decimal: str | None = None  # "." or ","
