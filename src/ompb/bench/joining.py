"""Cells of several runs side by side: whether they stand on the same networks.

A network trained again elsewhere is another one, and its bare error may differ by a tenth. Every cell tells the error
of the base forecasts that it was given, so that nobody's correction is held against another network's unawares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ompb.bench.store import BARE, Cell, Result
from ompb.errors import OptionError
from ompb.floor.names import counted

Ground: TypeAlias = tuple[str, str, int, str, int]  # data set, backbone, horizon, split, seed: what has one network
SAME = 1e-3  # relative: networks trained again on the same kind of machine are nearer


def ground(cell: Cell) -> Ground:
    """What decides the network of a cell, and the stream that its error is of."""
    return cell.dataset, cell.backbone, cell.horizon, cell.split, cell.seed


def bare_errors(results: Iterable[Result]) -> dict[Ground, float]:
    """The bare error of the network at each ground: what the bare forecaster's cell says, else any that tells it."""
    found: dict[Ground, float] = {}
    for result in sorted(results, key=lambda one: one.cell.method != "original"):
        error = bare_error(result)
        if error is not None:
            found.setdefault(ground(result.cell), error)
    return found


def bare_error(result: Result) -> float | None:
    """What a cell tells of its base forecasts; None for one of an early version, unless it is the bare forecaster's."""
    return result.metrics.get(BARE, result.metrics.get("mae") if result.cell.method == "original" else None)


@dataclass(frozen=True, slots=True)
class Joining:
    """What adding cells to earlier ones does."""

    replaced: tuple[Result, ...]  # whose cell was there before
    strangers: tuple[Result, ...]  # on another network than the one that cells there stand on
    moved: tuple[Result, ...]  # of those that replace one: on another network than the one that was there

    @classmethod
    def of(cls, added: Sequence[Result], earlier: Sequence[Result]) -> Joining:
        """Of cells that come to earlier ones."""
        there, errors = {result.cell: result for result in earlier}, bare_errors(earlier)
        replaced = tuple(result for result in added if result.cell in there)
        moved = (one for one in replaced if strangers([one], {**errors, **bare_errors([there[one.cell]])}))
        return cls(replaced, tuple(strangers(added, errors)), tuple(moved))

    def require_same_networks(self) -> None:
        """Raise `OptionError` if a cell would take the place of one on another network."""
        if self.moved:
            first = self.moved[0]
            raise OptionError(
                f"{counted(len(self.moved), 'cell')} would replace cells on other networks, the first being "
                f"{first.cell}, whose bare error is {bare_error(first):.4g} here and another there; then "
                "others at its place are held against a network they do not stand on. Export to a folder of its own "
                "by --out, or pass --other-networks to replace them all the same."
            )


def strangers(results: Iterable[Result], errors: Mapping[Ground, float]) -> list[Result]:
    """Those that stand on another network than the one with these errors."""
    return [
        result
        for result in results
        if (error := bare_error(result)) is not None
        and (there := errors.get(ground(result.cell))) is not None
        and not math.isclose(error, there, rel_tol=SAME)
    ]
