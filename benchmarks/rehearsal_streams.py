"""Streams made of sources, with what each voice of the mixture says on them: the material of the rehearsal.

The first rows of a source are its *past*: forecasters are fitted to them, and calibrators. The rest is played as a
stream, as it is and disturbed in ways that are made up, at once or half way through. Forecasters are a ridge, which
follows its window; a network of random tanh units, which does not normalise and loses its way when the level moves; and
a ridge that was fitted to the stream itself, which *knows* of the change and must not be harmed.

What voices say does not depend on the gate, so it is recorded once, at some of the leads.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ompb import Calibrator, Ridge, Settings
from ompb.core.mixture import joined
from ompb.datasets.benchmark import load
from ompb.rows.scaler import Scaler
from ompb.rows.windows import fill_forward, outcomes_at, sliding
from ompb.types import Floats

Forecast: TypeAlias = Callable[[Floats], Floats]  # windows (n, context, C) to (n, H, C)
Small: TypeAlias = Any  # an array of float32

BENCHMARK: dict[str, tuple[int, ...]] = {"etth": (24, 96), "weather-stand-in": (24, 96), "ili": (24, 48)}
# Context, season and horizons of the other series; a season that does not fit into the window is none.
OTHERS: dict[str, tuple[int, int | None, tuple[int, ...]]] = {
    "opsd_daily": (28, 7, (14,)),
    "wikipedia": (28, 7, (14,)),
    "rivers": (60, None, (14,)),
    "la_speed": (96, None, (24,)),
    "dam_price": (96, 24, (24,)),
    "evap": (96, 24, (24,)),
    "seattle_daily": (60, None, (14,)),
    "machine_temp": (96, None, (24,)),
}
LONGEST_PAST, LONGEST_STREAM, LEAST_STREAM = 8_000, 1_800, 100  # rows
PASTS = {"ili": (0.5, 0.65, 0.8)}  # shares of the source that are known; short sources are cut in several places
USUAL_PAST = (0.7,)
MOST_LEADS = 16
KNOWS = "knows"  # the forecaster that was fitted to the stream itself
UNITS, UNIT_SCALE, UNIT_RIDGE = 200, 0.5, 1e-3  # of the random network


def _suddenly(rows: Floats, other: Floats) -> Floats:
    return np.where(np.arange(len(rows))[:, None] < len(rows) // 2, rows, other)


def _later(rows: Floats, by: int) -> Floats:
    return np.roll(rows, by, axis=0)


# What may happen to standardised rows (T, C).
DISTURBANCES: dict[str, Callable[[Floats], Floats]] = {
    "nothing": lambda rows: rows,
    "level": lambda rows: rows + 2.0,
    "sudden level": lambda rows: _suddenly(rows, rows + 2.0),
    "sudden jump back": lambda rows: _suddenly(rows + 1.5, rows),
    "spread": lambda rows: 1.5 * rows,
    "drift": lambda rows: rows + np.linspace(0.0, 3.0, len(rows))[:, None],
    "neighbour": lambda rows: np.roll(rows, 1, axis=1),
    "sudden neighbour": lambda rows: _suddenly(rows, np.roll(rows, 1, axis=1)),
    "sudden reversal": lambda rows: _suddenly(rows, -rows),
    "sudden phase": lambda rows: _suddenly(rows, _later(rows, 6)),
}
ONE_CHANNEL = tuple(name for name in DISTURBANCES if "neighbour" not in name)


@dataclass(frozen=True, eq=False)
class Series:
    """A source with its sizes."""

    name: str
    rows: Floats  # (T, C)
    context: int
    season: int | None
    horizons: tuple[int, ...]


def series(folder: Path) -> Iterator[Series]:
    """Sources of the benchmark, and the series of other kinds."""
    for name, horizons in BENCHMARK.items():
        data = load(name, folder)
        yield Series(name, data.source, data.context, data.season, horizons)
    for name, (context, season, horizons) in OTHERS.items():
        rows = np.genfromtxt(folder / "rehearsal" / f"{name}.csv", delimiter=",", skip_header=1)
        yield Series(name, rows[:, None] if rows.ndim == 1 else rows, context, season, horizons)


@dataclass(frozen=True, eq=False)
class RandomNetwork:
    """Random tanh units of each channel's window, and a ridge regression on them."""

    inside: Floats  # (context + 1, units)
    outside: Floats  # (C, units + 1, H)

    @classmethod
    def fit(cls, past: Floats, context: int, horizon: int, seed: int) -> RandomNetwork:
        rng = np.random.default_rng(seed)
        inside = rng.normal(scale=UNIT_SCALE, size=(context + 1, UNITS)) / np.sqrt(context) * 2
        stretches = sliding(past, context + horizon)
        stretches = stretches[:: max(1, len(stretches) // 4000)]
        outside = []
        for channel in range(past.shape[1]):
            units = _units(stretches[:, :context, channel], inside)
            ridge = UNIT_RIDGE * len(units) * np.eye(units.shape[1])
            outside.append(np.linalg.solve(units.T @ units + ridge, units.T @ stretches[:, context:, channel]))
        return cls(inside, np.stack(outside))

    def __call__(self, windows: Floats) -> Floats:
        """(n, context, C) to (n, H, C)."""
        said = [_units(windows[..., c], self.inside) @ weights for c, weights in enumerate(self.outside)]
        return np.stack(said, axis=-1)


def _units(windows: Floats, inside: Floats) -> Floats:
    ones = np.ones((len(windows), 1))
    return np.concatenate([np.tanh(np.concatenate([windows, ones], axis=1) @ inside), ones], axis=1)


@dataclass(frozen=True, eq=False)
class Record:
    """What voices said on one stream, standardised: n origins, N lanes, K voices, J leads."""

    dataset: str
    title: str
    forecaster: str
    season: int | None
    names: tuple[str, ...]  # of the voices
    leads: Floats  # (J,), from 1
    corrections: Small  # (n, N, K, J)
    residual: Small  # outcome less base forecast: (n, N, J); NaN where unknown
    novelty: Floats  # (n, N)


def some_leads(horizon: int) -> Floats:
    """At most `MOST_LEADS` of 1 .. H, the near ones all."""
    return np.unique(np.round(np.geomspace(1, horizon, MOST_LEADS))).astype(np.float64)


def records(one: Series, settings: Settings) -> Iterator[Record]:
    """Every cut, horizon, forecaster and disturbance of a series."""
    for known in PASTS.get(one.name, USUAL_PAST):
        cut = int(known * len(one.rows))
        scaler = Scaler.fit(one.rows[:cut])
        past = scaler.standardise(one.rows[:cut])[-LONGEST_PAST:]
        rows = fill_forward(scaler.standardise(one.rows[cut:]), np.zeros(one.rows.shape[1]))[:LONGEST_STREAM]
        for horizon in one.horizons:
            if len(rows) < LEAST_STREAM:
                continue
            yield from _of_cut(one, known, horizon, past, rows, settings)


def _of_cut(
    one: Series, known: float, horizon: int, past: Floats, rows: Floats, settings: Settings
) -> Iterator[Record]:
    filled = fill_forward(past, np.zeros(past.shape[1]))
    seed = zlib.crc32(f"{one.name} {horizon}".encode())
    fitted: dict[str, Forecast] = {
        "ridge": Ridge.fit(filled, one.context, horizon),
        "network": RandomNetwork.fit(filled, one.context, horizon, seed),
    }
    sizes: dict[str, Any] = {"context": one.context, "horizon": horizon, "season": one.season}
    for name, forecaster in fitted.items():
        calibrator = Calibrator.fit(forecaster, past, **sizes, **_options(settings))
        for kind in ONE_CHANNEL if past.shape[1] == 1 else DISTURBANCES:
            stream = DISTURBANCES[kind](rows)
            title = f"{one.name}, {{}}, H = {horizon}, {known:.0%} known, {kind}"
            yield record(one, title.format(name), name, calibrator, forecaster, stream)
            if name == "ridge" and kind != "nothing":
                knows = Ridge.fit(stream, one.context, horizon)
                yield record(one, title.format(KNOWS), KNOWS, calibrator, knows, stream)


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "certificate": False,
        "members": settings.members,
        "discounts": settings.discounts,
        "anchor": settings.anchor,
    }


def record(
    one: Series, title: str, forecaster: str, calibrator: Calibrator, forecast: Forecast, rows: Floats
) -> Record:
    """Play a stream and write down what every voice says."""
    rules, context, horizon = calibrator.online, calibrator.context, calibrator.horizon
    origins = np.arange(context - 1, len(rows))
    base = forecast(sliding(rows, context))
    standard, said = calibrator.scaler.standardise(rows), calibrator.scaler.standardise(base)
    places = some_leads(horizon).astype(int) - 1
    remembers = calibrator.remembers
    padded = np.concatenate([np.zeros((remembers, rows.shape[1])), standard]).T.copy()
    voices: list[Any] = []
    novelty: list[Any] = []
    states = rules.mixture.start()
    residuals = np.moveaxis(outcomes_at(standard, origins, horizon) - said, -1, 1)  # (n, N, H)
    for place, origin in enumerate(origins.tolist()):
        if place:
            # the newest row is lead h of the h-th last origin
            leads = np.arange(min(place, horizon))
            residual, observed = np.zeros((2, rows.shape[1], horizon))
            residual[:, leads] = residuals[place - 1 - leads, :, leads].T
            observed[:, leads] = 1.0
            states = rules.mixture.learn(states, origin, residual, observed)
        newest = padded[:, None, origin + 1 : origin + 1 + remembers]
        seen = rules.mixture.see(rules.features.view(newest, said[place].T[:, None].copy(), (origin + 1,)))
        speeches, states = rules.mixture.issue(states, origin, seen)
        corrections = joined(speeches).corrections[:, :, 0]
        voices.append(corrections[..., places].astype(np.float32))
        assert rules.novelty is not None
        novelty.append(rules.novelty.of(corrections, rules.novelty.usual_with(origin + 1)))
    return Record(
        dataset=one.name,
        title=title,
        forecaster=forecaster,
        season=one.season,
        names=rules.mixture.names,
        leads=some_leads(horizon),
        corrections=np.stack(voices),
        residual=residuals[..., places].astype(np.float32),
        novelty=np.stack(novelty),
    )
