"""Coverage and interval scores on sources, calm and shifted: the rule as it is beside others.

    OMP_NUM_THREADS=1 OMPB_DATA=DIR python benchmarks/coverage.py [--horizons 24 96] [--forecaster tcn] ...

A forecaster and a calibrator are fitted to the first part of a source, and the rest is played as a stream: as it is,
1.6 times as spread from its first row on, twice as spread from its middle on, and two standard deviations higher from
its middle on. The forecaster is a ridge or, with `--forecaster tcn`, a network that learns a small source by heart. No
target stream of the benchmark is read. Synthetic streams shift at their first row.

Beside the default rule: the same at other rates, `gaussian start`, whose intervals start with the normal law's tails,
`short memory`, whose variance goes back a hundred rows at any horizon, `light source`, in which the source counts as
ten rows at any horizon, and `present`, the oldest. That one counts misses against the half-width of the moment, the
same one for both sides, at a fixed rate of 0.05 a row.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np

from ompb import Calibrator, Ridge, Run, backtest
from ompb.core.arrays import Array
from ompb.core.intervals import (
    LEVELS,
    REACH,
    SOURCE_ROWS,
    Conformal,
    ConformalState,
    IntervalOptions,
    IntervalRule,
    IntervalState,
    Matured,
)
from ompb.datasets.benchmark import load
from ompb.datasets.synthetic import shifted_stream
from ompb.floor.shapes import Shape
from ompb.rows.scaler import Scaler
from ompb.seam.query import AnyForecaster
from ompb.types import Floats

RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "present": {"intervals": "present", "conformal_rate": 0.05},
    "gaussian start": {"intervals": "gaussian start"},
    "short memory": {"intervals": "short memory"},
    "light source": {"intervals": "light source"},
    "rate 0.2": {"conformal_rate": 0.2},
    "rate 1": {"conformal_rate": 1.0},
    "rate 2": {"conformal_rate": 2.0},
    "discount 0.98": {"interval_discount": 0.98},
}
LONGEST_PAST, LONGEST_STREAM = 8_000, 3_000
REHEARSED = {"opsd_daily": 7, "wikipedia": 7, "dam_price": 24, "evap": 24, "machine_temp": None}  # file and season
SHOWN = 40_000  # windows that a network is shown, again and again if there are fewer
AFTER = 200  # rows after a shift that are scored apart, and as many after them


@dataclass(frozen=True)
class PresentState(IntervalState, tag="present"):
    """Residual variance and one factor a level."""

    variance: Annotated[Array, Shape("N H", positive=True)]
    log_factor: Annotated[Array, Shape("N levels")]


class Present(IntervalRule, tag="present"):
    """ln c_b <- ln c_b + rate (share of the row's leads outside the *present* half-width - (1 - b))."""

    def start(self, variance: Array, half_widths: Array) -> PresentState:
        del half_widths
        return PresentState(variance.copy(), np.zeros((len(variance), len(LEVELS))))

    def half_widths(self, state: IntervalState) -> Array:
        assert isinstance(state, PresentState)
        return np.repeat((self.gaussian * np.exp(state.log_factor))[:, None], 2, axis=1)

    def learn(self, state: IntervalState, matured: Matured) -> PresentState:
        assert isinstance(state, PresentState)
        half_widths = self.half_widths(state)[:, 0]
        outside = np.abs(matured.in_sd)[:, None] > half_widths[..., None]
        leads = matured.heard.observed.sum(axis=1)[:, None]
        share = (outside * matured.heard.observed[:, None]).sum(axis=2) / np.maximum(leads, 1)
        moved = state.log_factor + self.options.rate * (share - 2 * self.tail * (leads > 0))
        fade = (1 - self.options.discount) * matured.heard.observed
        own = matured.error**2 * matured.shrink
        variance = np.maximum(state.variance + fade * (own - state.variance), 1e-12)
        return PresentState(variance, np.clip(moved, -REACH, REACH))


class GaussianStart(Conformal, tag="gaussian start"):
    """Intervals start with the normal law's shape, not with that of the source's errors."""

    def start(self, variance: Array, half_widths: Array) -> ConformalState:
        return super().start(variance, np.broadcast_to(self.gaussian, half_widths.shape))


class ShortMemory(Conformal, tag="short memory"):
    """The variance goes back as far at any horizon."""

    def __init__(self, options: IntervalOptions, like: Array) -> None:
        super().__init__(options, like)
        self._most_rows = 1 / (1 - options.discount)


class LightSource(Conformal, tag="light source"):
    """The source counts as `SOURCE_ROWS` rows, however long the horizon is."""

    def start(self, variance: Array, half_widths: Array) -> ConformalState:
        return replace(super().start(variance, half_widths), rows=np.full_like(variance, SOURCE_ROWS))


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows to play, and the row at which they shift, if they do."""

    group: str
    rows: Floats
    shift: int | None


@dataclass(frozen=True, eq=False)
class Cut:
    """What is known, and what is played after it."""

    past: Floats
    sizes: dict[str, Any]  # context, horizon, season
    streams: list[Stream]


def disturbed(name: str, later: Floats) -> list[Stream]:
    """The later part of a source as it is, and shifted in made-up ways."""
    middle = len(later) // 2
    half = np.arange(len(later))[:, None] >= middle
    return [
        Stream(f"{name}, calm", later, None),
        Stream(f"{name}, spread", 1.6 * later, 0),
        Stream(f"{name}, sudden spread", np.where(half, 2.0, 1.0) * later, middle),
        Stream(f"{name}, sudden level", later + np.where(half, 2.0, 0.0), middle),
    ]


def parts(values: Floats, known: float) -> tuple[Floats, Floats]:
    """Past and later rows, standardised by the past."""
    cut = int(known * len(values))
    scaler = Scaler.fit(values[:cut])
    return scaler.standardise(values[:cut])[-LONGEST_PAST:], scaler.standardise(values[cut:])[:LONGEST_STREAM]


def cuts(horizon: int, data: Path | None, rehearsal: Path | None) -> Iterator[Cut]:
    """Everything that is played at a horizon."""
    for shift in ("none", "level", "scale", "phase", "dynamics"):
        for seed in range(3):
            past, later = shifted_stream(shift, seed)
            yield Cut(
                past, {"context": 96, "horizon": horizon, "season": 24}, [Stream(f"synthetic, {shift}", later, 0)]
            )
    for name in ("etth", "weather-stand-in", "ili"):
        source = load(name, data)
        past, later = parts(source.source, 0.6 if name == "ili" else 0.7)
        leads = min(horizon, 48) if name == "ili" else horizon
        sizes = {"context": source.context, "horizon": leads, "season": source.season}
        yield Cut(past, sizes, disturbed("ili" if name == "ili" else "source", later))
    for name, season in REHEARSED.items() if rehearsal is not None else ():
        assert rehearsal is not None
        values = np.genfromtxt(rehearsal / f"{name}.csv", delimiter=",", skip_header=1)
        values = values.reshape(len(values), -1)
        known = np.flatnonzero(np.isfinite(values).any(axis=1))  # one of them ends in missing rows
        past, later = parts(values[: known[-1] + 1][-9000:], 0.7)
        filled = np.where(np.isfinite(past), past, 0.0)
        yield Cut(filled, {"context": 96, "horizon": horizon, "season": season}, disturbed("rehearsal", later))


def told(run: Run, shift: int | None) -> dict[str, float]:
    """Coverage and interval scores; after a shift also the coverage at 95 % in both stretches after it."""
    score = run.score()
    found = {"80": score.coverage[1], "95": score.coverage[3], "w80": score.winkler80, "w95": score.winkler95}
    found["crps"] = score.crps
    if shift is not None:
        lower, upper = run.interval(0.95)
        known = np.isfinite(run.outcome)
        inside = (lower <= run.outcome) & (run.outcome <= upper)
        start = max(shift, int(run.origins[0]))
        rows = run.origins[:, None, None] + np.arange(1, run.mean.shape[1] + 1)[:, None]
        for name, first in (("first", start), ("then", start + AFTER)):
            here = known & (rows > first) & (rows <= first + AFTER)
            found[name] = float(inside[here].mean()) if here.any() else math.nan
    return found


Found = dict[str, dict[str, list[dict[str, float]]]]  # by group of streams and rule


def ridge(past: Floats, context: int, horizon: int) -> AnyForecaster:
    return Ridge.fit(past, context, horizon)


def tcn(past: Floats, context: int, horizon: int) -> AnyForecaster:
    from ompb.forecasters.torch import configure, recipe, train

    config = configure("tcn", context=context, horizon=horizon, channels=past.shape[1])
    return train(config, past, replace(recipe("etth", "tcn", 0, "cpu"), epochs=max(5, SHOWN // len(past))))


FORECASTERS = {"ridge": ridge, "tcn": tcn}


def played(horizon: int, rules: list[str], data: Path | None, rehearsal: Path | None, forecaster_name: str) -> Found:
    """What every rule did on every stream."""
    found: Found = defaultdict(lambda: defaultdict(list))
    for cut in cuts(horizon, data, rehearsal):
        forecaster = FORECASTERS[forecaster_name](cut.past, cut.sizes["context"], cut.sizes["horizon"])
        for rule in rules:
            cal = Calibrator.fit(forecaster, cut.past, **cut.sizes, certificate=False, **RULES[rule])
            for stream in cut.streams:
                found[stream.group][rule].append(told(backtest(cal, forecaster, stream.rows), stream.shift))
    return found


def line(scores: list[dict[str, float]], first: list[dict[str, float]]) -> str:
    """Means of coverage, and scores relative to those of the first rule."""
    shown = [name for name in ("80", "95", "first", "then") if name in scores[0]]
    means = [f"{fmean(score[name] for score in scores):6.3f}" for name in shown]
    ratios = []
    for name in ("w80", "w95", "crps"):
        logs = [math.log(ours[name] / theirs[name]) for ours, theirs in zip(scores, first, strict=True)]
        ratios.append(f"{math.expm1(fmean(logs)):+7.1%}")
    return f"{len(scores):3d} {' '.join(means):28s}{' '.join(ratios)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data files; by default the one OMPB_DATA names")
    parser.add_argument("--rehearsal", type=Path, help="folder of further sources")
    parser.add_argument("--horizons", type=int, nargs="+", default=[24, 96])
    parser.add_argument("--forecaster", choices=list(FORECASTERS), default="ridge")
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=["present", "default"])
    args = parser.parse_args()
    print(f"coverage at 80 and 95 %; that at 95 % in the {AFTER} rows after a shift, and in {AFTER} more;")
    print(f"Winkler at 80 and 95 %, and CRPS, relative to the rule {args.rules[0]}")
    for horizon in args.horizons:
        print(f"\nH = {horizon}")
        for group, by_rule in played(horizon, args.rules, args.data, args.rehearsal, args.forecaster).items():
            for rule, scores in by_rule.items():
                print(f"{group:26s}{rule:14s}{line(scores, by_rule[args.rules[0]])}", flush=True)


if __name__ == "__main__":
    main()
