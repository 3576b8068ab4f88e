"""Lives through thousands of short random streams and counts what comes of them.

    OMP_NUM_THREADS=1 python benchmarks/fuzz_streams.py --streams 2000

A stream gets random options and a random shape; its rows have missing, absurd and infinite cells, come late, twice or
never, and are of the wrong length now and then; its forecaster sometimes misbehaves; it is saved and loaded on the way.

Counted are calls that

answered   returned a forecast, or nothing where nothing was due;
refused    raised an error of ours, with the state as it was;
wrong      did anything else: raised another error, changed the state and raised, said NaN or infinity. Must not happen.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ompb
from ompb import archive
from ompb.errors import OmpbError
from ompb.types import Floats

EXAMPLES = 10  # wrong outcomes that are told in words
CALIBRATORS_PER_STREAM = 0.1  # fitting takes as long as some streams
ABSURD = (1e6, -1e7, 9.96921e36, 1e90, 1e160, -1e300, np.inf, -np.inf)


@dataclass
class Tally:
    """What calls came to, by the kind of call."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, kind: str, outcome: str, reason: str = "") -> None:
        """Count a call."""
        self.counts[kind, outcome] += 1
        if outcome == "wrong" and len(self.examples) < EXAMPLES:
            self.examples.append(f"{kind}: {reason}")

    def of(self, outcome: str) -> int:
        """Calls that came to that."""
        return sum(count for (_, found), count in self.counts.items() if found == outcome)

    def __str__(self) -> str:
        outcomes = ("answered", "refused", "wrong")
        lines = [f"{'':10}" + "".join(f"{outcome:>10}" for outcome in outcomes)]
        kinds = sorted({kind for kind, _ in self.counts})
        lines += [f"{kind:10}" + "".join(f"{self.counts[kind, outcome]:10}" for outcome in outcomes) for kind in kinds]
        return "\n".join([*lines, *self.examples])


@dataclass
class Moody:
    """A forecaster that repeats the newest row, and misbehaves at times."""

    rng: np.random.Generator
    horizon: int
    mood: float  # how often it misbehaves

    def __call__(self, windows: NDArray[np.floating]) -> Any:
        said = np.repeat(windows[:, -1:], self.horizon, axis=1)
        if self.rng.random() >= self.mood:
            return said
        faults: tuple[Callable[[], Any], ...] = (
            lambda: said * np.nan,
            lambda: np.full_like(said, 1e160),
            lambda: said[:, :-1] if self.horizon > 1 else said[0],
            lambda: said + 1j,
            lambda: said > 0,
            lambda: "nothing",
            lambda: None,
            lambda: 1 / 0,
            lambda: [][0],
            lambda: said.astype(np.float32),  # no fault
            lambda: (windows.fill(np.nan), said)[1],  # type: ignore[func-returns-value]  # what it was given is its own
        )
        return faults[self.rng.integers(len(faults))]()


def options(rng: np.random.Generator) -> dict[str, Any]:
    """Some options of `ompb.Settings`, most of them at their ends."""
    choices: dict[str, tuple[Any, ...]] = {
        "discounts": ((0.999,), (0.5,), (0.9, 1.0)),
        "anchor": (800.0, 1e-3, 1e6),
        "basis": (1, 2, 10),
        "profile": (True, False),
        "online": (True, True, False),
        "patience": (0, 1, 3, 32),
        "gate": ("channel", "shared", "open"),
        "evidence": (12.0, 1e4, 0.01),
        "novelty": (4.0, 0.0, 100.0),
        "novelty_fade": (10.0, 1e-3, 1e6),
        "spans": ((1,), (1, 2, 4, 6), (1, 3)),
        "guard": (20.0, 20.0, 3.0, None),
        "guard_rows": (6, 0, 1),
        "certificate": (True, True, False),
        "kind": ("betting", "freedman", "subgamma", "iid"),
        "uniform": (False, True),
        "reread": (1, 3, 32),
        "ring": (1, 8, 64),
        "draws": (0, 0, 2, 4),
        "disagreement": ("clipped", "normalised", "unclipped"),
        "backbone_prior": (0.5, 1e-3, 0.999),
        "members": (("backbone",), ("backbone", "head"), ("memory", "backbone", "running bias")),
        "warning_rows": (1500.0, 200.0, 1e6),
        "interval_discount": (0.99, 1.0, 0.5),
        "conformal_rate": (0.5, 0.0, 10.0),
    }
    chosen = [name for name in choices if rng.random() < 0.4]
    found = {name: choices[name][rng.integers(len(choices[name]))] for name in chosen}
    speeds: tuple[dict[str, Any], ...] = (
        {},
        {"gate_discounts": (1.0,), "cautions": (200.0,)},
        {"gate_discounts": (0.1, 0.9, 1.0), "cautions": (1e-3, 1.0, 200.0)},
    )
    return found | speeds[rng.integers(len(speeds))]


