"""The seam to the frozen forecaster: what it is asked, and what it may answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.errors import BusyError, ForecasterError
from ompb.floor.names import in_words, unended
from ompb.floor.times import Times, shown
from ompb.rows.scaler import LIMIT, Scaler
from ompb.rows.windows import Origins
from ompb.types import Floats, as_array, float64


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What a forecaster is asked: n windows, and all that is known about when they end."""

    windows: Floats  # (n, context, C), missing cells filled, in the user's units
    origins: Origins  # (n,): the row each window ends in, counted from the first row of its table or stream
    times: Times | None = None  # (n,): last stamp of each window, datetime64[us] or int64; None if the user gave none
    future: Floats | None = None  # (n, horizon, K): known covariates of the rows ahead; None if the user gave none

    def copy(self) -> Query:
        """The same question in arrays of its own."""
        times, future = (None if part is None else part.copy() for part in (self.times, self.future))
        return Query(self.windows.copy(), self.origins.copy(), times, future)

    @classmethod
    def join(cls, queries: Sequence[Query]) -> Query:
        """Several questions as one: windows after windows. All or none of them know times, and covariates."""
        windows, origins, times, future = (
            [getattr(query, name) for query in queries] for name in ("windows", "origins", "times", "future")
        )
        return cls(
            np.concatenate(windows),
            np.concatenate(origins),
            None if times[0] is None else np.concatenate(times),
            None if future[0] is None else np.concatenate(future),
        )


class Forecaster(ABC):
    """Derive from it to be told more than windows, or to speak at some rows only. It is asked, never changed.

    >>> class Calendar(Forecaster):
    ...     def forecast(self, query):
    ...         works = np.is_busday(query.times.astype("datetime64[D]"), "1111100")  # of the last row
    ...         return np.where(works[:, None, None], query.windows[:, -1:], 0.0)
    >>> friday_and_saturday = np.array(["2024-01-05", "2024-01-06"], dtype="datetime64[us]")
    >>> Calendar().forecast(Query(np.ones((2, 4, 1)), np.array([3, 4]), friday_and_saturday)).ravel()
    array([1., 0.])

    One that gives quantiles says which: ``quantiles = (0.1, 0.5, 0.9)`` in its class, in increasing order, with 0.5
    among them and others on both sides. Its forecasts are then (n, horizon, C, 3). The median is the base forecast, and
    the others are the shape of the intervals.
    """

    quantiles: tuple[float, ...] = ()
    # What `ompb.check` holds it to: that its answers move with the windows, and that they move with the times.
    uses_windows: bool = True
    uses_times: bool = False

    @abstractmethod
    def forecast(self, query: Query) -> Any:
        """Forecasts (n, horizon, C) of the query's n windows, in the user's units. The query's arrays are its own.

        A forecaster of Q ``quantiles`` returns (n, horizon, C, Q).
        """

    @property
    def record(self) -> str:
        """A digest of forecasts that are found by the number of their row alone; empty for all other forecasters.

        What was recorded for the rows of a source says nothing of a stream, whose rows count anew.
        """
        return ""

    def speaks_at(self, origins: Origins, times: Times | None) -> NDArray[np.bool_]:  # noqa: ARG002  # for others
        """Whether it has a forecast for each of these origins, (n,). It is not asked for the others."""
        return np.ones(len(origins), dtype=bool)


Whose: TypeAlias = Callable[[int], str]  # what an error says first that is about one of the n windows


def nobody(_: int) -> str:
    """There is one series only, or nobody knows."""
    return ""


class Answer(NamedTuple):
    """What a forecaster has said of n windows, in the user's units."""

    base: Floats  # (n, horizon, C)
    quantiles: Floats | None  # (n, horizon, C, Q), the base forecast among them; None if it gives none

    def of(self, place: int) -> Floats:
        """What was said of one of the windows, as it was said."""
        return np.asarray((self.base if self.quantiles is None else self.quantiles)[place])


@dataclass(frozen=True, slots=True, eq=False)
class _OfWindows(Forecaster):
    """A plain callable, which knows windows and nothing else."""

    call: Callable[[Floats], Any]

    def forecast(self, query: Query) -> Any:
        return self.call(query.windows)


AnyForecaster: TypeAlias = Forecaster | Callable[[Any], Any]


def as_forecaster(candidate: Any) -> Forecaster:
    """A `Forecaster` as it is; a callable from windows (n, context, C) to forecasts (n, horizon, C) as one."""
    if isinstance(candidate, Forecaster):
        return candidate
    kind = type(candidate).__name__
    if isinstance(candidate, type):
        raise ForecasterError(f"the forecaster is the class {candidate.__name__} itself; pass an instance of it.")
    if callable(candidate):
        return _OfWindows(candidate)
    if callable(getattr(candidate, "forecast", None)):
        raise ForecasterError(
            f"the forecaster is a {kind}, which cannot be called and is no ompb.Forecaster; pass its method, "
            "model.forecast, if that maps windows (n, context, C) to forecasts (n, horizon, C), or derive its class "
            "from ompb.Forecaster."
        )
    raise ForecasterError(
        f"the forecaster is a {kind}; accepted: a callable from windows (n, context, C) to forecasts (n, horizon, C), "
        "or an instance of a class derived from ompb.Forecaster."
    )


