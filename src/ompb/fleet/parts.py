"""From what groups of series issue to one forecast of the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.core.arrays import Array, is_rising, namespace
from ompb.core.intervals import LEVELS
from ompb.core.online import Issued
from ompb.core.warnings import WarningState
from ompb.fleet.forecast import FleetCertificate, FleetWarnings, Parts
from ompb.live.cohort import Cohort, Entered
from ompb.live.outgoing import InUnits, in_units
from ompb.seam.query import Answer


def parts_of(
    cohort: Cohort, row: int, entered: Entered, answer: Answer | None, issued: Issued | None, warned: WarningState
) -> Parts:
    """What series hand out with a row; NaN where there is no forecast."""
    xp = namespace(entered.values)
    hidden = xp.zeros_like(entered.values, dtype=xp.bool) if entered.hidden is None else entered.hidden
    warning = FleetWarnings.of(warned, row)
    if issued is None or answer is None:
        units, nothing = _silence(cohort, entered.values)
        return Parts(units, None if cohort.online.certifier is None else nothing, warning, hidden[:, 0])
    certificate = None if issued.certificate is None else FleetCertificate.of(issued.certificate)
    return Parts(in_units(cohort, answer.base, issued), certificate, warning, hidden[:, 0])


def all_parts(of_groups: Sequence[NDArray[np.int64]], parts: Sequence[Parts]) -> Parts:
    """The parts of all groups as one, in the order of the fleet, where their series have these places."""
    if len(of_groups) == 1 and is_rising(of_groups[0]):
        return parts[0]
    order = np.argsort(np.concatenate(of_groups))
    return Parts(*(_together(column, order) for column in zip(*parts, strict=True)))


def _together(column: Sequence[Any], order: Any) -> Any:
    first = column[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        return type(first)(*(_together(below, order) for below in zip(*column, strict=True)))
    return namespace(first).concat(column, axis=0)[order]


def _silence(cohort: Cohort, like: Array) -> tuple[InUnits, FleetCertificate]:
    cal, rules, series = cohort.cal, cohort.online, cohort.series
    xp = namespace(like)

    def nothing(*shape: int) -> Array:
        return xp.full((series, *shape), xp.nan, dtype=like.dtype, device=like.device)

    by_lead, by_channel = nothing(cal.horizon, cal.channels), nothing(cal.channels)
    widths = nothing(2, len(LEVELS), 1 if rules.shape is None else cal.horizon, cal.channels)
    units = InUnits(
        by_lead, by_lead, by_channel, None if rules.novelty is None else by_channel, by_lead, widths, by_channel
    )
    return units, FleetCertificate(*[nothing()] * len(FleetCertificate._fields))
