"""Training that stops early on rows held out, and training again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view

from ompb.errors import OptionError, TooShortError
from ompb.forecasters.torch import (
    TrainedForecaster,
    TrainingConfig,
    configure,
    recipe,
    stopping_early,
    train,
    train_again,
)
from ompb.types import Floats

torch.set_num_threads(1)

CONTEXT, HORIZON, CHANNELS, ROWS = 12, 4, 2, 200
CUT = ROWS - ROWS // 10
CONFIG = configure("tcn", context=CONTEXT, horizon=HORIZON, channels=CHANNELS, width=8)
EARLY = TrainingConfig(epochs=12, batch=32, learning_rate=3e-2, seed=2, patience=2)


@pytest.fixture(scope="module")
def source() -> Floats:
    """Waves under much noise, so that a network soon learns what does not last."""
    time, rng = np.arange(float(ROWS))[:, None], np.random.default_rng(4)
    return np.asarray(5 + np.sin(2 * np.pi * time / np.array([12.0, 8.0])) + 2 * rng.standard_normal((ROWS, CHANNELS)))


@pytest.fixture(scope="module")
def stopped(source: Floats) -> TrainedForecaster:
    return train(CONFIG, source, EARLY)


def assert_same_weights(one: TrainedForecaster, other: TrainedForecaster) -> None:
    first, second = one.model.state_dict(), other.model.state_dict()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


def test_it_stops_when_patience_ends_and_says_where(stopped: TrainedForecaster) -> None:
    held_out = stopped.held_out_losses
    assert 1 < stopped.stopped_at < EARLY.epochs - 2  # else this test says nothing
    assert len(stopped.losses) == len(held_out) == stopped.stopped_at + 2
    assert held_out[stopped.stopped_at - 1] == min(held_out)


def test_it_is_a_plain_training_on_the_first_nine_tenths(source: Floats, stopped: TrainedForecaster) -> None:
    """So nothing is learned from what is held out, and judging draws no random number."""
    plain = replace(stopped, training=replace(EARLY, epochs=stopped.stopped_at, patience=None))
    twin = train_again(plain, source[:CUT], warm=False)
    assert twin.losses == stopped.losses[: stopped.stopped_at]
    assert_same_weights(twin, stopped)


def test_rows_held_out_reach_no_weight(source: Floats, stopped: TrainedForecaster) -> None:
    """With other rows there another epoch may be chosen; up to there the losses are the same."""
    other = source.copy()
    other[CUT:] = 7.0
    changed = train_again(stopped, other, warm=False)
    epochs = min(len(changed.losses), len(stopped.losses))
    assert changed.losses[:epochs] == stopped.losses[:epochs]
    assert changed.held_out_losses[0] != stopped.held_out_losses[0]


def test_the_best_loss_is_that_of_forecasts_of_the_newest_tenth(source: Floats, stopped: TrainedForecaster) -> None:
    scaled = stopped.scaler.standardise(source)
    stretches = sliding_window_view(scaled, CONTEXT + HORIZON, axis=0).transpose(0, 2, 1)
    newest = stretches[CUT - CONTEXT :]
    assert len(newest) == ROWS - CUT - HORIZON + 1
    forecasts = stopped.scaler.standardise(stopped(stopped.scaler.restore(newest[:, :CONTEXT])))
    assert min(stopped.held_out_losses) == pytest.approx(np.mean((forecasts - newest[:, CONTEXT:]) ** 2), rel=1e-4)


def test_the_last_epoch_is_kept_where_none_is_held_out(source: Floats) -> None:
    plain = train(CONFIG, source, TrainingConfig(epochs=3, batch=64, learning_rate=1e-3))
    assert (plain.stopped_at, plain.held_out_losses) == (3, ())


def test_the_epoch_is_read_back_from_the_file(stopped: TrainedForecaster, tmp_path: Path) -> None:
    stopped.save(tmp_path / "tcn.safetensors")
    loaded = TrainedForecaster.load(tmp_path / "tcn.safetensors")
    assert (loaded.stopped_at, loaded.training) == (stopped.stopped_at, EARLY)
    assert loaded.held_out_losses == stopped.held_out_losses
    assert_same_weights(loaded, stopped)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("after", [1, 3])
def test_a_killed_run_goes_on_to_the_same_epoch(
    source: Floats, stopped: TrainedForecaster, tmp_path: Path, after: int
) -> None:
    """Killed before the best epoch, or behind it, when the weights to keep are no longer those of the model."""
    batches = -(-(CUT - CONTEXT - HORIZON + 1) // EARLY.batch)

    def kill(done: int, total: int) -> None:
        del total
        if done == (stopped.stopped_at + after - 2) * batches + 1:
            raise KilledError

    with pytest.raises(KilledError):
        train(CONFIG, source, EARLY, tmp_path / "run", kill)
    resumed = train(CONFIG, source, EARLY, tmp_path / "run")
    assert (resumed.losses, resumed.held_out_losses) == (stopped.losses, stopped.held_out_losses)
    assert_same_weights(resumed, stopped)


def test_at_least_one_forecast_is_held_out(source: Floats) -> None:
    """A tenth of 30 rows has fewer than the four of a forecast."""
    assert len(train(CONFIG, source[:30], EARLY).held_out_losses) > 0
    with pytest.raises(TooShortError, match="the first 14 of 18 rows hold 0 complete windows to learn from"):
        train(CONFIG, source[:18], EARLY)
    gap = source.copy()
    gap[-2] = np.nan
    with pytest.raises(TooShortError, match="and the rest 0 to judge by"):
        train(CONFIG, gap[-40:], EARLY)


def test_patience_is_a_count() -> None:
    with pytest.raises(OptionError, match="patience = 0"):
        replace(EARLY, patience=0)


def test_early_stopping_changes_nothing_else_of_a_recipe() -> None:
    papers = recipe("ili", "tcn", seed=3)
    assert stopping_early(papers) == replace(papers, epochs=100, patience=10)


def test_training_again_on_the_same_rows_gives_the_same_network(source: Floats, stopped: TrainedForecaster) -> None:
    again = train_again(stopped, source, warm=False)
    assert again.held_out_losses == stopped.held_out_losses
    assert_same_weights(again, stopped)


def test_a_warm_start_goes_on_from_the_weights_and_leaves_them(source: Floats) -> None:
    first = train(CONFIG, source, TrainingConfig(epochs=4, batch=64, learning_rate=1e-2))
    before = {name: tensor.clone() for name, tensor in first.model.state_dict().items()}
    still = replace(first, training=replace(first.training, epochs=1, learning_rate=1e-30))
    assert_same_weights(train_again(still, source, warm=True), first)
    assert train_again(first, source, warm=True).losses[0] < first.losses[0]
    assert all(torch.equal(before[name], tensor) for name, tensor in first.model.state_dict().items())
