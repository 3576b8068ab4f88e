"""Asking the forecaster at a row: whether it fits the calibrator, where it speaks, what it says of each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator
from ompb.errors import ForecasterError, OptionError
from ompb.rows.scaler import Scaler
from ompb.seam.by_id import called, places_of
from ompb.seam.query import (
    HANDED_IN,
    Answer,
    Forecaster,
    Query,
    Whose,
    ask,
    checked,
    nobody,
    numbers,
    quantiles_of,
    speaking,
)
from ompb.seam.sources import calling
from ompb.types import Floats


class _Ask:
    """Stands for "ask the forecaster"."""

    def __repr__(self) -> str:
        return "ASK"


ASK: Final = _Ask()


def as_calibrator(candidate: Any) -> Calibrator:
    """A calibrator, or `OptionError` for anything else."""
    if isinstance(candidate, Calibrator):
        return candidate
    raise OptionError(
        f"the calibrator is a {type(candidate).__name__}; accepted: what ompb.Calibrator.fit, ompb.calibrate or "
        "ompb.Calibrator.load gives."
    )


def require_fit(forecaster: Forecaster | None, calibrator: Calibrator) -> None:
    """Raise `ForecasterError` for a forecaster that the calibrator was not fitted for."""
    as_calibrator(calibrator)
    if forecaster is None:
        return
    if calibrator.record and forecaster.record == calibrator.record:
        raise ForecasterError(
            "these recorded forecasts are those of the source, whose rows are not the stream's; record those of "
            "the stream, counted from its first row, or find forecasts by time: Recorded(forecasts, times=...)."
        )
    if quantiles_of(forecaster) != calibrator.quantiles:
        raise ForecasterError(
            f"the forecaster gives the quantiles {quantiles_of(forecaster)}, and the calibrator was fitted "
            f"with {calibrator.quantiles}; fit it with this forecaster, or bring one of those quantiles."
        )


@dataclass(frozen=True, eq=False)
class Asker:
    """Asks about n series of like calibrators at once; what it is told is in the user's units."""

    calibrator: Calibrator  # any of theirs
    forecaster: Forecaster | None
    batched: bool = True  # False: one question for each series

    def spoken(self, query: Query, base: Any) -> NDArray[np.bool_]:
        """For which of the n series there is a base forecast: one the forecaster has, or one that was given."""
        if base is not ASK:
            return np.full(len(query.origins), base is not None)
        if self.forecaster is None:
            raise ForecasterError("there is no forecaster here; pass base= with each row, or begin with one.")
        if self.batched:
            return speaking(self.forecaster, query.origins, query.times)
        each = [speaking(self.forecaster, one.origins, one.times) for one in singly(query)]
        return np.concatenate(each)

    def answer(self, query: Query, base: Any, scaler: Scaler, whose: Whose = nobody) -> Answer:
        """What is said of all of them, checked; an error that is about one of them says first whose."""
        cal = self.calibrator
        if base is not ASK:
            return checked(base, cal.quantiles, query, cal.horizon, scaler, cal.names, HANDED_IN, whose)
        assert self.forecaster is not None  # else nothing is spoken
        if self.batched:
            return ask(self.forecaster, query, cal.horizon, scaler, cal.names, whose)
        answers = []
        for place, one in enumerate(singly(query)):
            own = scaler if scaler.centre.ndim == 1 else scaler.of(place)
            with calling(whose(place)):
                answers.append(ask(self.forecaster, one, cal.horizon, own, cal.names))
        base, quantiles = zip(*answers, strict=True)
        return Answer(np.concatenate(base), None if quantiles[0] is None else np.concatenate(quantiles))


def singly(query: Query) -> list[Query]:
    """The same questions one by one."""
    return [chosen(query, slice(place, place + 1)) for place in range(len(query.origins))]


def chosen(query: Query, places: Any) -> Query:
    """Some of the questions."""
    times, future = (None if part is None else part[places] for part in (query.times, query.future))
    return Query(query.windows[places], query.origins[places], times, future)


def as_base(base: Any, calibrator: Calibrator) -> Floats:
    """The base forecast of one series, handed in as (H, C) or (H, C, Q), with an axis for the series in front."""
    found, points = numbers(base, HANDED_IN), _points(calibrator)
    if found.shape != points:
        axes = f"(horizon, C{', quantiles' * bool(calibrator.quantiles)})"
        raise ForecasterError(f"{HANDED_IN.has} shape {found.shape}; accepted: {points} = {axes}.")
    return found[None]


def as_bases(base: Any, ids: Sequence[str], calibrator: Calibrator) -> Floats:
    """Base forecasts (S, H, C), or (S, H, C, Q), from an array or a mapping by id; NaN for series that have none."""
    points = _points(calibrator)
    if isinstance(base, Mapping):
        full = np.full((len(ids), *points), np.nan)
        for place, (one, forecast) in zip(places_of(base, ids, "base"), base.items(), strict=True):
            with calling(called(one)):
                full[place] = as_base(forecast, calibrator)
        return full
    found = numbers(base, HANDED_IN)
    if found.shape != (len(ids), *points):
        raise ForecasterError(
            f"{HANDED_IN.has} shape {found.shape}; accepted: {(len(ids), *points)}, a forecast for each series, or a "
            "mapping by id."
        )
    return found


def _points(calibrator: Calibrator) -> tuple[int, ...]:
    """The shape of a base forecast."""
    points = (calibrator.horizon, calibrator.channels)
    return (*points, len(calibrator.quantiles)) if calibrator.quantiles else points
