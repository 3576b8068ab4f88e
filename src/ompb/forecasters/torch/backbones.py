"""Backbones by name."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from ompb.errors import OptionError
from ompb.forecasters.torch.autoformer import (
    CanonicalAutoformer,
    CanonicalAutoformerConfig,
    SimplifiedAutoformer,
    SimplifiedAutoformerConfig,
)
from ompb.forecasters.torch.base import Backbone, BackboneConfig
from ompb.forecasters.torch.gpt4ts import GPT4TS, GPT4TSConfig
from ompb.forecasters.torch.tcn import TCN, TCNConfig

CONFIGS: dict[str, type[BackboneConfig]] = {
    config.backbone: config
    for config in (TCNConfig, SimplifiedAutoformerConfig, CanonicalAutoformerConfig, GPT4TSConfig)
}


def backbone(name: str, context: int, horizon: int, channels: int, **options: Any) -> Backbone:
    """An untrained model, drawn from torch's random state; GPT4TS reads the weights it is told to.

    ``name`` is "tcn", "autoformer" (the simplified variant), "autoformer-canonical" or "gpt4ts"; ``options`` are
    the fields of its configuration class.

    >>> model = backbone("tcn", context=96, horizon=24, channels=7)
    >>> sum(parameter.numel() for parameter in model.parameters())
    22216
    """
    return build(configure(name, context=context, horizon=horizon, channels=channels, **options))


def configure(name: str, **options: Any) -> BackboneConfig:
    """The configuration of a backbone. Raises ``OptionError`` for an unknown name or option, or one left out."""
    if name not in CONFIGS:
        raise OptionError(f"there is no backbone {name!r}; accepted: {', '.join(CONFIGS)}.")
    accepted = {field.name: field.default is MISSING for field in fields(CONFIGS[name])}
    unknown = sorted(options.keys() - accepted.keys())
    if unknown:
        raise OptionError(f"{name} has no option {', '.join(unknown)}; it accepts {', '.join(accepted)}.")
    absent = [option for option, required in accepted.items() if required and option not in options]
    if absent:
        raise OptionError(f"{name} needs {', '.join(absent)}; pass it by name (see {CONFIGS[name].__name__}).")
    return CONFIGS[name](**options)


def build(config: BackboneConfig) -> Backbone:
    """An untrained model, drawn from torch's random state; GPT4TS reads the weights its configuration names."""
    return GPT4TS.pretrained(config) if isinstance(config, GPT4TSConfig) else blank(config)


def blank(config: BackboneConfig) -> Backbone:
    """The architecture, to be filled with saved tensors. Raises ``OptionError`` for a class of config not known."""
    match config:
        case TCNConfig():
            return TCN(config)
        case SimplifiedAutoformerConfig():
            return SimplifiedAutoformer(config)
        case CanonicalAutoformerConfig():
            return CanonicalAutoformer(config)
        case GPT4TSConfig():
            return GPT4TS(config)
    raise OptionError(f"{type(config).__name__} belongs to no backbone; make one with configure().")
