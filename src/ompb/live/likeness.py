"""Which calibrators can serve series side by side, one after the other, and in the numbers of a library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ompb.calibrator import Calibrator
from ompb.core.arrays import Array
from ompb.errors import OptionError
from ompb.floor.names import in_words
from ompb.live.lanes import mapped
from ompb.live.library import HOST, Library
from ompb.rows.scaler import LIMIT

# How far apart numbers may lie that follow each other, in source standard deviations: rounding adds a thousandth of the
# variance at most.
FINEST = 0.1


def shape_of(cal: Calibrator) -> tuple[Any, ...]:
    """What calibrators have in common whose series can be followed together."""
    sizes: list[tuple[int, ...]] = []

    def noted(array: Array) -> Array:
        sizes.append(tuple(array.shape))
        return array

    mapped(noted, cal.source, every=True)
    recorded = cal.source.signals.record.rows
    return cal.context, cal.horizon, cal.channels, cal.season, cal.quantiles, cal.settings, recorded, *sizes


def require_alike(calibrators: Sequence[Calibrator], ids: Sequence[str]) -> None:
    """Raise `OptionError` unless the calibrators ask for the same rows and make forecasts of the same form."""
    first = calibrators[0]
    for cal, name in zip(calibrators, ids, strict=True):
        if cal is first:
            continue
        for field in ("context", "horizon", "names", "grid", "quantiles", "settings"):
            mine, other = getattr(cal, field), getattr(first, field)
            if mine != other:
                raise _differs(name, ids[0], f"{field} ({_shown(mine)} and {_shown(other)})")


def require_same_rows(new: Calibrator, old: Calibrator) -> None:
    """Raise `OptionError` unless a new calibrator is one of rows like those of the old one."""
    for field, what in (("names", "channels"), ("grid", "steps of time")):
        mine, other = getattr(new, field), getattr(old, field)
        if mine != other:
            raise OptionError(
                f"the new calibrator has the {what} {_shown(mine)}, and the rows so far have {_shown(other)}; fit it "
                "on rows like these, or start anew with history= for the rows so far."
            )


def require_told_apart(calibrators: Sequence[Calibrator], ids: Sequence[str], library: Library) -> None:
    """Raise `OptionError` where the library's numbers, coarser than those of rows, lose values near the source mean.

    They also end sooner: what can be a measurement must lie within them.
    """
    if library.dtype == HOST.dtype:
        return
    largest = float(np.finfo(library.dtype).max)
    for cal, one in {id(cal): (cal, one) for cal, one in zip(calibrators, ids, strict=True)}.values():
        farthest = float((abs(cal.centre) + LIMIT * cal.scale).max())
        if farthest > largest:
            raise OptionError(
                f"dtype = {library.dtype!r} ends at {largest:g}, and values of {one!r} may reach {farthest:g}; take "
                "float64, or count in larger units."
            )
        steps = np.spacing(abs(cal.centre).astype(library.dtype))
        for name, step, centre, scale in zip(cal.names, steps, cal.centre, cal.scale, strict=True):
            if step > FINEST * scale:
                raise OptionError(
                    f"dtype = {library.dtype!r} tells values near {centre:g} apart in steps of {step:g}, and the "
                    f"source of {one!r} has standard deviation {scale:g} in {in_words(name)}; accepted: steps up to a "
                    "tenth of it. Take float64, or subtract a constant from all rows."
                )


def _differs(one: str, other: str, what: str) -> OptionError:
    return OptionError(
        f"the calibrators of {one!r} and {other!r} differ in {what}; series of one fleet need calibrators that "
        "are fitted alike: give them another fleet."
    )


def _shown(value: Any) -> str:
    return "other options" if hasattr(value, "gate") else f"{value}"
