"""Frozen forecasters of the benchmark by name, and their base forecasts, each computed once and kept.

Add one of your own by ``@forecaster("name")`` on a function that fits it, or from another package by an entry point in
the group "ompb.forecasters" that bears the name and leads to the function.

A network's name may say for how many epochs it is trained, in place of the paper's: "tcn@5", or "tcn@val" for as many
as the newest tenth of the source asks for, which is held out and never learned from; see `NetworkLabel`.

A file is found again by a hash of everything that decided what is in it: data, architecture, training, versions, and
the source file of a forecaster that was added.
"""

from __future__ import annotations

import dataclasses
import json
import re
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
from ompb.datasets.public import data_folder
from ompb.datasets.splits import window_count
from ompb.errors import OptionError
from ompb.floor.files import replacing
from ompb.floor.names import numbered
from ompb.floor.registry import Registry
from ompb.forecasters import Ridge
from ompb.rows.scaler import Scaler
from ompb.rows.windows import sliding
from ompb.seam.query import AnyForecaster, Query, as_forecaster, ask
from ompb.types import Floats

if TYPE_CHECKING:
    from ompb.forecasters.torch import BackboneConfig, TrainingConfig

GPT4TS = "gpt4ts"
HELD_OUT = "val"  # in place of epochs: as many as a held-out part of the source asks for
UNSEEN = "unseen"  # in place of epochs: the paper's, on the source without its last quarter, which certificates read
UNSEEN_SHARE = 0.25
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


@dataclass(frozen=True, slots=True)
class NetworkLabel:
    """How results name a network: ``name[weights]@epochs``, where the last two may be left out.

    >>> NetworkLabel.parse("gpt4ts[gpt2-partial]@5")
    NetworkLabel(name='gpt4ts', weights='gpt2-partial', epochs='5')
    >>> NetworkLabel.parse("ridge") is None
    True
    """

    name: str
    weights: str | None = None  # where those of GPT4TS come from, unless they are GPT-2's
    epochs: str | None = None  # a number, "val" or "unseen"; None: the paper's

    def __post_init__(self) -> None:
        if self.epochs not in (None, HELD_OUT, UNSEEN) and re.fullmatch("[1-9][0-9]{0,6}", str(self.epochs)) is None:
            raise OptionError(
                f"the backbone {self.name!r} cannot be trained for {self.epochs!r} epochs; accepted behind @: a whole "
                f"number from 1, {HELD_OUT} to hold out a tenth of the source, {UNSEEN} to leave out its last quarter."
            )

    @classmethod
    def parse(cls, label: str) -> NetworkLabel | None:
        """What a label says; None if it names no network. Raises ``OptionError`` for epochs that there cannot be."""
        found = re.fullmatch(r"([^\[\]@]+)(?:\[([^\[\]@]+)\])?(?:@(.*))?", label)
        return cls(*found.groups()) if found and found[1] in NETWORKS else None

    def __str__(self) -> str:
        weights = f"[{self.weights}]" if self.weights else ""
        return f"{self.name}{weights}" + (f"@{self.epochs}" if self.epochs else "")

    def training(self, dataset: str, seed: int, device: str) -> TrainingConfig:
        """How it is trained on a data set."""
        from ompb.forecasters.torch import recipe, stopping_early

        papers = recipe(dataset, self.name, seed, device)
        if self.epochs == HELD_OUT:
            return stopping_early(papers)
        return papers if self.epochs in (None, UNSEEN) else dataclasses.replace(papers, epochs=int(str(self.epochs)))

    def learned(self, source: Floats) -> Floats:
        """The rows of a source that it is trained on."""
        return source[: round((1 - UNSEEN_SHARE) * len(source))] if self.epochs == UNSEEN else source

    def config(self, sizes: tuple[int, int, int], checkpoint: str | None = None) -> BackboneConfig:
        """Its sizes, context, horizon and channels being given; ``checkpoint`` is where GPT-2's weights are."""
        from ompb.forecasters.torch import configure

        options: dict[str, Any] = dict(zip(("context", "horizon", "channels"), sizes, strict=True))
        weights = self.weights or ("gpt2" if self.name == GPT4TS else None)
        options |= {} if weights is None else {"weights": weights}
        options |= {"checkpoint": checkpoint} if checkpoint and self.name == GPT4TS else {}
        return configure(self.name, **options)


def backbone_names() -> tuple[str, ...]:
    """Every backbone there is: the networks, then the others."""
    return (*NETWORKS, *_FITTED.names())


def backbone_code(backbone: str) -> str | None:
    """What tells one version of a forecaster that was added from the next; None for a backbone of this package."""
    return None if is_network(backbone) else outside_code(_FITTED.find(backbone))


