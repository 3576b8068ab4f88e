"""Tables of forecasts made elsewhere, as arrays by cutoff, lead and channel: cross-validations and backtests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.errors import InputError, OptionError, ShapeError, TimeOrderError
from ompb.floor.names import listed, order_of
from ompb.floor.times import Grid, Times, as_times, shown
from ompb.rows.frames import distinct, numbers, read_frame
from ompb.types import Floats

LONG = ("unique_id", "ds", "cutoff")
NO_MODEL = (*LONG, "y", "lead")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Forecasts found by the time of their cutoff: the last row that was known."""

    forecasts: Floats  # (T, H, C), or (T, H, C, Q); all NaN where one is not complete
    times: Times  # (T,), increasing
    quantiles: tuple[float, ...] = ()


def cross_validation(
    native: Any, column: str | None, names: Sequence[str] | None, levels: Sequence[float], horizon: int | None
) -> Table:
    """A table of unique_id, ds, cutoff and columns of models, one line for each series, cutoff and lead."""
    frame = _long_frame(native)
    column = _model(frame.columns, column)
    parts, quantiles = _columns(frame.columns, column, levels)
    values = np.stack([numbers(frame[part], f"the column {part!r} of the table") for part in parts], axis=-1)
    ds, cutoffs = (as_times(frame[name], f"the column {name!r} of the table") for name in ("ds", "cutoff"))
    channels = _channels([str(label) for label in frame["unique_id"].to_list()], names)
    leads = _leads(ds, cutoffs)
    times, places = np.unique(cutoffs, return_inverse=True)
    count = int(leads.max()) if horizon is None else horizon
    kept = leads <= count
    cells = np.stack([places, leads - 1, channels])[:, kept]
    _require_once(cells, times)
    forecasts = np.full((len(times), count, int(channels.max()) + 1, len(parts)), np.nan)
    forecasts[tuple(cells)] = values[kept]
    complete = _complete(forecasts, count)
    return Table(complete if quantiles else complete[..., 0], times, quantiles)


def backtests(given: Sequence[Any], names: Sequence[str] | None, horizon: int | None) -> Table:
    """A sequence of forecasts, each a frame with the times it speaks of, or a series of darts that gives one."""
    read = [read_frame(_as_frame(one), f"forecast {place}") for place, one in enumerate(given)]
    count = max(len(values) for values, _, _ in read) if horizon is None else horizon
    order = order_of(read[0][1], tuple(map(str, names or read[0][1])), "the first forecast")
    grid = Grid.of(np.unique(np.concatenate([_stamps(times, place) for place, (_, _, times) in enumerate(read)])), "ds")
    forecasts = np.full((len(read), count, len(order)), np.nan)
    cutoffs = []
    for place, (values, found, times) in enumerate(read):
        if found != read[0][1]:
            raise ShapeError(f"forecast {place} has the channels {listed(found)}, the first {listed(read[0][1])}.")
        stamps = _stamps(times, place)
        leads = grid.places(stamps)
        kept = leads < count
        forecasts[place, leads[kept]] = values[kept][:, order]
        cutoffs.append(grid.before(stamps[0], 1))
    stacked = as_times(cutoffs, "the cutoffs")
    by_time = np.argsort(stacked, kind="stable")
    return Table(_complete(forecasts[by_time], count), stacked[by_time])


def _long_frame(native: Any) -> Any:
    import narwhals as nw  # frames only: keeps `import ompb` light

    if "unique_id" in getattr(getattr(native, "index", None), "names", ()):  # as Nixtla's libraries once returned it
        native = native.reset_index()
    try:
        frame = nw.from_native(native, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"the table is a {type(native).__name__}; accepted: a pandas, polars or pyarrow frame with the columns "
            f"{', '.join(LONG)} and one for each model, or a list of forecasts with times of their own."
        ) from error
    missing = [name for name in LONG if name not in frame.columns]
    if missing or not len(frame):
        raise ShapeError(
            f"the table has {len(frame)} rows and the columns {listed(frame.columns)}; needed: {', '.join(LONG)} and "
            "one for each model. Rename them."
        )
    return frame


