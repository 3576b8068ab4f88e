"""Pipelines: each verb with a small dummy of it, samples, context length; a random Chronos where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_world import CONTEXT, HORIZON, SIZES, SOURCE, STAMPS, STREAM

from ompb.errors import CheckError, ForecasterError
from ompb.seam.query import Query
from ompb.testing import check_forecaster

pytest.importorskip("torch")

import torch

from ompb.adapters import pipelines as adapter

QUERY = Query(np.stack([SOURCE[t : t + CONTEXT] for t in range(5)]), np.arange(5) + CONTEXT - 1)
LAST = np.repeat(QUERY.windows[:, -1:], HORIZON, axis=1)


class Quantiles:
    """The last value, and the level of each quantile around it."""

    model_context_length = 32

    def predict_quantiles(self, series: Any, prediction_length: int, quantile_levels: list[float]) -> Any:
        assert (series.dtype, series.ndim) == (torch.float32, 2)
        last = series[:, -1:, None].expand(-1, prediction_length, len(quantile_levels))
        return last + (torch.tensor(quantile_levels) - 0.5), last[..., 0]


class Listed(Quantiles):
    """The same, one tensor a series."""

    def predict_quantiles(self, series: Any, prediction_length: int, quantile_levels: list[float]) -> Any:
        quantiles, mean = super().predict_quantiles(series, prediction_length, quantile_levels)
        return [one[None] for one in quantiles], [one[None] for one in mean]


class Deciles:
    """Mean and deciles of a list of arrays, which it fills up to a batch of its own."""

    def forecast(self, horizon: int, inputs: list[Any]) -> Any:
        inputs += [np.zeros(3)] * (-len(inputs) % 4)
        last = np.stack([np.full(horizon, series[-1]) for series in inputs])
        return last, last[..., None] + np.array([0.0, *(np.arange(1, 10) / 10 - 0.5)])


class Samples:
    """Draws around the last value."""

    forecast_type = "ForecastType.SAMPLES"

    def predict(self, series: Any, prediction_length: int) -> Any:
        noise = torch.randn(len(series), 20, prediction_length)
        return series[:, -1, None, None] + noise


class Points:
    def predict(self, series: Any, prediction_length: int) -> Any:
        return series[:, -1:].expand(-1, prediction_length)


@pytest.mark.parametrize("pipeline", [Quantiles(), Listed(), Deciles()])
def test_quantiles_have_their_levels(pipeline: Any) -> None:
    forecaster = adapter.wrap(pipeline, quantiles=(0.2, 0.5, 0.9), batch=3, **SIZES)
    np.testing.assert_allclose(forecaster.forecast(QUERY), LAST[..., None] + np.array([-0.3, 0.0, 0.4]), atol=1e-5)
    forecaster.checked(SOURCE)


@pytest.mark.parametrize("pipeline", [Quantiles(), Deciles(), Points()])
def test_without_quantiles_the_median_is_given(pipeline: Any) -> None:
    np.testing.assert_allclose(adapter.wrap(pipeline, quantiles=(), **SIZES).forecast(QUERY), LAST, atol=1e-5)


def test_samples_are_drawn_anew_from_one_seed_for_each_series() -> None:
    """Without the guard the same question has two answers."""
    forecaster = adapter.wrap(Samples(), **SIZES)
    state = torch.random.get_rng_state()
    said = forecaster.forecast(QUERY)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(0)
    drawn = QUERY.windows[2, -1, 1] + torch.randn(1, 20, HORIZON)[0].double().numpy()
    np.testing.assert_allclose(said[2, :, 1], np.quantile(drawn, (0.1, 0.5, 0.9), axis=0).T, atol=1e-5)
    forecaster.checked(SOURCE)
    other = adapter.wrap(Samples(), samples_seed=1, **SIZES)
    assert not np.allclose(other.forecast(QUERY), said)


def test_an_unguarded_sampler_is_caught() -> None:
    class Hidden(Samples):
        forecast_type = None  # type: ignore[assignment]

    with pytest.raises(CheckError, match="same question twice"):
        adapter.wrap(Hidden(), **SIZES).checked(SOURCE)


def test_a_context_that_would_be_cut_in_silence_is_refused() -> None:
    with pytest.raises(ForecasterError, match=r"more than the 32 rows .* longest=32"):
        adapter.wrap(Quantiles(), context=40, horizon=HORIZON)

    class Mean(Quantiles):
        def predict_quantiles(self, series: Any, prediction_length: int, quantile_levels: list[float]) -> Any:
            assert series.shape[1] == 10
            return super().predict_quantiles(series.cumsum(1) / series.shape[1], prediction_length, quantile_levels)

    cut = adapter.wrap(Mean(), quantiles=(), longest=10, **SIZES).forecast(QUERY)
    np.testing.assert_allclose(cut[:, 0], QUERY.windows[:, -10:].mean(axis=1), rtol=1e-5)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ForecasterError, match="without any of predict_quantiles"):
        adapter.wrap(object(), **SIZES)
    with pytest.raises(ForecasterError, match="choose among them"):
        adapter.wrap(Deciles(), quantiles=(0.05, 0.5, 0.95), **SIZES)
    with pytest.raises(ForecasterError, match="gives points"):
        adapter.wrap(Points(), **SIZES).forecast(QUERY)


class Short(Quantiles):
    def predict_quantiles(self, series: Any, prediction_length: int, quantile_levels: list[float]) -> Any:
        return super().predict_quantiles(series, prediction_length - 5, quantile_levels)


def test_a_shape_that_is_not_understood_is_told() -> None:
    with pytest.raises(ForecasterError, match=r"gave \(10, 1, 3\) for 10 series; accepted: \(10, 6, 3\)"):
        adapter.wrap(Short(), **SIZES).forecast(QUERY)


def test_on_a_shifted_stream() -> None:
    run = check_forecaster(adapter.wrap(Quantiles(), **SIZES), SOURCE, STREAM, **SIZES, **STAMPS)
    assert run.calibrator.quantiles == (0.1, 0.5, 0.9)


def random_bolt() -> Any:
    """A Chronos-Bolt of a few thousand random weights: it says nothing of how good Chronos is."""
    bolt = pytest.importorskip("chronos.chronos_bolt")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2}
    reading = {
        "context_length": 48, "prediction_length": 8, "input_patch_size": 4, "input_patch_stride": 4,
        "quantiles": [round(0.1 * tenth, 1) for tenth in range(1, 10)], "use_reg_token": True,
    }  # fmt: skip
    config = transformers.T5Config(
        vocab_size=2, pad_token_id=0, decoder_start_token_id=0, reg_token_id=1, **sizes, chronos_config=reading
    )
    return bolt.ChronosBoltPipeline(bolt.ChronosBoltModelForForecasting(config).eval())


def test_a_chronos_of_random_weights() -> None:
    forecaster = adapter.wrap(random_bolt(), quantiles=(0.2, 0.5, 0.8), **SIZES).checked(SOURCE)
    check_forecaster(forecaster, SOURCE, STREAM, **SIZES, **STAMPS)
    with pytest.raises(ForecasterError, match="more than the 48 rows"):
        adapter.wrap(random_bolt(), context=96, horizon=HORIZON)
