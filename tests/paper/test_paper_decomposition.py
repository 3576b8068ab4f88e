"""The certificate taken apart: by hand, and against the diagnosis of a run."""

import numpy as np
import pytest
from made_up_runs import made_up_steps

from ompb import Calibrator, Ridge, backtest
from ompb.datasets.synthetic import shifted_stream
from ompb.diagnosis import diagnose
from ompb.paper.decomposition import Decomposition, realised_proxy

STEPS = made_up_steps(
    4,
    mse=[0.5, 1.0, 4.0, 9.0],
    tau_y=[2.0] * 4,
    value=[0.2, 0.2, 0.6, 1.2],
    source_risk=[0.1, 0.1, 0.1, 0.3],
    gamma=[0.05, 0.05, 0.05, 0.25],
    disagreement=[0.1, 0.1, 0.5, 0.9],
    source_disagreement=[0.2] * 4,
    target_disagreement=[0.1, 0.3, 0.5, 0.3],
)


def test_by_hand() -> None:
    part = Decomposition.of(STEPS)
    assert realised_proxy(STEPS).tolist() == [0.125, 0.25, 1.0, 1.0]  # 4 / 2^2 is just 1, 9 / 2^2 is cut off
    assert part.median_value == pytest.approx(0.4)
    assert part.median_source_risk == pytest.approx(0.1)
    assert part.median_gamma == pytest.approx(0.05)
    assert part.median_half_disagreement == pytest.approx(0.15)
    assert part.target_risk == pytest.approx(0.59375)
    assert part.slack == pytest.approx(0.55 - 0.59375)
    assert part.share_above == 0.5  # the second and the third
    assert part.change == pytest.approx(0.1)
    assert part.mismatch == pytest.approx(0.59375 - 0.15 - 0.05)
    assert part.full == pytest.approx(0.59375 + 0.1)  # a positive mismatch leaves the risk and Gamma
    assert part.forecasts == 4


def test_the_full_bound_cannot_fail() -> None:
    for seed in range(50):
        part = Decomposition.of(made_up_steps(20, seed))
        assert part.full >= part.target_risk


def test_it_agrees_with_the_diagnosis_of_a_run() -> None:
    source, stream = shifted_stream("level", seed=3, source_rows=500, target_rows=160, channels=2)
    ridge = Ridge.fit(source, 12, 4)
    run = backtest(Calibrator.fit(ridge, source, context=12, horizon=4, season=None), ridge, stream)
    matured = run.origins + 4 <= run.origins[-1]
    error = ((run.mean - run.outcome) / run.scale)[matured]
    terms = {name: values[matured] for name, values in run.certificate.items()}
    part = Decomposition.of({**terms, "mse": np.mean(error**2, axis=(1, 2))})
    told = diagnose(run)
    assert part.forecasts == told.outcomes
    for ours, theirs in (
        (part.target_risk, told.target_risk),
        (part.source_risk, told.source_risk),
        (part.gamma, told.gamma),
        (part.change, told.disagreement_change),
        (part.mismatch, told.residual_mismatch),
        (part.share_above, told.share_above),
        (part.full, told.martingale_bound),
    ):
        assert ours == pytest.approx(theirs, abs=1e-9)
