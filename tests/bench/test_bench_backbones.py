"""Names of networks, and what a name says of the training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_etth import HORIZON, write_small_etth

from ompb.bench.backbones import NetworkLabel, RunContext, backbone_label, is_network
from ompb.bench.runner import run
from ompb.bench.store import Cell, Store
from ompb.errors import OptionError

LABELS = (
    "tcn",
    "tcn@5",
    "tcn@val",
    "autoformer-canonical@100",
    "gpt4ts",
    "gpt4ts[random]",
    "gpt4ts[gpt2-partial]@20",
    "tcn@unseen",
)


@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_what_was_read_from_it(label: str) -> None:
    assert str(NetworkLabel.parse(label)) == label
    assert is_network(label)


@pytest.mark.parametrize("label", ["ridge", "ridge@5", "tcn]", "tcn[", "lstm[x]@5", ""])
def test_other_names_are_no_networks(label: str) -> None:
    assert not is_network(label)


@pytest.mark.parametrize("epochs", ["0", "-5", "5.5", "all", "", "05", "5@5", "5[random]"])
def test_epochs_that_cannot_be_are_named(epochs: str) -> None:
    with pytest.raises(OptionError, match=r"'tcn' cannot be trained for .*; accepted behind @: a whole number from 1"):
        backbone_label(f"tcn@{epochs}", None)


def test_labels_of_the_command() -> None:
    assert [backbone_label(name, None) for name in ("tcn@5", "autoformer@val")] == ["tcn@5", "autoformer@val"]
    with pytest.raises(OptionError, match="no backbone 'ridge@5'; accepted: tcn"):
        backbone_label("ridge@5", None)
    with pytest.raises(OptionError, match="--gpt2-weights"):
        backbone_label("gpt4ts@5", None)
    pytest.importorskip("torch")
    assert backbone_label("gpt4ts@5", "gpt2") == "gpt4ts@5"
    assert backbone_label("gpt4ts@5", "gpt2-partial") == "gpt4ts[gpt2-partial]@5"
    assert backbone_label("gpt4ts[random]@val", None) == "gpt4ts[random]@val"
    with pytest.raises(OptionError, match="tcn has no option weights"):
        NetworkLabel("tcn", "random").config((96, 24, 7))


def test_the_name_decides_epochs_and_nothing_else() -> None:
    pytest.importorskip("torch")
    papers, five, early = (
        NetworkLabel("tcn", epochs=epochs).training("etth", 3, "cpu") for epochs in (None, "5", "val")
    )
    assert (papers.epochs, papers.patience) == (20, None)
    assert five == replace(papers, epochs=5)
    assert early == replace(papers, epochs=100, patience=10)


def test_the_last_quarter_is_not_shown_to_a_network_that_must_not_see_it() -> None:
    pytest.importorskip("torch")
    source = np.arange(16.0).reshape(8, 2)
    unseen, papers = NetworkLabel("tcn", epochs="unseen"), NetworkLabel("tcn")
    np.testing.assert_array_equal(unseen.learned(source), source[:6])
    np.testing.assert_array_equal(papers.learned(source), source)
    assert unseen.training("etth", 0, "cpu") == papers.training("etth", 0, "cpu")


def test_the_chosen_epoch_lands_in_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_module = pytest.importorskip("ompb.forecasters.torch")
    recipes = pytest.importorskip("ompb.forecasters.torch.recipes")
    monkeypatch.setattr(recipes, "EARLY_EPOCHS", 3)
    run_context = RunContext(Store(tmp_path / "store"), write_small_etth(tmp_path))
    early = Cell("etth", "tcn@val", HORIZON, "id", "honest", "original", 0)
    once = replace(early, backbone="tcn@1")
    assert run([early, once], run_context).failed == {}
    found = {cell: run_context.store.read(cell) for cell in (early, once)}
    settings = {cell: result.settings["backbone"] for cell, result in found.items() if result is not None}
    saved = [torch_module.TrainedForecaster.load(file) for file in (tmp_path / "store" / "backbones").iterdir()]
    (stopped,) = (one for one in saved if one.held_out_losses)
    assert settings[early]["stopped_at"] == stopped.stopped_at == 1 + np.argmin(stopped.held_out_losses)
    assert settings[early]["training"]["patience"] == 10
    assert settings[once]["training"]["epochs"] == 1
    assert not {"stopped_at", "patience"} & {*settings[once], *settings[once]["training"]}


def test_networks_may_be_trained_on_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_module = pytest.importorskip("ompb.forecasters.torch")
    trained_on, loaded_on = [], []

    class Trained:
        def save(self, path: Path) -> None:
            path.touch()

        @classmethod
        def load(cls, _: Path, device: str) -> object:
            loaded_on.append(device)
            return lambda windows: np.zeros((len(windows), HORIZON, windows.shape[2]))

    def train(_config: object, _source: object, training: Any, *_: object) -> Trained:
        trained_on.append(training.device)
        return Trained()

    monkeypatch.setattr(torch_module, "train", train)
    monkeypatch.setattr(torch_module, "TrainedForecaster", Trained)
    monkeypatch.setattr("ompb.forecasters.torch.recipes.usable_device", lambda name: name)  # as if this machine had it
    run_context = RunContext(Store(tmp_path / "store"), write_small_etth(tmp_path), "cpu", train_on="elsewhere")
    cell = Cell("etth", "tcn", HORIZON, "id", "honest", "original", 0)
    assert run([cell], run_context).failed == {}
    found = run_context.store.read(cell)
    assert found is not None
    assert trained_on == loaded_on == ["elsewhere"]
    assert (found.device, found.trained_on) == ("cpu", "elsewhere")
