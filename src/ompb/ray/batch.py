"""Fits and backtests of many series, in chunks on the workers of a cluster.

What is given for each series by id goes with its chunk; what is one for all is sent once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ompb.backtest import Run
from ompb.backtest import backtest as backtest_here
from ompb.calibrator import Calibrator
from ompb.errors import WorkerError
from ompb.floor import checks
from ompb.floor.extras import extra
from ompb.floor.names import unended
from ompb.offline.fitting import calibrate as calibrate_here
from ompb.ray.remote import GoneError, answer
from ompb.rows.inputs import as_series
from ompb.seam.by_id import some_of
from ompb.seam.query import AnyForecaster

with extra("ray", needed_by="ompb.ray"):
    import ray


def calibrate(
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster], sources: Any, *, size: int = 100, **options: Any
) -> dict[Any, Calibrator]:
    """What `ompb.calibrate` makes of the sources, ``size`` of them a task; its other options are taken as well."""
    return _in_chunks(calibrate_here, {"forecaster": forecaster}, as_series(sources, "sources"), size, options)


def backtest(
    calibrators: Calibrator | Mapping[Any, Calibrator],
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster],
    tables: Any,
    *,
    size: int = 100,
    **options: Any,
) -> dict[Any, Run]:
    """What `ompb.backtest` makes of the tables, ``size`` of them a task; its other options are taken as well."""
    given = {"calibrators": calibrators, "forecaster": forecaster}
    return _in_chunks(backtest_here, given, as_series(tables, "tables"), size, options)


def _in_chunks(
    work: Callable[..., Any],
    given: Mapping[str, Any],
    series: Mapping[Any, Any],
    size: int,
    options: Mapping[str, Any],
) -> dict[Any, Any]:
    """Each chunk is a task, which Ray gives to another worker if one dies."""
    ids, size = list(series), checks.count("size", size)
    for name, value in options.items():
        if isinstance(value, Mapping):
            some_of(name, value, series)  # raises for series that are not here
    task: Any = ray.remote(work)
    first = [value if isinstance(value, Mapping) else ray.put(value) for value in given.values()]
    asked = []
    for start in range(0, len(ids), size):
        chunk = ids[start : start + size]
        more = {name: _part(value, chunk) for name, value in options.items()}
        asked.append(task.remote(*(_part(value, chunk) for value in (*first, series)), **more))
    try:
        return {one: found for chunk in asked for one, found in answer(chunk).items()}
    except GoneError as error:
        raise WorkerError(f"a task was given up by Ray: {unended(error)}. Look for what kills its workers.") from error


def _part(value: Any, ids: Collection[Any]) -> Any:
    """Of what is given by id, that of some."""
    return {one: value[one] for one in ids if one in value} if isinstance(value, Mapping) else value
