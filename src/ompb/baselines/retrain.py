"""What is done where nothing adapts online: the backbone is trained again, every so many rows, on all that is known.

`retrain` starts from fresh weights each time, `retrain-warm` from the present ones; `retrain+ompb` keeps the live head
around the network, with a calibrator of its own for every new one. Training is that of the backbone: its epochs, batch,
rate and seed. Numbers stay standardised with the source, so that errors compare. Networks stay on the task's shelf: the
rows known by a row are the same for all who train anew there.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ompb.baselines.network import needs_network
from ompb.bench.backbones import versions
from ompb.bench.contract import Conditions, Method, Prediction, Snapshot, Task, settings_record
from ompb.bench.methods import live_prediction, make, method
from ompb.bench.protocols import HONEST
from ompb.bench.store import digest
from ompb.calibrator import Calibrator
from ompb.errors import OptionError
from ompb.floor import checks
from ompb.floor.times import Times
from ompb.forecasters.torch import TrainedForecaster, train_again
from ompb.forecasters.torch.trained import describe
from ompb.rows.scaler import Scaler
from ompb.rows.windows import Origins
from ompb.seam.query import AnyForecaster, Forecaster, Query
from ompb.settings import Settings
from ompb.stream import Stream
from ompb.types import Floats

EVERY = 500  # rows


@dataclass
class Renewal:
    """The backbone, trained again once ``every`` rows have come since it last was."""

    forecaster: TrainedForecaster  # of standardised windows
    source: Floats  # (T, C)
    every: int
    warm: bool
    continues: bool = False  # whether the stream goes on where the source ends
    shelf: Path | None = None  # where networks are kept that were trained again
    rows: list[Floats] = field(default_factory=list)  # of the stream, up to the newest: each (C,)
    trained_at: int = 0  # how many rows of the stream were known then
    times: int = 0  # it was trained again

    @classmethod
    def start(cls, task: Task, every: int | None, warm: bool) -> Renewal:
        """Before the stream. A season longer than the window is the default of ``every``, else `EVERY`."""
        if every is None:
            every = task.season if task.season is not None and task.season > task.context else EVERY
        every = checks.count("every", every)
        return cls(_standardised(task), task.source, every, warm, task.continues, task.shelf)

    def renews(self, snapshot: Snapshot) -> bool:
        """Take in the newest row, train again if it is time to, and say whether it was."""
        if not self.rows:
            self.rows.extend(snapshot.window[:-1])
        self.rows.append(snapshot.row)
        if len(self.rows) - self.trained_at < self.every:
            return False
        self.forecaster = self._trained(self.known())
        self.trained_at = len(self.rows)
        self.times += 1
        return True

    @property
    def seam(self) -> int | None:
        """The place of a missing row between source and stream; None where one continues the other."""
        return None if self.continues else len(self.source)

    def known(self) -> Floats:
        """The source and the stream so far, (T + t, C) or, with a missing row at the seam, (T + 1 + t, C).

        No window has rows from both sides of a seam.
        """
        between = np.full((0 if self.continues else 1, self.source.shape[1]), np.nan)
        return np.concatenate([self.source, between, self.rows])

    def _trained(self, rows: Floats) -> TrainedForecaster:
        """The network trained again, from the shelf if it is there."""
        if self.shelf is None:
            return train_again(self.forecaster, rows, warm=self.warm)
        file, checkpoint = (self.shelf / f"{self._name(rows)}.{kind}" for kind in ("safetensors", "checkpoint"))
        if not file.exists():
            train_again(self.forecaster, rows, warm=self.warm, checkpoint=checkpoint).save(file)
            checkpoint.unlink(missing_ok=True)
        return TrainedForecaster.load(file, self.forecaster.training.device)

    def _name(self, rows: Floats) -> str:
        """Of the network that training on these rows ends in: all that decides it."""
        present = self.forecaster
        recipe = {**describe(present.config, present.training, present.scaler), **versions("ompb", "torch")}
        start = present.model.state_dict().values() if self.warm else ()
        weights = (tensor.cpu().numpy().tobytes() for tensor in start)
        return f"again-{digest(json.dumps(recipe).encode(), *weights, rows.tobytes())}"

    def base(self, snapshot: Snapshot) -> Floats:
        """What the present network says, (H, C)."""
        return self.forecaster(snapshot.window[None])[0] if self.times else snapshot.base

    @property
    def settings(self) -> Mapping[str, Any]:
        """The recipe, and how often it has been followed so far."""
        training = dataclasses.asdict(self.forecaster.training)
        return {"every": self.every, "warm": self.warm, "training": training, "retrainings": self.times}


@dataclass
class Retrained:
    """The forecasts of the newest network."""

    renewal: Renewal

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the training."""
        return self.renewal.settings

    def step(self, snapshot: Snapshot) -> Prediction:
        """Train again if it is time to, then forecast."""
        self.renewal.renews(snapshot)
        return Prediction(self.renewal.base(snapshot))


