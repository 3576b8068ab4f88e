"""Frozen forecasters of the benchmark by name, and their base forecasts, each computed once and kept.

Add one of your own by ``@forecaster("name")`` on a function that fits it, or from another package by an entry point in
the group "ompb.forecasters" that bears the name and leads to the function.

A file is found again by a hash of everything that decided what is in it: data, architecture, training, versions, and
the source file of a forecaster that was added.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.format import open_memmap

from ompb.bench.added import blaming, outside_code
from ompb.bench.store import Cell, Store, digest
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.datasets.splits import window_count
from ompb.errors import OptionError
from ompb.files import replacing
from ompb.forecasters import Ridge
from ompb.names import numbered
from ompb.query import AnyForecaster, Query, as_forecaster, ask
from ompb.registry import Registry
from ompb.scaler import Scaler
from ompb.types import Floats
from ompb.windows import sliding

if TYPE_CHECKING:
    from ompb.forecasters.torch import BackboneConfig, TrainingConfig

GPT4TS = "gpt4ts"
NETWORKS = ("tcn", "autoformer", "autoformer-canonical", GPT4TS)
SOURCE = "source"  # the part of the data that is not a split
BLOCK = 256  # windows forecast at a time


Status: TypeAlias = Callable[[str], None]
Fit: TypeAlias = Callable[[Floats, int, int, int], AnyForecaster]

_FITTED: Registry[Fit] = Registry("backbone", "ompb.forecasters")


def forecaster(name: str) -> Callable[[Fit], Fit]:
    """Enter a function under a name: source rows (T, C), context, horizon and seed in, a forecaster out."""

    def enter(fit: Fit) -> Fit:
        if name in NETWORKS:
            raise OptionError(f"there is a backbone {name!r} already; choose another name.")
        _FITTED.enter(name, fit)
        return fit

    return enter


@forecaster("ridge")
def _ridge(source: Floats, context: int, horizon: int, seed: int) -> AnyForecaster:  # noqa: ARG001
    return Ridge.fit(source, context, horizon)


def backbone_names() -> tuple[str, ...]:
    """Every backbone there is: the networks, then the others."""
    return (*NETWORKS, *_FITTED.names())


def backbone_code(backbone: str) -> str | None:
    """What tells one version of a forecaster that was added from the next; None for a backbone of this package."""
    return None if is_network(backbone) else outside_code(_FITTED.find(backbone))


def is_network(backbone: str) -> bool:
    """Whether cells of a backbone, named as in results, forecast with a network of this package."""
    return backbone.partition("[")[0] in NETWORKS


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all cells of a run share: where files are read and kept, the device, and code that was added."""

    store: Store
    folder: Path | None = None  # of the data files; None: see `ompb.datasets.benchmark.load`
    device: str = "cpu"  # for all that runs in torch
    gpt2_checkpoint: str | None = None  # None: the hub's
    added: tuple[Path, ...] = ()  # files of methods and forecasters, see `ompb.bench.added.add_file`
    per_step: bool = False  # whether the errors of single forecasts are kept


@dataclass(frozen=True, slots=True)
class BaseForecasts:
    """Files of standardised base forecasts (n, H, C), by part of the data, and what decided them."""

    files: Mapping[str, Path]
    network: Path | None  # the trained network that made them, where one did
    description: Mapping[str, Any]


def backbone_label(name: str, gpt2_weights: str | None) -> str:
    """How results name a backbone: GPT4TS says where its weights come from unless they are GPT-2's.

    >>> backbone_label("tcn", None), backbone_label("gpt4ts", "random")
    ('tcn', 'gpt4ts[random]')
    """
    if name not in backbone_names():
        raise OptionError(f"there is no backbone {name!r}; accepted: {', '.join(backbone_names())}.")
    if name != GPT4TS:
        return name
    if gpt2_weights is None:
        raise OptionError("gpt4ts does not say where its weights come from; pass --gpt2-weights random, or see --help.")
    return _torch_config(f"{GPT4TS}[{gpt2_weights}]", (96, 96, 1), None).label  # any size will do


