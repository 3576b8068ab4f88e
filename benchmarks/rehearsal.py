"""Chooses the constants of the head and the gate on sources alone; writes what each choice would have done.

    OMP_NUM_THREADS=1 python benchmarks/rehearsal.py --data DIR --gpt2-checkpoint FILE

No target stream of the benchmark is read. The first 70 % of a source are its *past*: forecasters are fitted to them,
and heads. The rest is played as a stream, as it is and disturbed in ways that are made up: another level, another
spread, a slow drift, every channel in the place of its neighbour. Half way through, two of them come suddenly.

Starting from the settings as they are, one setting after the other takes the value with the lowest score, until a
whole round changes nothing. The score is the mean over streams of ln(MAE / MAE of the bare forecaster), every data set
counting alike, and values that harm more streams by over 1 % than another are never chosen.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
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
LONGEST_PAST, LONGEST_STREAM = 10_000, 1_500  # rows; more would only take longer
HARM = math.log(1.01)
HORIZONS = {"etth": (24, 96, 336), "weather-stand-in": (24, 96), "ili": (24, 48)}
# ILI is short: there harm is done most easily, and every network is trained in minutes.
NETWORKS = {"etth": ("tcn",), "weather-stand-in": ("tcn",), "ili": ("tcn", "autoformer", "gpt4ts")}
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "evidence": (2.0, 4.0, 8.0),
    "ramp": (10.0, 25.0, 100.0),
    "backbone_prior": (0.4, 0.6, 0.8),
    "gate_discount": (0.97, 0.99, 0.997),
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
    """A stream with its base forecasts, and the past they go with; standardised."""

    dataset: str
    name: str
    sizes: dict[str, Any]  # context, horizon, season
    past: Floats  # (T, C)
    past_base: Recorded
    rows: Floats  # (T, C)
    base: Recorded

    def log_ratio(self, settings: Settings) -> float:
        """ln(MAE / MAE of the bare forecaster)."""
        calibrator = Calibrator.fit(self.past_base, self.past, **self.sizes, **dataclasses.asdict(settings))
        run = backtest(calibrator, self.base, self.rows)
        ours, bare = (np.nanmean(np.abs(forecast - run.outcome)) for forecast in (run.mean, run.base))
        return math.log(float(ours / bare))


@dataclass(frozen=True)
class Studio:
    """Where networks are trained, and from what."""

    data_folder: Path | None
    gpt2_checkpoint: str
    store: Path

    def rehearsals(self, dataset: str, horizon: int) -> Iterator[Rehearsal]:
        """Every disturbance of the end of a source, with a ridge and networks that know its beginning."""
        data = load(dataset, self.data_folder)
        cut = int(PAST * len(data.source))
        scaler = Scaler.of(data.source[:cut])
        past, later = scaler(data.source[:cut])[-LONGEST_PAST:], scaler(data.source[cut:])[:LONGEST_STREAM]
        forecasters: dict[str, Forecast] = {"ridge": Ridge.fit(past, data.context, horizon)}
        for network in NETWORKS[dataset]:
            forecasters[network] = self._trained(dataset, network, past, data.context, horizon)
        sizes = {"context": data.context, "horizon": horizon, "season": data.season}
        for name, forecaster in forecasters.items():
            past_base = recorded(forecaster, past, data.context)
            for disturbance, disturb in DISTURBANCES.items():
                rows = disturb(later)
                title = f"{dataset}, {name}, H = {horizon}, {disturbance}"
                now = recorded(forecaster, rows, data.context)
                yield Rehearsal(dataset, title, sizes, past, past_base, rows, now)

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
    """What settings did on every stream, by data set."""

    log_ratios: tuple[tuple[str, float], ...]

    @property
    def score(self) -> float:
        """Mean of ln(MAE / MAE of the bare forecaster), every data set counting alike."""
        datasets = {dataset for dataset, _ in self.log_ratios}
        return fmean(fmean(ratio for name, ratio in self.log_ratios if name == dataset) for dataset in datasets)

    @property
    def harmed(self) -> int:
        """Streams made worse by more than 1 %."""
        return sum(ratio > HARM for _, ratio in self.log_ratios)


@dataclass
class Search:
    """One setting after the other; no configuration is tried twice."""

    streams: Sequence[Rehearsal]
    pool: Executor
    tried: dict[Settings, Outcome] = dataclasses.field(default_factory=dict)

    def outcome(self, settings: Settings) -> Outcome:
        if settings not in self.tried:
            ratios = self.pool.map(Rehearsal.log_ratio, self.streams, [settings] * len(self.streams), chunksize=7)
            datasets = [stream.dataset for stream in self.streams]
            self.tried[settings] = found = Outcome(tuple(zip(datasets, ratios, strict=True)))
            print(f"{found.score:+.4f} harmed {found.harmed:2d} {described(settings)}", flush=True)
        return self.tried[settings]

    def best(self, settings: Settings) -> Settings:
        """The best that can be reached by changing one setting at a time."""
        start = settings
        for name, values in CANDIDATES.items():
            choices = [dataclasses.replace(settings, **{name: value}) for value in values]
            settings = min(choices, key=lambda choice: (self.outcome(choice).harmed, self.outcome(choice).score))
        return settings if settings == start else self.best(settings)


def described(settings: Settings) -> str:
    return ", ".join(f"{name} = {getattr(settings, name)}" for name in CANDIDATES)


def page(search: Search, start: Settings, best: Settings) -> str:
    """What was tried, and what the best did, stream by stream."""
    lines = ["# Settings chosen on sources alone", "", *__doc__.strip().splitlines()[4:], ""]
    made = ", ".join(f"{name} {number}" for name, number in versions("ompb", "numpy", "torch").items())
    lines += [f"{len(search.streams)} streams, {len(search.tried)} settings; {made}.", ""]
    lines += [f"- start: {described(start)}", f"- chosen: {described(best)}", ""]
    lines += [f"| score | harmed | {' | '.join(CANDIDATES)} |", "| ---: | ---: |" + " ---: |" * len(CANDIDATES)]
    for settings, outcome in sorted(search.tried.items(), key=lambda item: (item[1].harmed, item[1].score)):
        values = " | ".join(str(getattr(settings, name)) for name in CANDIDATES)
        lines.append(f"| {outcome.score:+.4f} | {outcome.harmed} | {values} |")
    lines += ["", "MAE relative to the bare forecaster, stream by stream, with the settings chosen:", ""]
    lines += ["| stream | ratio |", "| --- | ---: |"]
    ratios = zip(search.streams, search.tried[best].log_ratios, strict=True)
    lines += [f"| {stream.name} | {math.exp(ratio):.3f} |" for stream, (_, ratio) in ratios]
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
    streams = [
        stream
        for dataset, horizons in HORIZONS.items()
        for horizon in horizons
        for stream in studio.rehearsals(dataset, horizon)
    ]
    start = Settings(certificate=False)  # it has no part in the forecast
    with ProcessPoolExecutor(args.jobs) as pool:
        search = Search(streams, pool)
        best = search.best(start)
    args.out.write_text(page(search, start, best), encoding="utf-8")
    print(f"chosen: {described(best)}; see {args.out}")


if __name__ == "__main__":
    main()
