import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from safetensors import safe_open
from safetensors.torch import save_file

from ompb.errors import (
    DtypeError,
    ForecasterError,
    FormatError,
    NotFiniteError,
    OptionError,
    ShapeError,
    TooShortError,
    VersionError,
)
from ompb.forecasters.torch import (
    BackboneConfig,
    TrainedForecaster,
    TrainingConfig,
    backbone,
    build,
    configure,
    recipe,
    train,
)
from ompb.forecasters.torch import trained as trained_module
from ompb.forecasters.torch import training as training_module
from ompb.rows.scaler import Scaler
from ompb.types import Floats

torch.set_num_threads(1)

CONTEXT, HORIZON, CHANNELS = 24, 6, 2
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "channels": CHANNELS}
SMALL: dict[str, dict[str, Any]] = {
    "tcn": {"width": 8},
    "autoformer": {"width": 8, "heads": 2, "hidden": 16},
    "autoformer-canonical": {"width": 8, "heads": 2, "hidden": 16},
    "gpt4ts": {"width": 8, "heads": 2, "positions": 16, "weights": "random"},
}
EVERY = pytest.mark.parametrize("name", list(SMALL))
TRAINING = TrainingConfig(epochs=3, batch=64, learning_rate=1e-2, seed=5)


@pytest.fixture
def source() -> Floats:
    time, rng = np.arange(300.0)[:, None], np.random.default_rng(3)
    waves = np.sin(2 * np.pi * time / np.array([12.0, 8.0])) + 0.1 * rng.standard_normal((300, CHANNELS))
    return np.asarray(np.array([50.0, -3.0]) + np.array([10.0, 0.5]) * waves)


def config(name: str = "tcn") -> BackboneConfig:
    return configure(name, **SIZES, **SMALL[name])


def windows(source: Floats) -> Floats:
    return np.asarray(sliding_window_view(source, CONTEXT, axis=0).transpose(0, 2, 1))


def assert_same(one: TrainedForecaster, other: TrainedForecaster) -> None:
    first, second = one.model.state_dict(), other.model.state_dict()
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []
    assert one.losses == other.losses


@EVERY
def test_training_reduces_the_loss_and_leaves_frozen_weights_alone(source: Floats, name: str) -> None:
    trained = train(config(name), source, dataclasses.replace(TRAINING, epochs=6))
    assert len(trained.losses) == 6
    assert trained.losses[-1] < 0.8 * trained.losses[0]
    torch.manual_seed(TRAINING.seed)
    before, after = build(config(name)), trained.model
    pairs = zip(before.named_parameters(), after.named_parameters(), strict=True)
    moved = {key: not torch.equal(p, q) for (key, p), (_, q) in pairs}
    assert moved == {key: p.requires_grad for key, p in before.named_parameters()}


