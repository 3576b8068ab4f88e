"""On which network a cell stands, and when its errors are no forecast's any more: one rule for all tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ompb.bench.joining import SAME, bare_error
from ompb.bench.store import Result

Seeded: TypeAlias = Mapping[int, Result]  # the cells of one place, protocol and method, by seed

DIVERGED, NO_FORECAST = 100.0, "diverged"  # an MAE of so many times the bare backbone's, and what tables say of it
BROKEN = f"Diverged: an MAE from {DIVERGED:g} times that of the bare backbone on, of one seed at least."


def bare_errors(cells: Seeded, *bare: Seeded) -> dict[int, float]:
    """MAE of the network of each cell, by seed: what it tells itself, else what the first of the bare backbone's does.

    A seed that nobody tells it of is not there.
    """
    errors: dict[int, float] = {}
    for told in (cells, *bare):
        for seed in cells.keys() & told.keys():
            error = bare_error(told[seed])
            if error is not None:
                errors.setdefault(seed, error)
    return errors


def are_apart(one: float, other: float) -> bool:
    """Whether bare errors at one place and seed are those of two networks."""
    return not math.isclose(one, other, rel_tol=SAME)


def diverged(cells: Seeded, *bare: Seeded) -> set[int]:
    """The seeds whose errors are no forecast's any more, so that a mean with them says nothing."""
    errors = bare_errors(cells, *bare)
    return {seed for seed, error in errors.items() if error and cells[seed].metrics["mae"] >= DIVERGED * error}


def broken(lines: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The note on what diverged means, where a line says it."""
    return (BROKEN,) if any(word.startswith(NO_FORECAST) for line in lines for word in line) else ()
