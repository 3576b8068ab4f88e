"""The methods that are compared, by name, and the trivial ones among them.

Add one by ``@method("name")`` on a factory, or from another package by an entry point in the group "ompb.methods" that
bears the name and leads to the factory. The published baselines come by that way too: see `ompb.baselines`.

A name may bring options of the factory, as in ``ompb[gate="open"]``: see `ompb.bench.named`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ompb.bench.added import outside_code
from ompb.bench.contract import SCORED_LEVELS, Conditions, Method, Pairs, Prediction, Snapshot, Task, can_be_recorded
from ompb.bench.named import Named
from ompb.bench.protocols import HONEST
from ompb.calibrator import Calibrator
from ompb.errors import MissingExtraError, OptionError
from ompb.floor.registry import Registry
from ompb.forecasters import SeasonalProfile
from ompb.seam.query import Forecaster, Query
from ompb.settings import Settings
from ompb.stream import Stream
from ompb.types import Floats, Forecast

BIAS_RATE = 0.05
# Terms of the certificate that are signals.
CERTIFICATE_SIGNALS = (
    "value", "source_risk", "gamma", "disagreement", "source_disagreement", "target_disagreement", "posterior_shift",
    "tau_y",
)  # fmt: skip

Factory: TypeAlias = Callable[..., Method]  # of a Task, and of options by name
Unfit: TypeAlias = Callable[[Conditions], str | None]


def _fits(conditions: Conditions) -> None:  # noqa: ARG001
    """Nothing speaks against a method that takes on everything."""
    return


@dataclass(frozen=True, slots=True)
class _Entry:
    factory: Factory
    unfit: Unfit = _fits
    by_stream: bool = False


_METHODS: Registry[_Entry] = Registry("method", "ompb.methods")


def method(name: str, unfit: Unfit = _fits, *, by_stream: bool = False) -> Callable[[Factory], Factory]:
    """Enter a factory under a name; ``unfit`` says why conditions are not for it, or None.

    What it makes serves all streams of a data set unless ``by_stream``: then one that continues the source has its own.
    """

    def enter(factory: Factory) -> Factory:
        _METHODS.enter(name, _Entry(factory, unfit, by_stream))
        return factory

    return enter


def method_names() -> tuple[str, ...]:
    """Every method there is: the built-in ones, then those of entry points."""
    return _METHODS.names()


def unfit(name: str, conditions: Conditions) -> str | None:
    """Why a method cannot work here under conditions; None if it can."""
    return lacking(name) or _entry(name).unfit(conditions)


def lacking(name: str) -> str | None:
    """What a method needs and is not installed, in words; None if nothing."""
    try:
        _entry(name)
    except MissingExtraError as error:
        return str(error)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ompb"):
            raise
        return f"it needs the package {error.name}, which is not installed"
    return None


def is_by_stream(name: str) -> bool:
    """Whether a method is made anew for a stream that continues the source, see `method`."""
    return _entry(name).by_stream


def make(name: str, task: Task) -> Method:
    """A fresh method. Raises `OptionError` for an unknown name or a task that is not for it."""
    reason = unfit(name, task)
    if reason is not None:
        raise OptionError(f"the method {name!r} cannot be run here: {reason}.")
    made = _call(_entry(name).factory, task, name)
    if not (callable(getattr(made, "step", None)) and can_be_recorded(getattr(made, "settings", None))):
        raise OptionError(
            f"the factory of the method {name!r} returned {made!r}; return an object with the method `step` and with "
            "`settings`, a mapping or a dataclass."
        )
    return made


def _call(factory: Factory, task: Task, name: str) -> Method:
    """What the factory makes, with the options in the method's name."""
    options = Named.of(name).options
    signature = inspect.signature(factory)
    try:
        signature.bind(task, **options)
    except TypeError as error:
        accepted = ", ".join(list(signature.parameters)[1:]) or "no options"
        raise OptionError(f"the method {name!r} cannot be made: {error}; accepted: {accepted}.") from error
    return factory(task, **options)


def method_code(name: str) -> str | None:
    """What tells one version of a method that was added from the next; None for a method of this package."""
    return outside_code(_entry(name).factory)


def _entry(name: str) -> _Entry:
    found = _METHODS.find(Named.of(name).name)
    return found if isinstance(found, _Entry) else _Entry(found)


@dataclass
class _Unlearned:
    """A forecast from the present snapshot alone."""

    forecast: Callable[[Snapshot], Floats]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def step(self, snapshot: Snapshot) -> Prediction:
        """The forecast, whatever came before."""
        return Prediction(self.forecast(snapshot))


def _base(snapshot: Snapshot) -> Floats:
    return snapshot.base


@method("original")
def _original(task: Task) -> Method:  # noqa: ARG001
    return _Unlearned(_base)


def _no_season(conditions: Conditions) -> str | None:
    if conditions.season is None:
        return "the data has no season"
    if conditions.season > conditions.context:
        return f"a window of {conditions.context} rows holds no whole season of {conditions.season}"
    return None


