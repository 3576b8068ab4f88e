"""Values to look at: numbers that stand for "missing", channels that count, and those in which nothing moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.floor.names import listed
from ompb.tables.table import Table
from ompb.types import Floats

# Numbers by which instruments and files say that there is no value.
CODES = frozenset(sign * code for code in (99.0, 999.0, 9999.0, 99999.0, 999999.0, 99.9, 999.9) for sign in (1, -1))
# Such a number is suspected where it lies further from all others than they lie apart; any other number, so many times.
APART = 5
CODES_LOOKED_FOR = 3  # a channel may have some of them
# Rows in which nothing moves, in a channel that moves in at least this share of its other rows.
STRETCH, MOVES = 24, 0.9
EVEN = 1e-4  # by which share of itself a step may differ from the others and be the same: times of files are rounded
TOLD = 4  # findings of each kind
ALONE = "among several series, leave this one out with --exclude."

Rows: TypeAlias = NDArray[np.intp]


def suspicions(table: Table) -> tuple[str, ...]:
    """Sentences on values to look at, a few at most, with what to say if they are no measurements.

    >>> rows = np.concatenate([np.sin(np.arange(50.0)), [-999.0, 0.5, -999.0]])
    >>> suspicions(Table(rows[:, None], np.arange(53), ("load",), "row"))
    ("'load' is -999 2 times, from 50 on, far from all other values: if it means missing, say --missing -999.",)
    """
    codes, constant, counting, still = [], [], [], []
    alone = len(table.channels) == 1
    for place, name in enumerate(table.channels):
        values = table.values[:, place]
        for code, rows in _codes(values):
            values = np.where(values == code, np.nan, values)
            codes.append(_code_sentence(table, name, code, rows))
        start, length = _stretch(values)
        if _constant(values):
            constant.append((name, float(np.nanmax(values))))
        elif step := _even_step(values):
            counting.append(_counting_sentence(name, step, alone=alone))
        elif length:
            still.append(f"{name!r} ({values[start]:g} for {length} rows from {table.shown(start)})")
    more = len(codes) - TOLD
    sentences = [*codes[:TOLD], f"... and {more} more like these."] if more > 0 else codes
    sentences += [*counting[:TOLD], *_constant_sentences(constant, alone=alone)]
    if still:
        sentences.append(f"Nothing moves for long in {listed(still, TOLD)}: if nothing was measured, empty them.")
    return tuple(sentences)


def missing_codes(table: Table) -> tuple[str, ...]:
    """The usual codes for "missing" among the suspected values, as ``--missing`` takes them.

    >>> rows = np.concatenate([np.sin(np.arange(50.0)), [-999.0, 0.5, 400.0]])
    >>> missing_codes(Table(rows[:, None], np.arange(53), ("load",), "row"))
    ('-999',)
    """
    found = {code for values in table.values.T for code, _ in _codes(values)}
    return tuple(f"{code:g}" for code in sorted(found & CODES))


def taken_as_missing(table: Table, codes: Iterable[str]) -> Table:
    """The table with NaN for these codes, as if ``--missing`` had named them.

    >>> taken_as_missing(Table(np.array([[1.0], [-999.0]]), np.arange(2), ("load",), "row"), ["-999"]).values[:, 0]
    array([ 1., nan])
    """
    found = np.isin(table.values, [float(code) for code in codes])
    return replace(table, values=np.where(found, np.nan, table.values))


def _code_sentence(table: Table, name: str, code: float, rows: Rows) -> str:
    first = table.shown(int(rows[0]))
    when = f"once, at {first}" if len(rows) == 1 else f"{len(rows)} times, from {first} on"
    return f"{name!r} is {code:g} {when}, far from all other values: if it means missing, say --missing {code:g}."


def _constant(values: Floats) -> bool:
    """Whether a channel never moves, in rows enough to tell."""
    known = values[np.isfinite(values)]
    return len(known) >= STRETCH and not np.ptp(known)


def _constant_sentences(found: Sequence[tuple[str, float]], *, alone: bool) -> list[str]:
    """What is said of channels that never move, by name and value; an only one may be one of several series.

    >>> _constant_sentences([("a", 7.0), ("b", 0.0)], alone=False)[0].partition(";")[0]
    "'a' is always 7, 'b' is always 0: nothing can be forecast of them, and mean scores count them"
    """
    if not found:
        return []
    them = "it" if len(found) == 1 else "them"
    said = listed([f"{name!r} is always {value:g}" for name, value in found], TOLD)
    options = " ".join(f"--exclude {name!r}" for name, _ in found)
    remedy = f"; {ALONE}" if alone else f", and mean scores count {them}; leave {them} out with {options}."
    return [f"{said}: nothing can be forecast of {them}{remedy}"]


def _even_step(values: Floats) -> float:
    """By how much a channel moves from each row to the next, where it is always the same; else 0."""
    steps = np.diff(values)
    if len(values) < STRETCH or np.isnan(steps).any():
        return 0.0
    step = (values[-1] - values[0]) / len(steps)
    return float(step) if (np.abs(steps - step) <= EVEN * abs(step)).all() else 0.0


def _counting_sentence(name: str, step: float, *, alone: bool) -> str:
    """What is said of a channel that only counts; an only one may be one of several series."""
    verb = "rises" if step > 0 else "falls"
    remedy = ALONE if alone else f"leave it out with --exclude {name!r}."
    return (
        f"{name!r} {verb} by {abs(step):.6g} from each row to the next, as numbers of rows and times do: if it is no "
        f"measurement, {remedy}"
    )


def _codes(values: Floats) -> Iterator[tuple[float, Rows]]:
    """Extreme values that lie apart from all others, and the rows they are in."""
    rest = values[np.isfinite(values)]
    for _ in range(CODES_LOOKED_FOR):
        if not rest.size:
            return
        far = max((rest.min(), rest.max()), key=lambda end: abs(end - np.median(rest)))
        others = rest[rest != far]
        if not others.size:
            return
        between, apart = np.ptp(others), np.abs(others - far).min()
        if not apart > (1 if float(far) in CODES else APART) * between or not between:
            return
        yield float(far), np.flatnonzero(values == far)
        rest = others


def _stretch(values: Floats) -> tuple[int, int]:
    """First row and length of the longest stretch in which nothing moves; (0, 0) if none is suspicious."""
    if len(values) < 2:
        return 0, 0
    still = values[1:] == values[:-1]  # never of NaN
    edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]]).astype(int)))
    starts, stops = edges[::2], edges[1::2]
    if not starts.size:
        return 0, 0
    longest = int(np.argmax(stops - starts))
    length = int(stops[longest] - starts[longest]) + 1
    others = len(still) - (length - 1)
    moves = 1 - (still.sum() - (length - 1)) / others if others else 0.0
    return (int(starts[longest]), length) if length >= STRETCH and moves >= MOVES else (0, 0)
