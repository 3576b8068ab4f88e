from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import DistributionLoss, MQLoss
from neuralforecast.models import NLinear, TSMixer
from sine_world import (
    CONTEXT,
    HORIZON,
    SIZES,
    SOURCE_ROWS,
    error,
    follows_a_stream,
    long_frame,
    stamps,
    windows_from,
    world,
)

from ompb.adapters import as_series, neuralforecast
from ompb.adapters.quiet import quiet
from ompb.errors import CheckError, ForecasterError, OptionError

TRAINING = {"h": HORIZON, "input_size": 48, "accelerator": "cpu", "logger": False, "enable_progress_bar": False}


@lru_cache
def linear(quantiles: tuple[float, ...] = ()) -> Any:
    loss = {"loss": MQLoss(quantiles=list(quantiles))} if quantiles else {}
    return trained(NLinear(**TRAINING, max_steps=200, val_check_steps=200, learning_rate=1e-2, **loss), 1)


@lru_cache
def mixer() -> Any:
    """Takes all series together."""
    return trained(TSMixer(**TRAINING, n_series=2, n_block=1, ff_dim=8, max_steps=20, val_check_steps=20), 2)


def trained(model: Any, channels: int) -> Any:
    made = NeuralForecast([model], freq="h")
    with quiet():
        made.fit(long_frame(world(channels)[0], stamps(0, SOURCE_ROWS)))
    return made


def test_a_stream_of_two_channels(tmp_path: Path) -> None:
    follows_a_stream(neuralforecast.wrap(linear(), **SIZES), 2, tmp_path)


def test_forecasts_are_right_and_in_the_order_of_the_windows() -> None:
    query = windows_from(list(range(0, 65, 5)))
    assert error(neuralforecast.wrap(linear(), **SIZES).forecast(query), query) < 0.6


def test_a_network_of_quantiles_without_the_median_is_refused_at_once() -> None:
    with pytest.raises(ForecasterError, match=r"quantiles are \(0.1, 0.9\); accepted: .* 0.5 among them"):
        neuralforecast.wrap(linear((0.1, 0.9)), **SIZES)


def test_a_network_of_quantiles_gives_them(tmp_path: Path) -> None:
    forecaster = neuralforecast.wrap(linear((0.1, 0.5, 0.9)), **SIZES)
    assert forecaster.quantiles == (0.1, 0.5, 0.9)
    said = forecaster.forecast(windows_from([0, 7]))
    assert said.shape == (2, HORIZON, 1, 3)
    assert (said[..., 0] < said[..., 2]).all()
    follows_a_stream(forecaster, 1, tmp_path)


def test_a_network_that_draws_samples_answers_each_window_alike() -> None:
    loss = DistributionLoss("Normal", level=[80], num_samples=20)
    drawn = neuralforecast.wrap(trained(NLinear(**TRAINING, max_steps=20, val_check_steps=20, loss=loss), 1), **SIZES)
    assert drawn.quantiles == (0.1, 0.5, 0.9)
    together = drawn.forecast(windows_from([0, 7, 20]))
    for place, start in enumerate([0, 7, 20]):
        np.testing.assert_allclose(drawn.forecast(windows_from([start]))[0], together[place], rtol=1e-5)


def test_series_that_are_sorted_by_id_must_be_so_in_the_source() -> None:
    forecaster = neuralforecast.wrap(mixer(), **SIZES)
    table = pd.DataFrame(world(2)[0], columns=["1", "0"])
    with pytest.raises(CheckError, match=r"order 0, 1, .*, and the source has 1, 0"):
        forecaster.checked(table)


def test_a_context_too_short_is_refused() -> None:
    """The library fills it with zeros and says nothing."""
    query = windows_from([0, 7])
    short = as_series(query.windows)[:, -20:].T
    with quiet():
        raw = linear().predict(df=long_frame(short, stamps(0, 20)))["NLinear"].to_numpy()
    assert error(raw.reshape(2, HORIZON, 1), query) > 1.5
    with pytest.raises(OptionError, match="context = 20 is less than the 48 rows that NLinear reads"):
        neuralforecast.wrap(linear(), context=20, horizon=HORIZON)


def test_a_network_of_all_series_takes_one_window_a_call(tmp_path: Path) -> None:
    source, _ = world(2)
    windows = np.stack([source[:CONTEXT], source[7 : 7 + CONTEXT]])
    with quiet(), pytest.raises(RuntimeError, match="must match"):
        mixer().predict(df=long_frame(as_series(windows).T, stamps(0, CONTEXT)))
    forecaster = neuralforecast.wrap(mixer(), **SIZES)
    follows_a_stream(forecaster, 2, tmp_path, every=30)
    with pytest.raises(ForecasterError, match="takes 2 series together and the windows have 1 channel;"):
        forecaster.forecast(windows_from([0]))


def test_a_call_says_nothing_and_leaves_no_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    forecaster = neuralforecast.wrap(linear(), **SIZES)
    capfd.readouterr()
    caplog.clear()
    forecaster.forecast(windows_from([0]))
    assert (*capfd.readouterr(), caplog.records, list(tmp_path.iterdir())) == ("", "", [], [])


def test_what_the_user_has_is_left_as_it_was() -> None:
    model = linear().models[0]
    before, weights = dict(model.trainer_kwargs), {name: w.clone() for name, w in model.state_dict().items()}
    neuralforecast.wrap(linear(), **SIZES).forecast(windows_from([0, 1]))
    assert model.trainer_kwargs == before
    assert linear().models == [model]
    assert all((weights[name] == now).all() for name, now in model.state_dict().items())


def test_what_cannot_be_wrapped_is_refused_at_once() -> None:
    with pytest.raises(ForecasterError, match="NeuralForecast is not fitted"):
        neuralforecast.wrap(NeuralForecast([NLinear(**TRAINING)], freq="h"), **SIZES)
    with pytest.raises(ForecasterError, match="NLinear is a network by itself; pass the NeuralForecast"):
        neuralforecast.wrap(NLinear(**TRAINING), **SIZES)
    with pytest.raises(OptionError, match="horizon = 7, and NLinear was trained for 6"):
        neuralforecast.wrap(linear(), context=CONTEXT, horizon=7)
    with pytest.raises(OptionError, match="model = 'NHITS'; accepted: one of NLinear"):
        neuralforecast.wrap(linear(), **SIZES, model="NHITS")
