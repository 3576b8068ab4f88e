"""Regressors on flat windows: each way against plain algebra, each trap, the real libraries where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from adapter_world import CHANNELS, CONTEXT, HORIZON, SIZES, SOURCE, STAMPS, STREAM

import ompb
from ompb.adapters import sklearn as adapter
from ompb.errors import CheckError, ForecasterError, OptionError, TooShortError
from ompb.seam.query import Query
from ompb.testing import check_forecaster
from ompb.types import Floats

WINDOWS = np.stack([SOURCE[t : t + CONTEXT] for t in (0, 5, 77)])
QUERY = Query(WINDOWS, np.array([23, 28, 100]))
WAYS = [(joint, recursive) for joint in (False, True) for recursive in (False, True)]


@dataclass
class LeastSquares:
    """A linear regressor with predict on (m, features), and scikit-learn's refusal of other shapes."""

    weights: Any = None

    def fit(self, rows: Floats, targets: Floats) -> LeastSquares:
        self.weights = np.linalg.lstsq(self._design(rows), targets, rcond=1e-6)[0]
        self.n_features_in_ = rows.shape[1]
        return self

    def predict(self, rows: Floats) -> Floats:
        if rows.ndim != 2:
            raise ValueError(f"Found array with dim {rows.ndim}, expected 2")
        said = np.asarray(self._design(rows) @ self.weights)
        return said[:, 0] if said.shape[1] == 1 else said

    def _design(self, rows: Floats) -> Floats:
        return np.column_stack([rows, np.ones(len(rows))])


def fitted(joint: bool, recursive: bool, *, newest_first: bool = False) -> LeastSquares:
    rows, targets = adapter.design(SOURCE, joint=joint, recursive=recursive, **SIZES)
    return LeastSquares().fit(rows[:, ::-1] if newest_first else rows, targets.reshape(len(rows), -1))


@pytest.mark.parametrize(("joint", "recursive"), WAYS)
def test_every_way_is_its_own_algebra(joint: bool, recursive: bool) -> None:
    model = fitted(joint, recursive)
    said = adapter.wrap(model, joint=joint, recursive=recursive, **SIZES).forecast(QUERY)
    for window, forecast in zip(WINDOWS, said, strict=True):
        rows = [*window]
        for lead in range(HORIZON):
            past = np.array(rows[-CONTEXT:] if recursive else window)
            flat = [past.ravel()] if joint else list(past.T)
            next_rows = np.array([np.append(one, 1.0) @ model.weights for one in flat])  # (1 or C, outputs)
            if recursive:
                rows.append(next_rows.ravel())
            elif joint:
                rows.append(next_rows.reshape(HORIZON, CHANNELS)[lead])
            else:
                rows.append(next_rows[:, lead])
        np.testing.assert_allclose(forecast, rows[CONTEXT:], rtol=1e-9)


@pytest.mark.parametrize(("joint", "recursive"), WAYS)
def test_on_a_shifted_stream(joint: bool, recursive: bool) -> None:
    forecaster = adapter.wrap(fitted(joint, recursive), joint=joint, recursive=recursive, **SIZES).checked(SOURCE)
    run = check_forecaster(forecaster, SOURCE, STREAM, **SIZES, **STAMPS)
    assert np.nanmean(np.abs(run.mean - run.outcome)) < np.nanmean(np.abs(run.base - run.outcome)) * 1.05


def test_a_model_as_it_is_refuses_windows_and_wrapped_it_does_not() -> None:
    model = fitted(False, False)
    with pytest.raises(ForecasterError, match="expected 2"):
        ompb.check(model.predict, SOURCE, **SIZES)
    ompb.check(adapter.wrap(model, **SIZES), SOURCE, **SIZES)


@pytest.mark.parametrize("newest_first", [False, True])
def test_the_order_of_lags_is_found_out(newest_first: bool) -> None:
    model = fitted(False, False, newest_first=newest_first)
    adapter.wrap(model, newest_first=newest_first, **SIZES).checked(SOURCE)
    with pytest.raises(CheckError, match=f"newest_first={newest_first}"):
        adapter.wrap(model, newest_first=not newest_first, **SIZES).checked(SOURCE)


def test_what_cannot_work_is_refused_at_once() -> None:
    with pytest.raises(ForecasterError, match="without predict"):
        adapter.wrap(object(), **SIZES)
    with pytest.raises(ForecasterError, match=r"fitted on 48 features, and a window gives it 24 .* joint=True"):
        adapter.wrap(fitted(True, False), **SIZES)
    with pytest.raises(ForecasterError, match=r"48 features, and a window gives it 48 \(context=23\)"):
        adapter.wrap(fitted(True, False), context=23, horizon=HORIZON, joint=True)
    with pytest.raises(ForecasterError, match=r"predicts 1 values for a window, and 6 .*; pass recursive=True"):
        adapter.wrap(fitted(False, True), **SIZES)
    with pytest.raises(ForecasterError, match=r"predicts 6 values for a window, and 1 .*; pass recursive=False"):
        adapter.wrap(fitted(False, False), recursive=True, **SIZES)
    with pytest.raises(ForecasterError, match=r"predicts 6 values .*, and 5 .*; pass horizon=6, or fit it so"):
        adapter.wrap(fitted(False, False), context=CONTEXT, horizon=5)