def _profiled(profile: SeasonalProfile, snapshot: Snapshot) -> Floats:
    return np.asarray(profile(snapshot.window[None])[0])


@method("profile", unfit=_no_season)
def _profile(task: Task) -> Method:
    assert task.season is not None  # else it is unfit
    profile = SeasonalProfile(task.horizon, task.season)
    return _Unlearned(partial(_profiled, profile), {"season": task.season})


def _repeated(snapshot: Snapshot) -> Floats:
    return np.tile(snapshot.window[-1], (len(snapshot.base), 1))


@method("last")
def _last(task: Task) -> Method:  # noqa: ARG001
    return _Unlearned(_repeated)


@dataclass(frozen=True, slots=True)
class BiasSettings:
    """Options of the running bias."""

    rate: float = BIAS_RATE  # weight of the newest error


@dataclass
class _Bias:
    """The base forecast plus an exponentially weighted mean of its errors, per lead and channel."""

    settings: BiasSettings
    bias: Floats  # (H, C)

    def step(self, snapshot: Snapshot) -> Prediction:
        labels = snapshot.labels
        surprise = labels.residual - self.bias[labels.leads]
        self.bias[labels.leads] += self.settings.rate * np.where(np.isnan(surprise), 0.0, surprise)
        return Prediction(snapshot.base + self.bias)


@method("bias")
def _bias(task: Task) -> Method:
    return _Bias(BiasSettings(), np.zeros((task.horizon, task.source.shape[1])))


@dataclass
class _Copy:
    """The base forecast plus the newest residual that is complete."""

    pairs: Pairs
    residual: Floats  # (H, C)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def step(self, snapshot: Snapshot) -> Prediction:
        for pair in self.pairs.completed(snapshot):
            residual = pair.outcome - pair.base
            self.residual = np.where(np.isnan(residual), 0.0, residual)
        return Prediction(snapshot.base + self.residual)


@method("copy")
def _copy(task: Task) -> Method:
    return _Copy(Pairs(task.horizon), np.zeros((task.horizon, task.source.shape[1])))


@dataclass(frozen=True, eq=False)
class _SourceForecasts(Forecaster):
    """The forecasts of the source, by origin."""

    base: NDArray[np.floating[Any]]
    first: int

    def forecast(self, query: Query) -> Any:
        return self.base[query.origins - self.first]


@dataclass
class _Live:
    """The calibrator and its stream, as a deployment runs them."""

    stream: Stream
    settings: Settings

    def step(self, snapshot: Snapshot) -> Prediction:
        if not self.stream.rows:
            for row in snapshot.window[:-1]:
                self.stream.step(row, base=None)
        forecast = self.stream.step(snapshot.row, base=snapshot.base)
        assert forecast is not None  # a base forecast was given
        return live_prediction(forecast)


def live_prediction(forecast: Forecast) -> Prediction:
    """What a stream has issued, as it is scored."""
    intervals = {level: forecast.interval(level) for level in SCORED_LEVELS}
    return Prediction(forecast.mean, forecast.sd, intervals, _signals(forecast))


def _signals(forecast: Forecast) -> dict[str, float]:
    """Everything a forecast says of the present before any outcome; means over channels."""
    signals = {"gate": forecast.gate.mean(), "expected_error": forecast.expected_error.mean()}
    signals["expected_square"] = (forecast.expected_error**2).mean()
    signals["warnings"] = float(len(forecast.warnings))
    if forecast.novelty is not None:
        signals["novelty"] = forecast.novelty.mean()
    if forecast.certificate is not None:
        terms = forecast.certificate.terms()
        signals |= {name: terms[name] for name in CERTIFICATE_SIGNALS}
    return {name: float(value) for name, value in signals.items()}


def _not_from_rows(conditions: Conditions) -> str | None:
    if conditions.protocol == HONEST:
        return None
    return f"the live head learns from rows only, so the protocol must be {HONEST!r}, not {conditions.protocol!r}"


def _calibrated(task: Task, options: Mapping[str, Any]) -> Calibrator:
    known = _SourceForecasts(task.source_base, task.context - 1)
    sizes = {"context": task.context, "horizon": task.horizon, "season": task.season}
    return Calibrator.fit(known, task.source, **{**sizes, **options})


@method("ompb", unfit=_not_from_rows)
def _ompb(task: Task, **options: Any) -> Method:
    calibrator = _calibrated(task, options)
    return _Live(calibrator.stream(), calibrator.settings)


def _not_continued(conditions: Conditions) -> str | None:
    if not conditions.continues:
        return "the stream does not go on where the source ends, so the source is not its history"
    return _not_from_rows(conditions)


@method("ompb+history", unfit=_not_continued)
def _ompb_with_history(task: Task, **options: Any) -> Method:
    calibrator = _calibrated(task, options)
    return _Live(calibrator.stream(history=task.source), calibrator.settings)
