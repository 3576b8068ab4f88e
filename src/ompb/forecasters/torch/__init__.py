"""The paper's deep forecasters, in PyTorch: TCN, Autoformer and GPT4TS, one training loop, one frozen result.

Imported on demand only; ``import ompb`` does not need torch.

>>> import numpy as np
>>> source = np.sin(np.arange(200.0))[:, None]
>>> config = configure("tcn", context=12, horizon=3, channels=1)
>>> forecaster = train(config, source, TrainingConfig(epochs=2, batch=64, learning_rate=1e-3))
>>> forecaster(source[None, :12]).shape
(1, 3, 1)
"""

from ompb.floor.extras import extra

with extra("torch", needed_by="ompb.forecasters.torch"):
    import safetensors as _safetensors  # noqa: F401
    import torch as _torch  # noqa: F401

from ompb.forecasters.torch.autoformer import (
    CanonicalAutoformer,
    CanonicalAutoformerConfig,
    SimplifiedAutoformer,
    SimplifiedAutoformerConfig,
)
from ompb.forecasters.torch.backbones import backbone, build, configure
from ompb.forecasters.torch.base import Backbone, BackboneConfig
from ompb.forecasters.torch.gpt4ts import GPT4TS, GPT4TSConfig
from ompb.forecasters.torch.recipes import TrainingConfig, recipe, stopping_early
from ompb.forecasters.torch.tcn import TCN, TCNConfig
from ompb.forecasters.torch.trained import TrainedForecaster
from ompb.forecasters.torch.training import train, train_again

__all__ = [
    "GPT4TS",
    "TCN",
    "Backbone",
    "BackboneConfig",
    "CanonicalAutoformer",
    "CanonicalAutoformerConfig",
    "GPT4TSConfig",
    "SimplifiedAutoformer",
    "SimplifiedAutoformerConfig",
    "TCNConfig",
    "TrainedForecaster",
    "TrainingConfig",
    "backbone",
    "build",
    "configure",
    "recipe",
    "stopping_early",
    "train",
    "train_again",
]