def test_windows_of_another_length_are_refused() -> None:
    with pytest.raises(ForecasterError, match="windows have 20 rows"):
        ompb.check(adapter.wrap(fitted(False, False), **SIZES), SOURCE, context=20, horizon=HORIZON)


REAL: dict[str, tuple[str, str, dict[str, Any], bool]] = {
    "ridge": ("sklearn.linear_model", "Ridge", {}, False),
    "forest": ("sklearn.ensemble", "RandomForestRegressor", {"n_estimators": 5, "random_state": 0}, False),
    "neighbours": ("sklearn.neighbors", "KNeighborsRegressor", {}, False),
    "lightgbm": ("lightgbm", "LGBMRegressor", {"n_estimators": 20, "verbose": -1, "n_jobs": 1}, True),
    "xgboost": ("xgboost", "XGBRegressor", {"n_estimators": 20, "n_jobs": 1}, False),
}


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_real_libraries_on_a_shifted_stream(name: str, frame: bool) -> None:
    module, kind, options, recursive = REAL[name]
    make = getattr(pytest.importorskip(module), kind)
    rows, targets = adapter.design(SOURCE, recursive=recursive, **SIZES)
    if frame:
        pandas = pytest.importorskip("pandas")
        rows = pandas.DataFrame(rows, columns=[f"x{i}" for i in range(CONTEXT)])
    forecaster = adapter.wrap(make(**options).fit(rows, targets), recursive=recursive, **SIZES)
    check_forecaster(forecaster.checked(SOURCE), SOURCE, STREAM, **SIZES, **STAMPS)


def test_a_design_needs_whole_sizes_and_one_window_with_its_outcome() -> None:
    rows, targets = adapter.design(SOURCE[: CONTEXT + HORIZON, :1], **SIZES)
    assert (rows.shape, targets.shape) == ((1, CONTEXT), (1, HORIZON))
    with pytest.raises(TooShortError, match="the source has 29 rows, and a window and its outcome take 30"):
        adapter.design(SOURCE[: CONTEXT + HORIZON - 1], **SIZES)
    with pytest.raises(OptionError, match="option context = 0"):
        adapter.design(SOURCE, context=0, horizon=HORIZON)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("many", [False, True])
def test_a_real_model_that_is_not_fitted_is_refused(name: str, many: bool) -> None:
    module, kind, options, recursive = REAL[name]
    model = getattr(pytest.importorskip(module), kind)(**options)
    model = pytest.importorskip("sklearn.multioutput").MultiOutputRegressor(model) if many else model
    with pytest.raises(ForecasterError, match=rf"{type(model).__name__} cannot be asked .*\. Pass a fitted"):
        adapter.wrap(model, recursive=recursive, **SIZES)


@pytest.mark.parametrize(("joint", "recursive"), WAYS)
def test_lightgbm_is_asked_by_the_short_way_and_says_the_same(
    joint: bool, recursive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own ``predict``, and that of the model of many outputs around it, take longer than the trees."""
    lightgbm, multioutput = pytest.importorskip("lightgbm"), pytest.importorskip("sklearn.multioutput")
    rows, targets = adapter.design(SOURCE, joint=joint, recursive=recursive, **SIZES)
    trees = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1)
    model = (trees if targets.ndim == 1 else multioutput.MultiOutputRegressor(trees)).fit(rows, targets)

    class Long:
        n_features_in_ = rows.shape[1]
        predict = staticmethod(model.predict)

    ways: dict[str, Any] = {"joint": joint, "recursive": recursive, **SIZES}
    expected = adapter.wrap(Long(), **ways).forecast(QUERY)
    monkeypatch.setattr(type(model), "predict", None)
    forecaster = adapter.Regressor(model=model, newest_first=False, **ways)
    np.testing.assert_array_equal(forecaster.forecast(QUERY), expected)


def test_a_predict_of_ones_own_is_asked() -> None:
    lightgbm = pytest.importorskip("lightgbm")

    parent: Any = lightgbm.LGBMRegressor
    raised = type("Raised", (parent,), {"predict": lambda self, rows: parent.predict(self, rows) + 1000})
    rows, targets = adapter.design(SOURCE, recursive=True, **SIZES)
    model = raised(n_estimators=5, verbose=-1, n_jobs=1).fit(rows, targets)
    assert (adapter.wrap(model, recursive=True, **SIZES).forecast(QUERY) > 900).all()
