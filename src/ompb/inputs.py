"""The edge where data comes in: checks that name what is wrong, and the one rule for missing cells.

*Missing cells* are filled for the forecaster's window by the last known value of the channel; before any is known, by
the channel's source mean. A filled cell is an input only: it never becomes a label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.errors import DtypeError, ForecasterError, InputError, NotFiniteError, ShapeError, TooShortError
from ompb.types import Floats, Forecaster

HUGE = 1e100  # larger values are no measurements, and their squares would overflow


def as_table(rows: Any, what: str) -> tuple[Floats, tuple[str, ...]]:
    """Rows as a fresh (T, C) float64 array and channel names, from an array or a pandas or polars frame.

    A frame gives its numeric columns; other columns (times, say) are left out. NaN, or masked, means missing.
    """
    if isinstance(rows, np.ndarray | list | tuple):
        values, names = _floats(rows, what), tuple[str, ...]()
    else:
        values, names = _from_frame(rows, what)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ShapeError(
            f"{what} has shape {values.shape}; accepted: (rows, channels). Use x[:, None] for one channel."
        )
    huge = np.abs(values) > HUGE
    if huge.any():
        row, channel = np.argwhere(huge)[0]
        raise NotFiniteError(
            f"{what} is infinite, or beyond {HUGE:g}, at row {row}, channel {channel}; write NaN for a missing value."
        )
    return values, names or _numbered(values.shape[1])


def as_rows_of(rows: Any, what: str, names: tuple[str, ...]) -> Floats:
    """Rows as a fresh (T, C) float64 array whose channels are those of ``names``, in that order.

    Only a frame can tell its channels apart; an array, or channels that are merely numbered, count by their place.
    """
    values, found = as_table(rows, what)
    if len(found) != len(names):
        raise ShapeError(f"{what} has {len(found)} channels; accepted: {len(names)} ({', '.join(names)}).")
    if found != names and _numbered(len(names)) not in (found, names):
        raise ShapeError(f"{what} has the channels {', '.join(found)}; accepted: {', '.join(names)}, in that order.")
    return values


def _numbered(channels: int) -> tuple[str, ...]:
    return tuple(f"channel {c}" for c in range(channels))


def as_row(row: Any, channels: int) -> Floats:
    """One row as a fresh (C,) float64 array; NaN, or masked, means missing."""
    values = _floats(row, "row")
    if values.shape != (channels,):
        raise ShapeError(f"row has shape {values.shape}; accepted: ({channels},), one value per channel.")
    huge = np.abs(values) > HUGE
    if huge.any():
        raise NotFiniteError(
            f"row is infinite, or beyond {HUGE:g}, at channel {int(np.argmax(huge))}; write NaN for missing."
        )
    return values


def fill_forward(values: Floats, before: Floats) -> Floats:
    """Each missing cell of (T, C) takes the last known value above it; ``before`` (C,) stands above the first row.

    >>> fill_forward(np.asarray([[np.nan], [2.0], [np.nan]]), np.asarray([7.0])).ravel()
    array([7., 2., 2.])
    """
    stacked = np.concatenate([before[None], values])
    last = np.where(np.isnan(stacked), 0, np.arange(len(stacked))[:, None])
    np.maximum.accumulate(last, axis=0, out=last)
    return np.asarray(np.take_along_axis(stacked, last, axis=0)[1:])


def complete_starts(missing: NDArray[np.bool_], span: int, what: str) -> NDArray[np.intp]:
    """First rows of all stretches of ``span`` rows none of which is ``missing`` (T,). Raises if there is none."""
    missing_before = np.concatenate([[0], np.cumsum(missing)])
    starts = np.flatnonzero(missing_before[span:] == missing_before[:-span])
    if not starts.size:
        raise TooShortError(
            f"{what} has no {span} successive rows (context + horizon) without a missing value among its "
            f"{len(missing)}; pass a longer source, a shorter context or horizon, or fill the gaps."
        )
    return starts


def base_forecasts(forecaster: Forecaster, windows: Floats, origins: range, horizon: int) -> Floats:
    """What the forecaster says of windows (n, context, C), checked: finite (n, horizon, C) float64.

    A forecaster that knows origins instead of windows (recorded forecasts) is asked by ``at(origins)``.
    """
    try:
        if hasattr(forecaster, "at"):
            raw = forecaster.at(np.asarray(origins))
        else:
            call = forecaster.forecast if hasattr(forecaster, "forecast") else forecaster
            if not callable(call):
                raise ForecasterError(
                    f"the forecaster is a {type(forecaster).__name__}; accepted: a callable, or an object with a "
                    "`forecast` method, from (n, context, C) to (n, horizon, C)."
                )
            raw = call(np.array(windows))  # a copy: the window stays ours
        base = np.array(_unmasked(raw), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ForecasterError(
            f"the forecaster failed on windows of shape {windows.shape}: {error}. It must accept (n, context, C)."
        ) from error
    expected = (len(windows), horizon, windows.shape[2])
    if base.shape != expected:
        raise ForecasterError(f"the forecaster returned shape {base.shape}; accepted: {expected} = (n, horizon, C).")
    if not np.isfinite(base).all():
        n, lead, channel = np.argwhere(~np.isfinite(base))[0]
        raise ForecasterError(
            f"the forecaster returned {base[n, lead, channel]} at lead {lead + 1}, channel {channel} for origin "
            f"{origins[n]}; every value must be finite."
        )
    return base


def _unmasked(values: Any) -> Any:
    """Values with NaN where they are masked, if they are of that kind."""
    return np.ma.filled(values.astype(np.float64), np.nan) if isinstance(values, np.ma.MaskedArray) else values


def _floats(values: Any, what: str) -> Floats:
    try:
        array = np.array(_unmasked(values), order="C")
    except ValueError as error:  # ragged nesting
        raise ShapeError(f"{what} is ragged: {error}. Every row needs the same number of channels.") from error
    if array.size == 0:
        raise ShapeError(f"{what} is empty (shape {array.shape}); pass at least one value.")
    if array.dtype.kind not in "iuf":
        raise DtypeError(f"{what} has dtype {array.dtype}; accepted: real numbers. Convert it with astype(float).")
    return array.astype(np.float64)


def _from_frame(rows: Any, what: str) -> tuple[Floats, tuple[str, ...]]:
    import narwhals as nw  # frames only: keeps `import ompb` light
    import narwhals.selectors as ncs

    try:
        frame = nw.from_native(rows, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"{what} is a {type(rows).__name__}; accepted: an array or a pandas or polars frame."
        ) from error
    numeric = frame.select(ncs.numeric())
    if not numeric.columns:
        raise DtypeError(f"{what} has no numeric column (columns: {', '.join(frame.columns)}).")
    return _floats(numeric.to_numpy(), what), tuple(numeric.columns)
