"""Windows as the long frames of Nixtla's libraries, and forecasts back from theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.errors import ForecasterError
from ompb.floor.extras import extra
from ompb.floor.times import Times, shown
from ompb.types import Floats

SOME_DAY = "2000-01-01"  # of windows whose model does not look at the calendar


def long_frame(series: Floats, stamps: NDArray[Any], columns: tuple[str, str, str]) -> Any:
    """N series (N, context) with stamps (N, context) as a pandas frame of id, time and value.

    The libraries sort ids as text, "10" before "2", and return forecasts in that order. So ids have leading zeros.
    """
    with extra("adapters", needed_by="ompb.adapters"):
        import pandas as pd

    width = len(str(len(series)))
    ids = np.repeat([f"{place:0{width}d}" for place in range(len(series))], series.shape[1])
    return pd.DataFrame(dict(zip(columns, (ids, stamps.ravel(), series.ravel()), strict=True)))


def any_stamps(freq: Any, count: int, context: int) -> NDArray[Any]:
    """Stamps (count, context) with the steps of the model, on some day."""
    return np.tile(_steps_to(None, freq, context), (count, 1))


def true_stamps(freq: Any, last: Times, context: int) -> NDArray[Any]:
    """Stamps (n, context) with the steps of the model that end in the given ones, (n,)."""
    return np.stack([_steps_to(stamp, freq, context) for stamp in last])


def in_order(answer: Any, columns: tuple[str, str], names: list[str], horizon: int) -> Floats:
    """Forecasts (N, horizon, names) out of the frame a library has returned."""
    ordered = answer.reset_index().sort_values(list(columns))
    values = ordered[names].to_numpy(dtype=np.float64)
    return np.asarray(values.reshape(-1, horizon, len(names)))


def _steps_to(stamp: Any, freq: Any, context: int) -> NDArray[Any]:
    if isinstance(freq, int):
        last = context * freq if stamp is None else _whole(stamp)
        return np.asarray(last + freq * np.arange(1 - context, 1))
    with extra("adapters", needed_by="ompb.adapters"):
        import pandas as pd

    if stamp is None:
        return np.asarray(pd.date_range(SOME_DAY, periods=context, freq=freq))
    if np.asarray(stamp).dtype.kind != "M":
        raise ForecasterError(f"the model steps by {freq!r} and the time {shown(stamp)} is no date; pass dates.")
    found = np.asarray(pd.date_range(end=stamp, periods=context, freq=freq))
    if found[-1] != stamp:
        raise ForecasterError(
            f"the time {shown(stamp)} is not on the model's steps of {freq!r}; give the rows the times that the model "
            "was fitted with."
        )
    return found


def _whole(stamp: Any) -> int:
    if np.asarray(stamp).dtype.kind == "M":
        raise ForecasterError(f"the model counts time in whole numbers and the time {shown(stamp)} is a date.")
    return int(stamp)
