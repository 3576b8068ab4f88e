"""The estimator: what it says is what the parts say, and scikit-learn's tools take it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_world import CONTEXT, HORIZON, SIZES, SOURCE, STREAM

import ompb
from ompb.errors import OptionError
from ompb.estimator import CalibratedForecaster


def made(**options: Any) -> CalibratedForecaster:
    return CalibratedForecaster(ompb.Ridge.fit, **{**SIZES, "season": 12, **options})


def test_it_is_its_parts() -> None:
    estimator = made(unseen=0.25, options={"backbone_prior": 0.3}).fit(SOURCE)
    forecaster = ompb.Ridge.fit(SOURCE[:300], CONTEXT, HORIZON)
    cal = ompb.Calibrator.fit(forecaster, SOURCE, **SIZES, season=12, unseen=0.25, backbone_prior=0.3)
    run = ompb.backtest(cal, forecaster, STREAM)
    said = estimator.predict(STREAM)
    np.testing.assert_array_equal(said[CONTEXT - 1 :], run.mean)
    assert np.isnan(said[: CONTEXT - 1]).all()
    assert estimator.score(STREAM) == -float(np.nanmean(np.abs(run.mean - run.outcome) / cal.scale))
    assert not estimator.calibrator_.in_sample


@pytest.mark.parametrize("unseen", [0.25, 100])
@pytest.mark.parametrize("cut", [slice(40, 90), slice(340, 350)], ids=["early", "late"])
def test_a_table_with_gaps_is_unseen_from_the_same_time_on(unseen: float, cut: slice) -> None:
    """Missing rows count for the calibrator: what it takes for unseen has to be unseen by the forecaster, too."""
    pd = pytest.importorskip("pandas")
    hours = pd.date_range("2024", periods=len(SOURCE) + 50, freq="h")
    table = pd.DataFrame(SOURCE, index=hours.delete(cut)[: len(SOURCE)])
    trained: list[Any] = []

    def train(rows: Any, context: int, horizon: int) -> ompb.Ridge:
        trained.append(rows)
        return ompb.Ridge.fit(rows, context, horizon)

    estimator = made(unseen=unseen)
    estimator.set_params(train=train).fit(table)
    whole = len(SOURCE) + cut.stop - cut.start
    kept = round(unseen * whole) if unseen < 1 else unseen
    first_unseen = table.index[0] + (whole - kept) * pd.Timedelta("1h")
    assert trained[0].index[-1] < first_unseen
    assert len(table.loc[trained[0].index[-1] : first_unseen]) <= 2


def test_forecasts_of_a_table_with_gaps_belong_to_its_rows() -> None:
    pd = pytest.importorskip("pandas")
    hours = pd.date_range("2024", periods=len(SOURCE) + len(STREAM), freq="h")
    estimator = made().fit(pd.DataFrame(SOURCE, index=hours[: len(SOURCE)]))
    whole = pd.DataFrame(STREAM, index=hours[len(SOURCE) :])
    table = whole.drop(whole.index[60:70])
    said = estimator.predict(table)
    assert len(said) == len(table)
    whole.iloc[60:70] = np.nan
    np.testing.assert_array_equal(said, np.delete(estimator.predict(whole), slice(60, 70), axis=0))


def test_a_long_table_is_not_cut() -> None:
    """Its lines are no rows."""
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2024", periods=len(SOURCE))
    long = pd.concat([pd.DataFrame({"unique_id": str(c), "ds": days, "y": SOURCE[:, c]}) for c in range(2)])
    with pytest.raises(OptionError, match="unseen= needs a table with a line for each row; pass a wide one"):
        made(unseen=0.25).fit(long)


def test_parameters_go_in_and_out() -> None:
    estimator = made()
    assert set(estimator.get_params()) == {"train", "context", "horizon", "season", "unseen", "options"}
    assert estimator.set_params(context=12).get_params()["context"] == 12
    with pytest.raises(OptionError, match=r"no parameter 'contxt'; accepted: train, context"):
        estimator.set_params(contxt=12)
    with pytest.raises(OptionError, match="not fitted"):
        estimator.predict(STREAM)


def test_scikit_learn_searches_and_scores_it() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    base = pytest.importorskip("sklearn.base")
    splits = selection.TimeSeriesSplit(2, test_size=60)
    scores = selection.cross_val_score(made(), SOURCE, cv=splits)
    by_hand = [base.clone(made()).fit(SOURCE[a]).score(SOURCE[b]) for a, b in splits.split(SOURCE)]
    np.testing.assert_array_equal(scores, by_hand)
    search = selection.GridSearchCV(made(), {"context": [12, 24]}, cv=splits).fit(SOURCE)
    assert search.best_params_["context"] in (12, 24)
    assert search.best_estimator_.predict(STREAM).shape == (len(STREAM), HORIZON, 2)
