"""Published methods whose online rate is not the published one: a rehearsal on the source chooses it.

The source's end is followed as a stream, under the task's own protocol: once as it is, once with a level that moves
half-way, and once with one that moves far, at which a rate that is too fast for large inputs shows. The rate with the
least mean absolute error over all is taken. No row of the stream is looked at. The backbone has been trained on these
rows; what a method trains beside it holds out the newest tenth of the source itself.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.baselines.network import Forecasts, load_network, needs_network
from ompb.baselines.onenet import OneNet, OneNetSettings
from ompb.baselines.options import with_options
from ompb.baselines.proceed import Proceed, ProceedSettings, published_unfit
from ompb.baselines.solid import Solid, SolidSettings
from ompb.bench.contract import Method, Prediction, Snapshot, Task, settings_record, snapshots
from ompb.bench.methods import method
from ompb.bench.protocols import Clock
from ompb.errors import OptionError, TooShortError
from ompb.types import Floats

FACTORS = (1.0, 0.1, 10.0)  # of the published rate, which comes first: it is kept where no other is better
PROCEED_RATES = (3e-4, 3e-5, 3e-6, 3e-7)
ORIGINS = 1000  # of a rehearsal, but four horizons where those are longer, so that the moved level can be learned
SHARE = 4  # a rehearsal takes at most one in so many of the source's origins
LEVELS = (1.5, 5.0)  # by which the level moves, in standard deviations of the source


class Rated(Method, Protocol):
    """A method that learns online at one rate."""

    @property
    def rate(self) -> float:
        """The rate."""

    def set_rate(self, rate: float) -> None:
        """Learn at this rate from now on."""


Start: TypeAlias = Callable[[Task, Mapping[str, Any]], Rated]  # a method with some options
Rates: TypeAlias = Callable[[float], Sequence[float]]  # those to try, of the published one


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A part of the source as a stream."""

    rows: Floats  # (T, C)
    base: NDArray[np.floating[Any]]  # (n, H, C): the forecasts of origins context - 1 ...

    @classmethod
    def plain(cls, task: Task) -> Rehearsal:
        """The source's end as it is. Raises `TooShortError` where no outcome would become known before it ends."""
        known = len(task.source_base)
        origins = min(max(ORIGINS, 4 * task.horizon), known // SHARE)
        if origins <= task.horizon:
            raise TooShortError(
                f"a quarter of {known} source windows is too short a rehearsal at a horizon of {task.horizon}; pass a "
                f"source of {SHARE * (task.horizon + 1)} windows or more, or run the method with its published rate."
            )
        rows = task.context - 1 + origins + task.horizon
        return cls(task.source[-rows:], task.source_base[-origins:])

    def moved(self, task: Task, level: float) -> Rehearsal:
        """The same with a level that moves so far at the origin half-way, and what the network forecasts of it."""
        rows, base, half = self.rows.copy(), np.array(self.base), len(self.base) // 2
        rows[task.context - 1 + half :] += level
        forecast = Forecasts(load_network(task))
        for place in range(half, len(base)):
            base[place] = forecast(rows[place : place + task.context])
        return Rehearsal(rows, base)

    def error(self, rehearsed: Method, task: Task) -> float:
        """Mean absolute error of a method over the cells that are known; infinite if it diverges."""
        total, known = 0.0, 0
        clock = Clock(task.protocol, task.horizon, task.context - 1)
        for snapshot in snapshots(self.rows, self.rows, self.base, clock, task.context):
            mean = rehearsed.step(snapshot).mean
            if not np.isfinite(mean).all():
                return np.inf
            errors = np.abs(mean - self.rows[snapshot.origin + 1 : snapshot.origin + 1 + task.horizon])
            total, known = total + float(np.nansum(errors)), known + int((~np.isnan(errors)).sum())
        return total / known if known else np.inf


@dataclass(eq=False)
class Tuned:
    """A method at the rate that was chosen."""

    chosen: Method
    rehearsed: dict[str, float | None]  # mean error by rate; None where forecasts diverged

    @property
    def settings(self) -> Mapping[str, Any]:
        """The method's own, with what the rehearsal found."""
        return {**settings_record(self.chosen), "rehearsed": self.rehearsed}

    def step(self, snapshot: Snapshot) -> Prediction:
        """The method's own step."""
        return self.chosen.step(snapshot)


def tuned(task: Task, start: Start, option: str, rates: Rates, options: Mapping[str, Any]) -> Tuned:
    """The method that ``start`` makes, whose rate, its option of that name, is chosen by a rehearsal."""
    if option in options:
        raise OptionError(f"{option} is what the rehearsal chooses; leave it out, or run the method without +tuned.")
    published = start(task, options)
    unused = pickle.dumps(published)  # before it has seen any row
    plain = Rehearsal.plain(task)
    streams = [plain, *(plain.moved(task, level) for level in LEVELS)]
    errors = {rate: _rehearsed(unused, rate, streams, task) for rate in rates(published.rate)}
    best = min(errors, key=lambda rate: errors[rate])  # the first of equals
    # What is trained offline may depend on the rate, so that another rate needs another start.
    chosen = published if best == published.rate else start(task, {**options, option: best})
    return Tuned(chosen, {f"{rate:g}": error if np.isfinite(error) else None for rate, error in errors.items()})


def _rehearsed(unused: bytes, rate: float, streams: Sequence[Rehearsal], task: Task) -> float:
    """Mean error over some streams, each followed by a copy of its own."""
    errors = []
    for stream in streams:
        copy: Rated = pickle.loads(unused)
        copy.set_rate(rate)
        errors.append(stream.error(copy, task))
    return float(np.mean(errors))


def _around(published: float) -> list[float]:
    return [factor * published for factor in FACTORS]


def _solid(task: Task, options: Mapping[str, Any]) -> Solid:
    return Solid.start(task, with_options(SolidSettings.published(task.season), options))


def _onenet(task: Task, options: Mapping[str, Any]) -> OneNet:
    return OneNet.start(task, with_options(OneNetSettings(), options))


def _proceed(task: Task, options: Mapping[str, Any]) -> Proceed:
    return Proceed.start(task, with_options(ProceedSettings.published(task.horizon), options))


@method("solid+tuned", unfit=needs_network)
def solid_tuned(task: Task, **options: Any) -> Method:
    """SOLID at a tenth of its rate, at its rate, or at ten times it."""
    return tuned(task, _solid, "rate", _around, options)


@method("onenet+tuned", unfit=needs_network)
def onenet_tuned(task: Task, **options: Any) -> Method:
    """OneNet at a tenth of its rate, at its rate, or at ten times it."""
    return tuned(task, _onenet, "rate", _around, options)


@method("proceed+tuned", unfit=published_unfit)
def proceed_tuned(task: Task, **options: Any) -> Method:
    """PROCEED at one of the rates that its authors choose from."""
    return tuned(task, _proceed, "online_rate", lambda _: PROCEED_RATES, options)
