"""Names of channels: read off any labels, matched by name, shown in messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ompb.errors import ShapeError

SHOWN = 12  # names that a message lists before it breaks off


def numbered(channels: int) -> tuple[str, ...]:
    """Names of channels that have none."""
    return tuple(f"channel {number}" for number in range(channels))


def names_of(labels: Iterable[Any], what: str) -> tuple[str, ...]:
    """Labels of any type as readable, distinct names; the numbers 0 to C - 1, in any order, are no names but places.

    >>> names_of([("load", "north"), 7], "source"), names_of([1, 0], "source")
    (('load/north', '7'), ('channel 1', 'channel 0'))
    """
    found = list(labels)
    places = all(isinstance(label, int | np.integer) for label in found) and sorted(found) == list(range(len(found)))
    names = tuple(f"channel {label}" if places else _readable(label) for label in found)
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ShapeError(f"{what} has more than one column {listed(repeated)}; rename or drop all but one of each.")
    return names


def order_of(found: tuple[str, ...], names: tuple[str, ...], what: str) -> list[int]:
    """The place in ``found`` of each of ``names``.

    Channels are matched by name. Where one side is merely numbered, there is no name to match, and places count.

    >>> order_of(("b", "a"), ("a", "b"), "rows")
    [1, 0]
    """
    if set(found) == set(names):
        return [found.index(name) for name in names]
    if len(found) == len(names) and numbered(len(names)) in (found, names):
        return list(range(len(names)))
    absent = [name for name in names if name not in found]
    foreign = [name for name in found if name not in names]
    differences = [f"{word} {listed(those)}" for word, those in (("without", absent), ("with", foreign)) if those]
    raise ShapeError(
        f"{what} has {counted(len(found), 'channel')}; accepted: {len(names)} ({listed(names)}), in any order. It "
        f"comes {' and '.join(differences)}; rename, add or drop columns."
    )


def in_words(name: str) -> str:
    """A channel as messages call it."""
    return name if name.startswith("channel ") else f"channel {name!r}"


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """Names in a row, the first few of very many."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def counted(count: int, name: str) -> str:
    """So many things of a name.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {name}{'s' * (count != 1)}"


def rows_between(counts: Sequence[int]) -> str:
    """Numbers of rows, from the smallest to the largest.

    >>> rows_between([3, 3]), rows_between([3, 5, 4])
    ('3 rows', '3 to 5 rows')
    """
    least, most = min(counts), max(counts)
    return counted(least, "row") if least == most else f"{least} to {most} rows"


def said_once(notes: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Notes on several things, by their names: each is said once, of all of them or of those that it names.

    >>> said_once({"a": ["sorted", "late"], "b": ["sorted"]})
    ('sorted', 'a: late')
    """
    about: dict[str, list[str]] = {}
    for name, said in notes.items():
        for note in said:
            about.setdefault(note, []).append(name)
    return tuple(note if len(names) == len(notes) else f"{listed(names)}: {note}" for note, names in about.items())


def opened(text: str) -> str:
    """A text as the beginning of a sentence.

    >>> opened("channel 'A' is late")
    "Channel 'A' is late"
    """
    return text[:1].upper() + text[1:]


def unended(text: object) -> str:
    """A text that others wrote, such as an error, without the full stop that the sentence around it brings.

    >>> unended(ValueError("Too long."))
    'Too long'
    """
    return str(text).rstrip().removesuffix(".")


def _readable(label: Any) -> str:
    """A label of several levels has its levels joined; pandas pads levels with empty text."""
    return "/".join(str(level) for level in label if level != "") if isinstance(label, tuple) else str(label)
