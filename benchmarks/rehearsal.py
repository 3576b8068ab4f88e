"""Chooses the constants of the head and the gate on sources alone; writes what each choice would have done.

    OMP_NUM_THREADS=1 python benchmarks/rehearsal.py --data DIR --gpt2-checkpoint FILE

No target stream of the benchmark is read. The first 70 % of a source are its *past*: forecasters are fitted to them,
and heads. The rest is played as a stream, as it is and disturbed in ways that are made up: another level, another
spread, a slow drift, every channel in the place of its neighbour. Half way through, two of them come suddenly.

The score of settings is the mean over streams of ln(MAE / MAE of the bare forecaster), every data set counting alike.
Starting from the settings as they are, one after the other takes the value with the lowest score, until a whole round
changes nothing. A value that harms more streams by over 1 % is never taken, nor one that gains less than 0.01 on the
present one: such differences are of the streams that were made up, not of the world.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ompb import Calibrator, Recorded, Ridge, Settings, backtest
from ompb.bench.backbones import Scaler, versions
from ompb.datasets.benchmark import load
from ompb.forecasters.torch import configure, recipe, train
from ompb.types import Floats

Forecast: TypeAlias = Callable[[Floats], Floats]  # windows (n, context, C) to (n, H, C)

PAST = 0.7  # share of the source that forecasters and heads know
LONGEST_PAST, LONGEST_STREAM = 10_000, 4_000  # rows; streams of the benchmark have about as many
HARM = math.log(1.01)
WORTH = 0.01  # what a change must gain
HORIZONS = {"etth": (24, 96, 336), "weather-stand-in": (24, 96), "ili": (24, 48)}
# ILI is short: there harm is done most easily, and every network is trained in minutes.
NETWORKS = {"etth": ("tcn",), "weather-stand-in": ("tcn",), "ili": ("tcn", "autoformer", "gpt4ts")}
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "evidence": (4.0, 8.0, 16.0),
    "ramp": (10.0, 25.0, 100.0),
    "backbone_prior": (0.4, 0.6, 0.8),
    "gate_discount": (0.99, 0.997, 0.999),
    "anchor": (50.0, 200.0, 800.0),
    "discounts": ((0.99,), (0.997,), (0.999,)),
}


def _suddenly(rows: Floats, other: Floats) -> Floats:
    return np.where(np.arange(len(rows))[:, None] < len(rows) // 2, rows, other)


# What may happen to standardised rows (T, C).
DISTURBANCES: dict[str, Callable[[Floats], Floats]] = {
    "nothing": lambda rows: rows,
    "level": lambda rows: rows + 2.0,
    "sudden level": lambda rows: _suddenly(rows, rows + 2.0),
    "spread": lambda rows: 1.5 * rows,
    "drift": lambda rows: rows + np.linspace(0.0, 3.0, len(rows))[:, None],
    "neighbour": lambda rows: np.roll(rows, 1, axis=1),
    "sudden neighbour": lambda rows: _suddenly(rows, np.roll(rows, 1, axis=1)),
}


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A forecaster's past, and streams by name, each with its base forecasts; standardised."""

    dataset: str
    sizes: dict[str, Any]  # context, horizon, season
    past: Floats  # (T, C)
    past_base: Recorded
    streams: dict[str, tuple[Floats, Recorded]]  # rows are (T, C)

    def log_ratios(self, settings: Settings) -> dict[str, float]:
        """ln(MAE / MAE of the bare forecaster) on every stream."""
        calibrator = Calibrator.fit(self.past_base, self.past, **self.sizes, **dataclasses.asdict(settings))
        found = {}
        for name, (rows, base) in self.streams.items():
            run = backtest(calibrator, base, rows)
            ours, bare = (np.nanmean(np.abs(forecast - run.outcome)) for forecast in (run.mean, run.base))
            found[name] = math.log(float(ours / bare))
        return found


@dataclass(frozen=True)
class Studio:
    """Where networks are trained, and from what."""

    data_folder: Path | None
    gpt2_checkpoint: str
    store: Path

    def rehearsals(self, dataset: str, horizon: int) -> Iterator[Rehearsal]:
        """A ridge and networks that know the beginning of a source, with every disturbance of its end."""
        data = load(dataset, self.data_folder)
        cut = int(PAST * len(data.source))
        scaler = Scaler.of(data.source[:cut])
        past, later = scaler(data.source[:cut])[-LONGEST_PAST:], scaler(data.source[cut:])[:LONGEST_STREAM]
        forecasters: dict[str, Forecast] = {"ridge": Ridge.fit(past, data.context, horizon)}
        for network in NETWORKS[dataset]:
            forecasters[network] = self._trained(dataset, network, past, data.context, horizon)
        sizes = {"context": data.context, "horizon": horizon, "season": data.season}
        for name, forecaster in forecasters.items():
            streams = {}
            for disturbance, disturb in DISTURBANCES.items():
                rows = disturb(later)
                title = f"{dataset}, {name}, H = {horizon}, {disturbance}"
                streams[title] = rows, recorded(forecaster, rows, data.context)
            yield Rehearsal(dataset, sizes, past, recorded(forecaster, past, data.context), streams)

    def _trained(self, dataset: str, network: str, past: Floats, context: int, horizon: int) -> Forecast:
        options: dict[str, Any] = {"context": context, "horizon": horizon, "channels": past.shape[1]}
        if network == "gpt4ts":
            options |= {"weights": "gpt2-partial", "checkpoint": self.gpt2_checkpoint}
        checkpoint = self.store / f"{dataset}-{network}-{horizon}.checkpoint"
        return train(configure(network, **options), past, recipe(dataset, network), checkpoint)


