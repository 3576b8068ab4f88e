"""What all adapters share: their sizes, the check, and windows as single series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from ompb.checkup import WINDOWS, check
from ompb.errors import CheckError, ForecasterError
from ompb.floor.checks import count
from ompb.rows.inputs import as_rows
from ompb.seam.query import Forecaster, Query, quantiles_of
from ompb.types import Floats

Levels: TypeAlias = tuple[float, ...]  # of quantiles; empty where a model gives none


@dataclass(frozen=True, eq=False, kw_only=True)
class Adapter(Forecaster):
    """A model of another library as a forecaster of windows (n, context, C).

    A subclass is a dataclass that adds its fields, has ``forecast``, and sets ``uses_times = True`` where the model has
    a calendar. ``quantiles`` is a field where the model gives them.
    """

    context: int
    horizon: int
    series: tuple[str, ...] = ()  # names of those it tells apart, in its order; empty where it does not, or has none

    def __post_init__(self) -> None:
        for name in ("context", "horizon"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        if "quantiles" in self.__dataclass_fields__:
            object.__setattr__(self, "quantiles", quantiles_of(self))

    def checked(self, source: Any, *, times: Any = None, future: Any = None, windows: int = WINDOWS) -> Self:
        """Itself, after `ompb.check` on a source; raises `CheckError` with the first fault that is found."""
        _require_order(self.series, as_rows(source, "source", times).names)
        sizes = {"context": self.context, "horizon": self.horizon, "windows": windows}
        check(self, source, times=times, future=future, **sizes)
        return self

    def windows_of(self, query: Query) -> Floats:
        """The windows (n, context, C) of a query, of the length that the adapter was made for."""
        if query.windows.shape[1] != self.context:
            raise ForecasterError(
                f"windows have {query.windows.shape[1]} rows and the model was wrapped for context={self.context}; "
                "pass the same context to wrap and to Calibrator.fit."
            )
        return query.windows


def _require_order(series: tuple[str, ...], channels: tuple[str, ...]) -> None:
    """Raise if the channels are the series that a model tells apart, in another order than its own."""
    if series != channels and sorted(series) == sorted(channels):
        raise CheckError(
            "channel order",
            f"the model has its series in the order {', '.join(series)}, as its library sorts or keeps them, and the "
            f"source has {', '.join(channels)}; pass source and rows with their channels in the model's order.",
        )


def levels(quantiles: Any) -> Levels:
    """Quantiles as a user writes them, one number among them, as a tuple; `Adapter` says which are accepted.

    >>> levels([0.1, 0.5, 0.9]), levels(0.5)
    ((0.1, 0.5, 0.9), (0.5,))
    """
    return tuple(np.atleast_1d(quantiles).tolist())


def as_series(windows: Floats) -> Floats:
    """Windows (n, context, C) as n C series (n * C, context): all channels of the first window, then the next.

    >>> as_series(np.arange(8.0).reshape(2, 2, 2)).tolist()
    [[0.0, 2.0], [1.0, 3.0], [4.0, 6.0], [5.0, 7.0]]
    """
    return np.ascontiguousarray(windows.transpose(0, 2, 1)).reshape(-1, windows.shape[1])


def of_series(forecasts: Any, windows: int) -> Floats:
    """Forecasts of such series, (n * C, H) or (n * C, H, Q), as (n, H, C) or (n, H, C, Q).

    >>> of_series(as_series(np.arange(8.0).reshape(2, 2, 2)), 2).ravel().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """
    values = np.asarray(forecasts, dtype=np.float64)
    return np.ascontiguousarray(np.swapaxes(values.reshape(windows, -1, *values.shape[1:]), 1, 2))