def speaking(forecaster: Forecaster, origins: Origins, times: Times | None) -> NDArray[np.bool_]:
    """What `Forecaster.speaks_at` says of these origins, checked: (n,)."""
    if type(forecaster).speaks_at is Forecaster.speaks_at:  # asked at every row, it need not be asked at all
        return np.ones(len(origins), dtype=bool)
    try:
        said = np.array(forecaster.speaks_at(origins.copy(), None if times is None else times.copy()))
    except Exception as error:
        _fail(error, f"speaks_at of {len(origins)} origins", "It must accept origins (n,) and their times or None.")
    if said.dtype != np.bool_ or said.shape != origins.shape:
        raise ForecasterError(
            f"the forecaster's speaks_at returned {said.dtype} of shape {said.shape}; accepted: bool of shape "
            f"{origins.shape}, one for each origin."
        )
    return said


def quantiles_of(forecaster: Forecaster) -> tuple[float, ...]:
    """The quantiles a forecaster declares, checked; empty if it gives none."""
    said = forecaster.quantiles
    try:
        found = tuple(float(tau) for tau in said)
    except (TypeError, ValueError):
        found = (math.nan,)
    if not found:
        return ()
    increasing = all(one < other for one, other in zip((0.0, *found), (*found, 1.0), strict=True))
    if not increasing or 0.5 not in found[1:-1]:
        raise ForecasterError(
            f"the forecaster's quantiles are {said!r}; accepted: increasing numbers inside (0, 1), 0.5 among them and "
            "at least one on each side of it, such as (0.1, 0.5, 0.9)."
        )
    return found


def ask(
    forecaster: Forecaster, query: Query, horizon: int, scaler: Scaler, names: tuple[str, ...], whose: Whose = nobody
) -> Answer:
    """The forecaster's answer in fresh float64 arrays, checked; an error that is about one window says first whose.

    Raises `ForecasterError` if the forecaster fails in any way, or unless the answer is of shape (n, horizon, C), or
    (n, horizon, C, Q) for one that declares Q quantiles, of real numbers, finite and within `LIMIT` source standard
    deviations of the source mean.
    """
    quantiles = quantiles_of(forecaster)
    try:
        said = forecaster.forecast(query.copy())
    except Exception as error:
        _fail(error, f"windows of shape {query.windows.shape}", "It must accept windows (n, context, C).")
    return checked(said, quantiles, query, horizon, scaler, names, whose=whose)


class Speaker(NamedTuple):
    """Whoever has answered, in the words of messages."""

    has: str  # goes before what is wrong with the answer
    remedy: str


RETURNED = Speaker("the forecaster returned", "Return floats (n, horizon, C).")
HANDED_IN = Speaker("base= has", "Pass floats (horizon, C).")


def checked(
    said: Any,
    quantiles: tuple[float, ...],
    query: Query,
    horizon: int,
    scaler: Scaler,
    names: tuple[str, ...],
    speaker: Speaker = RETURNED,
    whose: Whose = nobody,
) -> Answer:
    """What was said in answer to a query, as `ask` promises it."""
    answer = numbers(said, speaker)
    _require_shape(answer, (len(query.windows), horizon, len(names)), len(quantiles))
    if not quantiles:
        _require_near(answer, query, scaler, names, speaker, whose)
        return Answer(answer, None)
    for one in np.moveaxis(answer, -1, 0):
        _require_near(one, query, scaler, names, speaker, whose)
    return Answer(np.ascontiguousarray(answer[..., quantiles.index(0.5)]), answer)


def _fail(error: Exception, asked: str, advice: str) -> NoReturn:
    if isinstance(error, ForecasterError | BusyError):  # it has said what is wrong itself
        raise error
    raise ForecasterError(
        f"the forecaster failed on {asked}: {type(error).__name__}: {unended(error)}. {advice}"
    ) from error


def numbers(said: Any, speaker: Speaker) -> Floats:
    """Whatever holds real numbers as a fresh float64 array, NaN where masked."""
    if type(said) is np.ndarray and said.dtype == np.float64:  # what most forecasters return
        return np.array(said, order="C")
    try:
        array = as_array(said)
    except Exception as error:
        raise ForecasterError(
            f"{speaker.has} a {type(said).__name__} that is no array of numbers: {unended(error)}. {speaker.remedy}"
        ) from error
    if array.dtype.kind not in "iuf":
        raise ForecasterError(f"{speaker.has} values of dtype {array.dtype}; accepted: real numbers. {speaker.remedy}")
    return float64(array)


def _require_shape(answer: Floats, points: tuple[int, ...], quantiles: int) -> None:
    expected = (*points, quantiles) if quantiles else points
    if answer.shape == expected:
        return
    axes = f"(n, horizon, C{', quantiles' * bool(quantiles)})"
    hint = (
        " A forecaster that gives quantiles is an ompb.Forecaster that declares them: quantiles = (0.1, 0.5, 0.9)."
        if answer.ndim == 4 and not quantiles
        else ""
    )
    raise ForecasterError(f"the forecaster returned shape {answer.shape}; accepted: {expected} = {axes}.{hint}")


def _require_near(
    answer: Floats, query: Query, scaler: Scaler, names: tuple[str, ...], speaker: Speaker, whose: Whose
) -> None:
    near = scaler.near(answer)
    if np.count_nonzero(near) == near.size:  # cheaper than `all`
        return
    place, lead, channel = np.argwhere(~near)[0]
    value = answer[place, lead, channel]
    when = "" if query.times is None else f" ({shown(query.times[place])})"
    fault = f"; every value must be within {LIMIT:g} source standard deviations of the source mean"
    raise ForecasterError(
        f"{whose(int(place))}{speaker.has} {value} at lead {lead + 1}, {in_words(names[channel])}, for origin "
        f"{query.origins[place]}{when}{fault if np.isfinite(value) else '; every value must be finite'}."
    )
