"""What the benchmark compares: methods by name, and all that one of them is ever shown.

A method is made from a `Task` by a factory and stepped once per origin with a `Moment`, all numbers standardised with
the source. Add one by ``@method("name")`` on a factory, or from another package by an entry point in the group
"ompb.methods" that bears a new name and leads to a factory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ompb.bench.protocols import HONEST, Clock
from ompb.calibrator import Calibrator
from ompb.errors import OptionError
from ompb.forecasters import SeasonalProfile
from ompb.stream import Stream
from ompb.types import Floats

if TYPE_CHECKING:
    from ompb.gradient.preset import OnlineGradientHead

GROUP = "ompb.methods"
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the intervals that are scored
BIAS_RATE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """Leads of one origin's outcome that have become visible, with what the forecaster had said of them."""

    origin: int
    leads: slice  # places among the H leads, from 0
    values: Floats  # (leads, C)
    base: Floats  # (leads, C)

    @property
    def residual(self) -> Floats:
        """What the forecaster should have added, (leads, C)."""
        return self.values - self.base


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """All that is known at an origin and new since the one before."""

    origin: int  # counts the rows of the stream, from 0
    row: Floats  # (C,), the newest
    window: Floats  # (context, C), which ends in it
    base: Floats  # (H, C), what the forecaster says of the rows to come
    labels: tuple[Label, ...]  # newly visible, oldest origin first


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A forecast (H, C), with its predictive standard deviation and intervals where the method has them."""

    mean: Floats
    sd: Floats | None = None  # (H, C)
    intervals: Mapping[float, tuple[Floats, Floats]] | None = None  # lower and upper end, (H, C), by level


class Method(Protocol):
    """A correction of a frozen forecaster, in its online stage."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What it runs with, for the record."""

    def step(self, moment: Moment) -> Prediction:
        """Learn what has become visible, then forecast."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    """The part of a task that decides whether a method can take it on."""

    context: int
    horizon: int
    season: int | None
    protocol: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(Setting):
    """What a method may learn from before the stream starts."""

    source: Floats  # (T, C)
    source_base: NDArray[np.floating[Any]]  # (n, H, C): the forecasts of origins context - 1 .. T - H - 1
    forecaster: str  # as tables name it
    seed: int
    device: str = "cpu"


Factory: TypeAlias = Callable[[Task], Method]
Unfit: TypeAlias = Callable[[Setting], str | None]


@dataclass(frozen=True, slots=True)
class _Entry:
    factory: Factory
    unfit: Unfit


_ENTRIES: dict[str, _Entry] = {}


def _fits(setting: Setting) -> None:  # noqa: ARG001
    """The word of a method that takes on everything."""
    return


def method(name: str, unfit: Unfit = _fits) -> Callable[[Factory], Factory]:
    """Enter a factory under a name; ``unfit`` says why a setting is not for it, or None.

    It is known to this process only: a run in several needs an entry point.
    """

    def enter(factory: Factory) -> Factory:
        if name in _ENTRIES:
            raise OptionError(f"there is a method {name!r} already; choose another name.")
        _ENTRIES[name] = _Entry(factory, unfit)
        return factory

    return enter


def method_names() -> tuple[str, ...]:
    """Every method there is: the built-in ones, then those of other packages."""
    return (*_ENTRIES, *sorted(entry_points(group=GROUP).names - _ENTRIES.keys()))


def unfit(name: str, setting: Setting) -> str | None:
    """Why a method cannot take on a setting; None if it can."""
    return _entry(name).unfit(setting)


def make(name: str, task: Task) -> Method:
    """A fresh method. Raises `OptionError` for an unknown name or a task that is not for it."""
    reason = unfit(name, task)
    if reason is not None:
        raise OptionError(f"the method {name!r} cannot be run here: {reason}.")
    return _entry(name).factory(task)


def _entry(name: str) -> _Entry:
    if name in _ENTRIES:
        return _ENTRIES[name]
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise OptionError(f"there is no method {name!r}; accepted: {', '.join(method_names())}.")
    return _Entry(found[name].load(), _fits)


def moments(
    rows: Floats, filled: Floats, base: NDArray[np.floating[Any]], clock: Clock, context: int
) -> Iterator[Moment]:
    """The moments of a stream (T, C) whose forecasts (n, H, C) begin at origin context - 1, as the clock allows.

    Windows are cut from ``filled``: the rows with their missing cells filled.
    """
    for place in range(len(base)):
        origin = context - 1 + place
        labels = tuple(
            Label(
                shown.origin,
                leads := slice(shown.first_lead - 1, shown.last_lead),
                rows[shown.origin + shown.first_lead : shown.origin + shown.last_lead + 1],
                np.asarray(base[shown.origin - context + 1, leads], dtype=np.float64),
            )
            for shown in clock.revealed(origin)
        )
        window = filled[origin + 1 - context : origin + 1]
        yield Moment(origin, rows[origin], window, np.asarray(base[place], dtype=np.float64), labels)


@dataclass
class _Unlearned:
    """A forecast from the present moment alone."""

    say: Callable[[Moment], Floats]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def step(self, moment: Moment) -> Prediction:
        """What it says."""
        return Prediction(self.say(moment))


@method("original")
def _original(task: Task) -> Method:  # noqa: ARG001
    return _Unlearned(lambda moment: moment.base)


def _no_season(setting: Setting) -> str | None:
    if setting.season is None:
        return "the data has no season"
    if setting.season > setting.context:
        return f"a window of {setting.context} rows holds no whole season of {setting.season}"
    return None


@method("profile", unfit=_no_season)
def _profile(task: Task) -> Method:
    assert task.season is not None  # else it is unfit
    profile = SeasonalProfile(task.horizon, task.season)
    return _Unlearned(lambda moment: np.asarray(profile(moment.window[None])[0]), {"season": task.season})


@method("last")
def _last(task: Task) -> Method:  # noqa: ARG001
    return _Unlearned(lambda moment: np.tile(moment.window[-1], (len(moment.base), 1)))


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
class _Outcomes:
    """Puts labels together until an origin's outcome is complete; every protocol shows leads in order."""

    horizon: int
    parts: dict[int, list[Label]] = field(default_factory=dict)

    def completed(self, labels: tuple[Label, ...]) -> list[tuple[Floats, Floats]]:
        """Base forecast and outcome, each (H, C), of the origins that these labels complete, oldest first."""
        whole = []
        for label in labels:
            self.parts.setdefault(label.origin, []).append(label)
            if label.leads.stop == self.horizon:
                parts = self.parts.pop(label.origin)
                whole.append((np.concatenate([p.base for p in parts]), np.concatenate([p.values for p in parts])))
        return whole


