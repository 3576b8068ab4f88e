"""The methods that are compared, by name, and the trivial ones among them.

Add one by ``@method("name")`` on a factory, or from another package by an entry point in the group "ompb.methods" that
bears the name and leads to the factory. The published baselines come by that way too: see `ompb.baselines`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.bench.added import outside_code
from ompb.bench.contract import LEVELS, Method, Moment, Pairs, Prediction, Setting, Task
from ompb.bench.protocols import HONEST
from ompb.calibrator import Calibrator
from ompb.errors import MissingExtraError, OptionError
from ompb.forecasters import SeasonalProfile
from ompb.registry import Registry
from ompb.stream import Stream
from ompb.types import Floats

BIAS_RATE = 0.05

Factory: TypeAlias = Callable[[Task], Method]
Unfit: TypeAlias = Callable[[Setting], str | None]


def _fits(setting: Setting) -> None:  # noqa: ARG001
    """The word of a method that takes on everything."""
    return


@dataclass(frozen=True, slots=True)
class _Entry:
    factory: Factory
    unfit: Unfit = _fits


_METHODS: Registry[_Entry] = Registry("method", "ompb.methods")


def method(name: str, unfit: Unfit = _fits) -> Callable[[Factory], Factory]:
    """Enter a factory under a name; ``unfit`` says why a setting is not for it, or None."""

    def enter(factory: Factory) -> Factory:
        _METHODS.enter(name, _Entry(factory, unfit))
        return factory

    return enter


def method_names() -> tuple[str, ...]:
    """Every method there is: the built-in ones, then those of entry points."""
    return _METHODS.names()


def unfit(name: str, setting: Setting) -> str | None:
    """Why a method cannot take on a setting; None if it can."""
    try:
        return _entry(name).unfit(setting)
    except MissingExtraError as error:
        return str(error)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ompb"):
            raise
        return f"it needs the package {error.name}, which is not installed"


def make(name: str, task: Task) -> Method:
    """A fresh method. Raises `OptionError` for an unknown name or a task that is not for it."""
    reason = unfit(name, task)
    if reason is not None:
        raise OptionError(f"the method {name!r} cannot be run here: {reason}.")
    made = _entry(name).factory(task)
    if not (callable(getattr(made, "step", None)) and hasattr(made, "settings")):
        raise OptionError(
            f"the factory of the method {name!r} returned {made!r}; return an object with `step` and `settings`."
        )
    return made


def method_code(name: str) -> str | None:
    """What tells one version of a method that was added from the next; None for a method of this package."""
    return outside_code(_entry(name).factory)


def _entry(name: str) -> _Entry:
    found = _METHODS.find(name)
    return found if isinstance(found, _Entry) else _Entry(found)


@dataclass
class _Unlearned:
    """A forecast from the present moment alone."""

    say: Callable[[Moment], Floats]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def step(self, moment: Moment) -> Prediction:
        """What it says."""
        return Prediction(self.say(moment))


def _said(moment: Moment) -> Floats:
    return moment.base


@method("original")
def _original(task: Task) -> Method:  # noqa: ARG001
    return _Unlearned(_said)


def _no_season(setting: Setting) -> str | None:
    if setting.season is None:
        return "the data has no season"
    if setting.season > setting.context:
        return f"a window of {setting.context} rows holds no whole season of {setting.season}"
    return None


def _profiled(profile: SeasonalProfile, moment: Moment) -> Floats:
    return np.asarray(profile(moment.window[None])[0])


@method("profile", unfit=_no_season)
def _profile(task: Task) -> Method:
    assert task.season is not None  # else it is unfit
    profile = SeasonalProfile(task.horizon, task.season)
    return _Unlearned(partial(_profiled, profile), {"season": task.season})


def _repeated(moment: Moment) -> Floats:
    return np.tile(moment.window[-1], (len(moment.base), 1))


@method("last")
def _last(task: Task) -> Method:  # noqa: ARG001
    return _Unlearned(_repeated)


@dataclass
class _Bias:
    """The base forecast plus an exponentially weighted mean of its errors, per lead and channel."""

    rate: float
    bias: Floats  # (H, C)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"rate": self.rate}

    def step(self, moment: Moment) -> Prediction:
        for label in moment.labels:
            surprise = label.residual - self.bias[label.leads]
            self.bias[label.leads] += self.rate * np.where(np.isnan(surprise), 0.0, surprise)
        return Prediction(moment.base + self.bias)


@method("bias")
def _bias(task: Task) -> Method:
    return _Bias(BIAS_RATE, np.zeros((task.horizon, task.source.shape[1])))


@dataclass
class _Copy:
    """The base forecast plus the newest residual that is complete."""

    pairs: Pairs
    residual: Floats  # (H, C)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def step(self, moment: Moment) -> Prediction:
        for pair in self.pairs.completed(moment):
            self.residual = np.where(np.isnan(pair.outcome), 0.0, pair.outcome - pair.base)
        return Prediction(moment.base + self.residual)


@method("copy")
def _copy(task: Task) -> Method:
    return _Copy(Pairs(task.horizon), np.zeros((task.horizon, task.source.shape[1])))


@dataclass(frozen=True, eq=False)
class _SourceForecasts:
    """The forecasts of the source, by origin."""

    base: NDArray[np.floating[Any]]
    first: int

    def at(self, origins: Any) -> Any:
        return self.base[np.asarray(origins) - self.first]


@dataclass
class _Live:
    """The calibrator and its stream, as a deployment runs them."""

    stream: Stream
    settings: Mapping[str, Any]

    def step(self, moment: Moment) -> Prediction:
        if not self.stream.rows:
            for row in moment.window[:-1]:
                self.stream.advance(row, None)
        forecast = self.stream.advance(moment.row, moment.base)
        assert forecast is not None  # a base forecast was given
        return Prediction(forecast.mean, forecast.sd, {level: forecast.interval(level) for level in LEVELS})


def _not_from_rows(setting: Setting) -> str | None:
    if setting.protocol == HONEST:
        return None
    return f"the live head learns from rows only, so the protocol must be {HONEST!r}, not {setting.protocol!r}"


@method("ompb", unfit=_not_from_rows)
def _ompb(task: Task) -> Method:
    known = _SourceForecasts(task.source_base, task.context - 1)
    calibrator = Calibrator.fit(known, task.source, context=task.context, horizon=task.horizon, season=task.season)
    # The stream is handed its base forecasts and asks nobody; holding none keeps its copies small.
    unasked = _SourceForecasts(task.source_base[:0], 0)
    return _Live(calibrator.stream(unasked), dataclasses.asdict(calibrator.settings))
