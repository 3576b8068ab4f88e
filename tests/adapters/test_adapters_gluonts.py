from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from gluonts.dataset.common import ListDataset
from gluonts.model.seasonal_naive import SeasonalNaivePredictor
from gluonts.torch import DeepAREstimator, PatchTSTEstimator, SimpleFeedForwardEstimator
from gluonts.torch.distributions import QuantileOutput
from sine_world import CONTEXT, HORIZON, SEASON, SIZES, error, follows_a_stream, stamps, windows_from, world

from ompb.adapters import gluonts
from ompb.adapters.quiet import quiet
from ompb.errors import ForecasterError, OptionError

QUANTILES = (0.1, 0.5, 0.9)


@lru_cache
def trained(estimator: type[Any], folder: Path, **options: Any) -> Any:
    trainer = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    rows = ListDataset([{"start": "2024-01-01", "target": world()[0][:, 0]}], freq="h")
    with quiet(), gluonts.same_draws():
        return estimator(
            prediction_length=HORIZON,
            trainer_kwargs={**trainer, "max_epochs": 2, "default_root_dir": folder},
            **options,
        ).train(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where training leaves its checkpoints."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture
def feed_forward(folder: Path) -> Any:
    """Gives distributions."""
    return trained(SimpleFeedForwardEstimator, folder, context_length=48, num_batches_per_epoch=100, lr=1e-2)


@pytest.fixture
def of_quantiles(folder: Path) -> Any:
    output = _output()
    sizes = {"context_length": 48, "patch_len": 8, "d_model": 8, "nhead": 1, "num_encoder_layers": 1, "lr": 1e-2}
    return trained(PatchTSTEstimator, folder, distr_output=output, num_batches_per_epoch=100, **sizes)


@lru_cache
def _output() -> Any:
    return QuantileOutput(list(QUANTILES))


@pytest.fixture
def of_samples(folder: Path) -> Any:
    """Draws at random, and looks at the hour."""
    sizes = {"context_length": 24, "num_layers": 2, "hidden_size": 8, "num_parallel_samples": 10, "lr": 1e-2}
    return trained(DeepAREstimator, folder, freq="h", num_batches_per_epoch=50, lags_seq=(1, 2, 24), **sizes)


def test_a_stream_of_two_channels(feed_forward: Any, tmp_path: Path) -> None:
    follows_a_stream(gluonts.wrap(feed_forward, **SIZES), 2, tmp_path)


@pytest.mark.parametrize("kind", ["feed_forward", "of_quantiles"])
def test_distributions_and_quantiles_follow_a_stream(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    predictor = request.getfixturevalue(kind)
    forecaster = gluonts.wrap(predictor, **SIZES, quantiles=QUANTILES)
    query = windows_from([0, 7])
    said = forecaster.forecast(query)
    assert said.shape == (2, HORIZON, 1, 3)
    entry = {"start": pd.Period("2024-01-01", "h"), "target": query.windows[1, :, 0].astype(np.float32)}
    (own,) = predictor.predict([entry])
    np.testing.assert_allclose(said[1, :, 0, 2], own.quantile(0.9), rtol=1e-5)
    follows_a_stream(forecaster, 1, tmp_path)


def test_without_quantiles_the_answer_is_the_mean_or_else_the_median(feed_forward: Any, of_quantiles: Any) -> None:
    query = windows_from([0])
    entry = {"start": pd.Period("2024-01-01", "h"), "target": query.windows[0, :, 0].astype(np.float32)}
    for predictor in (feed_forward, of_quantiles):
        (own,) = predictor.predict([entry])
        middle = own.mean if predictor is feed_forward else own.quantile(0.5)
        np.testing.assert_allclose(gluonts.wrap(predictor, **SIZES).forecast(query)[0, :, 0], middle, rtol=1e-5)


def test_samples_are_the_same_each_time_and_in_any_company(of_samples: Any, tmp_path: Path) -> None:
    query = windows_from([0, 7, 20], timed=True)
    entries = [
        {"start": pd.Period("2024-01-01", "h") + start, "target": window[:, 0].astype(np.float32)}
        for start, window in zip((0, 7, 20), query.windows, strict=True)
    ]
    with quiet():
        once, again = (np.stack([own.mean for own in of_samples.predict(entries)]) for _ in range(2))
    assert np.abs(once - again).max() > 0.01
    forecaster = gluonts.wrap(of_samples, **SIZES, freq="h")
    said = forecaster.forecast(query)
    np.testing.assert_array_equal(said, forecaster.forecast(query))
    alone = type(query)(query.windows[2:], query.origins[2:], stamps(20 + CONTEXT - 1, 1))
    np.testing.assert_array_equal(said[2:], forecaster.forecast(alone))
    follows_a_stream(
        gluonts.wrap(of_samples, **SIZES, freq="h", quantiles=QUANTILES), 1, tmp_path, timed=True, every=60, windows=8
    )


def test_a_call_leaves_the_generators_as_they_were(of_samples: Any) -> None:
    state, expected = np.random.get_state(), np.random.random()  # noqa: NPY002  # the one that the library draws from
    np.random.set_state(state)  # noqa: NPY002
    gluonts.wrap(of_samples, **SIZES, freq="h").forecast(windows_from([0], timed=True))
    assert np.random.random() == expected  # noqa: NPY002


def test_a_calendar_needs_true_stamps(of_samples: Any) -> None:
    with pytest.raises(OptionError, match="freq is not given, and the predictor looks at the calendar"):
        gluonts.wrap(of_samples, **SIZES)
    forecaster = gluonts.wrap(of_samples, **SIZES, freq="h")
    with pytest.raises(ForecasterError, match="looks at the calendar and the windows have no dates"):
        forecaster.forecast(windows_from([0]))


def test_networks_are_given_float32(feed_forward: Any) -> None:
    query = windows_from([0])
    entry = {"start": pd.Period("2024-01-01", "h"), "target": query.windows[0, :, 0]}
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        list(feed_forward.predict([entry]))
    assert np.isfinite(gluonts.wrap(feed_forward, **SIZES).forecast(query)).all()


def test_a_context_too_short_is_refused(of_samples: Any) -> None:
    """The library fills it with zeros and says nothing: 24 rows and 23 of lags before them."""
    entry = {"start": pd.Period("2024-01-01", "h"), "target": world()[0][:10, 0].astype(np.float32)}
    with quiet():
        (own,) = of_samples.predict([entry])
    assert np.isfinite(own.mean).all()
    with pytest.raises(OptionError, match="context = 46 is less than the 47 rows"):
        gluonts.wrap(of_samples, context=46, horizon=HORIZON, freq="h")


def test_a_predictor_that_is_no_network() -> None:
    query = windows_from([0, 5])
    forecaster = gluonts.wrap(SeasonalNaivePredictor(prediction_length=HORIZON, season_length=SEASON), **SIZES)
    assert error(forecaster.forecast(query), query) < 1e-4


def test_what_cannot_be_wrapped_is_refused_at_once(feed_forward: Any) -> None:
    with pytest.raises(ForecasterError, match="SimpleFeedForwardEstimator has no predict"):
        gluonts.wrap(SimpleFeedForwardEstimator(prediction_length=HORIZON), **SIZES)
    with pytest.raises(OptionError, match="horizon = 7, and the predictor gives 6 rows"):
        gluonts.wrap(feed_forward, context=CONTEXT, horizon=7)
