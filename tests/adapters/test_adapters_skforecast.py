"""skforecast: one series and many, names that are coded, the calendar."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from adapter_world import CHANNELS, CONTEXT, HORIZON, ROWS, SIZES, SOURCE, STAMPS, STREAM, TIMES

from ompb.adapters import skforecast as adapter
from ompb.errors import CheckError, ForecasterError, OptionError
from ompb.seam.query import Query
from ompb.testing import check_forecaster

pytest.importorskip("skforecast")
pd = pytest.importorskip("pandas")
ForecasterRecursive = pytest.importorskip("skforecast.recursive").ForecasterRecursive
ForecasterRecursiveMultiSeries = pytest.importorskip("skforecast.recursive").ForecasterRecursiveMultiSeries
ForecasterDirect = pytest.importorskip("skforecast.direct").ForecasterDirect
ForecasterDirectMultiVariate = pytest.importorskip("skforecast.direct").ForecasterDirectMultiVariate
LinearRegression = pytest.importorskip("sklearn.linear_model").LinearRegression

LAGS = 12
QUERY = Query(
    np.stack([SOURCE[t : t + CONTEXT] for t in range(70)]), np.arange(70) + CONTEXT - 1, TIMES[CONTEXT - 1 :][:70]
)
INDEXES = {"numbers": pd.RangeIndex(ROWS), "dates": pd.date_range(TIMES[0], periods=ROWS, freq="h")}


def many(index: Any = INDEXES["dates"], **options: Any) -> Any:
    """Fitted on the channels a and b; 'b' is far off, so that their codes matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a transformer for linear models
        model = ForecasterRecursiveMultiSeries(LinearRegression(), lags=LAGS, **options)
    model.fit({name: pd.Series(SOURCE[:, place], index=index) for place, name in enumerate("ab")})
    return model


def one(kind: Any = ForecasterRecursive, index: Any = INDEXES["dates"], **options: Any) -> Any:
    model = kind(LinearRegression(), lags=LAGS, **options)
    model.fit(pd.Series(SOURCE[:, 0], index=index, name="a"))
    return model


def by_hand(model: Any, window: Any) -> Any:
    """A linear recursion on the newest lags first, of one series, without codes."""
    estimator = model.estimator
    rows = list(window)
    for _ in range(HORIZON):
        rows.append(float(np.array(rows[: -LAGS - 1 : -1]) @ estimator.coef_[:LAGS] + estimator.intercept_))
    return rows[-HORIZON:]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["one", "many"])
def test_it_is_the_recursion(kind: str, index: str) -> None:
    model = one(index=INDEXES[index]) if kind == "one" else many(INDEXES[index], encoding=None)
    said = adapter.wrap(model, **SIZES).forecast(QUERY)
    for place, channel in ((0, 0), (3, 1), (69, 0)):
        np.testing.assert_allclose(said[place, :, channel], by_hand(model, QUERY.windows[place, :, channel]))


@pytest.mark.parametrize("coded", ["ordinal", "onehot", "scaled"])
def test_coded_names_are_those_it_was_fitted_with(coded: str) -> None:
    """Without the guard their code is missing: no forecast, or one for no series, or one in another scale."""
    scaler = pytest.importorskip("sklearn.preprocessing").StandardScaler()
    model = many(encoding=None, transformer_series=scaler) if coded == "scaled" else many(encoding=coded)
    said = adapter.wrap(model, **SIZES).forecast(QUERY)
    frame = pd.DataFrame(QUERY.windows[5], columns=["a", "b"], index=INDEXES["dates"][5 : 5 + CONTEXT])
    expected = model.predict(HORIZON, last_window=frame)["pred"].to_numpy().reshape(HORIZON, CHANNELS)
    np.testing.assert_allclose(said[5], expected)
    wide = Query(np.repeat(QUERY.windows, 2, axis=2), QUERY.origins, QUERY.times)
    with pytest.raises(ForecasterError, match=r"a, b, and there are 4 channels; .* encoding=None"):
        adapter.wrap(model, **SIZES).forecast(wide)


@pytest.mark.parametrize(
    "make",
    [
        lambda: one(),
        lambda: one(ForecasterDirect, steps=HORIZON),
        lambda: many(encoding=None),
        lambda: many(encoding="ordinal"),
    ],
)
def test_on_a_shifted_stream(make: Any) -> None:
    forecaster = adapter.wrap(make(), **SIZES)
    check_forecaster(forecaster, SOURCE, STREAM, **SIZES, **STAMPS, every=4, windows=24)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ForecasterError, match="not fitted"):
        adapter.wrap(ForecasterRecursive(LinearRegression(), lags=LAGS), **SIZES)
    with pytest.raises(ForecasterError, match="window_size=12"):
        adapter.wrap(one(), context=11, horizon=HORIZON)
    exogenous = ForecasterRecursive(LinearRegression(), lags=LAGS)
    index = INDEXES["dates"]
    exogenous.fit(pd.Series(SOURCE[:, 0], index=index), exog=pd.Series(np.arange(ROWS) % 24, index=index, name="h"))
    with pytest.raises(ForecasterError, match="exogenous columns"):
        adapter.wrap(exogenous, **SIZES)
    direct = ForecasterDirect(estimator=LinearRegression(), steps=HORIZON, lags=LAGS)
    direct.fit(pd.Series(SOURCE[:, 0], index=index))
    with pytest.raises(OptionError, match=f"horizon = 7, and the ForecasterDirect was fitted for {HORIZON} steps"):
        adapter.wrap(direct, context=CONTEXT, horizon=7)
    local = type("ForecasterStats", (), {"is_fitted": True})()
    with pytest.raises(ForecasterError, match="ForecasterStats goes on from the rows"):
        adapter.wrap(local, **SIZES)
    vector = ForecasterDirectMultiVariate(LinearRegression(), level="a", steps=HORIZON, lags=LAGS)
    vector.fit(pd.DataFrame(SOURCE, columns=["a", "b"], index=index))
    with pytest.raises(ForecasterError, match="forecasts one series of many"):
        adapter.wrap(vector, **SIZES)


def calendar() -> Any:
    preprocessing = pytest.importorskip("skforecast.preprocessing")
    if not hasattr(preprocessing, "CalendarFeatures"):
        pytest.skip("this skforecast has no calendar features")
    return preprocessing.CalendarFeatures(features=["hour"])


def test_a_calendar_has_true_stamps() -> None:
    model = one(calendar_features=calendar())
    forecaster = adapter.wrap(model, **SIZES)
    assert forecaster.uses_times
    forecaster.checked(SOURCE, times=TIMES[:ROWS], windows=24)
    with pytest.raises(CheckError, match="the source has none"):
        forecaster.checked(SOURCE)