def source_rows(rng: np.random.Generator, count: int, channels: int) -> Floats:
    """Seasons, noise, trends or constants, in any units."""
    at = np.arange(count)[:, None]
    rows = np.sin(2 * np.pi * at / 6 + rng.uniform(0, 6, channels)) + rng.uniform(0, 1) * rng.normal(
        size=(count, channels)
    )
    rows = rows * 10.0 ** rng.integers(-6, 7, channels) + rng.choice([0.0, 1.0, 1e6])
    if rng.random() < 0.1:
        rows[:, 0] = rng.choice([0.0, 0.1, -7e5])  # a channel that never moves
    rows[rng.random(rows.shape) < rng.choice([0.0, 0.05, 0.3])] = np.nan
    return np.asarray(rows)


def calibrator(rng: np.random.Generator) -> ompb.Calibrator:
    """Of a random shape, with random options."""
    context, horizon, channels = (int(rng.integers(1, most)) for most in (13, 7, 4))
    rows = source_rows(rng, int(rng.integers(5, 9)) * (context + horizon), channels)
    seasons: tuple[Any, ...] = (None, 6, "auto")
    return ompb.Calibrator.fit(
        Moody(rng, horizon, 0.0),
        rows,
        context=context,
        horizon=horizon,
        season=seasons[rng.integers(3)],
        times=np.arange(len(rows)) if rng.random() < 0.4 else None,
        **options(rng),
    )


def live(rng: np.random.Generator, cal: ompb.Calibrator, folder: Path, tally: Tally) -> None:
    """One short stream."""
    forecaster = Moody(rng, cal.horizon, rng.choice([0.0, 0.0, 0.1]))
    stream = cal.stream(forecaster)
    timed, time = cal.grid is not None and rng.random() < 0.7, 0
    level = cal.centre
    if rng.random() < 0.3:
        time = int(rng.integers(1, 3 * cal.context + 2))
        known = np.stack([live_row(rng, cal, level)[: cal.channels] for _ in range(time)])
        remember = partial(stream.remember, known, times=np.arange(time) if timed else None, replay=rng.random() < 0.3)
        attempt(stream, "history", remember, tally)
    for _ in range(int(rng.integers(10, 60))):
        if rng.random() < 0.02:
            level = level + cal.scale * rng.choice([-1, 1]) * 10.0 ** rng.uniform(0, 7)
        time += 1 if rng.random() < 0.95 else int(rng.integers(-2, 6))
        row = live_row(rng, cal, level)
        extra: dict[str, Any] = {"at": time} if timed else {}
        if rng.random() < 0.05:
            extra["base"] = [None, level[None], "words", np.full((cal.horizon, cal.channels), level)][rng.integers(4)]
        attempt(stream, "step", partial(stream.step, row, **extra), tally)
        if rng.random() < 0.2:
            late = stream.rows - 1 - int(rng.integers(-1, 6))
            cells = np.where(rng.random(cal.channels) < 0.5, live_row(rng, cal, level)[: cal.channels], np.nan)
            attempt(stream, "observe", partial(stream.observe, late, cells), tally)
        if rng.random() < 0.03:
            stream = reloaded(stream, cal, forecaster, folder, tally)


