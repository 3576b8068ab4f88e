"""Covariates known ahead of time: which rows of a table have them, and who is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ompb.errors import TooShortError
from ompb.floor.names import listed
from ompb.rows.windows import fill_forward
from ompb.tables import Table
from ompb.types import Floats


def known_ahead(table: Table, horizon: int, taken: bool) -> tuple[Table, Floats | None, tuple[str, ...]]:
    """The rows of a table that have values, its covariates (T + horizon, K) if they are ``taken``, and notes.

    Rows at the end that have covariates and no value at all are the future. Where they are fewer than ``horizon``, the
    last rows get no forecast. A missing covariate is that of the row before.
    """
    if table.future is None:
        return table, None, ()
    names = listed(table.future.names)
    known = np.flatnonzero(~np.isnan(table.values).all(axis=1))
    rows = int(known[-1]) + 1 if known.size else 0
    if not taken:
        return (
            replace(table, values=table.values[:rows], times=table.times[:rows], future=None),
            None,
            (
                f"Known ahead: {names}. The built-in forecaster and recorded forecasts take no covariates, so they are "
                "neither targets nor inputs. A model that uses them can bring its forecasts (--forecasts), or be given "
                "to ompb.study(forecaster=...) in Python.",
            ),
        )
    followed = min(rows, len(table.values) - horizon)
    if followed < 1:
        raise TooShortError(f"{names} are known for {len(table.values)} rows, no more than the horizon; add rows.")
    notes = [f"Known ahead and told to the forecaster: {names}."]
    if followed < rows:
        notes.append(
            f"They are not known {horizon} rows ahead of the last {rows - followed} rows, which get no forecast; add "
            "rows with covariates and empty values at the end of the table."
        )
    missing = int(np.isnan(table.future.values).sum())
    if missing:
        notes.append(f"{missing} of their cells are missing and taken from the row before.")
    filled = fill_forward(table.future.values, np.nan_to_num(np.nanmean(table.future.values, axis=0)))
    kept = replace(table, values=table.values[:followed], times=table.times[:followed], future=None)
    return kept, filled[: followed + horizon], tuple(notes)
