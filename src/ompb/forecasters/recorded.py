"""Forecasts made elsewhere, looked up by the time or the number of their origin."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.errors import DtypeError, ForecasterError, OptionError, ShapeError
from ompb.floor.checks import count
from ompb.floor.times import Times, as_times, require_increasing, shown
from ompb.rows.windows import Origins
from ompb.seam.query import Forecaster, Query, quantiles_of
from ompb.types import Floats, as_array, float64


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recorded(Forecaster):
    """Forecasts (T, H, C) the user brings: ``forecasts[t, h - 1]`` is lead h of the origin t.

    With ``times`` (T,), those of the origins, a forecast is found by the time its window ends in; then one record may
    serve source and stream. Without, origins count from the first row of the table or stream the record was made for.
    An origin whose forecast is all NaN, or that is not recorded, is silence.

    Forecasts (T, H, C, Q) are those of Q ``quantiles``, see `ompb.Forecaster.quantiles`.

    >>> recorded = Recorded([[[1.0], [2.0]], [[np.nan], [np.nan]]], times=["2024-01-01", "2024-01-02"])
    >>> days = as_times(["2024-01-01", "2024-01-02", "2024-01-03"], "days")
    >>> recorded.speaks_at(np.arange(3), days)
    array([ True, False, False])
    >>> recorded.forecast(Query(np.zeros((1, 4, 1)), np.array([7]), days[:1])).ravel()
    array([1., 2.])
    """

    uses_windows = False  # it looks up what was said of them

    forecasts: Floats
    times: Times | None = None
    quantiles: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        forecasts = _numbers(self.forecasts)
        quantiles = quantiles_of(self)
        shape = forecasts.shape if not quantiles else forecasts.shape[:-1]
        if len(shape) != 3 or not forecasts.size or (quantiles and forecasts.shape[-1] != len(quantiles)):
            axes = f"(T, horizon, channels{f', {len(quantiles)}' if quantiles else ''})"
            given = "" if quantiles else ", or say which quantiles= they are"
            raise ShapeError(f"forecasts have shape {forecasts.shape}; pass a non-empty array {axes}{given}.")
        object.__setattr__(self, "quantiles", quantiles)
        object.__setattr__(self, "forecasts", _read_only(forecasts))
        if self.times is not None:
            times = as_times(self.times, "the times of the forecasts")
            if len(times) != len(forecasts):
                raise ShapeError(
                    f"there are {len(forecasts)} forecasts and {len(times)} times; pass the time of each origin."
                )
            require_increasing(times, "the times of the forecasts")
            object.__setattr__(self, "times", _read_only(times))

    @classmethod
    def from_frame(
        cls,
        table: Any,
        column: str | None = None,
        *,
        names: Sequence[str] | None = None,
        levels: Sequence[float] = (),
        horizon: int | None = None,
    ) -> Recorded:
        """Forecasts of a cross-validation or of backtests, found by the time of their cutoff.

        So a record of the source says nothing on a stream of other times. Cutoffs may be as sparse as they are; one
        whose forecast is not complete is silence.

        Args:
            table: a frame with ``unique_id``, ``ds``, ``cutoff`` and a column for each model, as Nixtla's libraries
                and `Run.frame` give it; or a list of forecasts, each a frame with times or a series of darts
                (``historical_forecasts(..., last_points_only=False)``), whose cutoff is the row before it begins.
            column: the model; not needed if there is one alone.
            names: the series, in the order of the source's channels; needed if a table has more than one.
            levels: of the intervals, in percent, whose ends ``MODEL-lo-80``, ``MODEL-hi-80`` are taken as quantiles.
            horizon: leads to keep; by default all.

        >>> import polars
        >>> table = {"unique_id": ["a"] * 4, "ds": [5, 6, 9, 10], "cutoff": [4, 4, 8, 8], "model": [1.0, 2.0, 3.0, 4.0]}
        >>> recorded = Recorded.from_frame(polars.DataFrame(table))
        >>> recorded, recorded.times
        (Recorded(2 origins found by time, horizon=2, channels=1), array([4, 8]))
        """
        from ompb.forecasters.tables import backtests, cross_validation  # when asked for: `import ompb` stays fast

        leads = None if horizon is None else count("horizon", horizon)
        if isinstance(table, list | tuple):
            if column is not None or len(levels) or not table:
                raise OptionError("a list of forecasts has no columns of models; pass one or more, without column=.")
            found = backtests(table, names, leads)
        else:
            found = cross_validation(table, column, names, levels, leads)
        return cls(found.forecasts, found.times, found.quantiles)

    def __repr__(self) -> str:
        origins, horizon, channels, *_ = self.forecasts.shape
        found = "row number" if self.times is None else "time"
        quantiles = f", quantiles={self.quantiles}" if self.quantiles else ""
        return f"Recorded({origins} origins found by {found}, horizon={horizon}, channels={channels}{quantiles})"

    @property
    def record(self) -> str:
        """Without times, the same for records of equal content and for no others; empty with times."""
        if self.times is not None:
            return ""
        return hashlib.sha256(f"{self.forecasts.shape}".encode() + self.forecasts.tobytes()).hexdigest()

    def speaks_at(self, origins: Origins, times: Times | None) -> NDArray[np.bool_]:
        """Whether anything is recorded for each origin, (n,)."""
        places, known = self._places(np.asarray(origins), times)
        return known & ~np.isnan(self.forecasts[places].reshape(len(places), -1)).all(axis=1)

    def forecast(self, query: Query) -> Floats:
        """The forecasts of the query's origins, (n, H, C) or (n, H, C, Q).

        Raises `ForecasterError`, naming the first origin that has none.
        """
        silent = np.flatnonzero(~self.speaks_at(query.origins, query.times))
        if silent.size:
            when = "" if query.times is None else f" ({shown(query.times[silent[0]])})"
            raise ForecasterError(
                f"no forecast is recorded for origin {query.origins[silent[0]]}{when}; record it, or ask at origins "
                "that speaks_at knows."
            )
        return self.forecasts[self._places(query.origins, query.times)[0]]

    def _places(self, origins: Origins, times: Times | None) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The record of each origin, and whether there is one."""
        last = len(self.forecasts) - 1
        if self.times is None:
            return np.clip(origins, 0, last).astype(np.intp), (origins >= 0) & (origins <= last)
        if times is None or times.dtype.kind != self.times.dtype.kind:
            asked = "without times" if times is None else f"with times such as {shown(times[0])}"
            raise ForecasterError(
                f"the forecasts are recorded by time, such as {shown(self.times[0])}, and were asked for {asked}; pass "
                "times of that kind with the source and with every row, or record the forecasts without times."
            )
        places = np.minimum(np.searchsorted(self.times, times), last)
        return places, np.asarray(self.times[places] == times)


def _numbers(forecasts: Any) -> Floats:
    array = as_array(forecasts)
    if array.dtype.kind not in "iuf":
        raise DtypeError(f"forecasts have dtype {array.dtype}; accepted: real numbers, NaN where there is none.")
    return float64(array)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