def is_network(backbone: str) -> bool:
    """Whether cells of a backbone, named as in results, forecast with a network of this package."""
    return NetworkLabel.parse(backbone) is not None


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all cells of a run share: where files are read and kept, the devices, and code that was added."""

    store: Store
    folder: Path | None = None  # of the data files; None: see `ompb.datasets.benchmark.load`
    device: str = "cpu"  # for methods that run in torch, and for networks unless ``train_on`` names another
    gpt2_checkpoint: str | None = None  # None: the hub's
    added: tuple[Path, ...] = ()  # files of methods and forecasters, see `ompb.bench.added.add_file`
    per_step: bool = False  # whether the errors of single forecasts are kept
    train_on: str | None = None  # the device that trains networks, and makes their base forecasts; None: ``device``

    @property
    def training_device(self) -> str:
        """Where networks are trained."""
        return self.train_on or self.device

    def absolute(self) -> RunContext:
        """The same for a process that works in another folder, or has another environment."""
        checkpoint = self.gpt2_checkpoint
        return dataclasses.replace(
            self,
            store=Store(self.store.folder.absolute()),
            folder=data_folder(self.folder).absolute(),
            gpt2_checkpoint=str(Path(checkpoint).absolute())
            if checkpoint and Path(checkpoint).exists()
            else checkpoint,
            added=tuple(file.absolute() for file in self.added),
        )


@dataclass(frozen=True, slots=True)
class BaseForecasts:
    """Files of standardised base forecasts (n, H, C), by part of the data, and what decided them."""

    files: Mapping[str, Path]
    network: Path | None  # the trained network that made them, where one did
    description: Mapping[str, Any]


def backbone_label(name: str, gpt2_weights: str | None) -> str:
    """How results name a backbone: GPT4TS says where its weights come from unless they are GPT-2's.

    >>> backbone_label("tcn@5", None), backbone_label("gpt4ts", "random")
    ('tcn@5', 'gpt4ts[random]')
    """
    label = NetworkLabel.parse(name)
    if label is None and name not in backbone_names():
        raise OptionError(f"there is no backbone {name!r}; accepted: {', '.join(backbone_names())}.")
    if label is None or label.name != GPT4TS:
        return name
    weights = label.weights or gpt2_weights
    if weights is None:
        raise OptionError(
            "gpt4ts does not say where its weights come from; pass --gpt2-weights gpt2-partial, as the results have "
            "it, gpt2, or random, which reads no file."
        )
    known = dataclasses.replace(label, weights=weights).config((96, 96, 1)).label  # any size will do
    return str(NetworkLabel(known, epochs=label.epochs))


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
            fitted = plan.forecaster(data.source, network, run_context.training_device)
            for part in missing:
                status(f"forecasting {part}")
                _write(files[part], fitted, parts[part], data.context, one.horizon, Scaler.fit(data.source))
    return BaseForecasts(files, network, {**plan.description, **plan.outcome(network)})


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
        label = NetworkLabel.parse(cell.backbone)
        if label is None:
            known |= {"seed": cell.seed, "code": backbone_code(cell.backbone)}
            return cls(cell, data.context, None, None, {**known, "versions": versions("ompb", "numpy")})
        config = label.config(sizes, run_context.gpt2_checkpoint)
        training = label.training(cell.dataset, cell.seed, run_context.training_device)
        description = {
            **known,
            "config": {**dataclasses.asdict(config), **_checkpoint(config)},
            # what is not set is not said: a new option leaves networks trained before it where they are found
            "training": {name: value for name, value in dataclasses.asdict(training).items() if value is not None},
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

            label = NetworkLabel.parse(self.cell.backbone)
            assert label is not None  # it has a configuration
            train(self.config, label.learned(source), self.training, checkpoint, tell).save(trained)
            checkpoint.unlink(missing_ok=True)
        return trained

    def outcome(self, network: Path | None) -> dict[str, Any]:
        """What only training could tell: the epoch whose weights were kept, where it could stop early."""
        if network is None or self.training is None or self.training.patience is None:
            return {}
        from ompb.forecasters.torch import TrainedForecaster

        return {"stopped_at": TrainedForecaster.load(network).stopped_at}

    def forecaster(self, source: Floats, network: Path | None, device: str) -> AnyForecaster:
        """The network, or one fitted now."""
        if network is None:
            fit: Fit = _FITTED.find(self.cell.backbone)
            return fit(source, self.context, self.cell.horizon, self.cell.seed)
        from ompb.forecasters.torch import TrainedForecaster

        return TrainedForecaster.load(network, device)


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
