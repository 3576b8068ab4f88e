"""From what groups of series issue to one forecast of the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ompb.core.arrays import Array, namespace
from ompb.core.intervals import LEVELS
from ompb.core.online import Issued
from ompb.fleet.forecast import FleetCertificate, FleetWarnings, Parts
from ompb.fleet.groups import Group
from ompb.live.cohort import Entered
from ompb.live.outgoing import InUnits, in_units


def parts_of(group: Group, entered: Entered, base: Array | None, issued: Issued | None) -> Parts:
    """What a group hands out once it has left a row; NaN where there is no forecast."""
    rules = group.cohort.online
    xp = namespace(entered.values)
    hidden = xp.zeros_like(entered.values, dtype=xp.bool) if entered.hidden is None else entered.hidden
    warning = FleetWarnings.of(group.state.online.warnings, group.state.rows - 1)
    if issued is None or base is None:
        units, nothing = _silence(group, entered.values)
        return Parts(units, None if rules.certifier is None else nothing, warning, hidden[:, 0])
    certificate = None if issued.certificate is None else FleetCertificate.of(issued.certificate)
    return Parts(in_units(group.cohort, base, issued), certificate, warning, hidden[:, 0])


def all_parts(groups: Sequence[Group], parts: Sequence[Parts]) -> Parts:
    """The parts of all groups as one, in the order of the fleet."""
    places = np.concatenate([group.places for group in groups])
    if len(groups) == 1 and (places[:-1] < places[1:]).all():
        return parts[0]
    order = np.argsort(places)
    return Parts(*(_together(column, order) for column in zip(*parts, strict=True)))


def _together(column: Sequence[Any], order: Any) -> Any:
    first = column[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        return type(first)(*(_together(below, order) for below in zip(*column, strict=True)))
    return namespace(first).concat(column, axis=0)[order]


def _silence(group: Group, like: Array) -> tuple[InUnits, FleetCertificate]:
    cal, rules, series = group.cohort.cal, group.cohort.online, group.cohort.series
    xp = namespace(like)

    def nothing(*shape: int) -> Array:
        return xp.full((series, *shape), xp.nan, dtype=like.dtype, device=like.device)

    by_lead, by_channel = nothing(cal.horizon, cal.channels), nothing(cal.channels)
    widths = nothing(2, len(LEVELS), 1 if rules.shape is None else cal.horizon, cal.channels)
    units = InUnits(
        by_lead, by_lead, by_channel, None if rules.novelty is None else by_channel, by_lead, widths, by_channel
    )
    return units, FleetCertificate(*[nothing()] * len(FleetCertificate._fields))