@dataclass
class RetrainedUnderHead:
    """The live head around the newest network. Until the first training it is `ompb`.

    For each new network a calibrator is fitted on what the network was trained on, and its stream starts with the rows
    so far as history: outcomes of forecasts that the old network issued are not learned.
    """

    renewal: Renewal
    first: Method
    season: int | None
    stream: Stream | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Those of the training, and of the head."""
        return {**self.renewal.settings, "head": settings_record(self.first)}

    def step(self, snapshot: Snapshot) -> Prediction:
        """Train again and calibrate if it is time to, then learn the row and forecast."""
        if self.renewal.renews(snapshot):
            self.stream = self._calibrated().stream(history=np.stack(self.renewal.rows[:-1]))
        if self.stream is None:
            return self.first.step(snapshot)
        forecast = self.stream.step(snapshot.row, base=self.renewal.base(snapshot))
        assert forecast is not None  # a base forecast was given
        return live_prediction(forecast)

    def _calibrated(self) -> Calibrator:
        renewal, sizes = self.renewal, self.renewal.forecaster.config
        forecaster: AnyForecaster = renewal.forecaster
        share = Settings().certificate_share
        if renewal.seam is not None:
            forecaster = OnEitherSide(renewal.forecaster, renewal.seam)
            share = certificate_share(len(renewal.source), len(renewal.rows), sizes.context + sizes.horizon)
        return Calibrator.fit(
            forecaster,
            renewal.known(),
            context=sizes.context,
            horizon=sizes.horizon,
            season=self.season,
            certificate_share=share,
        )


def certificate_share(source: int, stream: int, span: int) -> float:
    """The share of source, seam and stream to keep for the certificate: the usual one, or more if it has no window.

    The seam may leave it none of ``span`` rows, the stream being too short for one.

    >>> certificate_share(source=500, stream=52, span=96) * 553  # the stream, the seam, and a window before it
    149.0
    """
    rows, usual = source + 1 + stream, Settings().certificate_share
    has_window = stream >= span or round(usual * rows) - stream - 1 >= span
    return usual if has_window else (stream + 1 + span) / rows


@dataclass(frozen=True, eq=False)
class OnEitherSide(Forecaster):
    """A network that is silent where a window or its outcome has the missing row ``seam``, or rows on both sides."""

    network: TrainedForecaster
    seam: int

    def forecast(self, query: Query) -> Floats:
        """What the network says."""
        return self.network(query.windows)

    def speaks_at(self, origins: Origins, times: Times | None) -> NDArray[np.bool_]:
        """Whether all rows of an origin lie on one side."""
        del times
        sizes = self.network.config
        return (origins + sizes.horizon < self.seam) | (origins - sizes.context + 1 > self.seam)


def _standardised(task: Task) -> TrainedForecaster:
    """The trained backbone as a forecaster of standardised windows, to be trained on the task's device."""
    if task.network is None:
        raise OptionError("the task brings no network; pass the file of a TrainedForecaster as network.")
    with torch.random.fork_rng(devices=[]):  # building a network draws weights, even if saved ones replace them
        saved = TrainedForecaster.load(task.network, task.device)
    channels = saved.config.channels
    return replace(
        saved,
        scaler=Scaler(np.zeros(channels), np.ones(channels)),
        training=replace(saved.training, device=task.device),
    )


def _unfit(conditions: Conditions) -> str | None:
    if conditions.protocol != HONEST:
        return f"it learns from rows alone, so the protocol must be {HONEST!r}, not {conditions.protocol!r}"
    return needs_network(conditions)


@method("retrain", unfit=_unfit, by_stream=True)
def retrain(task: Task, every: int | None = None) -> Method:
    """The backbone, trained anew from scratch."""
    return Retrained(Renewal.start(task, every, warm=False))


@method("retrain-warm", unfit=_unfit, by_stream=True)
def retrain_warm(task: Task, every: int | None = None) -> Method:
    """The backbone, trained on from its present weights."""
    return Retrained(Renewal.start(task, every, warm=True))


@method("retrain+ompb", unfit=_unfit, by_stream=True)
def retrain_with_head(task: Task, every: int | None = None) -> Method:
    """The backbone, trained anew from scratch, under the live head."""
    return RetrainedUnderHead(Renewal.start(task, every, warm=False), make("ompb", task), task.season)