def _model(columns: Sequence[str], column: str | None) -> str:
    models = [name for name in columns if name not in NO_MODEL and not re.search(r"-(lo|hi)-[\d.]+$", name)]
    if column is None and len(models) == 1:
        return models[0]
    if column not in columns:
        raise OptionError(f"option column = {column!r} is not in the table; choose one of: {', '.join(models)}.")
    return str(column)


def _columns(columns: Sequence[str], column: str, levels: Sequence[float]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The columns of a model's quantiles in increasing order, its own among them, and their probabilities."""
    if not levels:
        return (column,), ()
    stem = re.escape(column.removesuffix("-median"))
    ends = {name: re.fullmatch(rf"{stem}-(lo|hi)-([\d.]+)", name) for name in columns}
    found = {(match[1], float(match[2])): name for name, match in ends.items() if match is not None}
    wanted = sorted((float(level) for level in levels), reverse=True)
    missing = [f"{end}-{level:g}" for level in wanted for end in ("lo", "hi") if (end, level) not in found]
    if missing:
        there = sorted({level for _, level in found})
        raise OptionError(
            f"option levels = {tuple(levels)} are not all in the table (no {column}-{missing[0]}); there: {there}."
        )
    lower, upper = ([found[end, level] for level in wanted] for end in ("lo", "hi"))
    below = tuple(round((100 - level) / 200, 6) for level in wanted)
    above = tuple(round(1 - tau, 6) for tau in reversed(below))
    return (*lower, column, *reversed(upper)), (*below, 0.5, *above)


def _channels(labels: list[str], names: Sequence[str] | None) -> NDArray[np.int64]:
    """The channel of each line."""
    found, places = distinct(labels)
    if names is None and len(found) > 1:
        raise OptionError(
            f"the table has {len(found)} series ({listed(found)}); pass names=, in the order of the source's channels."
        )
    wanted = found if names is None else tuple(map(str, names))
    if sorted(wanted) != sorted(found):
        raise OptionError(f"option names = {list(wanted)}; accepted: the series of the table, {listed(found)}.")
    channel = {name: place for place, name in enumerate(wanted)}
    return np.asarray([channel[name] for name in found], dtype=np.int64)[places]


def _leads(ds: Times, cutoffs: Times) -> NDArray[np.int64]:
    """How many rows each line lies after its cutoff, from 1."""
    if ds.dtype != cutoffs.dtype:
        raise TimeOrderError("ds and cutoff are not of one kind; pass dates in both, or whole numbers.")
    every = np.unique(np.concatenate([ds, cutoffs]))
    places = Grid.of(every, "the table").places(every)
    leads = places[np.searchsorted(every, ds)] - places[np.searchsorted(every, cutoffs)]
    wrong = np.flatnonzero(leads < 1)
    if wrong.size:
        raise TimeOrderError(
            f"row {wrong[0]} forecasts {shown(ds[wrong[0]])} from the cutoff {shown(cutoffs[wrong[0]])}; a cutoff is "
            "the last row that was known, so ds must lie after it."
        )
    return np.asarray(leads)


def _require_once(cells: NDArray[np.int64], times: Times) -> None:
    """No two lines for one series, cutoff and lead."""
    kinds, counts = np.unique(cells, axis=1, return_counts=True)
    twice = np.flatnonzero(counts > 1)
    if twice.size:
        place, lead, _ = kinds[:, twice[0]]
        raise ShapeError(
            f"the table has two rows for lead {lead + 1} of the cutoff {shown(times[place])}; keep one of them."
        )


def _complete(forecasts: Floats, horizon: int) -> Floats:
    """The same with a forecast of which a cell is missing as none at all."""
    whole = ~np.isnan(forecasts.reshape(len(forecasts), -1)).any(axis=1)
    if not whole.any():
        raise ShapeError(
            f"no cutoff of the table has all {horizon} leads of all series; pass a shorter horizon=, or fewer series."
        )
    forecasts[~whole] = np.nan
    return forecasts


def _as_frame(one: Any) -> Any:
    if getattr(one, "is_stochastic", False):
        raise ShapeError("a forecast holds samples; pass its median: [one.quantile(0.5) for one in forecasts].")
    return one.to_dataframe() if hasattr(one, "to_dataframe") else one


def _stamps(times: Times | None, place: int) -> Times:
    if times is None:
        raise TimeOrderError(f"forecast {place} has no times; pass frames with an index or column of times.")
    return times
