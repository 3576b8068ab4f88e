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
