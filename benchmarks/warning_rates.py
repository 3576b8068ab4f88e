"""How often warnings come without a change, and how soon after one.

    OMP_NUM_THREADS=1 python benchmarks/warning_rates.py --data DIR [--out results/warnings.md]

A ridge regression forecasts 24 rows from 96, on the past of each series; the rest is played as a stream. Its own
warnings are counted as false, whatever they may have seen. Then, at several rows of the stream, each of five changes is
made to what follows, and a change counts as found once a warning begins that was not in force before it.

The constants of the warnings were chosen on the sources of ETTh1 and Miami and on series of other kinds (`rehearsal` in
the data folder, where there is one); the later parts of ETTh1 and Miami took no part.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ompb import Calibrator, Forecast, Ridge, Stream
from ompb.datasets.benchmark import load
from ompb.episodes import episodes
from ompb.floor.files import replacing
from ompb.rows.season import find_season
from ompb.types import Floats

CONTEXT, HORIZON = 96, 24
LONGEST_PAST, LONGEST_STREAM = 10_000, 4_000  # rows
PLACES = 12  # of changes in each stream
FIRST_PLACE = 500  # rows into the stream
SOON, LATER = 24, 96  # rows after a change
SIGNALS, TOGETHER = ("inputs", "level", "errors", "novelty"), "together"
UNSEEN = 0.25

# What happens to standardised rows (T, C) from a place on.
Change: TypeAlias = Callable[[Floats, int], Floats]


def _noisy(rows: Floats, place: int) -> Floats:
    return np.asarray(rows[place:] + np.random.default_rng(place).normal(size=rows[place:].shape))


CHANGES: dict[str, Change] = {
    "level + 1.5 sd": lambda rows, place: rows[place:] + 1.5,
    "scale x 1.8": lambda rows, place: 1.8 * rows[place:],
    "noise of 1 sd": _noisy,
    "reversal": lambda rows, place: -rows[place:],
    "6 rows ahead": lambda rows, place: rows[place + 6 :],
}


@dataclass
class Counts:
    """What was seen in one stream."""

    rows: int = 0
    false: dict[str, int] = field(default_factory=dict)  # episodes by signal
    waits: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # rows until found, by change and signal

    def per_thousand(self, signal: str) -> float:
        return 1000 * self.false.get(signal, 0) / self.rows

    def found(self, within: int, signal: str, change: str | None = None) -> float:
        """Share of the changes found."""
        waits = [wait for name, found in self.waits.items() if change in (None, name) for wait in found[signal]]
        return float(np.mean(np.asarray(waits) < within))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    counts = {name: follow(*parts) for name, parts in streams(arguments.data)}
    page = table(counts)
    print(page)
    if arguments.out is not None:
        with replacing(arguments.out) as part:
            part.write_text(page + "\n", encoding="utf-8")


def streams(data: Path) -> Iterator[tuple[str, tuple[Floats, Floats, int | None]]]:
    """Past, stream and season of each series, by name."""
    etth, weather = load("etth", data), load("weather-stand-in", data)
    for name, whole in (("ETTh1", etth), ("Miami", weather)):
        yield f"{name}, later part", (whole.source, whole.streams["id"], whole.season)
        yield f"{name}, source", (*halves(whole.source[:14_000]), whole.season)
    for file in sorted((data / "rehearsal").glob("*.csv")):
        values = np.genfromtxt(file, delimiter=",", skip_header=1)
        past, rest = halves(values.reshape(len(values), -1))
        if len(rest) > FIRST_PLACE + 2 * LATER:
            yield file.stem, (past, rest, find_season(past))


def halves(values: Floats) -> tuple[Floats, Floats]:
    return values[: len(values) // 2], values[len(values) // 2 :]


def follow(past: Floats, rows: Floats, season: int | None) -> Counts:
    """Fit to the past, follow the rows as they are, and from several of them as they are not."""
    past, rows = past[-LONGEST_PAST:], rows[:LONGEST_STREAM]
    ridge = Ridge.fit(past[: round((1 - UNSEEN) * len(past))], CONTEXT, HORIZON)
    sizes: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": season, "unseen": UNSEEN}
    calibrator = Calibrator.fit(ridge, past, certificate=False, **sizes)
    stream, issued, counts = calibrator.stream(ridge), [], Counts()
    standardised = calibrator.scaler.standardise(rows)
    places = np.linspace(FIRST_PLACE, len(rows) - LATER - 6, PLACES).astype(int).tolist()
    for row, values in enumerate(rows):
        if row in places:
            for name, change in CHANGES.items():
                after = calibrator.centre + calibrator.scale * change(standardised, row)[:LATER]
                for signal, wait in waits(copy.copy(stream), after).items():
                    counts.waits.setdefault(name, {}).setdefault(signal, []).append(wait)
        forecast = stream.step(values)
        if forecast is not None:
            issued.append(forecast)
    counts.rows = len(issued)
    for signal in (*SIGNALS, TOGETHER):
        counts.false[signal] = len(episodes(only(forecast, signal).warnings for forecast in issued))
    return counts


def only(forecast: Forecast, signal: str) -> Forecast:
    """As if there were no other signal."""
    kept = tuple(alert for alert in forecast.warnings if signal in (alert.signal, TOGETHER))
    return dataclasses.replace(forecast, warnings=kept)


def waits(stream: Stream, rows: Floats) -> dict[str, float]:
    """Rows until a warning begins, by signal; infinite where none does."""
    first, found = stream.rows, dict.fromkeys((*SIGNALS, TOGETHER), np.inf)
    for row in rows:
        forecast = stream.step(row)
        for alert in () if forecast is None else forecast.warnings:
            if alert.since >= first:
                for name in (alert.signal, TOGETHER):
                    found[name] = min(found[name], alert.since - first)
    return found


def table(counts: dict[str, Counts]) -> str:
    """Two tables in Markdown."""
    every = (TOGETHER, *SIGNALS)
    lines = [
        "# Warnings: how often without a change, and how soon after one",
        "",
        "Made by `python benchmarks/warning_rates.py --data DIR --out results/warnings.md`, which says how. Constants "
        "were chosen on the other series; the later parts of ETTh1 and Miami took no part. Where the series are from: "
        "[the experiment](../docs/experiment.md#sources-of-the-rehearsal).",
        "",
        "False episodes per 1,000 rows | share of changes found within 24 rows / within 96 rows:",
        "",
        f"| stream | rows | {' | '.join(every)} |",
        f"|---|---|{'---|' * len(every)}",
    ]
    for name, one in counts.items():
        cells = (f"{one.per_thousand(s):.1f}, {one.found(SOON, s):.2f} / {one.found(LATER, s):.2f}" for s in every)
        lines.append(f"| {name} | {one.rows} | {' | '.join(cells)} |")
    lines += [
        "",
        "All signals together, share found within 24 rows / within 96 rows, by change:",
        "",
        f"| stream | {' | '.join(CHANGES)} |",
        f"|---|{'---|' * len(CHANGES)}",
    ]
    for name, one in counts.items():
        cells = (f"{one.found(SOON, TOGETHER, c):.2f} / {one.found(LATER, TOGETHER, c):.2f}" for c in CHANGES)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