def live_row(rng: np.random.Generator, cal: ompb.Calibrator, level: Floats) -> Floats:
    """Usual, with missing or absurd cells, or of the wrong length."""
    row = level + cal.scale * rng.normal(size=cal.channels)
    row[rng.random(cal.channels) < 0.1] = np.nan
    if rng.random() < 0.05:
        row[rng.integers(cal.channels)] *= 10.0 ** rng.uniform(0, 12)
    if rng.random() < 0.05:
        row[rng.integers(cal.channels)] = ABSURD[rng.integers(len(ABSURD))]
    return np.append(row, 0.0) if rng.random() < 0.01 else row


def attempt(stream: ompb.Stream, kind: str, call: Callable[[], ompb.Forecast | None], tally: Tally) -> None:
    """Make a call, and look at what it did."""
    before = archive.fingerprint(stream._state)
    try:
        forecast = call()
    except OmpbError as error:
        same = archive.fingerprint(stream._state) == before
        tally.add(kind, "refused" if same else "wrong", f"{type(error).__name__} changed the state: {error}")
        return
    except Exception as error:
        tally.add(kind, "wrong", f"{type(error).__name__}: {error} with {stream._cohort.cal.settings}")
        return
    fault = "" if forecast is None else broken(forecast)
    risk = stream.realised_risk()
    if not 0 <= risk.mean <= risk.upper <= 1:
        fault = f"realised risk {risk}"
    tally.add(kind, "wrong" if fault else "answered", f"{fault} with {stream._cohort.cal.settings}")


def broken(forecast: ompb.Forecast) -> str:
    """What of a forecast is NaN or infinite, in a word."""
    arrays: dict[str, Any] = {name: getattr(forecast, name) for name in ("mean", "base", "gate", "sd", "multipliers")}
    arrays |= {"the interval": forecast.interval(0.95), "a quantile": forecast.quantile(0.01)}
    if forecast.certificate is not None:
        terms = forecast.certificate.terms()
        arrays |= {name: value for name, value in terms.items() if isinstance(value, float)}
    return ", ".join(name for name, values in arrays.items() if not np.isfinite(values).all())


def reloaded(stream: ompb.Stream, cal: ompb.Calibrator, forecaster: Moody, folder: Path, tally: Tally) -> ompb.Stream:
    """The stream after a file of it was written and read."""
    try:
        stream.save(folder / "stream")
        other = ompb.Stream.load(folder / "stream", cal, forecaster)
    except Exception as error:
        tally.add("file", "wrong", f"{type(error).__name__}: {error} with {cal.settings}")
        return stream
    same = archive.fingerprint(other._state) == archive.fingerprint(stream._state)
    tally.add("file", "answered" if same else "wrong", "another state was read than written")
    return other


def fuzz(streams: int, seed: int = 0) -> Tally:
    """So many streams. Each draws from a seed of its own, so that one can be looked at alone."""
    tally = Tally()
    cal = None
    with TemporaryDirectory() as folder:
        for number in range(streams):
            rng = np.random.default_rng((seed, number))
            if cal is None or rng.random() < CALIBRATORS_PER_STREAM:
                try:
                    cal = calibrator(rng)
                    tally.add("fit", "answered")
                except OmpbError:
                    tally.add("fit", "refused")
                except Exception as error:
                    tally.add("fit", "wrong", f"{type(error).__name__}: {error} in stream {number}")
            if cal is not None:
                live(rng, cal, Path(folder), tally)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("error")  # a number that overflows on the way is a fault, too
    tally = fuzz(chosen.streams, chosen.seed)
    print(tally)
    return int(tally.of("wrong") > 0)


if __name__ == "__main__":
    raise SystemExit(main())
