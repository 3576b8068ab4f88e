"""Faults of networks, and that torch is not imported for others."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.errors import CheckError

torch = pytest.importorskip("torch")

SOURCE = 5 + np.sin(np.arange(300) / 3)[:, None]
SIZES: dict[str, Any] = {"context": 16, "horizon": 4}


def network(dropout: float = 0.5) -> Any:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 4), torch.nn.Dropout(dropout))
    with torch.no_grad():
        layers[1].weight.fill_(1 / 16)
    return layers.double().eval()


def asked(model: Any, windows: Any) -> Any:
    return model(torch.from_numpy(windows))[..., None]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_mode_is_a_fault_whether_or_not_it_shows(dropout: float) -> None:
    model = network(dropout).train()
    with pytest.raises(CheckError, match="training mode") as caught, torch.inference_mode():
        ompb.check(lambda windows: asked(model, windows), SOURCE, **SIZES)
    assert caught.value.fault == "training"


def test_a_tensor_on_the_graph_is_a_fault() -> None:
    model = network()
    with pytest.raises(CheckError, match="inference_mode") as caught:
        ompb.check(lambda windows: asked(model, windows), SOURCE, **SIZES)
    assert caught.value.fault == "gradient"


def test_a_network_in_evaluation_mode_passes_and_no_hook_is_left() -> None:
    model = network()
    hooks = torch.nn.modules.module._global_forward_pre_hooks
    before = dict(hooks)
    with torch.inference_mode():
        ompb.check(lambda windows: asked(model, windows), SOURCE, **SIZES)
    assert dict(hooks) == before


@pytest.mark.parametrize("backbone", ["tcn", "autoformer"])
def test_our_own_networks_pass(backbone: str) -> None:
    pytest.importorskip("safetensors")
    from ompb.forecasters.torch import TrainingConfig, configure, train

    config = configure(backbone, channels=1, **SIZES)
    trained = train(config, SOURCE, TrainingConfig(epochs=1, batch=64, learning_rate=1e-3))
    ompb.check(trained, SOURCE, windows=24, **SIZES)


def test_torch_is_not_imported_for_others() -> None:
    code = (
        "import sys, numpy as np, ompb; rows = np.sin(np.arange(99.0))[:, None]; "
        "ompb.check(ompb.SeasonalProfile(2, 6), rows, context=12, horizon=2); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
