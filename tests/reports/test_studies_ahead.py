"""Covariates known ahead reach a forecaster that takes them, row by row, in the user's order."""

from typing import Any

import numpy as np
import pytest

import ompb
from ompb.errors import TooShortError
from ompb.studies import study
from ompb.studies.ahead import known_ahead
from ompb.tables import Covariates, Table
from ompb.types import Floats

CONTEXT, HORIZON, SOURCE, ROWS = 12, 3, 200, 300
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": None, "source_end": SOURCE}


class Told(ompb.Forecaster):
    """Says what it is told of the future."""

    def forecast(self, query: ompb.Query) -> Floats:
        assert query.future is not None
        return query.future[..., :1]


def table(ahead: int) -> Table:
    """A series that is what was known of it, and some noise; ``ahead`` rows more are known than have happened."""
    rng = np.random.default_rng(2)
    known = rng.normal(size=(ROWS + ahead, 2))
    values = known[:, :1] + 0.1 * rng.normal(size=(ROWS + ahead, 1))
    values[ROWS:] = np.nan
    return Table(values, np.arange(ROWS + ahead), ("load",), "row", future=Covariates(known, ("plan", "holiday")))


def test_a_forecaster_is_told_the_rows_it_speaks_of() -> None:
    data = table(HORIZON)
    assert data.future is not None
    found = study(data, forecaster=Told(), **SIZES)
    plan = data.future.values[:, 0]
    for place, origin in enumerate(found.run.origins):
        row = origin + SOURCE - CONTEXT + 1
        np.testing.assert_allclose(found.run.base[place, :, 0], plan[row + 1 : row + 1 + HORIZON])
    assert len(found.run.origins) == ROWS - SOURCE
    assert "Known ahead and told to the forecaster: plan, holiday." in found.notes


def test_rows_whose_future_is_not_known_get_no_forecast() -> None:
    found = study(table(1), forecaster=Told(), **SIZES)
    assert len(found.run.origins) == ROWS - SOURCE - (HORIZON - 1)
    assert any("not known 3 rows ahead of the last 2 rows, which get no forecast" in note for note in found.notes)


def test_the_built_in_forecaster_does_without_and_says_so() -> None:
    found, plain = (
        study(data, **SIZES) for data in (table(HORIZON), Table(table(0).values, np.arange(ROWS), ("load",), "row"))
    )
    assert found.run.mean.shape == plain.run.mean.shape
    assert any(note.startswith("Known ahead: plan, holiday. The built-in forecaster") for note in found.notes)


def test_a_missing_covariate_is_that_of_the_row_before() -> None:
    data = table(HORIZON)
    assert data.future is not None
    data.future.values[5, 0] = np.nan
    kept, future, notes = known_ahead(data, HORIZON, taken=True)
    assert future is not None
    assert (len(kept.values), len(future), future[5, 0]) == (ROWS, ROWS + HORIZON, future[4, 0])
    assert notes[-1] == "1 of their cells are missing and taken from the row before."
    with pytest.raises(TooShortError, match="no more than the horizon"):
        known_ahead(data, ROWS + HORIZON, taken=True)