def prepare(cells: Sequence[Cell], run_context: RunContext, status: Status) -> BaseForecasts:
    """Base forecasts of the source and the splits of cells that share the rest, from their files where they exist.

    ``status`` is told what is being done, again and again.
    """
    one = cells[0]
    data = load(one.dataset, run_context.folder)
    splits = sorted({cell.split for cell in cells})
    parts = {SOURCE: data.source, **{split: data.stream(split, one.horizon) for split in splits}}
    plan = _Plan.of(one, data, run_context)
    files = {part: run_context.store.base / f"{plan.key}-{_fingerprint(rows)}.npy" for part, rows in parts.items()}
    missing = [part for part, file in files.items() if not file.exists()]
    network = plan.network(data.source, run_context.store, status)
    if missing:
        with blaming(f"the forecaster {one.backbone!r}", outside=backbone_code(one.backbone) is not None):
            fitted = plan.forecaster(data.source, network, run_context.device)
            for part in missing:
                status(f"forecasting {part}")
                _write(files[part], fitted, parts[part], data.context, one.horizon, Scaler.fit(data.source))
    return BaseForecasts(files, network, plan.description)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to come by a forecaster; only a network has ``config`` and ``training``."""

    cell: Cell
    context: int
    config: BackboneConfig | None
    training: TrainingConfig | None
    description: Mapping[str, Any]

    @classmethod
    def of(cls, cell: Cell, data: BenchmarkData, run_context: RunContext) -> _Plan:
        sizes = data.context, cell.horizon, len(data.channels)
        known: dict[str, Any] = {"backbone": cell.backbone, "source": _fingerprint(data.source), "sizes": sizes}
        if not is_network(cell.backbone):
            known |= {"seed": cell.seed, "code": backbone_code(cell.backbone)}
            return cls(cell, data.context, None, None, {**known, "versions": versions("ompb", "numpy")})
        config = _torch_config(cell.backbone, sizes, run_context.gpt2_checkpoint)
        training = _recipe(cell, config, run_context.device)
        description = {
            **known,
            "config": {**dataclasses.asdict(config), **_checkpoint(config)},
            "training": dataclasses.asdict(training),
            "versions": versions("ompb", "numpy", "torch"),
        }
        return cls(cell, data.context, config, training, description)

    @property
    def key(self) -> str:
        return digest(json.dumps(self.description, sort_keys=True).encode())

    def network(self, source: Floats, store: Store, status: Status) -> Path | None:
        """The file of the network, trained now if it is not there; None if there is no network in it."""
        if self.config is None or self.training is None:
            return None
        from ompb.forecasters.torch import train

        store.backbones.mkdir(parents=True, exist_ok=True)
        trained, checkpoint = (store.backbones / f"{self.key}.{kind}" for kind in ("safetensors", "checkpoint"))
        if not trained.exists():

            def tell(done: int, total: int) -> None:
                status(f"training {self.cell.backbone}, {done / total:.0%}")

            train(self.config, source, self.training, checkpoint, tell).save(trained)
            checkpoint.unlink(missing_ok=True)
        return trained

    def forecaster(self, source: Floats, network: Path | None, device: str) -> AnyForecaster:
        """The network, or one fitted now."""
        if network is None:
            fit: Fit = _FITTED.find(self.cell.backbone)
            return fit(source, self.context, self.cell.horizon, self.cell.seed)
        from ompb.forecasters.torch import TrainedForecaster

        return TrainedForecaster.load(network, device)


def _torch_config(label: str, sizes: tuple[int, int, int], checkpoint: str | None) -> BackboneConfig:
    from ompb.forecasters.torch import configure

    name, _, weights = label.removesuffix("]").partition("[")
    options: dict[str, Any] = dict(zip(("context", "horizon", "channels"), sizes, strict=True))
    if name == GPT4TS:
        options |= {"weights": weights or "gpt2"} | ({"checkpoint": checkpoint} if checkpoint else {})
    return configure(name, **options)


def _recipe(cell: Cell, config: BackboneConfig, device: str) -> TrainingConfig:
    from ompb.forecasters.torch import recipe

    return recipe(cell.dataset, config.backbone, cell.seed, device)


def _checkpoint(config: BackboneConfig) -> dict[str, str | None]:
    """What stands for GPT-2's weights in a description: their content, not the place they lie in."""
    checkpoint = getattr(config, "checkpoint", None)
    if checkpoint is None:
        return {}
    if getattr(config, "weights", None) == "random":
        return {"checkpoint": None}
    path = Path(checkpoint)
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path] if path.is_file() else []
    return {"checkpoint": digest(*(file.read_bytes() for file in files)) if files else checkpoint}


def _write(file: Path, forecaster: AnyForecaster, rows: Floats, context: int, horizon: int, scaler: Scaler) -> None:
    """Forecast every window of rows (T, C) whose outcome lies inside them; memory stays bounded."""
    count = window_count(len(rows), context, horizon)
    windows = sliding(rows, context)
    asked = as_forecaster(forecaster)
    with replacing(file, parents=True) as part:
        # float32 is what torch backbones compute in, and halves the file
        kept = open_memmap(part, mode="w+", dtype=np.float32, shape=(count, horizon, rows.shape[1]))
        for first in range(0, count, BLOCK):
            block = slice(first, min(first + BLOCK, count))
            query = Query(windows[block], np.arange(context - 1 + block.start, context - 1 + block.stop))
            kept[block] = scaler.standardise(ask(asked, query, horizon, scaler, numbered(rows.shape[1])).base)
        kept.flush()


def versions(*packages: str) -> dict[str, str]:
    """Releases of the packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package).partition("+")[0]  # builds of one release count as the same
        except PackageNotFoundError:
            continue
    return found


def _fingerprint(rows: Floats) -> str:
    return digest(str(rows.shape).encode(), np.ascontiguousarray(rows).tobytes())