def recorded(forecaster: Forecast, rows: Floats, context: int) -> Recorded:
    """Forecasts of every origin that has a whole window; NaN before."""
    made = forecaster(sliding_window_view(rows, context, axis=0).transpose(0, 2, 1))
    return Recorded(np.concatenate([np.full((context - 1, *made.shape[1:]), np.nan), made]))


@dataclass(frozen=True)
class Outcome:
    """What settings did: ln(MAE / MAE of the bare forecaster) by data set and stream."""

    log_ratios: dict[str, dict[str, float]]

    @property
    def score(self) -> float:
        """Their mean, every data set counting alike."""
        return fmean(fmean(ratios.values()) for ratios in self.log_ratios.values())

    @property
    def harmed(self) -> int:
        """Streams made worse by more than 1 %."""
        return sum(ratio > HARM for ratios in self.log_ratios.values() for ratio in ratios.values())


_rehearsals: list[Rehearsal] = []  # of a worker; too large to be sent with every task


def _remember(rehearsals: list[Rehearsal]) -> None:
    _rehearsals[:] = rehearsals


def _log_ratios(place: int, settings: Settings) -> dict[str, float]:
    return _rehearsals[place].log_ratios(settings)


@dataclass
class Search:
    """One setting after the other; no configuration is tried twice."""

    rehearsals: list[Rehearsal]
    jobs: int
    tried: dict[Settings, Outcome] = dataclasses.field(default_factory=dict)

    def outcome(self, settings: Settings) -> Outcome:
        if settings not in self.tried:
            # copies of this process: they share its arrays
            copies = get_context("fork")
            with ProcessPoolExecutor(self.jobs, copies, initializer=_remember, initargs=(self.rehearsals,)) as pool:
                places = range(len(self.rehearsals))
                every = pool.map(_log_ratios, places, [settings] * len(places))
            by_dataset: dict[str, dict[str, float]] = {}
            for rehearsal, ratios in zip(self.rehearsals, every, strict=True):
                by_dataset.setdefault(rehearsal.dataset, {}).update(ratios)
            self.tried[settings] = found = Outcome(by_dataset)
            print(f"{found.score:+.4f} harmed {found.harmed:2d} {described(settings)}", flush=True)
        return self.tried[settings]

    def best(self, settings: Settings) -> Settings:
        """What is reached by changing one setting at a time, as long as it is worth it."""
        start = settings
        for name, values in CANDIDATES.items():
            choices = [dataclasses.replace(settings, **{name: value}) for value in values]
            found = min(choices, key=lambda choice: (self.outcome(choice).harmed, self.outcome(choice).score))
            if self._worth(found, settings):
                settings = found
        return settings if settings == start else self.best(settings)

    def _worth(self, found: Settings, settings: Settings) -> bool:
        new, old = self.outcome(found), self.outcome(settings)
        return (new.harmed, new.score + WORTH) < (old.harmed, old.score)


def described(settings: Settings) -> str:
    return ", ".join(f"{name} = {getattr(settings, name)}" for name in CANDIDATES)


def page(search: Search, start: Settings, best: Settings) -> str:
    """What was tried, and what the best did, stream by stream."""
    lines = ["# Settings chosen on sources alone", "", *__doc__.strip().splitlines()[4:], ""]
    made = ", ".join(f"{name} {number}" for name, number in versions("ompb", "numpy", "torch").items())
    ratios = {name: ratio for of_set in search.tried[best].log_ratios.values() for name, ratio in of_set.items()}
    lines += [f"{len(ratios)} streams, {len(search.tried)} settings; {made}.", ""]
    lines += [f"- start: {described(start)}", f"- chosen: {described(best)}", ""]
    lines += [f"| score | harmed | {' | '.join(CANDIDATES)} |", "| ---: | ---: |" + " ---: |" * len(CANDIDATES)]
    for settings, outcome in sorted(search.tried.items(), key=lambda item: (item[1].harmed, item[1].score)):
        values = " | ".join(str(getattr(settings, name)) for name in CANDIDATES)
        lines.append(f"| {outcome.score:+.4f} | {outcome.harmed} | {values} |")
    lines += ["", "MAE relative to the bare forecaster, stream by stream, with the settings chosen:", ""]
    lines += ["| stream | ratio |", "| --- | ---: |"]
    lines += [f"| {name} | {math.exp(ratio):.3f} |" for name, ratio in ratios.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data files; by default the one OMPB_DATA names")
    parser.add_argument("--gpt2-checkpoint", required=True, help="file of GPT-2's weights, with or without its MLPs")
    parser.add_argument("--store", type=Path, default=Path("results/store/rehearsal"), help="where trainings are kept")
    parser.add_argument("--out", type=Path, default=Path("results/rehearsal.md"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.store.mkdir(parents=True, exist_ok=True)
    studio = Studio(args.data, args.gpt2_checkpoint, args.store)
    rehearsals = [
        rehearsal
        for dataset, horizons in HORIZONS.items()
        for horizon in horizons
        for rehearsal in studio.rehearsals(dataset, horizon)
    ]
    start = Settings(certificate=False)  # it has no part in the forecast
    search = Search(rehearsals, args.jobs)
    best = search.best(start)
    args.out.write_text(page(search, start, best), encoding="utf-8")
    print(f"chosen: {described(best)}; see {args.out}")


if __name__ == "__main__":
    main()
