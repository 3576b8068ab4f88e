"""How to train a backbone, and how the paper trained each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ompb.errors import OptionError
from ompb.floor import checks


@dataclass(frozen=True)
class TrainingConfig:
    """Mean squared error, Adam (0.9, 0.999, 1e-8) at a constant rate, every window once an epoch in random order.

    With ``patience`` training stops early: the newest tenth of the rows, or as many as a forecast has leads if that is
    more, is held out. Training ends once so many epochs in a row did no better there, and the best epoch's weights are
    kept. It is never trained on what was held out, not afterwards either; only the scaler knows all rows.
    """

    epochs: int  # with patience, the most
    batch: int
    learning_rate: float
    seed: int = 0
    device: str = "cpu"
    patience: int | None = None

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "epochs", "batch")
        checks.check_fields(self, checks.positive, "learning_rate")
        checks.check_fields(self, checks.seed, "seed")
        if self.patience is not None:
            checks.check_fields(self, checks.count, "patience")


# (data set, backbone): (epochs, batch, learning rate) of the OMPB paper's experiments. The stand-in for the weather
# data is none of the paper's: large networks have a tenth of its epochs there.
RECIPES: dict[tuple[str, str], tuple[int, int, float]] = {
    ("etth", "tcn"): (20, 256, 1e-3),
    ("etth", "autoformer"): (5, 256, 1e-3),
    ("etth", "gpt4ts"): (20, 64, 1e-4),
    ("ili", "tcn"): (100, 32, 1e-3),
    ("ili", "autoformer"): (100, 32, 1e-3),
    ("ili", "gpt4ts"): (100, 64, 1e-4),
    ("weather-5k", "tcn"): (5, 256, 1e-3),
    ("weather-5k", "autoformer"): (100, 256, 1e-3),
    ("weather-5k", "gpt4ts"): (100, 64, 1e-4),
    ("weather-stand-in", "tcn"): (5, 256, 1e-3),
    ("weather-stand-in", "autoformer"): (10, 256, 1e-3),
    ("weather-stand-in", "gpt4ts"): (10, 64, 1e-4),
}

# The paper's patience; it allows 200 epochs, of which only one of its nine networks took more than 100.
EARLY_EPOCHS, EARLY_PATIENCE = 100, 10


def recipe(dataset: str, backbone: str, seed: int = 0, device: str = "cpu") -> TrainingConfig:
    """How a backbone is trained on a data set of the benchmark; both Autoformers share theirs.

    >>> recipe("etth", "tcn")
    TrainingConfig(epochs=20, batch=256, learning_rate=0.001, seed=0, device='cpu', patience=None)
    """
    key = (dataset, backbone.removesuffix("-canonical"))
    if key not in RECIPES:
        known = ", ".join(f"{data}/{name}" for data, name in RECIPES)
        raise OptionError(f"there is no recipe {dataset}/{backbone}; pass one of {known}, or make a TrainingConfig.")
    return TrainingConfig(*RECIPES[key], seed=seed, device=device)


def stopping_early(training: TrainingConfig) -> TrainingConfig:
    """The same, for as many epochs, up to a hundred, as a held-out tenth of the rows asks for.

    >>> stopping_early(recipe("etth", "tcn")).epochs
    100
    """
    return replace(training, epochs=EARLY_EPOCHS, patience=EARLY_PATIENCE)


def usable_device(name: str) -> torch.device:
    """The CPU or CUDA device of that name. Raises ``OptionError`` for any other, or where there is none."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise OptionError(f"device {name!r} does not exist; pass 'cpu' or 'cuda'.") from error
    if device.type not in ("cpu", "cuda"):
        raise OptionError(f"device {name!r} is not supported; pass 'cpu' or 'cuda'.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise OptionError(f"device {name!r} is not available, as there are {count} CUDA devices; pass 'cpu'.")
    return device