def test_scaler_is_the_source_mean_and_population_deviation(source: Floats) -> None:
    source[:, 1] = 0.1  # has no exact binary form
    trained = train(config(), source, TRAINING)
    np.testing.assert_allclose(trained.scaler.centre, source.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(trained.scaler.scale, [source[:, 0].std(), 1.0], rtol=1e-12)


def test_result_does_not_depend_on_units(source: Floats) -> None:
    one, other = train(config(), source, TRAINING), train(config(), 1024 * source, TRAINING)
    np.testing.assert_allclose(other(1024 * source[None, :CONTEXT]), 1024 * one(source[None, :CONTEXT]), rtol=1e-4)


def test_first_loss_is_the_mean_squared_error_of_standardised_windows(source: Floats) -> None:
    """One full batch without dropout: the loss is that of the untrained model over every window."""
    sizes = configure("tcn", **SIZES, width=8, dropout=0.0)
    still = train(sizes, source, TrainingConfig(epochs=1, batch=1000, learning_rate=1e-30))
    stretches = sliding_window_view(still.scaler.standardise(source), CONTEXT + HORIZON, axis=0).transpose(0, 2, 1)
    forecasts = still.scaler.standardise(still(still.scaler.restore(stretches[:, :CONTEXT])))
    assert still.losses[0] == pytest.approx(np.mean((forecasts - stretches[:, CONTEXT:]) ** 2), rel=1e-4)


def test_progress_counts_batches_and_keeps_the_partial_one(source: Floats) -> None:
    seen: list[tuple[int, int]] = []
    train(config(), source, TRAINING, progress=lambda done, total: seen.append((done, total)))
    batches = -(-(300 - CONTEXT - HORIZON + 1) // 64)  # 271 windows: four of 64 and one of 15
    assert seen == [(done, 3 * batches) for done in range(1, 3 * batches + 1)]


@EVERY
def test_seed_decides_and_the_callers_random_state_does_not(source: Floats, name: str) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = train(config(name), source, TRAINING)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert_same(one, train(config(name), source, TRAINING))
    assert one.losses != train(config(name), source, dataclasses.replace(TRAINING, seed=6)).losses


class KilledError(Exception):
    pass


@EVERY
@pytest.mark.parametrize("batches_before_the_end", [2, 7, 12])
def test_a_killed_and_resumed_run_equals_an_undisturbed_one(
    source: Floats, tmp_path: Path, name: str, batches_before_the_end: int
) -> None:
    def kill(done: int, total: int) -> None:
        if done == total - batches_before_the_end:
            raise KilledError

    checkpoint = tmp_path / "run.safetensors"
    with pytest.raises(KilledError):
        train(config(name), source, TRAINING, checkpoint, kill)
    torch.manual_seed(99)
    resumed = train(config(name), source, TRAINING, checkpoint)
    assert_same(resumed, train(config(name), source, TRAINING))
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]


def test_a_finished_run_is_not_trained_again(source: Floats, tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.safetensors"
    first = train(config(), source, TRAINING, checkpoint)
    batches: list[int] = []
    assert_same(first, train(config(), source, TRAINING, checkpoint, lambda done, _: batches.append(done)))
    assert batches == []


def test_a_checkpoint_of_another_training_is_refused(source: Floats, tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.safetensors"
    train(config(), source, TRAINING, checkpoint)
    content = checkpoint.read_bytes()
    with pytest.raises(FormatError, match="belongs to a training with other training; delete it"):
        train(config(), source, dataclasses.replace(TRAINING, seed=1), checkpoint)
    with pytest.raises(FormatError, match="other backbone, config"):
        train(config("autoformer"), source, TRAINING, checkpoint)
    with pytest.raises(FormatError, match="other mean, sd"):
        train(config(), source + np.arange(300.0)[:, None], TRAINING, checkpoint)
    assert checkpoint.read_bytes() == content
    with pytest.raises(FormatError, match="holds checkpoint, not a forecaster"):
        TrainedForecaster.load(checkpoint)


def test_a_write_that_fails_leaves_the_old_checkpoint(
    source: Floats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.safetensors"
    trained = train(config(), source, TRAINING)
    trained.save(path)
    content = path.read_bytes()

    def half(_: object, file: str, **__: object) -> None:
        Path(file).write_bytes(content[:50])
        raise OSError("disk full")

    monkeypatch.setattr(trained_module, "save_file", half)
    with pytest.raises(OSError, match="disk full"):
        trained.save(path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


@EVERY
def test_cached_forecasts_equal_fresh_ones_bit_for_bit(source: Floats, name: str) -> None:
    trained = train(config(name), source, TRAINING)
    views = windows(source)[:40]
    cached = trained(views)
    assert cached.shape == (40, HORIZON, CHANNELS)
    assert cached.dtype == np.float64
    np.testing.assert_array_equal(trained(views), cached)
    np.testing.assert_array_equal(np.concatenate([trained(view[None].copy()) for view in views]), cached)
    np.testing.assert_array_equal(trained(views[::-3]), cached[::-3])
    np.testing.assert_array_equal(trained(np.asfortranarray(views)), cached)
    trained.model.train()  # as a careless caller leaves it
    np.testing.assert_array_equal(trained(views), cached)


@pytest.mark.parametrize("name", list(SMALL))
def test_cached_equals_fresh_at_the_papers_sizes(name: str) -> None:
    rows = np.random.default_rng(0).standard_normal((107, 7)).cumsum(axis=0)
    options = {"weights": "random"} if name == "gpt4ts" else {}
    model = backbone(name, 96, 24, 7, **options)
    forecaster = TrainedForecaster(model, Scaler.fit(rows), TRAINING, ())
    views = sliding_window_view(rows, 96, axis=0).transpose(0, 2, 1)
    np.testing.assert_array_equal(np.concatenate([forecaster(view[None]) for view in views]), forecaster(views))


@EVERY
def test_saved_forecasters_come_back_bit_for_bit(source: Floats, tmp_path: Path, name: str) -> None:
    trained = train(config(name), source, TRAINING)
    trained.save(tmp_path / "model.safetensors")
    loaded = TrainedForecaster.load(tmp_path / "model.safetensors")
    assert_same(loaded, trained)
    assert (loaded.config, loaded.training, loaded.label) == (trained.config, trained.training, trained.label)
    np.testing.assert_array_equal(loaded(windows(source)[:3]), trained(windows(source)[:3]))


def test_files_hold_json_and_tensors_only(source: Floats, tmp_path: Path) -> None:
    train(config(), source, TRAINING, tmp_path / "run.safetensors").save(tmp_path / "model.safetensors")
    with safe_open(tmp_path / "run.safetensors", framework="pt") as opened:
        parts = {name.split(".")[0] for name in opened.keys()}  # noqa: SIM118  # not a dict
    assert parts == {"model", "adam", "random"}


def test_labels_say_where_gpt2_is_not_gpt2(source: Floats) -> None:
    assert train(config("gpt4ts"), source, TRAINING).label == "gpt4ts[random]"
    assert train(config("tcn"), source, TRAINING).label == "tcn"


def test_last_layer_can_be_reached_by_name(source: Floats) -> None:
    trained = train(config(), source, TRAINING)
    before = trained(source[None, :CONTEXT])
    assert list(trained.last_layer) == ["head.weight", "head.bias"]
    with torch.no_grad():
        trained.last_layer["head.bias"].add_(1)
    np.testing.assert_allclose(trained(source[None, :CONTEXT]), before + trained.scaler.scale, rtol=1e-5)


def test_missing_values_are_left_out_of_training_and_stay_missing(source: Floats) -> None:
    source[100:110, 0] = np.nan
    counted: list[int] = []
    trained = train(config(), source, TrainingConfig(1, 1, 1e-3), progress=lambda _, total: counted.append(total))
    assert counted[0] == 271 - (10 + CONTEXT + HORIZON - 1)
    np.testing.assert_array_equal(trained.scaler.centre, np.nanmean(source, axis=0))
    forecasts = trained(windows(source)[[0, 100]])
    assert np.isfinite(forecasts[0]).all()
    assert np.isnan(forecasts[1]).all()


def test_no_windows_give_no_forecasts(source: Floats) -> None:
    assert train(config(), source, TRAINING)(np.empty((0, CONTEXT, CHANNELS))).shape == (0, HORIZON, CHANNELS)


def test_bad_data_is_named(source: Floats) -> None:
    with pytest.raises(ShapeError, match="source has 1 channel; pass 2, as the backbone expects"):
        train(config(), source[:, :1], TRAINING)
    with pytest.raises(DtypeError, match="accepted: real numbers"):
        train(config(), [["a", "b"]], TRAINING)
    with pytest.raises(TooShortError, match="no 30 successive rows"):
        train(config(), source[:29], TRAINING)
    with pytest.raises(ShapeError, match=r"trained on windows \(n, 24, 2\)"):
        train(config(), source, TRAINING)(source)
    source[4, 1] = np.inf
    with pytest.raises(NotFiniteError, match="row 4, channel 1"):
        train(config(), source, TRAINING)


def test_options_are_kept_as_plain_numbers() -> None:
    training = TrainingConfig(np.int64(2), np.int32(8), np.float32(0.5))  # type: ignore[arg-type]
    sizes = configure("tcn", context=np.int64(24), horizon=6, channels=2, dropout=np.float32(0.5))
    assert json.loads(json.dumps(dataclasses.asdict(training)))["batch"] == 8
    assert json.loads(json.dumps(dataclasses.asdict(sizes)))["context"] == 24


def test_divergence_is_reported(source: Floats) -> None:
    with pytest.raises(ForecasterError, match="training diverged: the loss of epoch"):
        train(config(), source, TrainingConfig(epochs=3, batch=64, learning_rate=1e9))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs = 0"),
        ({"batch": 2.5}, "batch = 2.5"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0 is out of range"),
        ({"seed": -1}, "seed = -1"),
        ({"device": "abacus"}, "device 'abacus' does not exist"),
        ({"device": "meta"}, "device 'meta' is not supported"),
        ({"device": "cuda:99"}, "device 'cuda:99' is not available"),
    ],
)
def test_bad_options_are_named(source: Floats, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        train(config(), source, dataclasses.replace(TRAINING, **options))


def test_foreign_and_damaged_files_are_refused(source: Floats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(FormatError, match="there is no file"):
        TrainedForecaster.load(path)
    path.write_text("hello")
    with pytest.raises(FormatError, match="not a readable"):
        TrainedForecaster.load(path)
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(FormatError, match="holds foreign tensors, not a forecaster"):
        TrainedForecaster.load(path)
    trained = train(config(), source, TRAINING)
    header = trained_module.describe(trained.config, TRAINING, trained.scaler)
    trained_module.write(path, "forecaster", header, {})
    with pytest.raises(FormatError, match="is damaged"):
        TrainedForecaster.load(path)
    with monkeypatch.context() as future:
        future.setattr(trained_module, "VERSION", 2)
        trained.save(path)
    with pytest.raises(VersionError, match="format version 2; this installation reads up to 1"):
        TrainedForecaster.load(path)


@pytest.mark.parametrize(
    ("dataset", "name", "expected"),
    [
        ("etth", "tcn", (20, 256, 1e-3)),
        ("etth", "autoformer-canonical", (5, 256, 1e-3)),
        ("ili", "gpt4ts", (100, 64, 1e-4)),
        ("weather-5k", "tcn", (5, 256, 1e-3)),
        ("weather-stand-in", "gpt4ts", (10, 64, 1e-4)),
    ],
)
def test_recipes_are_the_papers(dataset: str, name: str, expected: tuple[int, int, float]) -> None:
    assert recipe(dataset, name, seed=3) == TrainingConfig(*expected, seed=3)


def test_unknown_recipes_are_refused() -> None:
    with pytest.raises(OptionError, match="no recipe traffic/tcn; pass one of etth/tcn"):
        recipe("traffic", "tcn")


def test_a_config_of_no_backbone_is_refused() -> None:
    with pytest.raises(OptionError, match="BackboneConfig belongs to no backbone"):
        build(BackboneConfig(**SIZES))


def test_the_package_alone_does_not_import_torch() -> None:
    code = "import sys, ompb, ompb.forecasters; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_torch_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import ompb.forecasters.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "needs torch, which is not installed; install it with: pip install 'ompb[torch]'" in done.stderr


def test_on_a_gpu_kernels_repeat_themselves_and_new_memory_is_not_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    def state() -> tuple[str, int, bool]:
        filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
        return torch.get_float32_matmul_precision(), torch.get_deterministic_debug_mode(), filled

    monkeypatch.setenv(training_module.WORKSPACE, ":4096:8")  # it would stay set
    before = state()
    for device, expected in (("cuda", ("high", 1, False)), ("cpu", before)):
        with training_module._fast_and_repeatable(torch.device(device)):
            assert state() == expected
        assert state() == before


@pytest.mark.parametrize("name", SMALL)
def test_no_weight_depends_on_how_new_memory_is_filled(
    name: str, source: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU it is not filled; where it is, with NaN, whoever reads it before it is written would spread them."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        weights = []
        for filled in (True, False):
            monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", filled)
            assert not filled or bool(torch.empty(1000).isnan().all())  # memory used before may have them anyway
            weights.append(train(config(name), source, TRAINING).model.state_dict())
    finally:
        torch.set_deterministic_debug_mode(before)
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
