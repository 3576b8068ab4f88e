"""Rehearses the constants of the head and the gate on sources; writes what each choice would have done.

    OMP_NUM_THREADS=1 python benchmarks/rehearsal.py --data DIR --gpt2-checkpoint FILE

No target stream of the benchmark is read. The first rows of a source are its *past*: forecasters are fitted to them,
and heads. The rest is played as a stream, as it is and disturbed in ways that are made up: another level, another
spread, a slow drift, every channel in the place of its neighbour. Half way through, two of them come suddenly. A short
source is cut in several places, since the rest of one cut is too few rows to tell much.

The score of settings is the mean over streams of ln(MAE / MAE of the bare forecaster), every data set counting alike.
Starting from the settings as they are, all changes of one setting are tried. The one that harms the fewest streams by
over 1 %, and among those has the lowest score, is taken if it harms fewer than before, or as many and gains 0.01: what
is less is of the streams that were made up, not of the world. So on until no change is taken.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from ompb import Calibrator, Recorded, Ridge, Settings, backtest
from ompb.bench.backbones import versions
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.files import replacing
from ompb.forecasters.torch import configure, recipe, train
from ompb.scaler import Scaler
from ompb.types import Floats
from ompb.windows import sliding

Forecast: TypeAlias = Callable[[Floats], Floats]  # windows (n, context, C) to (n, H, C)

# Shares of the source that forecasters and heads know.
PASTS = {"etth": (0.7,), "weather-stand-in": (0.7,), "ili": (0.5, 0.6, 0.7, 0.8)}
LONGEST_PAST, LONGEST_STREAM = 10_000, 4_000  # rows; streams of the benchmark have about as many
HARM = math.log(1.01)
WORTH = 0.01  # what a change must gain
HORIZONS = {"etth": (24, 96, 336), "weather-stand-in": (24, 96), "ili": (24, 48)}
# ILI is short: there harm is done most easily, and every network is trained in minutes.
NETWORKS = {"etth": ("tcn",), "weather-stand-in": ("tcn",), "ili": ("tcn", "autoformer", "gpt4ts")}
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "evidence": (8.0, 12.0, 16.0),
    "caution": (50.0, 100.0, 200.0, 400.0),
    "backbone_prior": (0.4, 0.6, 0.8),
    "gate_discount": (0.99, 0.997, 0.999),
    "anchor": (200.0, 800.0),
    "discounts": ((0.997,), (0.999,)),
}


def _suddenly(rows: Floats, other: Floats) -> Floats:
    return np.where(np.arange(len(rows))[:, None] < len(rows) // 2, rows, other)


PAST = "past"  # the part that is not disturbed
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
class Cut:
    """A source cut in two, standardised by its past; what is forecast of it is kept."""

    dataset: str
    horizon: int
    known: float  # share of the source
    data: BenchmarkData

    @property
    def parts(self) -> tuple[Floats, Floats]:
        """Past and later rows."""
        cut = int(self.known * len(self.data.source))
        past, later = self.data.source[:cut], self.data.source[cut:]
        scaler = Scaler.fit(past)
        return scaler.standardise(past)[-LONGEST_PAST:], scaler.standardise(later)[:LONGEST_STREAM]

    def title(self, forecaster: str, disturbance: str) -> str:
        return f"{self.dataset}, {forecaster}, H = {self.horizon}, {self.known:.0%} known, {disturbance}"

    def rehearsal(self, name: str, forecasts: Mapping[str, Floats]) -> Rehearsal:
        """From the forecasts of the past and of the later rows, by disturbance."""
        past, later = self.parts
        sizes = {"context": self.data.context, "horizon": self.horizon, "season": self.data.season}
        streams = {
            self.title(name, disturbance): (disturb(later), Recorded(forecasts[disturbance]))
            for disturbance, disturb in DISTURBANCES.items()
        }
        return Rehearsal(self.dataset, sizes, past, Recorded(forecasts[PAST]), streams)


@dataclass(frozen=True)
class ForecastStore:
    """Where forecasters are fitted, on what, and where their forecasts are kept."""

    data_folder: Path | None
    gpt2_checkpoint: str
    device: str
    store: Path

    def rehearsals(self, dataset: str, horizon: int) -> Iterator[Rehearsal]:
        """A ridge and networks that know the beginning of a source, with every disturbance of its end."""
        data = load(dataset, self.data_folder)
        for known in PASTS[dataset]:
            cut = Cut(dataset, horizon, known, data)
            for name in ("ridge", *NETWORKS[dataset]):
                yield cut.rehearsal(name, self._forecasts(cut, name))

    def _forecasts(self, cut: Cut, name: str) -> Mapping[str, Floats]:
        """Of the past and of each disturbed stream, made once."""
        file = self.store / f"{cut.dataset}-{name}-{cut.horizon}-{cut.known}.npz"
        checkpoint = file.with_suffix(".checkpoint")
        if not file.exists():
            self.store.mkdir(parents=True, exist_ok=True)
            past, later = cut.parts
            forecaster = self._fitted(cut, name, past, checkpoint)
            parts = {PAST: past, **{kind: disturb(later) for kind, disturb in DISTURBANCES.items()}}
            made = {part: recorded(forecaster, rows, cut.data.context) for part, rows in parts.items()}
            with replacing(file, parents=True) as whole, whole.open("wb") as opened:
                np.savez(opened, allow_pickle=False, **made)
            checkpoint.unlink(missing_ok=True)
        with np.load(file) as kept:
            return {part: kept[part] for part in (PAST, *DISTURBANCES)}

    def _fitted(self, cut: Cut, name: str, past: Floats, checkpoint: Path) -> Forecast:
        if name == "ridge":
            return Ridge.fit(past, cut.data.context, cut.horizon)
        options: dict[str, Any] = {"context": cut.data.context, "horizon": cut.horizon, "channels": past.shape[1]}
        if name == "gpt4ts":
            options |= {"weights": "gpt2-partial", "checkpoint": self.gpt2_checkpoint}
        return train(configure(name, **options), past, recipe(cut.dataset, name, device=self.device), checkpoint)


def recorded(forecaster: Forecast, rows: Floats, context: int) -> Floats:
    """Forecasts (T, H, C) of every origin that has a whole window; NaN before."""
    made = forecaster(sliding(rows, context))
    return np.concatenate([np.full((context - 1, *made.shape[1:]), np.nan), made])


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
        """What is reached by one change after the other, as long as it is worth it."""
        changed = [
            dataclasses.replace(settings, **{name: value}) for name, values in CANDIDATES.items() for value in values
        ]
        found = min(changed, key=lambda choice: (self.outcome(choice).harmed, self.outcome(choice).score))
        return self.best(found) if self._worth(found, settings) else settings

    def _worth(self, found: Settings, settings: Settings) -> bool:
        new, old = self.outcome(found), self.outcome(settings)
        return (new.harmed, new.score + WORTH) < (old.harmed, old.score)


def described(settings: Settings) -> str:
    return ", ".join(f"{name} = {getattr(settings, name)}" for name in CANDIDATES)


def page(search: Search, start: Settings, best: Settings) -> str:
    """What was tried, and what the best did, stream by stream."""
    lines = ["# Settings, rehearsed on sources", "", *__doc__.strip().splitlines()[4:], ""]
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
    parser.add_argument("--store", type=Path, default=Path("results/store/rehearsal"), help="where forecasts are kept")
    parser.add_argument("--device", default="cpu", help="where networks are trained: cpu or cuda")
    parser.add_argument("--out", type=Path, default=Path("results/rehearsal.md"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    forecasts = ForecastStore(args.data, args.gpt2_checkpoint, args.device, args.store)
    rehearsals = [
        rehearsal
        for dataset, horizons in HORIZONS.items()
        for horizon in horizons
        for rehearsal in forecasts.rehearsals(dataset, horizon)
    ]
    start = Settings(certificate=False)  # it has no part in the forecast
    search = Search(rehearsals, args.jobs)
    best = search.best(start)
    args.out.write_text(page(search, start, best), encoding="utf-8")
    print(f"chosen: {described(best)}; see {args.out}")


if __name__ == "__main__":
    main()