@dataclass
class _Copy:
    """The base forecast plus the newest residual that is complete."""

    outcomes: _Outcomes
    residual: Floats  # (H, C)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def step(self, moment: Moment) -> Prediction:
        for base, outcome in self.outcomes.completed(moment.labels):
            self.residual = np.where(np.isnan(outcome), 0.0, outcome - base)
        return Prediction(moment.base + self.residual)


@method("copy")
def _copy(task: Task) -> Method:
    return _Copy(_Outcomes(task.horizon), np.zeros((task.horizon, task.source.shape[1])))


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
    forecaster = _SourceForecasts(task.source_base, task.context - 1)
    calibrator = Calibrator.fit(forecaster, task.source, context=task.context, horizon=task.horizon, season=task.season)
    return _Live(calibrator.stream(forecaster), dataclasses.asdict(calibrator.settings))


@dataclass
class _Paper:
    """The paper's head, which learns complete outcomes only."""

    head: OnlineGradientHead
    outcomes: _Outcomes
    settings: Mapping[str, Any]

    def step(self, moment: Moment) -> Prediction:
        for base, outcome in self.outcomes.completed(moment.labels):
            self.head.learn(base, outcome)
        return Prediction(*self.head.forecast(moment.base))


@method("ompb-paper")
def _ompb_paper(task: Task) -> Method:
    from ompb.gradient.preset import GradientHead, PaperPreset  # needs torch

    preset = PaperPreset(seed=task.seed, device=task.device)
    outcomes = sliding_window_view(task.source[task.context :], task.horizon, axis=0).transpose(0, 2, 1)
    head = GradientHead.fit(task.source_base, outcomes, preset)
    return _Paper(head.start(), _Outcomes(task.horizon), dataclasses.asdict(preset))
