"""Series as they are handed in: who forecasts each, its rows, and what is known beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ompb.rows.inputs import as_series
from ompb.seam.by_id import called, forecasters_for, some_of
from ompb.seam.query import Forecaster


@dataclass(frozen=True, eq=False)
class Given:
    """One of them, not read yet."""

    forecaster: Forecaster
    rows: Any  # an array (T, C) or a frame
    times: Any  # of the rows, if a frame does not bring them
    future: Any  # covariates known ahead
    called: str = ""  # what an error says first, where there are other series


def each_given(forecaster: Any, rows: Any, times: Any, future: Any, what: str) -> dict[Any, Given]:
    """By id, from a mapping or a long frame of rows; ``what`` is what an error calls them.

    There is a forecaster for each id or one for all; times and covariates are by id.
    """
    tables = as_series(rows, what)
    who = forecasters_for(forecaster, tables)
    when, ahead = some_of("times", times, tables), some_of("future", future, tables)
    return {one: Given(who[one], own, when[one], ahead[one], called(one)) for one, own in tables.items()}
