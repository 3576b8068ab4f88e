"""What is given for each of many series, by id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ompb.errors import ForecasterError, InputError, OptionError
from ompb.floor.names import listed
from ompb.seam.query import Forecaster, as_forecaster

_Value = TypeVar("_Value")


def as_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Distinct texts, at least one."""
    found = tuple(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else (ids,)
    if not found or not all(isinstance(one, str) for one in found) or len(set(found)) < len(found):
        raise OptionError(f"ids = {list(found)[:5]!r} do not name series; accepted: one or more distinct texts.")
    return tuple(str(one) for one in found)


def places_of(names: Iterable[str], ids: Sequence[str], what: str) -> list[int]:
    """The places of some series among all. Raises `InputError` for one that is not there."""
    place_of = {one: place for place, one in enumerate(ids)}
    found = []
    for one in names:
        if not isinstance(one, str) or one not in place_of:
            raise InputError(f"{what} names the series {one!r}, which is not here; accepted: {listed(ids)}.")
        found.append(place_of[one])
    return found


def called(one: Any) -> str:
    """What an error about one of many series says first."""
    return f"series {one!r}: "


def for_each(what: str, given: Mapping[Any, _Value], ids: Collection[Any]) -> dict[Any, _Value]:
    """One for each id; there may be more. Raises `OptionError` for ids that have none."""
    if lacking := [one for one in ids if one not in given]:
        raise OptionError(f"{what} lacks {_shown(lacking)}; pass one for each series, or one for all.")
    return {one: given[one] for one in ids}


def some_of(what: str, given: Any, ids: Collection[Any]) -> dict[Any, Any]:
    """One for each id that has one, else None. Raises `OptionError` unless it is a mapping from some of the ids."""
    if given is None:
        return dict.fromkeys(ids)
    if not isinstance(given, Mapping):
        raise OptionError(f"{what} is a {type(given).__name__}; accepted: a mapping from the id of a series.")
    if strange := [one for one in given if one not in ids]:
        raise OptionError(f"{what} names series that are not here: {_shown(strange)}; leave them out.")
    return {one: given.get(one) for one in ids}


def forecasters_for(forecaster: Any, ids: Collection[Any]) -> dict[Any, Forecaster]:
    """The forecaster of each series: one for all, or one for each by id."""
    if isinstance(forecaster, Mapping):
        return {one: as_forecaster(own) for one, own in for_each("forecaster", forecaster, ids).items()}
    shared = as_forecaster(forecaster)
    require_for_all(shared, len(ids), "pass a mapping from id to the record of each")
    return dict.fromkeys(ids, shared)


def require_for_all(forecaster: Forecaster | None, series: int, remedy: str) -> None:
    """Raise `ForecasterError` for a forecaster that so many series cannot share."""
    if series > 1 and forecaster is not None and forecaster.record:
        raise ForecasterError(
            f"recorded forecasts that are found by the number of their row belong to one series; {remedy}."
        )


def _shown(ids: list[Any]) -> str:
    return listed([repr(one) for one in ids])
